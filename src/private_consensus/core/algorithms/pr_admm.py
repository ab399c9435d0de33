r"""PR-ADMM: output perturbation with decaying noise and a threshold on what neighbours send.

Paper 004, section 3.3. The exact minimiser is sent with Gaussian noise of variance

.. math::
    (s^2)^{t+1} &= s_1^2\,R_P^{\lfloor t/T_p\rfloor} && \text{periodic} \\
    (s^2)^{t+1} &= s_1^2 / (R_T\,t(t+1)) && \text{iteration, } s_1^2 \text{ at } t = 0

for t = 0, ..., T-1, and a neighbour's value is replaced by the agent's own where the two were
farther apart than U, summed over iterations. A message costs :math:`\Delta_i^2/(2s^2)` in zCDP.
Where the printed iteration scheme divides by zero, at t = 0, Theorem 3's sum says :math:`s_1^2`.
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from private_consensus.common.errors import require

from .base import column
from .families import admm
from .families.admm import ADMMFamily
from .families.received_threshold import no_distance, received_within
from .parameters import one_of, only, positive, up_to_one, whole

SCHEDULES = ("periodic", "iteration")
THRESHOLDS = ("literal", "consistent", "none")
SENSITIVITIES = ("lemma10", "per_sample", "sharp")
SUMS = ("direct", "printed")

State = namedtuple("State", (*admm.State._fields, "distance", "replaced"))
"""State of ADMM, with two fields of :class:`.families.received_threshold.Received`."""


@dataclass(frozen=True, kw_only=True)
class PeriodicallyReducedADMM(ADMMFamily):
    r"""Periodically reduced ADMM (PR-ADMM).

    ``noise`` is :math:`s_1`, the standard deviation of the first message.

    Parameters
    ----------
    schedule : {"periodic", "iteration"}
    T_p : int
        Iterations of equal variance.
    R_P, R_T : float
        Decay, in (0, 1] and above 0.
    threshold : {"literal", "consistent", "none"}
        ``literal``: the distances of the values as received add up, so that a neighbour once
        replaced stays so; the dual moves by what was received (line 24). ``consistent`` with the
        proof: a replaced value adds no distance, and the dual moves by the same values as x.
    U : float
    sensitivity : {"lemma10", "per_sample", "sharp"}
        :math:`V/(\eta|V_i|)` with V = 1, whatever the weight of a record (Lemma 10 loses
        :math:`1/|D_i|` between two lines, errata E4.1); :math:`CV/(\eta|V_i||D_i|)`;
        :math:`2CV/(|D_i|m)`, m the curvature of regulariser and penalty. The formula's; an
        accountant is told the last.
    sums : {"direct", "printed"}
        Theorem 2 prints one message too few (errata E4.2); Theorem 3 is right.
    """

    law: str = one_of("gaussian", ("gaussian",))
    growth: float = only(1.0, "the schedule says how noise decays")
    schedule: str = one_of("periodic", SCHEDULES)
    T_p: int = whole(1)
    R_P: float = up_to_one(0.925)
    R_T: float = positive(0.015)
    threshold: str = one_of("literal", THRESHOLDS)
    U: float = positive(0.1, expected="above 0")
    sensitivity: str = one_of("per_sample", SENSITIVITIES)
    sums: str = one_of("direct", SUMS, calibration=True)
    rho_conversion: str | None = "safe"

    source: ClassVar[str] = "Paper 004, section 3.3, Theorems 2 and 3"
    where: ClassVar[str] = "output"
    V: ClassVar[float] = 1.0
    lower_bound_because: ClassVar[str] = (
        "a label flip and points far out move each minimiser by the attained part at every centre"
    )

    # Noise.

    def variance_share(self, t: int) -> Any:
        """Return the variance of message t = 1, 2, ... over that of the first message."""
        if self.schedule == "periodic":
            return column(self.R_P) ** ((t - 1) // column(self.T_p))
        return 1.0 / (column(self.R_T) * (t - 1) * t) if t > 1 else 1.0

    def scale(self, t):
        return column(self.noise.scale) * np.sqrt(self.variance_share(t))

    def scales(self, horizon):
        shares = [self.variance_share(t) for t in range(1, horizon + 1)]
        return float(self.noise.scale) * np.sqrt(shares)

    # Threshold.

    def start(self, problem, network, streams, settings):
        """Return the state of ADMM before the first iteration, with distances of 0.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        streams : Streams
            Random streams of all runs.
        settings : int
            Number of settings in the batch.

        Returns
        -------
        State
            State before the first iteration.
        """
        state = super().start(problem, network, streams, settings)
        if self.threshold == "none":
            return state
        nothing = no_distance(network, state.x)
        start = self.receive(State(*state, nothing, state.x[..., 0, 0]), network)
        return start._replace(received_sum=state.received_sum)

    def receive(self, state, network):
        """Return the state with the sums of received values.

        An agent's own value takes the place of each value that is replaced.

        Parameters
        ----------
        state : State
            State with the new messages.
        network : Network
            Communication graph with its mixing matrix.

        Returns
        -------
        State
            The same state with the sums, the distances and the replaced fraction.
        """
        if not isinstance(state, State):
            return super().receive(state, network)
        forgets = self.threshold == "consistent"
        received = received_within(network, state.x, state.distance, self.U, forgets=forgets)
        return state._replace(**received._asdict())

    def disagreement(self, network, x, received):
        r"""Return the disagreement :math:`\sum_{j\in N_i}(x_i - x_j)`, by which the dual moves.

        A literal threshold uses all values as received, without replacement.

        Parameters
        ----------
        network : Network
            Communication graph with its mixing matrix.
        x : ndarray, shape (settings, runs, agents, dim)
            Messages.
        received : ndarray, shape (settings, runs, agents, dim)
            Sums of the values that agents use.

        Returns
        -------
        ndarray, shape (settings, runs, agents, dim)
            Change of the dual over its step.
        """
        if self.threshold == "literal":
            received = network.neighbour_sum(x)
        return super().disagreement(network, x, received)

    def observables(self, state, problem, t):
        """Return the observables of ADMM and the fraction of replaced values.

        Parameters
        ----------
        state : State
            State after the iteration.
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        t : int
            Iteration, counted from 1.

        Returns
        -------
        mapping
            Quantities by name.
        """
        quantities = dict(super().observables(state, problem, t))
        return quantities if self.threshold == "none" else quantities | {"replaced": state.replaced}

    # Privacy.

    def moved(self, problem, penalty: np.ndarray) -> np.ndarray:
        r"""Return the sensitivity :math:`\Delta_i` at a penalty, by the rule of ``sensitivity``.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        penalty : ndarray
            :math:`D_i` of the agents.

        Returns
        -------
        ndarray
            In the shape of ``penalty``.
        """
        if self.sensitivity == "lemma10":
            return 2.0 * self.V / penalty
        if self.sensitivity == "per_sample":
            return problem.record_change(self.noise.norm) / penalty
        return problem.minimiser_change(self.noise.norm, penalty)

    def loss_by_formula(self, problem, network, t):
        r"""Return the privacy loss :math:`\Delta_i^2/(2s_t^2)` of a message, in zCDP.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        t : int
            Iteration, counted from 1.

        Returns
        -------
        ndarray
            Broadcastable to [settings, runs, agents, 1].
        """
        return (self.moved(problem, self.penalty(network, t)) / self.scale(t)) ** 2 / 2

    def releases(self, problem, network, horizon):
        """Return the releases of exact minimisers with noise.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        horizon : int
            Number of iterations.

        Returns
        -------
        list of Release
            Mechanisms whose composition bounds the privacy loss.
        """
        return self.releases_of_minimisers(problem, network, horizon)

    def rho_by_formula(self, problem, network, horizon):
        """Return the total privacy cost of Theorem 2 or 3, in zCDP.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        horizon : int
            Number of iterations.

        Returns
        -------
        float
            Total in zCDP.
        """
        penalties = self.penalties(network, horizon)
        scales = self.scales(horizon).reshape(-1, *[1] * (penalties.ndim - 1))
        losses = (self.moved(problem, penalties) / scales) ** 2 / 2
        total = np.sum(losses, axis=0)
        if self.sums == "printed" and self.schedule == "periodic":
            total = total - losses[0]
            expected = "at least 2: the published sum of Theorem 2 omits one iteration"
            require(horizon > 1, "horizon", horizon, expected)
        return float(np.max(total))


ALGORITHM = PeriodicallyReducedADMM
