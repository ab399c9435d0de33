r"""PR-ADMM: output perturbation with decaying noise and a threshold on received values.

In section 3.3 of Ding, an agent sends its exact minimiser with Gaussian noise of variance

.. math::
    (s^2)^{t+1} &= s_1^2\,R_P^{\lfloor t/T_p\rfloor} && \text{periodic} \\
    (s^2)^{t+1} &= s_1^2 / (R_T\,t(t+1)) && \text{iteration, } s_1^2 \text{ at } t = 0

for t = 0, ..., T-1. If the distance between the values of an agent and its neighbour, summed over
iterations, exceeds U, the agent replaces the value of the neighbour by its own. The privacy loss of
a message is :math:`\Delta_i^2/(2s^2)` in zCDP. The published ``iteration`` scheme divides by zero
at t = 0; the variance :math:`s_1^2` there follows from the sum in Theorem 3.
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
from .families.received_threshold import received_within
from .parameters import one_of, only, positive, positive_integer, unit_interval

SCHEDULES = ("periodic", "iteration")
THRESHOLDS = ("literal", "consistent", "none")
SENSITIVITIES = ("lemma10", "per_sample", "sharp")
SUMS = ("direct", "printed")

PRADMMState = namedtuple("PRADMMState", (*admm.ADMMState._fields, "distance", "replaced"))
"""State of ADMM, with two fields of :class:`.families.received_threshold.Received`."""


@dataclass(frozen=True, kw_only=True)
class PeriodicallyReducedADMM(ADMMFamily):
    r"""Periodically reduced ADMM (PR-ADMM).

    The parameter ``noise`` is :math:`s_1`, the standard deviation of the noise on the first
    message.

    Parameters
    ----------
    schedule : {"periodic", "iteration"}
        Schedule of the variance, see the equations of this module.
    T_p : int
        Number :math:`T_p` of successive iterations with equal variance.
    R_P, R_T : float
        Factors of the decay: :math:`R_P` in (0, 1] and :math:`R_T > 0`.
    threshold : {"literal", "consistent", "none"}
        Use of the threshold. ``literal``: the distances of all received values are added, so that a
        neighbour remains replaced, and the dual uses the values as received (line 24).
        ``consistent`` with the proof: the distance of a replaced value is not added, and the dual
        uses the same values as x. ``none``: no value is replaced.
    U : float
        Threshold on the accumulated distance.
    sensitivity : {"lemma10", "per_sample", "sharp"}
        Sensitivity in the paper's formula; releases have that of ``sharp``. ``lemma10``:
        :math:`V/(\eta|V_i|)` with V = 1, for any weight of a record, since Lemma 10 omits
        :math:`1/|D_i|` (errata E4.1). ``per_sample``: :math:`CV/(\eta|V_i||D_i|)`. ``sharp``:
        :math:`2CV/(|D_i|m)`, with m the curvature of regulariser and penalty.
    sums : {"direct", "printed"}
        Number of messages in the formula: all, or one less, as published in Theorem 2 (errata
        E4.2).
    """

    law: str = one_of("gaussian", ("gaussian",))
    growth: float = only(1.0, "schedule sets the decay of the noise")
    schedule: str = one_of("periodic", SCHEDULES)
    T_p: int = positive_integer(1)
    R_P: float = unit_interval(0.925)
    R_T: float = positive(0.015)
    threshold: str = one_of("literal", THRESHOLDS)
    U: float = positive(0.1, expected="above 0")
    sensitivity: str = one_of("per_sample", SENSITIVITIES)
    sums: str = one_of("direct", SUMS, calibration=True)
    rho_conversion: str | None = "safe"

    quantities: ClassVar = ("internal", "released", "worst_case", "replaced")
    source: ClassVar[str] = "Ding, section 3.3, Theorems 2 and 3"
    where: ClassVar[str] = "output"
    V: ClassVar[float] = 1.0
    lower_bound_because: ClassVar[str] = (
        "at distant points, a changed record changes each minimiser by the attained fraction"
    )

    # Noise.

    def variance_ratio(self, t: int) -> Any:
        """Return the noise variance of message t = 1, 2, ... over that of the first message."""
        if self.schedule == "periodic":
            return column(self.R_P) ** ((t - 1) // column(self.T_p))
        return 1.0 / (column(self.R_T) * (t - 1) * t) if t > 1 else 1.0

    def scale(self, t):
        return column(self.noise.scale) * np.sqrt(self.variance_ratio(t))

    def scales(self, horizon):
        ratios = [self.variance_ratio(t) for t in range(1, horizon + 1)]
        return float(self.noise.scale) * np.sqrt(ratios)

    # Threshold.

    def start(self, problem, network, streams, settings):
        state = super().start(problem, network, streams, settings)
        if self.threshold == "none":
            return state
        zero = np.zeros((*state.x.shape[:-1], network.n_agents))
        start = self.receive(PRADMMState(*state, zero, state.x[..., 0, 0]), network)
        return start._replace(received_sum=state.received_sum)

    def receive(self, state, network):
        """Replace distant values by the agent's own value, if there is a threshold."""
        if not isinstance(state, PRADMMState):
            return super().receive(state, network)
        forgets = self.threshold == "consistent"
        received = received_within(network, state.x, state.distance, self.U, forgets=forgets)
        return state._replace(**received._asdict())

    def disagreement(self, network, x, received):
        r"""Return :math:`\sum_{j\in N_i}(x_i - x_j)`.

        A ``literal`` threshold uses all values as received.
        """
        if self.threshold == "literal":
            received = network.neighbour_sum(x)
        return super().disagreement(network, x, received)

    def observables(self, state, problem, t):
        quantities = dict(super().observables(state, problem, t))
        return quantities if self.threshold == "none" else quantities | {"replaced": state.replaced}

    # Privacy.

    def message_change(self, problem, penalty: np.ndarray) -> np.ndarray:
        r"""Return the sensitivity :math:`\Delta_i` by the rule ``sensitivity``."""
        if self.sensitivity == "lemma10":
            return 2.0 * self.V / penalty
        if self.sensitivity == "per_sample":
            return problem.record_change(self.noise.norm) / penalty
        return problem.minimiser_change(self.noise.norm, penalty)

    def loss_by_formula(self, problem, network, t):
        r"""Return the privacy loss :math:`\Delta_i^2/(2s_t^2)` of a message, in zCDP."""
        return (self.message_change(problem, self.penalty(network, t)) / self.scale(t)) ** 2 / 2

    def releases(self, problem, network, horizon):
        return self.releases_of_minimisers(problem, network, horizon)

    def rho_by_formula(self, problem, network, horizon):
        """Return the total privacy loss of Theorem 2 or 3, in zCDP."""
        penalties = self.penalties(network, horizon)
        scales = self.scales(horizon).reshape(-1, *[1] * (penalties.ndim - 1))
        losses = (self.message_change(problem, penalties) / scales) ** 2 / 2
        total = np.sum(losses, axis=0)
        if self.sums == "printed" and self.schedule == "periodic":
            total = total - losses[0]
            expected = "at least 2, since the published sum of Theorem 2 omits one iteration"
            require(horizon > 1, "horizon", horizon, expected)
        return float(np.max(total))


ALGORITHM = PeriodicallyReducedADMM
