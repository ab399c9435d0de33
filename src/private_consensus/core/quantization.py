r"""Unbiased stochastic rounding to a grid of few bits (dissertation 4.4, eq. (26)).

.. math:: Q(x) = \eta k \text{ w.p. } 1 - (x/\eta - k), \quad \eta(k+1) \text{ w.p. } x/\eta - k,
          \qquad k = \lfloor x/\eta \rfloor

An s-bit grid has the points :math:`\eta\{-2^{s-1},\dots,2^{s-1}-1\}`. The dissertation prints
:math:`\eta(2^s-1)` as its upper end, which s bits cannot carry beside the lower one. Beyond the
ends values are cut, and the rounding is biased. An open grid has no ends: what its predecessor's
code does while it charges s bits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from private_consensus.common.errors import require

from .kernels import messages, rows


@dataclass(frozen=True)
class Grid:
    r"""Points to which messages are rounded.

    Parameters
    ----------
    resolution : float
        :math:`\eta > 0`.
    bits : int
        :math:`s \ge 2`.
    clipped : bool
        Whether the grid ends where s bits do.
    """

    resolution: float
    bits: int = 3
    clipped: bool = True

    def __post_init__(self):
        require(self.resolution > 0, "algorithm.eta", self.resolution, "a number > 0")
        is_integer = self.bits == int(self.bits) and self.bits >= 2
        require(is_integer, "algorithm.s", self.bits, "a whole number >= 2")

    @property
    def ends(self) -> tuple[float, float]:
        """Lowest and highest point, in steps."""
        if not self.clipped:
            return -np.inf, np.inf
        half = 2.0 ** (int(self.bits) - 1)
        return -half, half - 1.0

    def quantize(self, x: np.ndarray, key: np.ndarray, counter: int, out: np.ndarray) -> int:
        """Round to the grid at random, without bias, and count the clipped coordinates.

        Parameters
        ----------
        x : ndarray [agents, p]
            Values to round.
        key : ndarray
            Key of the counter-based generator.
        counter : int
            Position in the random stream.
        out : ndarray [agents, p]
            Receives the grid points.

        Returns
        -------
        int
            Number of coordinates that were clipped to the grid.
        """
        return messages.quantize(x, self.resolution, *self.ends, key, counter, out)

    def add_noise(self, z: np.ndarray, deviation: float, key: np.ndarray, counter: int) -> int:
        r"""Add :math:`N_{\eta Z}(0, \text{deviation}^2)` to grid points ``z`` in place.

        The discrete Gaussian with parameter :math:`\sigma^2` on :math:`\eta Z` is :math:`\eta`
        times the one with :math:`\sigma^2/\eta^2` on the integers.

        Parameters
        ----------
        z : ndarray [agents, p]
            Grid points; sums outside the grid are clipped to it.
        deviation : float
            Parameter sigma of the discrete Gaussian, in the unit of ``z``.
        key : ndarray
            Key of the counter-based generator.
        counter : int
            Position in the random stream.

        Returns
        -------
        int
            Number of coordinates that were clipped.
        """
        variance = self.variance(deviation)
        if variance == 0:
            return 0
        table = rows.discrete_table(variance)
        return messages.add_discrete(z, self.resolution, *self.ends, table, key, counter)

    def variance(self, deviation: float) -> float:
        """Compute the variance of noise in squared steps; 0 if the noise never changes a
        message.
        """
        squared_steps = (float(deviation) / float(self.resolution)) ** 2
        return 0.0 if squared_steps < NEVER_MOVES else squared_steps


NEVER_MOVES = 5e-3
r"""Variance, in squared steps, below which a draw other than 0 has probability
:math:`< 2e^{-100}`."""
