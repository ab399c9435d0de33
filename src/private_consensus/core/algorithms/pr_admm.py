"""PR-ADMM: output perturbation with decaying noise and a threshold on received values."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Ge, Le

from private_consensus.common.errors import require

from ..parameters import CALIBRATION, Positive, PositiveInt, UnitInterval
from .base import INTERNAL, column
from .families.admm import ADMMFamily, Conversion


@dataclass(frozen=True, kw_only=True)
class PeriodicallyReducedADMM(ADMMFamily):
    r"""Periodically reduced ADMM (PR-ADMM).

    In section 3.3 of Ding, an agent sends its exact minimiser with Gaussian noise of variance

    .. math::
        (s^2)^{t+1} &= s_1^2\,R_P^{\lfloor t/T_p\rfloor} && \text{periodic} \\
        (s^2)^{t+1} &= s_1^2 / (R_T\,t(t+1)) && \text{iteration, } s_1^2 \text{ at } t = 0

    for t = 0, ..., T-1. If the distance between the values of an agent and its neighbour, summed
    over iterations, exceeds U, the agent replaces the value of the neighbour by its own. The
    privacy loss of a message is :math:`\Delta_i^2/(2s^2)` in zCDP. The published ``iteration``
    scheme divides by zero at t = 0; the variance :math:`s_1^2` there follows from the sum in
    Theorem 3.

    The parameter ``noise`` is :math:`s_1`, the standard deviation of the noise on the first
    message. The parameter ``growth`` is 1, since ``schedule`` sets the decay of the noise.

    Parameters
    ----------
    schedule : {"periodic", "iteration"}
        Schedule of the variance, see the equations.
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
        Sensitivity in the paper's formula; the mechanism has that of ``sharp``. ``lemma10``:
        :math:`V/(\eta|V_i|)` with V = 1, for any weight of a record, since Lemma 10 omits
        :math:`1/|D_i|` (errata E4.1). ``per_sample``: :math:`CV/(\eta|V_i||D_i|)`. ``sharp``:
        :math:`2CV/(|D_i|m)`, with m the curvature of regulariser and penalty.
    sums : {"direct", "printed"}
        Number of messages in the formula: all, or one less, as published in Theorem 2 (errata
        E4.2).
    """

    law: Literal["gaussian"] = "gaussian"
    growth: Annotated[float, Ge(1), Le(1)] = 1.0
    schedule: Literal["periodic", "iteration"] = "periodic"
    T_p: PositiveInt = 1
    R_P: UnitInterval = 0.925
    R_T: Positive = 0.015
    threshold: Literal["literal", "consistent", "none"] = "literal"
    U: Positive = 0.1
    sensitivity: Literal["lemma10", "per_sample", "sharp"] = "per_sample"
    sums: Annotated[Literal["direct", "printed"], CALIBRATION] = "direct"
    rho_conversion: Conversion = "safe"

    quantities = (INTERNAL, "released")
    source = "Ding, section 3.3, Theorems 2 and 3"

    def variance_ratio(self, t: int) -> Any:
        """Return the noise variance of message t = 1, 2, ... over that of the first message."""
        if self.schedule == "periodic":
            # The index of the paper starts at 0 for the first message.
            return column(self.R_P) ** ((t - 1) // column(self.T_p))
        return 1.0 / (column(self.R_T) * (t - 1) * t) if t > 1 else 1.0

    def scale(self, t):
        return column(self.noise) * np.sqrt(self.variance_ratio(t))

    def start(self, problem, network, release):
        state = super().start(problem, network, release)
        if self.threshold == "none":
            return state
        # The threshold does not apply to the starting points.
        zero = np.zeros((*state.x.shape[:-1], network.n_agents))
        _, distance = self._received(network, state.x, zero)
        return state._replace(extra={"distance": distance})

    def step(self, state, problem, network, release, t):
        after = super().step(state, problem, network, release, t)
        if self.threshold == "none":
            return after
        used, distance = self._received(network, after.x, state.extra["distance"])
        # Line 24 updates the dual by all values as received, the proof by the used values.
        dual = after.dual
        if self.threshold == "consistent":
            disagreement = network.degrees[..., None] * after.x - used
            dual = state.dual + self.dual_step * disagreement
        return after._replace(dual=dual, received=used, extra={"distance": distance})

    def _received(
        self, network, x: np.ndarray, distance: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return sums of the values that agents use of new messages x, and accumulated distances.

        They are [settings, runs, agents, dim] and [settings, runs, agents, agents].
        """
        members, new_distance = network.closed_neighbourhoods, np.zeros_like(distance)
        to_members = np.linalg.norm(x[..., None, :] - network.gather(x, members), axis=-1)
        np.put_along_axis(new_distance, np.broadcast_to(members, to_members.shape), to_members, -1)
        total = distance + new_distance
        is_near = total <= column(self.U)
        # A replaced value was not used, so that its distance does not count.
        if self.threshold == "consistent":
            total = np.where(is_near, total, distance)
        used = network.neighbour_sum(np.ones((*x.shape[:-1], 1)), is_near)
        # An own value replaces each value beyond the threshold.
        own_weight = network.degrees[..., None] - used
        return network.neighbour_sum(x, is_near) + own_weight * x, total

    # Formulas.

    def message_change(self, problem, penalty: np.ndarray) -> np.ndarray:
        r"""Return the sensitivity :math:`\Delta_i` by the rule ``sensitivity``."""
        if self.sensitivity == "lemma10":
            return 2.0 / penalty
        if self.sensitivity == "per_sample":
            return problem.record_change(self.norm) / penalty
        return problem.minimiser_change(self.norm, penalty)

    def loss_by_formula(self, problem, network, t):
        r"""Return the privacy loss :math:`\Delta_i^2/(2s_t^2)` of a message, in zCDP."""
        return (self.message_change(problem, self.penalty(network, t)) / self.scale(t)) ** 2 / 2

    def rho_by_formula(self, problem, network, horizon):
        """Return the total privacy loss of Theorem 2 or 3, in zCDP."""
        times = range(1, horizon + 1)
        losses = np.stack([self.loss_by_formula(problem, network, t) for t in times])
        total = np.sum(losses, axis=0)
        if self.sums == "printed" and self.schedule == "periodic":
            # All losses are at least that of the first message; Theorem 2 omits one of them.
            total = total - losses[0]
            expected = "at least 2, since the published sum of Theorem 2 omits one iteration"
            require(horizon > 1, "horizon", horizon, expected)
        return float(np.max(total))


ALGORITHM = PeriodicallyReducedADMM
