r"""Lower bounds of epsilon and of mu from the observed rates of an event, with exact coverage.

K of n runs on D and M of n' on D' fall into an event that was selected on other runs, so
that :math:`K\sim\mathrm{Bin}(n,p)` and :math:`M\sim\mathrm{Bin}(n',q)` are independent. Outcomes
(k, m) are ordered by T(k, m), the parameter of a claim if p were its Clopper-Pearson lower and
q its upper limit; T increases in k and decreases in m. The set of rates

.. math:: R = \{(p,q): q\in C_\gamma(M),\; P_{p,q}(T(K,M)\ge T_{\rm observed}) > \alpha-\gamma\}

misses the true ones with probability at most alpha: :math:`C_\gamma` misses q with probability
gamma (Berger and Boos), and the probability of an outcome at least as extreme is stochastically
no smaller than uniform (Buehler). A claim is contradicted if it allows no point of R. Therefore the
bounds on epsilon at every delta and on mu that one outcome gives hold *simultaneously* with
probability 1 - alpha.

Two Clopper-Pearson limits at alpha/2 each need the distance of p and q to be 3.29 (a + b) at 99.9
%, with standard errors a and b; this region needs 3.09 sqrt(a^2 + b^2), 1.5 times less if they
are equal. It has the shape of the joint region of Zanella-Beguelin et al. (ICML 2023). Theirs
is credible under a uniform prior and has no proven frequentist coverage, hence it is not used.

The largest probability over the rates that a claim allows is bounded, not sampled:
:math:`P_{p,q}(T\ge t)` increases in p and decreases in q, so that on a cell of q it is at most that
of the upper end's p and the lower end's q.

References
----------
Clopper, Pearson, "The use of confidence or fiducial limits ...", Biometrika 1934.
Buehler, "Confidence intervals for the product of two binomial parameters", JASA 1957.
Berger, Boos, "P values maximized over a confidence set for the nuisance parameter", JASA 1994.
Jagielski, Ullman, Oprea, "Auditing differentially private machine learning", NeurIPS 2020: epsilon
from the two rates of an event.
Nasr et al., "Tight auditing of differentially private machine learning", USENIX Security 2023: mu
from the two rates of an event.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import bdtr, bdtrc, betaincinv, gammaln, ndtr, ndtri, xlog1py, xlogy
from scipy.stats import binom

from private_consensus.common.errors import require

from .claims import Epsilon, Measure, Mu, Profile

_CELLS = 96  # number of intervals of the rate q
_NUISANCE_FRACTION = 1e-4  # gamma over alpha
_PRECISION = 1e-4  # relative precision of a bound, which is rounded down
_MAX_TABLED_RUNS = 10_000  # largest number of runs for which limits are tabulated
_SELECTED_CELLS = 6  # number of evenly spaced cells of a lower bound on a p-value


Allowed = Callable[[np.ndarray], np.ndarray]
"""Function from q to the largest p that a claim allows."""


class Counts(NamedTuple):
    """Number of runs in an event and number of all runs, on D and on D'."""

    hits: int
    runs: int
    hits_other: int
    runs_other: int

    def swapped(self) -> Counts:
        """Return the counts with the two data sets exchanged."""
        return Counts(self.hits_other, self.runs_other, self.hits, self.runs)


