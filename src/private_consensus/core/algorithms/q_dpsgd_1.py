"""Q-DPSGD-1: noisy gradients, quantised models and a deadline (Ding, section 4.4.1)."""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Gt, Lt

from private_consensus.common.errors import OutsideRange
from private_consensus.privacy.subsampling import FASTEST, SLOWEST, Batches, deadline_batches

from ..parameters import Positive
from ..quantization import Grid
from .families.decentralized_sgd import FULL_BITS, T_C, computed_per_second
from .families.sampled_rounds import Round, SampledRounds

MEAN_SPEED = (SLOWEST + FASTEST) / 2


@dataclass(frozen=True, kw_only=True)
class QDPSGD1(SampledRounds):
    r"""Q-DPSGD-1: noisy gradients and quantised models, Algorithm 4.

    .. math:: z_j = Q(x_j), \qquad
        x_i \leftarrow (1-e+e w_{ii})x_i + e\sum_{j\ne i} w_{ij} z_j - a e\,(g_i + \zeta_i), \qquad
        \zeta_i \sim N(0, \sigma^2K^2 I)

    with constant :math:`a = a_0/T^{1/6}` and :math:`e = e_0/T^{1/2}` in a run of T rounds (Theorem
    13). For strongly convex objectives, :math:`a = a_0/T^{\tilde\delta/2}` and
    :math:`e = e_0/T^{3\tilde\delta/2}` (Theorem 12, with a_0 = 2 and e_0 = 1). Before the deadline
    :math:`T_d = B/50`, an agent computes :math:`|S| = \lfloor V T_d\rfloor` gradients, 4 to 35 for
    B = 20. A round takes :math:`T_d + T_c s/16` seconds. Noise enters the models, so that all later
    messages are functions of released values.

    With the published constants, the mixing step e is above 1 for :math:`T < 121` rounds. The
    iteration is nevertheless stable as long as :math:`e(1-\lambda_{\min}(W)) < 2`.

    Parameters
    ----------
    a0, e0 : float
        Constants of the gradient step :math:`a` and the mixing step :math:`e`.
    rate : float, optional
        Exponent :math:`\tilde\delta` in (0, 1/2) of the steps for strongly convex objectives;
        None for the steps for other objectives.
    eta : float
        Resolution of the grid, which the dissertation does not state. The range of 3 bits suffices
        for 0.1 to 0.2.
    s : int
        Number of bits per coordinate.
    grid : {"clipped", "open"}
        Whether values are clipped to the range of s bits, or the grid is unbounded. The code of
        the preceding paper has an unbounded grid with ``eta`` 0.001.
    """

    a0: Positive = 0.3
    e0: Positive = 11.0
    rate: Annotated[float, Gt(0), Lt(0.5)] | None = None
    eta: Positive = 0.1
    s: Annotated[int, Ge(2)] = 3
    grid: Literal["clipped", "open"] = "clipped"

    source = "Ding, section 4.4.1, Algorithm 4, eqs. (26), (27), Theorem 11, Remark 6"

    def deadline(self):
        """Return the deadline :math:`T_d`, in seconds."""
        return self.B / MEAN_SPEED

    def batches(self) -> Batches:
        return deadline_batches(float(self.deadline()))

    @cached_property
    def max_batch_size(self) -> int:
        return max(deadline_batches(float(np.max(self.deadline()))).sizes)

    def batch_sizes(self, speeds):
        deadline = np.reshape(self.deadline(), (-1, 1, 1))
        sizes = np.floor(computed_per_second(speeds) * deadline).astype(int)
        # Rounding of the product could exceed the largest size, which sets the sampled rows.
        sizes = np.minimum(sizes, self.max_batch_size)
        return np.broadcast_to(sizes, (len(sizes), *speeds.shape))

    def seconds(self, speeds):
        """Return the duration of a round: the deadline plus the time to send, [settings, 1]."""
        duration = np.add(self.deadline(), np.multiply(T_C, self.s) / FULL_BITS)
        return np.reshape(duration, (-1, 1))

    def steps(self, T):
        """Return the gradient step :math:`a` and the mixing step :math:`e` of a run of T rounds."""
        exponent, divisor = 1 / 6, np.sqrt(T)
        if self.rate is not None:
            exponent, divisor = self.rate / 2, np.power(T, 1.5 * self.rate)
        return self.a0 / np.power(T, exponent), self.e0 / divisor

    def coefficients(self, horizon):
        a, e = self.steps(np.asarray(horizon, float))
        options = np.broadcast(self.eta, self.s, horizon)
        grids = tuple(Grid(float(eta), s, self.grid == "clipped") for eta, s, _ in options)
        return Round(a * e, e, grids)

    def run(self, problem, network, streams, horizon, observe):
        self._warn(np.asarray(horizon, float))
        super().run(problem, network, streams, horizon, observe)

    def _warn(self, T: np.ndarray) -> None:
        above = np.broadcast_to(self.steps(T)[1], T.shape) > 1 + 1e-12
        if above.any():
            warnings.warn(
                f"e = e0/sqrt(T) is above 1 for T = {int(T[above].max())}: (1-e)I + eW then has "
                "negative self-weights; e0 = 11 requires T >= 121",
                OutsideRange,
                stacklevel=3,
            )


ALGORITHM = QDPSGD1
