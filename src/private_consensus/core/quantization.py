r"""Unbiased stochastic rounding to a grid of few bits (dissertation 4.4, eq. (26)).

.. math:: Q(x) = \eta k \text{ w.p. } 1 - (x/\eta - k), \quad \eta(k+1) \text{ w.p. } x/\eta - k,
          \qquad k = \lfloor x/\eta \rfloor

An s-bit grid has the points :math:`\eta\{-2^{s-1},\dots,2^{s-1}-1\}`. The dissertation states the
upper end :math:`\eta(2^s-1)`, which s bits cannot represent together with the lower end. Values
beyond the ends are clipped, so that their rounding is biased. A grid may also have no ends, as in
the code of the predecessor paper, which nevertheless counts s bits per coordinate.
"""

from dataclasses import dataclass

import numpy as np

from private_consensus.kernels.messages import discrete_of, uniforms
from private_consensus.kernels.rows import discrete_table


@dataclass(frozen=True)
class Grid:
    r"""Grid of points to which messages are rounded.

    Parameters
    ----------
    resolution : float
        Distance :math:`\eta > 0` of two points.
    bits : int
        Number of bits :math:`s \ge 2` per coordinate.
    clipped : bool
        True if the grid has the ends of s bits, False if it has no ends.
    """

    resolution: float
    bits: int = 3
    clipped: bool = True

    @property
    def ends(self) -> tuple[float, float]:
        """Lowest and highest point, in multiples of the resolution."""
        if not self.clipped:
            return -np.inf, np.inf
        half = 2.0 ** (int(self.bits) - 1)
        return -half, half - 1.0

    def quantize(self, x: np.ndarray, key: np.ndarray, counter: int) -> np.ndarray:
        """Return values [agents, p] that are rounded stochastically to the grid.

        The rounding has no bias between the ends. ``key`` and ``counter`` determine the random
        numbers.
        """
        v = x * (1 / x.dtype.type(self.resolution))
        below = np.floor(v)
        return self._points(below + (uniforms(key, counter, x.shape) < v - below), x.dtype)

    def add_noise(
        self, z: np.ndarray, deviation: float, key: np.ndarray, counter: int
    ) -> np.ndarray:
        r"""Return grid points z plus :math:`N_{\eta Z}(0, \text{deviation}^2)`, on the grid.

        The discrete Gaussian with parameter :math:`\sigma^2` on :math:`\eta Z` is :math:`\eta`
        times the one with :math:`\sigma^2/\eta^2` on the integers. ``deviation`` is in the unit of
        ``z``.
        """
        variance = self.variance(deviation)
        if variance == 0:
            return z
        samples = discrete_of(discrete_table(variance), key, counter, z.shape)
        return self._points(np.rint(z / z.dtype.type(self.resolution)) + samples, z.dtype)

    def _points(self, k: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """Return the grid points at multiples k of the resolution, clipped to the ends."""
        return np.clip(k, *self.ends).astype(dtype) * dtype.type(self.resolution)

    def variance(self, deviation: float) -> float:
        """Compute the variance of noise in squared grid steps; 0 below ``NEGLIGIBLE_VARIANCE``."""
        squared_steps = (float(deviation) / float(self.resolution)) ** 2
        return 0.0 if squared_steps < NEGLIGIBLE_VARIANCE else squared_steps


NEGLIGIBLE_VARIANCE = 5e-3
r"""Variance in squared grid steps below which samples differ from 0 with a probability of at most
:math:`2e^{-100}`."""