@dataclass(frozen=True)
class Bound:
    """Lower bounds of epsilon and mu that the rates of one event imply.

    Parameters
    ----------
    counts : Counts
        Counted on runs that were not used to select the event.
    delta : float
        delta of ``epsilon`` and of claimed epsilons.
    confidence : float
        Simultaneous confidence of the list that contains this bound; 1 - confidence is its error.
    share : float
        Fraction of that error used by this bound.
    ordering : Epsilon or Mu
        Measure that orders the outcomes: the bound on it is the tighter one.
    both : bool
        True if both directions are tested, each at half of the level. False if the event was
        selected to be more likely on D.
    statistic, event : str, object
        Statistic that defines the event, and the event, if known.
    """

    counts: Counts
    delta: float
    confidence: float
    share: float
    ordering: Measure
    both: bool
    statistic: str = ""
    event: Any = None

    @property
    def level(self) -> float:
        """Probability that this bound may be wrong."""
        return (1 - self.confidence) * self.share

    @cached_property
    def epsilon(self) -> float:
        """Lower bound of epsilon at ``delta``, at least 0, rounded down."""
        return self._lower(Epsilon(self.delta))

    @cached_property
    def mu(self) -> float:
        """Lower bound of mu, for a mechanism that is claimed to be mu-GDP; for any distribution."""
        return self._lower(Mu())

    @cached_property
    def ceiling(self) -> float:
        """Largest bound on epsilon that this number of runs can give.

        A larger claim cannot fail.
        """
        return self._extreme.epsilon

    @property
    def _extreme(self) -> Bound:
        perfect = Counts(self.counts.runs, self.counts.runs, 0, self.counts.runs_other)
        return Bound(perfect, self.delta, self.confidence, self.share, self.ordering, self.both)

    def p_value(
        self,
        *,
        epsilon: float | None = None,
        mu: float | None = None,
        profile: Profile | None = None,
    ) -> float:
        """Return the p-value of one claim, divided by the error fraction of this bound.

        The claim is exactly one of an epsilon at ``delta``, a mu, and a profile of several
        (epsilon, delta), claimed simultaneously. For a true claim, the smallest p-value of a list
        of bounds is below alpha with probability at most alpha.
        """
        return self._adjusted(self._p_value(self._allowed(epsilon, mu, profile)))

    def p_value_lower_bound(
        self,
        *,
        epsilon: float | None = None,
        mu: float | None = None,
        profile: Profile | None = None,
    ) -> float:
        """Compute a lower bound on :meth:`p_value` at a fraction of its cost."""
        return self._adjusted(self._p_value_lower_bound(self._allowed(epsilon, mu, profile)))

    def _allowed(self, epsilon, mu, profile) -> Allowed:
        if profile is not None:
            return profile.largest
        if mu is not None:
            return _allowed(Mu(), mu)
        require(epsilon is not None, "epsilon", epsilon, "a claimed epsilon")
        return _allowed(Epsilon(self.delta), epsilon)

    def _adjusted(self, p_value: float) -> float:
        return float(min(1.0, p_value / self.share))

    def contradicts(self, *, epsilon: float | None = None, mu: float | None = None) -> bool:
        """Return True if a claimed epsilon or mu is refuted at the stated confidence."""
        return self.p_value(epsilon=epsilon, mu=mu) <= 1 - self.confidence

    def refutes(self, epsilon: float) -> bool:
        """Return True if this bound, with its fraction of the error, is above ``epsilon``."""
        allowed = _allowed(Epsilon(self.delta), epsilon)
        return (
            self._p_value_lower_bound(allowed) <= self.level
            and self._p_value(allowed) <= self.level
        )

    @cached_property
    def _directions(self) -> list[_Exceedance]:
        level = self.level / (2 if self.both else 1)
        counts = [self.counts, self.counts.swapped()] if self.both else [self.counts]
        return [_Exceedance(direction_counts, self.ordering, level) for direction_counts in counts]

    def _p_value(self, allowed: Allowed) -> float:
        return len(self._directions) * min(
            direction.p_value(allowed) for direction in self._directions
        )

    def _p_value_lower_bound(self, allowed: Allowed) -> float:
        return len(self._directions) * min(
            direction.p_value_lower_bound(allowed) for direction in self._directions
        )

    def _lower(self, measure: Measure) -> float:
        return _largest_refuted(lambda value: self._p_value(_allowed(measure, value)), self.level)


def mu_bound(
    hits: int, runs: int, hits_other: int, runs_other: int, *, delta: float, confidence: float
) -> Bound:
    r"""Return a lower bound of mu, :math:`\Phi^{-1}(p)-\Phi^{-1}(q)`, from the rates of one event.

    Valid for every distribution: mu-GDP bounds the rates of each event. ``mu`` is at most the true
    one with probability at least ``confidence``. ``delta`` is that of the additional bound on
    epsilon.

    Parameters
    ----------
    hits, runs, hits_other, runs_other : int
        Runs in the event and all runs, under D and under D'. The event was selected on other runs.
    """
    counts = _checked_counts(hits, runs, hits_other, runs_other)
    return Bound(counts, delta, _checked_confidence(confidence), 1.0, Mu(), both=True)


