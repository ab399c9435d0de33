"""Privacy claims as constraints on the two rates of an event.

An event has probability p on a data set D and q on its neighbour D'. A claim bounds p from above by
an increasing function of q, its trade-off curve. A rate pair that needs a smaller parameter than
claimed contradicts nothing.

References
----------
Kairouz, Oh, Viswanath, "The composition theorem for differential privacy", ICML 2015: the region of
(epsilon, delta)-DP.
Dong, Roth, Su, "Gaussian differential privacy", JRSS-B 2022: trade-off functions and mu-GDP.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.special import ndtr, ndtri

from private_consensus.common.errors import require


class Measure(Protocol):
    """Ordered one-parameter family of claims: a larger parameter allows more."""

    def value(self, p: Any, q: Any) -> np.ndarray:
        """Compute the smallest parameter, negative if p < q, that allows the rates p and q.

        They are the rates of an event on D and on D'.
        """

    def largest(self, q: Any, value: float) -> np.ndarray:
        """Return the largest p that the parameter ``value`` allows for a rate q."""

    def reached(self, p: Any, value: float) -> np.ndarray:
        """Return the largest q for which p needs a parameter of at least ``value``."""


@dataclass(frozen=True)
class Epsilon:
    r"""(epsilon, delta)-DP at a given delta.

    .. math:: p \le \min\{e^\epsilon q + \delta,\; 1 - e^{-\epsilon}(1 - q - \delta)\},

    the event from D against D' and its complement from D' against D (Kairouz et al. 2015, Theorem
    2.1, with the two data sets in these roles).
    """

    delta: float

    def __post_init__(self):
        require(0 <= self.delta < 1, "delta", self.delta, "a number in [0, 1)")

    def value(self, p: Any, q: Any) -> np.ndarray:
        """Compute the larger of ln((p - delta)/q) and ln((1 - q - delta)/(1 - p))."""
        p, q = np.asarray(p, float), np.asarray(q, float)
        return np.maximum(_log_ratio(p - self.delta, q), _log_ratio(1 - q - self.delta, 1 - p))

    def largest(self, q: Any, value: float) -> np.ndarray:
        q = np.asarray(q, float)
        above = np.exp(min(value, 700.0)) * q + self.delta
        return np.clip(np.minimum(above, 1 - np.exp(-value) * (1 - q - self.delta)), 0.0, 1.0)

    def reached(self, p: Any, value: float) -> np.ndarray:
        p = np.asarray(p, float)
        factor = np.exp(np.clip(value, -700.0, 700.0))
        return np.maximum((p - self.delta) / factor, 1 - self.delta - factor * (1 - p))


@dataclass(frozen=True)
class Mu:
    r"""mu-GDP: :math:`\Phi^{-1}(p) - \Phi^{-1}(q) \le \mu` (Dong et al. 2022, Definition 2.1).

    It holds for every event, for any distribution of the statistic that defines it.
    """

    def value(self, p: Any, q: Any) -> np.ndarray:
        high = ndtri(np.asarray(q, float))
        return np.where(np.isposinf(high), -np.inf, ndtri(np.asarray(p, float)) - high)

    def largest(self, q: Any, value: float) -> np.ndarray:
        return ndtr(ndtri(np.asarray(q, float)) + value)

    def reached(self, p: Any, value: float) -> np.ndarray:
        return ndtr(ndtri(np.asarray(p, float)) - value)


@dataclass(frozen=True)
class Profile:
    """Several (epsilon, delta) of one mechanism, claimed simultaneously."""

    points: Sequence[tuple[float, float]]

    def largest(self, q: Any) -> np.ndarray:
        """Return the largest p that all points allow for a rate q."""
        allowed = [Epsilon(delta).largest(q, epsilon) for epsilon, delta in self.points]
        return np.min(allowed, axis=0)


def _log_ratio(over: np.ndarray, under: np.ndarray) -> np.ndarray:
    """Return the logarithm of a ratio; minus infinity if the numerator is not positive."""
    positive = over > 0
    with np.errstate(divide="ignore"):
        ratio = np.log(np.where(positive, over, 1.0)) - np.log(under)
    return np.where(positive, ratio, -np.inf)
