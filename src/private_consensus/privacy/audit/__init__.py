r"""Statistics that can contradict a privacy claim. None of them can prove one.

Their modules; confidence and delta are stated in every call, and stand in every result:

:mod:`.bounds`
    ``event_bound``, ``mu_bound``: epsilon and mu from the rates of one event; ``Bound``, whose
    ``p_value`` is that of a claim.
:mod:`.statistics`
    ``audit_statistics``: given and learned statistics, cross-fitted; a list of bounds that are
    right together.
:mod:`.atoms`
    ``find_atoms``: what repeats exactly; as statistics it is part of ``audit_statistics``.
:mod:`.noise`
    ``noise_test``: recovered noise against its law and scale, everywhere, fresh and independent.
:mod:`.sequential`
    ``sequential`` stops early and keeps its level; ``detectable_epsilon`` says before what so many
    runs can contradict.
:mod:`.families`
    ``claim_p_value`` of an audit, and ``holm`` for a table of them.

Four of before, from white box to black box:

* :func:`noise_scale_test`: the noise itself, against the law and the scale that are claimed.
* :func:`transcript_audit`: whole transcripts under two neighbouring data sets; learns the event
  that tells them apart best, or takes a log-likelihood ratio that the caller knows.
* :func:`gaussian_fit`: a statistic under both, against a mu-GDP claim.
* :func:`threshold_audit`: a statistic under both, against an (epsilon, delta) claim.

Rows are independent runs of the same algorithm: of ``one`` on data set D, of ``other`` on its
neighbour D'. Whatever is chosen from outcomes (direction, threshold, statistic) is chosen on rows
of even number and judged on the rest, so that the stated confidence holds for the choice too. How
often each flags correct and broken copies is measured in
:mod:`private_consensus.privacy.audit_rates`.

A claim of (epsilon, delta) at a tiny delta needs very many runs to be contradicted. The releases
that it was computed from also give an epsilon at a larger delta, and that claim is easier to test.

References
----------
Clopper, Pearson, "The use of confidence or fiducial limits ...", Biometrika 1934.
Jagielski, Ullman, Oprea, "Auditing differentially private machine learning", NeurIPS 2020: epsilon
from the two rates of an event.
Nasr et al., "Tight auditing of differentially private machine learning", USENIX Security 2023: mu
from the two rates of an event.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from scipy.optimize import brentq
from scipy.special import bdtr, betaincinv, gammainc, gammaincinv, ndtr, ndtri

from private_consensus.errors import require
from private_consensus.privacy.conversions import gaussian_epsilon

CONFIDENCE = 0.999
LAWS = ("gaussian", "laplace", "gamma_norm")

# Relative to the mean variance of a transcript's coordinates. The smallest finds directions in
# which noise cancels, the largest keeps to the mean difference where there are few runs.
_RIDGES = (1e-12, 1e-4, 1e-1, 1e2)


# --- Noise ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ScaleTest:
    """Outcome of :func:`noise_scale_test`.

    Parameters
    ----------
    estimate, low, high : float
        Of the scale, with its two-sided confidence interval if law and independence are right.
    scale : float
        Claimed, in the unit of ``estimate``.
    findings : tuple of str
        Any of ``too small``, ``too large``, ``wrong shape``, ``reused``; empty if nothing speaks
        against the claim.
    pvalues : dict
        By finding, before the correction for having several.
    """

    estimate: float
    low: float
    high: float
    scale: float
    findings: tuple[str, ...]
    pvalues: Mapping[str, float]

    @property
    def passes(self) -> bool:
        """Whether law, scale and independence are all as claimed."""
        return not self.findings


def noise_scale_test(
    noise: np.ndarray, scale: Any, *, law: str = "gaussian", confidence: float = CONFIDENCE
) -> ScaleTest:
    r"""Is this noise of the claimed law and scale, neither less nor more, and fresh each time?

    Three exact tests. Scale, on both sides: :math:`\sum (y/\sigma)^2` is chi-square,
    :math:`\sum |y|/b` and :math:`\sum \|y\|_2/s` are Gamma. Shape: Kolmogorov-Smirnov at the
    claimed scale. Reuse: the signs of one release and of the next agree like a fair coin, and no
    two values of a continuous law are equal. The level is shared evenly among the three.

    Parameters
    ----------
    noise : ndarray, shape (..., d)
        The last axis is one release's coordinates, the others are releases, flattened in order.
    scale : float or ndarray
        Claimed; broadcast against ``noise``. For ``gamma_norm`` constant along the last axis.
    law : {"gaussian", "laplace", "gamma_norm"}
    confidence : float
        A correct mechanism passes with this probability.

    Returns
    -------
    ScaleTest
    """
    require(law in LAWS, "law", law, f"one of {', '.join(LAWS)}")
    noise = np.atleast_2d(np.asarray(noise, float))
    require(bool(np.all(np.isfinite(noise))), "noise", "a non-finite value", "finite numbers")
    unit = (noise / scale).reshape(-1, noise.shape[-1])
    level = (1 - confidence) / 3
    lower, upper, pivot = _scale_pivot(unit, law)
    pvalues = {
        "too small": lower,
        "too large": upper,
        "wrong shape": _shape_pvalue(unit, law),
        "reused": _reuse_pvalue(unit),
    }
    limits = {"too small": level / 2, "too large": level / 2}
    findings = tuple(name for name, p in pvalues.items() if p < limits.get(name, level))
    typical = float(np.exp(np.mean(np.log(np.broadcast_to(scale, noise.shape)))))
    estimate, low, high = (typical * ratio for ratio in pivot(level / 2))
    return ScaleTest(estimate, low, high, typical, findings, pvalues)


def _scale_pivot(unit: np.ndarray, law: str) -> tuple[float, float, Callable]:
    """Lower and upper p-value, and from a level the estimate and interval in units of scale."""
    if law == "gaussian":
        total, shape, power = float(np.sum(unit**2)) / 2, unit.size / 2, 2
    elif law == "laplace":
        total, shape, power = float(np.sum(np.abs(unit))), unit.size, 1
    else:
        total, shape, power = float(np.sum(np.linalg.norm(unit, axis=-1))), unit.size, 1
    lower = float(gammainc(shape, total))

    def interval(level: float) -> tuple[float, ...]:
        ends = (shape, gammaincinv(shape, 1 - level), gammaincinv(shape, level))
        return tuple(float((total / end) ** (1 / power)) for end in ends)

    return lower, 1 - lower, interval


def _shape_pvalue(unit: np.ndarray, law: str) -> float:
    dim = unit.shape[-1]
    values = np.linalg.norm(unit, axis=-1) if law == "gamma_norm" else unit.ravel()
    laws = {"gaussian": ndtr, "laplace": stats.laplace.cdf, "gamma_norm": stats.gamma(dim).cdf}
    method = "exact" if values.size <= 5000 else "asymp"
    return float(stats.kstest(values, laws[law], method=method).pvalue)


def _reuse_pvalue(unit: np.ndarray) -> float:
    """Two-sided p-value of how often signs of successive releases agree; 0 if values repeat."""
    if np.unique(unit).size < unit.size:
        return 0.0
    if len(unit) < 2:
        return 1.0
    agree = np.sign(unit[1:]) == np.sign(unit[:-1])
    more = max(int(agree.sum()), agree.size - int(agree.sum()))
    return float(min(1.0, 2 * bdtr(agree.size - more, agree.size, 0.5)))


def log_likelihood_ratio(
    residuals: np.ndarray, residuals_other: np.ndarray, scale: Any, *, law: str = "gaussian"
) -> np.ndarray:
    r"""Log-likelihood of transcripts under D minus that under D', if the noise is as claimed.

    Parameters
    ----------
    residuals, residuals_other : ndarray, shape (..., rounds, d)
        Message minus its mean given the earlier messages, under D and under D'.
    scale : float or ndarray
        Broadcast against ``residuals``.
    law : {"gaussian", "laplace", "gamma_norm"}

    Returns
    -------
    ndarray, shape (...)
    """
    require(law in LAWS, "law", law, f"one of {', '.join(LAWS)}")
    one, other = residuals / scale, residuals_other / scale
    if law == "gaussian":
        return np.sum((other - one) * (other + one), axis=(-2, -1)) / 2
    if law == "laplace":
        return np.sum(np.abs(other) - np.abs(one), axis=(-2, -1))
    return np.sum(np.linalg.norm(other, axis=-1) - np.linalg.norm(one, axis=-1), axis=-1)


# --- Threshold events -------------------------------------------------------------------------


@dataclass(frozen=True)
class Event:
    """A set of outcomes: statistic at least (or at most) ``threshold``.

    ``swapped``: the event is likelier under D', and it is D' that is set against D.
    """

    threshold: float
    at_least: bool
    swapped: bool


@dataclass(frozen=True)
class EpsilonBound:
    """Outcome of :func:`threshold_audit`.

    Parameters
    ----------
    epsilon : float
        Lower bound: no mechanism that is (epsilon', delta)-DP with epsilon' below it gives such
        outcomes, but with probability 1 - confidence.
    ceiling : float
        The largest bound that so many runs can give; a claim above it cannot be contradicted.
    event : Event
    hits, runs : tuple of int
        Under the likelier and the less likely data set, on the judging half.
    delta, confidence : float
    """

    epsilon: float
    ceiling: float
    event: Event
    hits: tuple[int, int]
    runs: tuple[int, int]
    delta: float
    confidence: float

    def contradicts(self, epsilon: float) -> bool:
        """Whether (``epsilon``, delta)-DP is refuted at the stated confidence."""
        return self.epsilon > epsilon


def threshold_audit(
    one: np.ndarray, other: np.ndarray, *, delta: float = 0.0, confidence: float = CONFIDENCE
) -> EpsilonBound:
    r"""Lower bound of epsilon from one event: :math:`\ln((p - \delta)/q)`.

    Direction, role of the two data sets and threshold maximise the bound on the rows of even
    number. On the others p gets its Clopper-Pearson lower and q its upper limit, each at half of
    1 - confidence.

    Parameters
    ----------
    one, other : ndarray, shape (runs,)
        The same statistic of outcomes under D and under D'; infinite values are welcome.
    delta : float
    confidence : float

    Returns
    -------
    EpsilonBound
    """
    one, other = _statistic("one", one), _statistic("other", other)
    tail = (1 - confidence) / 2
    event = _best_event(one[::2], other[::2], lambda *hits: _log_ratio(*hits, delta, tail))[1]
    return _judged(event, one[1::2], other[1::2], delta, confidence)


def _judged(
    event: Event, one: np.ndarray, other: np.ndarray, delta: float, confidence: float
) -> EpsilonBound:
    tail = (1 - confidence) / 2
    hits, runs = _hits(event, one, other)
    bound = float(_log_ratio(hits[0], runs[0], hits[1], runs[1], delta, tail))
    ceiling = float(_log_ratio(runs[0], runs[0], 0, runs[1], delta, tail))
    return EpsilonBound(max(0.0, bound), ceiling, event, hits, runs, delta, confidence)


def clopper_pearson(hits: Any, runs: Any, tail: float) -> tuple[Any, Any]:
    """Lower and upper limit of a probability, each missed with probability at most ``tail``."""
    hits, runs = np.asarray(hits), np.asarray(runs)
    low = betaincinv(np.maximum(hits, 1), runs - hits + 1, tail)
    high = betaincinv(hits + 1, np.maximum(runs - hits, 1), 1 - tail)
    return np.where(hits == 0, 0.0, low), np.where(hits == runs, 1.0, high)


def _log_ratio(
    hits: Any, runs: Any, hits_other: Any, runs_other: Any, delta: float, tail: float
) -> np.ndarray:
    low = clopper_pearson(hits, runs, tail)[0] - delta
    high = clopper_pearson(hits_other, runs_other, tail)[1]
    return np.where(low > 0, np.log(np.where(low > 0, low, 1.0) / high), -np.inf)


def _probit_gap(hits: Any, runs: Any, hits_other: Any, runs_other: Any, tail: float) -> np.ndarray:
    low = clopper_pearson(hits, runs, tail)[0]
    high = clopper_pearson(hits_other, runs_other, tail)[1]
    return np.where((low > 0) & (high < 1), ndtri(low) - ndtri(high), -np.inf)


def _best_event(one: np.ndarray, other: np.ndarray, score: Callable) -> tuple[float, Event]:
    one, other = np.sort(one), np.sort(other)
    thresholds = np.unique(np.concatenate([_tails(one), _tails(other)]))
    best = (-math.inf, Event(float(thresholds[0]), True, False))
    for at_least in (True, False):
        counts = _counts(one, thresholds, at_least), _counts(other, thresholds, at_least)
        for swapped in (False, True):
            (hits, hits_other), (a, b) = (
                (counts[::-1], (other, one)) if swapped else (counts, (one, other))
            )
            values = score(hits, a.size, hits_other, b.size)
            place = int(np.argmax(values))
            found = Event(float(thresholds[place]), at_least, swapped)
            best = max(best, (float(values[place]), found), key=lambda pair: pair[0])
    return best


def _tails(ordered: np.ndarray) -> np.ndarray:
    """Some order statistics, denser towards both ends."""
    ranks = np.unique(np.geomspace(1, ordered.size, 24).astype(int)) - 1
    return np.concatenate([ordered[ranks], ordered[::-1][ranks]])


def _counts(ordered: np.ndarray, thresholds: np.ndarray, at_least: bool) -> np.ndarray:
    if at_least:
        return ordered.size - np.searchsorted(ordered, thresholds, side="left")
    return np.searchsorted(ordered, thresholds, side="right")


def _hits(event: Event, one: np.ndarray, other: np.ndarray) -> tuple[tuple, tuple]:
    pair = (other, one) if event.swapped else (one, other)
    inside = [
        values >= event.threshold if event.at_least else values <= event.threshold
        for values in pair
    ]
    return tuple(int(hit.sum()) for hit in inside), tuple(values.size for values in pair)


def _statistic(name: str, values: np.ndarray) -> np.ndarray:
    values = np.asarray(values, float)
    usable = values.ndim == 1 and values.size >= 4 and not np.isnan(values).any()
    require(usable, name, f"shape {values.shape}", "one number a run, no NaN, at least 4 runs")
    return values


# --- Gaussian differential privacy ------------------------------------------------------------


@dataclass(frozen=True)
class GaussianFit:
    """Outcome of :func:`gaussian_fit`.

    Parameters
    ----------
    mu : float
        Distance of the two means in standard deviations.
    low, high : float
        Its confidence limits if the statistic is Gaussian with equal variances.
    floor : float
        Lower bound of mu from one event, with no such assumption.
    gaussian : bool
        Whether normality and equal variances are not rejected.
    confidence : float
    """

    mu: float
    low: float
    high: float
    floor: float
    gaussian: bool
    confidence: float

    def contradicts(self, mu: float) -> bool:
        """Whether mu-GDP is refuted: by the event, or by the fit where it fits."""
        return self.floor > mu or (self.gaussian and self.low > mu)

    def epsilon(self, delta: float) -> float:
        """Epsilon of a Gaussian mechanism at the fitted mu: an estimate, not a bound."""
        return gaussian_epsilon(self.mu, delta)


def gaussian_fit(
    one: np.ndarray, other: np.ndarray, *, confidence: float = CONFIDENCE
) -> GaussianFit:
    r"""Fit N(0, 1) against N(mu, 1) to a statistic under two neighbouring data sets.

    The log-likelihood ratio of Gaussian releases is such a statistic if their sensitivities do not
    depend on the outcome. The standardised difference of means over
    :math:`\sqrt{1/n + 1/m}`, with n and m runs, is noncentral t with n + m - 2 degrees of freedom;
    that gives the limits. The floor is :math:`\Phi^{-1}(p) - \Phi^{-1}(q)` of one event, its rates
    bounded as in :func:`threshold_audit`. Fit and floor share 1 - confidence evenly.

    Parameters
    ----------
    one, other : ndarray, shape (runs,)
        A statistic under D and under D', at least 20 runs each.

    Returns
    -------
    GaussianFit
    """
    one, other = _statistic("one", one), _statistic("other", other)
    require(min(one.size, other.size) >= 20, "one", min(one.size, other.size), "20 runs or more")
    spend = (1 - confidence) / 2
    event = _best_event(one[::2], other[::2], lambda *hits: _probit_gap(*hits, spend / 2))[1]
    hits, runs = _hits(event, one[1::2], other[1::2])
    floor = max(0.0, float(_probit_gap(hits[0], runs[0], hits[1], runs[1], spend / 2)))
    mu, low, high = _standardised_difference(one, other, spend / 2)
    return GaussianFit(mu, low, high, floor, _looks_gaussian(one, other), confidence)


def _gap_of_means(one: np.ndarray, other: np.ndarray) -> tuple[float, int]:
    """Distance of the means in pooled standard deviations, and its degrees of freedom."""
    freedom = one.size + other.size - 2
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        return math.inf, freedom
    variance = (one.var() * one.size + other.var() * other.size) / freedom
    gap = abs(float(one.mean() - other.mean()))
    if variance == 0:
        return (0.0 if gap == 0 else math.inf), freedom
    return gap / math.sqrt(variance), freedom


def _standardised_difference(
    one: np.ndarray, other: np.ndarray, tail: float
) -> tuple[float, float, float]:
    mu, freedom = _gap_of_means(one, other)
    if math.isinf(mu):  # nothing to fit: outcomes are constant or infinite
        return mu, 0.0, mu
    unit = math.sqrt(1 / one.size + 1 / other.size)
    ends = (_noncentrality(mu / unit, freedom, level) for level in (1 - tail, tail))
    low, high = (unit * max(0.0, end) for end in ends)
    return mu, low, high


def _noncentrality(t: float, freedom: int, level: float) -> float:
    """The shift at which a noncentral t variable is below ``t`` with probability ``level``.

    Integrates the conditional normal probability over the pooled deviation S, a chi variable;
    reused noise gives a t far beyond what library functions for this law accept.
    """
    deviation = 1 + np.linspace(-8, 8, 1601) / math.sqrt(2 * freedom)
    deviation = deviation[deviation > 0]
    log_density = (freedom - 1) * np.log(deviation) - freedom * deviation**2 / 2
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()

    def excess(shift: float) -> float:
        return float(weights @ ndtr(t * deviation - shift)) - level

    # within a few of its own standard deviations, widened until it brackets
    spread = 6 * math.sqrt(1 + t**2 / (2 * freedom))
    low, high = t - spread, t + spread
    while excess(low) < 0:
        low -= spread
    while excess(high) > 0:
        high += spread
    return float(brentq(excess, low, high, rtol=1e-10))


def _looks_gaussian(one: np.ndarray, other: np.ndarray, level: float = 1e-3) -> bool:
    if not (np.isfinite(one).all() and np.isfinite(other).all()):
        return False
    spread = one.std(), other.std()
    if min(spread) == 0:
        return False
    residuals = np.concatenate([(one - one.mean()) / spread[0], (other - other.mean()) / spread[1]])
    ratio = (spread[0] / spread[1]) ** 2
    equal = 2 * min(
        stats.f.cdf(ratio, one.size - 1, other.size - 1),
        stats.f.sf(ratio, one.size - 1, other.size - 1),
    )
    return bool(stats.normaltest(residuals).pvalue > level / 2 and equal > level / 2)


# --- Transcripts ------------------------------------------------------------------------------


@dataclass(frozen=True)
class TranscriptAudit:
    """Outcome of :func:`transcript_audit`.

    Parameters
    ----------
    bound : EpsilonBound
        Lower bound of epsilon.
    fit : GaussianFit
        The chosen statistic against mu-GDP.
    statistic : str
        Which one was chosen: a name given by the caller, or ``linear, ridge r``.
    """

    bound: EpsilonBound
    fit: GaussianFit
    statistic: str

    def contradicts(self, *, epsilon: float | None = None, mu: float | None = None) -> bool:
        """Whether the claimed epsilon (at the audit's delta) or the claimed mu is refuted."""
        by_epsilon = epsilon is not None and self.bound.contradicts(epsilon)
        return by_epsilon or (mu is not None and self.fit.contradicts(mu))


def transcript_audit(
    one: np.ndarray | None,
    other: np.ndarray | None,
    *,
    statistics: Mapping[str, tuple[np.ndarray, np.ndarray]] | None = None,
    delta: float = 0.0,
    confidence: float = CONFIDENCE,
) -> TranscriptAudit:
    """Tell two neighbouring data sets apart by all messages that an observer sees.

    Candidates are the caller's statistics, above all a log-likelihood ratio, and linear
    discriminants of the transcripts. The latter need no model of the noise; so they find what a
    likelihood of the claimed model cannot: noise that two messages share and that cancels in their
    difference. A quarter of the runs fits the discriminants, a quarter chooses statistic and event,
    half judges.

    Parameters
    ----------
    one, other : ndarray, shape (runs, ...), or None
        All messages of each run under D and under D'; None to use ``statistics`` alone.
    statistics : mapping from name to (array, array)
        One number a run under D and under D'.
    delta, confidence : float
        Bound and fit hold at ``confidence`` each.

    Returns
    -------
    TranscriptAudit
    """
    name, event, a, b = _chosen(one, other, statistics, delta, confidence)
    fit = gaussian_fit(a, b, confidence=confidence)
    return TranscriptAudit(_judged(event, a, b, delta, confidence), fit, name)


def learned_statistic(
    one: np.ndarray, other: np.ndarray, *, delta: float = 0.0, confidence: float = CONFIDENCE
) -> tuple[np.ndarray, np.ndarray]:
    """The linear statistic that :func:`transcript_audit` would choose, on the runs it judges."""
    return _chosen(one, other, None, delta, confidence)[2:]


def _chosen(
    one: np.ndarray | None,
    other: np.ndarray | None,
    given: Mapping[str, tuple[np.ndarray, np.ndarray]] | None,
    delta: float,
    confidence: float,
) -> tuple[str, Event, np.ndarray, np.ndarray]:
    """Name and event of the best statistic, and its values on the judging half."""
    candidates = {name: _both(name, pair) for name, pair in (given or {}).items()}
    if one is not None and other is not None:
        candidates |= _discriminants(_flat(one), _flat(other))
    require(bool(candidates), "statistics", given, "at least one, or transcripts")
    tail = (1 - confidence) / 2

    def worth(name: str) -> tuple[tuple[float, float], Event]:
        a, b = (values[2::4] for values in candidates[name])
        value, event = _best_event(a, b, lambda *hits: _log_ratio(*hits, delta, tail))
        # where no event counts for anything yet, the widest gap of means is the best guess
        return (value, _gap_of_means(a, b)[0]), event

    found = {name: worth(name) for name in candidates}
    name = max(found, key=lambda key: found[key][0])
    a, b = candidates[name]
    return name, found[name][1], a[1::2], b[1::2]


def _both(name: str, pair: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    return tuple(_statistic(name, values) for values in pair)


def _discriminants(one: np.ndarray, other: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Fisher's linear discriminant at several ridges, fitted on every fourth run."""
    fit_one, fit_other = one[::4], other[::4]
    gap = fit_one.mean(axis=0) - fit_other.mean(axis=0)
    spread = np.concatenate([fit_one - fit_one.mean(axis=0), fit_other - fit_other.mean(axis=0)])
    _, singular, axes = np.linalg.svd(spread / math.sqrt(len(spread)), full_matrices=False)
    mean_variance = float(np.sum(singular**2)) / one.shape[1] or 1.0
    inside = axes @ gap
    outside = gap - axes.T @ inside
    found = {}
    for relative in _RIDGES:
        ridge = relative * mean_variance
        weights = axes.T @ (inside / (singular**2 + ridge)) + outside / ridge
        weights /= np.linalg.norm(weights) or 1.0
        found[f"linear, ridge {relative:g}"] = (one @ weights, other @ weights)
    return found


def _flat(transcripts: np.ndarray) -> np.ndarray:
    transcripts = np.asarray(transcripts, float)
    flat = transcripts.reshape(len(transcripts), -1)
    usable = bool(np.all(np.isfinite(flat))) and len(flat) >= 40
    require(usable, "transcripts", f"shape {transcripts.shape}", "40 runs or more, all finite")
    return flat