def clopper_pearson(hits: Any, runs: Any, tail: float) -> tuple[Any, Any]:
    """Return lower and upper limit of a probability, each missed with probability at most ``tail``.

    ``hits`` and ``runs`` are the numbers of successes and of trials.
    """
    hits, runs = np.asarray(hits), np.asarray(runs)
    low = betaincinv(np.maximum(hits, 1), runs - hits + 1, tail)
    high = betaincinv(hits + 1, np.maximum(runs - hits, 1), 1 - tail)
    return np.where(hits == 0, 0.0, low), np.where(hits == runs, 1.0, high)


def tabled_limits(hits: np.ndarray, runs: int, tail: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the limits of :func:`clopper_pearson` for many numbers of hits.

    They are read from a cached table if the number of runs is at most 10,000.
    """
    if runs > _MAX_TABLED_RUNS:
        return clopper_pearson(hits, runs, tail)
    low, high = _limits_of_all(runs, tail)
    return low[hits], high[hits]


@lru_cache(maxsize=64)
def _limits_of_all(runs: int, tail: float) -> tuple[np.ndarray, np.ndarray]:
    return clopper_pearson(np.arange(runs + 1), runs, tail)


def ordering_tail(level: float) -> float:
    """Compute the one-sided level of the limits that order outcomes.

    For equal standard errors of p and q, the corner of the two limits is then at the distance of
    the tangent to their joint confidence ellipse.
    """
    return float(ndtr(ndtri(level) / math.sqrt(2)))


class _Exceedance:
    """Upper bound on the probability of outcomes at least as extreme as the observed one."""

    def __init__(self, counts: Counts, ordering: Measure, level: float):
        self.runs, self.neglected = counts.runs, level * _NUISANCE_FRACTION
        low, high = clopper_pearson(counts.hits_other, counts.runs_other, self.neglected / 2)
        ends = np.arcsin(np.sqrt([low, high]))  # even in units of the standard error
        self.edges = np.sin(np.linspace(*ends, _CELLS + 1)) ** 2
        self.edges[[0, -1]] = low, high
        order = _Ordering(counts, ordering, ordering_tail(level))
        self.hits = order.window(low, self.neglected / 100)
        self.max_hits_other, self.runs_other = order.max_hits_other(self.hits), counts.runs_other
        self.log_binomials = (
            gammaln(self.runs + 1) - gammaln(self.hits + 1) - gammaln(self.runs - self.hits + 1)
        )

    def p_value(self, allowed: Allowed) -> float:
        """Compute the p-value of a claim that allows, for a rate q, at most ``allowed(q)``."""
        chances = self._chances(allowed, slice(None), self.below)
        return float(min(1.0, chances.max() + self.neglected))

    def p_value_lower_bound(self, allowed: Allowed) -> float:
        """Compute a lower bound on :meth:`p_value` from some of the cells."""
        if "below" in self.__dict__:
            return self.p_value(allowed)
        return float(min(1.0, self._chances(allowed, self._selected, self._below_selected).max()))

    @property
    def _selected(self) -> slice:
        return slice(_CELLS // _SELECTED_CELLS // 2, None, _CELLS // _SELECTED_CELLS)

    @cached_property
    def below(self) -> np.ndarray:
        """Probability, per cell and number of hits on D, of an outcome as extreme as observed."""
        return self._below(slice(None))

    @cached_property
    def _below_selected(self) -> np.ndarray:
        return self._below(self._selected)

    def _below(self, cells: slice) -> np.ndarray:
        edges = self.edges[:-1][cells, None]
        chance = bdtr(np.maximum(self.max_hits_other, 0), self.runs_other, edges)
        return np.where(self.max_hits_other >= 0, chance, 0.0)

    def _chances(self, allowed: Allowed, cells: slice, below: np.ndarray) -> np.ndarray:
        p = allowed(self.edges[1:][cells])[:, None]
        first, last = self.hits[0], self.hits[-1]
        mass = np.exp(self.log_binomials + xlogy(self.hits, p) + xlog1py(self.runs - self.hits, -p))
        probabilities = np.sum(mass * below, axis=1)
        if first > 0:  # fewer hits than in the window require fewer hits on D'
            probabilities += below[:, 0] * bdtr(first - 1, self.runs, p[:, 0])
        if last < self.runs:
            probabilities += bdtrc(last, self.runs, p[:, 0])
        return probabilities


class _Ordering:
    """Ordering of outcomes (k, m) by the measure at their Clopper-Pearson limits."""

    def __init__(self, counts: Counts, measure: Measure, tail: float):
        self.counts, self.measure, self.tail = counts, measure, tail
        low = clopper_pearson(counts.hits, counts.runs, tail)[0]
        high = clopper_pearson(counts.hits_other, counts.runs_other, tail)[1]
        self.observed_value = float(measure.value(low, high))

    def max_hits_other(self, hits: np.ndarray) -> np.ndarray:
        """Return, per k, the largest m such that (k, m) is as extreme as observed; -1 for none."""
        counts, tail = self.counts, self.tail
        if self.observed_value == -math.inf:
            return np.full(hits.shape, counts.runs_other)
        low = tabled_limits(hits, counts.runs, tail)[0]
        limit = np.clip(self.measure.reached(low, self.observed_value), 0.0, 1.0)
        # the upper limit of m is at most x if P(Bin(n', x) <= m) is at most the tail
        quantile = np.where(limit > 0, binom.ppf(tail, counts.runs_other, limit), 0.0)
        largest = quantile - (bdtr(quantile, counts.runs_other, limit) > tail)
        largest = np.where(limit >= 1, counts.runs_other, np.where(limit > 0, largest, -1))
        # rounding must exclude neither the outcome itself nor outcomes with more hits
        largest = np.where(hits >= counts.hits, np.maximum(largest, counts.hits_other), largest)
        return np.maximum.accumulate(largest).astype(int)

    def window(self, low: float, negligible: float) -> np.ndarray:
        """Return the k whose probabilities are summed exactly; those of other k are bounded.

        For a smaller k, m would have to be so small that even at q = ``low`` it has a
        ``negligible`` probability. A larger k does not occur at rates that matter.
        """
        counts = self.counts
        last = math.ceil(counts.runs * clopper_pearson(counts.hits, counts.runs, 1e-14)[1])
        if self.observed_value == -math.inf:
            return np.arange(0, last + 1)
        unlikely = max(0.0, float(binom.ppf(negligible, counts.runs_other, low)))
        high = clopper_pearson(unlikely, counts.runs_other, self.tail)[1]
        needed = float(np.clip(self.measure.largest(high, self.observed_value), 0.0, 1.0))
        first = min(float(binom.ppf(1 - self.tail, counts.runs, needed)), counts.hits)
        return np.arange(max(0, int(first) - 1), last + 1)


def _allowed(measure: Measure, value: float) -> Allowed:
    return lambda q: measure.largest(q, value)


def _largest_refuted(p_value: Callable[[float], float], level: float) -> float:
    """Return the largest value that is refuted together with all smaller values; 0 for none."""
    if p_value(0.0) > level:
        return 0.0
    low, high = 0.0, 1.0
    while p_value(high) <= level:
        low, high = high, 2 * high
    while high - low > _PRECISION * max(1.0, high):
        middle = (low + high) / 2
        low, high = (middle, high) if p_value(middle) <= level else (low, middle)
    return low


def _checked_counts(hits: int, runs: int, hits_other: int, runs_other: int) -> Counts:
    counts = Counts(int(hits), int(runs), int(hits_other), int(runs_other))
    inside = 0 <= counts.hits <= counts.runs and 0 <= counts.hits_other <= counts.runs_other
    several = min(counts.runs, counts.runs_other) >= 1
    require(inside and several, "hits", counts, "0 <= hits <= runs, runs >= 1, for both data sets")
    return counts


def _checked_confidence(confidence: float) -> float:
    require(0 < confidence < 1, "confidence", confidence, "a number in (0, 1)")
    return float(confidence)
