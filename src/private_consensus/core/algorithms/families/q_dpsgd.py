r"""Common base of Q-DPSGD-1 and Q-DPSGD-2: step sizes, deadline and grid (Ding, 4.4).

This module is not an algorithm. With the published constants, the mixing step :math:`e` is above 1
for :math:`T < 121` rounds. The iteration is nevertheless stable as long as
:math:`e(1-\lambda_{\min}(W)) < 2`.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
from annotated_types import Gt, Lt

from private_consensus.common.errors import OutsideRange
from private_consensus.kernels.rounds import Grids, Steps, steps_of
from private_consensus.privacy.subsampling import Batches, deadline_batches

from ...quantization import Grid
from ..base import column
from ..parameters import Positive
from .decentralized_sgd import (
    FASTEST,
    FULL_BITS,
    SLOWEST,
    BatchModels,
    DecentralizedSGD,
    at,
)

MEAN_SPEED = (SLOWEST + FASTEST) / 2
MAX_CACHED = 8
"""Largest number of entries in the cache of coefficients per mixing matrix."""


@dataclass(frozen=True, kw_only=True)
class QDPSGD(DecentralizedSGD):
    r"""Common base of both versions of Q-DPSGD.

    Parameters
    ----------
    a0, e0 : float
        Constants of the gradient step :math:`a` and the mixing step :math:`e`, see :meth:`steps`.
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
    T : float
        Number of rounds of the run; set by :meth:`run`.
    """

    a0: Positive = 0.3
    e0: Positive = 11.0
    rate: Annotated[float, Gt(0), Lt(0.5)] | None = None
    eta: float = 0.1
    s: int = 3
    grid: Literal["clipped", "open"] = "clipped"
    T: float = 0.0

    def __post_init__(self):
        super().__post_init__()
        for eta, s in np.broadcast(self.eta, self.s):
            Grid(float(eta), s)

    def deadline(self):
        """Return the deadline :math:`T_d`, in seconds."""
        return self.B / MEAN_SPEED

    def batches(self) -> Batches:
        return deadline_batches(float(self.deadline()), SLOWEST, FASTEST)

    @cached_property
    def max_batch_size(self) -> int:
        return max(deadline_batches(float(np.max(self.deadline())), SLOWEST, FASTEST).sizes)

    def sizes(self, s, speeds):
        sizes = np.floor(speeds * at(self.deadline(), s)).astype(int)
        return np.minimum(sizes, self.max_batch_size)

    def seconds(self, speeds):
        """Return the duration of a round: the deadline plus the time to send, [settings, 1]."""
        duration = np.add(self.deadline(), np.multiply(self.T_c, self.s) / FULL_BITS)
        return np.reshape(duration, (-1, 1))

    def bits(self, dim):
        return np.multiply(self.s, float(dim))

    def steps(self, T):
        """Return the gradient step :math:`a` and the mixing step :math:`e` of a run of T rounds."""
        exponent, divisor = 1 / 6, np.sqrt(T)
        if self.rate is not None:
            exponent, divisor = self.rate / 2, np.power(T, 1.5 * self.rate)
        return self.a0 / np.power(T, exponent), self.e0 / divisor

    def run(self, problem, network, streams, horizon, observe):
        T = np.asarray(horizon, float)
        self._warn(T)
        DecentralizedSGD.run(replace(self, T=T), problem, network, streams, horizon, observe)

    def _warn(self, T: np.ndarray) -> None:
        above = np.broadcast_to(self.steps(T)[1], T.shape) > 1 + 1e-12
        if above.any():
            warnings.warn(
                f"e = e0/sqrt(T) is above 1 for T = {int(T[above].max())}: (1-e)I + eW then has "
                "negative self-weights; e0 = 11 requires T >= 121",
                OutsideRange,
                stacklevel=3,
            )

    def grid_of(self, s: int) -> Grid:
        """Return the grid of a setting."""
        return Grid(float(at(self.eta, s)), at(self.s, s), self.grid == "clipped")

    def coefficients(self, s: int) -> tuple[float, float, Grid]:
        """Return the steps a and e of a setting in a run of T rounds, and its grid."""
        a, e = (float(at(step, s)) for step in self.steps(self.T))
        return a, e, self.grid_of(s)

    @cached_property
    def all_coefficients(self) -> list[tuple[float, float, Grid]]:
        """Steps a and e and grid of each setting, for all rounds of a run."""
        return [self.coefficients(s) for s in range(np.size(self.T))]

    def pass_coefficients(self, models: BatchModels, scales: np.ndarray) -> tuple[Steps, Grids]:
        """Return the coefficients of all settings for a round in one pass.

        Parameters
        ----------
        models : BatchModels
            Models of one run, with the mixing matrices.
        scales : ndarray, shape (settings, agents)
            Standard deviations of the noise.

        Returns
        -------
        tuple of (Steps, Grids)
        """
        matrices = np.array(models.mixing)
        key = matrices.tobytes()
        if key not in self._cached:
            if len(self._cached) >= MAX_CACHED:
                self._cached.clear()
            self._cached[key] = self._pass_coefficients(matrices)
        steps, grids = self._cached[key]
        return steps._replace(scale=scales.astype(np.float32)), grids

    @cached_property
    def _cached(self) -> dict[bytes, tuple[Steps, Grids]]:
        """Coefficients by mixing matrices, which are equal in all rounds on most networks."""
        return {}

    def _pass_coefficients(self, matrices: np.ndarray) -> tuple[Steps, Grids]:
        a, e = (np.array([setting[k] for setting in self.all_coefficients]) for k in (0, 1))
        own_weights = np.diagonal(matrices, axis1=1, axis2=2)
        off_diagonal = matrices * (1.0 - np.eye(matrices.shape[1]))
        steps = steps_of(
            weights=e[:, None, None] * off_diagonal,
            keep=(1.0 - e)[:, None] + e[:, None] * own_weights,
            scale=np.zeros(own_weights.shape),
            step=a * e,
        )
        ends = [(grid.resolution, *grid.ends) for _, _, grid in self.all_coefficients]
        return steps, Grids(*np.array(ends, np.float32).T.copy())

    def quantized(self, x: np.ndarray, release, t: int) -> tuple[np.ndarray, np.ndarray]:
        """Return models that are rounded to the grid, and the fractions of clipped coordinates."""
        z, saturated = np.empty_like(x), np.empty(x.shape[:2])
        keys, counter = release.key("rounding"), (t - 1) * x.shape[2]
        for s, run in np.ndindex(x.shape[:2]):
            grid = self.grid_of(s)
            saturated[s, run] = grid.quantize(x[s, run], keys[run], counter, z[s, run])
        return z, saturated / (x.shape[2] * x.shape[3])

    def descended(self, release, network, base, z, gradient) -> np.ndarray:
        """Return the models after (27) or (28), from base points, messages z and a gradient."""
        steps = self.steps(np.asarray(release.horizon, float))
        a, e = (column(np.atleast_1d(step)) for step in steps)
        keep = 1.0 - e + e * network.own_weights[..., None]
        return keep * base + network.mix_others(z, e) - a * e * gradient
