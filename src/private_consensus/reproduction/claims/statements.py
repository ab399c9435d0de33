"""Compute the statistics of each kind of test, and the region in which each has to lie.

The statistics are linear contrasts of means: ``A @ ln(means)`` for ratios, ``A @ means`` for
differences, with one row of the matrix A per statistic. A statistic of a test is called an element
of the claim.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import polars as pl
from scipy.linalg import block_diag

from private_consensus.common.errors import InvalidInput, require
from private_consensus.common.multiplicity import ALPHA
from private_consensus.privacy.verdicts import SLACK

from .intervals import jackknife, limits
from .schema import COMPARISONS, PRIVATE, Series, Test
from .selection import measured, paired, rows_of
from .words import axis_words, measure_words, point_words

ROUNDING = 1e-9
"""Relative change in the wrong direction of a monotone claim that rounding explains."""
TINY, HUGE = 1e-300, 1e300
"""Values that replace zero and infinity before a logarithm."""
ORDERINGS = ("decreasing", "increasing", "largest", "reaches_earlier")
"""Kinds that state a strict order."""
FACTORS = ("below", "lower", "steadier")
"""Kinds that state that the series is at most a multiple of the second one."""

Region = tuple[float, float]


@dataclass(frozen=True)
class Estimates:
    """Estimates of the statistics of a test, with their confidence intervals.

    Attributes
    ----------
    value : ndarray, [elements]
        Estimates.
    accept : ndarray, [elements, 2]
        Lower and upper end of the region in which the claim is true.
    error, skewness : ndarray, [elements]
        Standard errors, and skewness of the jackknife's pseudo-values; NaN if the intervals do not
        follow from them (see :mod:`.intervals`).
    ends : callable
        From a two-sided error level to lower and upper ends of the intervals, [elements] each.
    is_step : ndarray of bool, [elements]
        True for changes over a part of the grid of a monotone claim, which can contradict it but
        confirm nothing.
    means : list of ndarray, [elements]
        Means over runs that each statistic depends on, of the first series along x and then of the
        second. They are standard deviations, arrivals or epsilons for the kinds that compare these.
    """

    test: Test
    names: list[str]
    value: np.ndarray
    accept: np.ndarray
    error: np.ndarray
    skewness: np.ndarray
    runs: int
    ends: Callable[[float], tuple[np.ndarray, np.ndarray]]
    is_step: np.ndarray
    means: list[np.ndarray]

    @property
    def strict(self) -> bool:
        """True if the claim is a strict inequality, which exact equality contradicts."""
        test = self.test
        is_order = test.kind in (*ORDERINGS, "difference")
        compares_equally = test.kind in (*FACTORS, "falls") and test.expected == 1.0
        is_exact = test.quantifier != "universal" and test.tolerance == 0
        return is_exact and (is_order or compares_equally)


@dataclass(frozen=True)
class Contrast:
    """Linear contrasts of means.

    Attributes
    ----------
    matrix : ndarray, [elements, points]
        Weights of the means, or of their logarithms.
    region : (float, float)
        Ends of the interval in which each statistic lies if the claim is true.
    steps : int
        Number of statistics at the end for which it suffices that the data do not contradict their
        region, which is larger by :data:`ROUNDING`.
    """

    names: list[str]
    matrix: np.ndarray
    region: Region
    steps: int = 0


def estimates(test: Test, runs: pl.DataFrame, privacy: pl.DataFrame) -> Estimates:
    """Estimate the statistics of a test from measurements of runs.

    ``privacy`` is used by the kind ``private``. A series without measurements, two series with
    different grids, and a missing key raise ``InvalidInput``.
    """
    if test.kind == PRIVATE:
        return _privacy(test, privacy)
    if test.kind in COMPARISONS:
        return estimated(test, *_both(test, runs))
    expected = f"no second series, since kind {test.kind} tests one series"
    require(test.against is None, "test.against", test.against, expected)
    return estimated(test, *measured(test.series, runs, test.x, test.other_axes))


def estimated(
    test: Test, labels: Sequence[str], values: np.ndarray, x: Sequence[np.ndarray]
) -> Estimates:
    """Estimate the statistics of a test of measurements; not for ``private``.

    ``values``, [points, runs], are those of all groups, one per combination of values of
    ``other_axes``. For a comparison, the values of the first series precede those of the second.
    ``x`` has the values of x of each group, equal for both series.
    """
    if test.kind == "reaches_earlier":
        return _arrival_ratio(test, labels, values, x)
    contrasts = [_CONTRASTS[test.kind](test, points) for points in x]
    names = [f"{n}{label}" for c, label in zip(contrasts, labels, strict=True) for n in c.names]
    is_step = np.concatenate([np.arange(-len(c.names), 0) >= -c.steps for c in contrasts])
    regions = np.array([c.region for c in contrasts for _ in c.names])
    regions[is_step, 1] += ROUNDING
    matrix = block_diag(*(contrast.matrix for contrast in contrasts))
    if test.kind in COMPARISONS:
        matrix = np.concatenate([matrix, -matrix], axis=1)
    return _linear(test, names, matrix, values, regions, is_step)


RATIO_TESTS = {
    "decreasing", "increasing", "largest", "below", "lower", "steadier",
    "ratio", "differs", "reaches_earlier", "private",
}  # fmt: skip
"""Kinds of test whose statistic is the logarithm of a ratio."""
UNITS = {
    **dict.fromkeys(RATIO_TESTS, "logarithm of a ratio"), "slope": "exponent",
    **dict.fromkeys(("trend", "steady"), "measure per unit of x"),
    **dict.fromkeys(("falls", "level", "difference"), "measure"),
}  # fmt: skip
"""Unit of the statistic of each kind."""


def _monotone(test: Test, x: np.ndarray) -> Contrast:
    """Return the change over the grid, the mean change of all pairs of points, and each change."""
    falls, eye = test.kind == "decreasing", np.eye(len(x))
    sign = 1.0 if falls else -1.0
    region = _at_most(1.0 + test.tolerance)
    pair = "a larger value divided by that at a smaller"
    pair = pair if falls else "a smaller value divided by that at a larger"
    names = [
        _change(test, *((x[-1], x[0]) if falls else (x[0], x[-1]))),
        f"{_subject(test)} at {pair} value of {axis_words(test.x)}, mean of all pairs",
    ]
    if len(x) <= 2:
        return Contrast(names[: len(x) - 1], sign * np.diff(eye, axis=0), region)
    ends = eye[-1] - eye[0]
    trend = (2.0 * np.arange(len(x)) - len(x) + 1) / (len(x) * (len(x) - 1) / 2)
    pairs = [(i, j) for i, j in combinations(range(len(x)), 2) if j - i < len(x) - 1]
    names += [_change(test, *((x[j], x[i]) if falls else (x[i], x[j]))) for i, j in pairs]
    matrix = sign * np.vstack([ends, trend, *(eye[j] - eye[i] for i, j in pairs)])
    return Contrast(names, matrix, region, steps=len(pairs))


def _subject(test: Test) -> str:
    """Return the words for the first series: its measure, method and settings."""
    return f"{_measure(test.series)} of {_method(test, test.series, {})}"


def _measure(series: Series) -> str:
    return measure_words(*(series.measure or ("", "")))


def _method(test: Test, series: Series, omitted: Mapping[str, object]) -> str:
    """Return the method of a series with its settings, apart from axes and ``omitted`` ones."""
    settings = [
        point_words(axis, value)
        for axis, value in series.where.items()
        if isinstance(value, int | float)
        and axis not in (test.x, *test.other_axes)
        and omitted.get(axis) != value
    ]
    return f"{series.method}.{series.variant}" + (f" ({', '.join(settings)})" if settings else "")


def _change(test: Test, to: float, from_: float) -> str:
    """Return the words for the ratio of the means at two values of x."""
    first, second = (point_words(test.x, value) for value in (to, from_))
    return f"{_subject(test)} at {first} divided by that at {second}"


def _at_most(factor: float) -> Region:
    return -np.inf, float(np.log(factor))


def _best(test: Test, x: np.ndarray) -> Contrast:
    best_at = np.nan if test.best_at is None else test.best_at
    best_index = np.flatnonzero(np.isclose(x, best_at, rtol=1e-9))
    expected = f"one of {', '.join(f'{v:g}' for v in x)}"
    require(len(best_index) == 1, "test.best_at", test.best_at, expected)
    other_indices = np.delete(np.arange(len(x)), best_index)
    eye = np.eye(len(x))
    names = [_change(test, x[i], x[best_index[0]]) for i in other_indices]
    return Contrast(names, eye[other_indices] - eye[best_index], _at_most(1 + test.tolerance))


def _falls(test: Test, x: np.ndarray) -> Contrast:
    eye = np.eye(len(x))
    factor = "" if test.expected == 1 else f"{test.expected:g} times "
    last, first = (point_words(test.x, value) for value in (x[-1], x[0]))
    name = f"{_subject(test)} at {last} minus {factor}that at {first}"
    return Contrast([name], eye[[-1]] - test.expected * eye[[0]], (-np.inf, 0.0))


def _regression(x: np.ndarray) -> np.ndarray:
    """Return the weights, [1, points], of the least-squares slope; NaN for one point."""
    centred = x - x.mean()
    with np.errstate(invalid="ignore"):
        return centred[None] / (centred @ centred)


def _slope(test: Test, x: np.ndarray) -> Contrast:
    """Return the slope of the mean on x (kind: trend), or that of ln mean on ln x."""
    grid = np.log(x) if test.kind == "slope" else np.asarray(x, float)
    log = "logarithm of " if test.kind == "slope" else ""
    name = f"slope of {log}{_subject(test)} on {log}{axis_words(test.x)}"
    return Contrast([name], _regression(grid), _within(test))


def _steady(test: Test, x: np.ndarray) -> Contrast:
    """Return the required part of the overall trend minus the trends in both halves of the grid.

    Each half has to fall by at least ``1 - tolerance`` of the overall trend.
    """
    x = np.asarray(x, float)
    middle = len(x) // 2
    halves = np.zeros((2, len(x)))
    halves[0, : middle + 1] = _regression(x[: middle + 1])
    halves[1, middle:] = _regression(x[middle:])
    matrix = (1 - test.tolerance) * _regression(x) - halves
    slope = f"slope of {_subject(test)} on {axis_words(test.x)}"
    names = [
        f"{slope} from {start:g} minus {1 - test.tolerance:g} times the entire slope, negated"
        for start in (x[0], x[middle])
    ]
    return Contrast(names, matrix, (0.0, np.inf))


def _each_point(test: Test, x: np.ndarray) -> Contrast:
    names = [f"{_comparison(test)} at {point_words(test.x, point)}" for point in x]
    return Contrast(names, np.eye(len(x)), _compared(test))


def _average(test: Test, x: np.ndarray) -> Contrast:
    name = f"{_comparison(test)}, geometric mean over {test.x}"
    return Contrast([name], np.full((1, len(x)), 1 / len(x)), _compared(test))


def _comparison(test: Test) -> str:
    """Return the words for a mean, or for the ratio or the difference of two means."""
    spread = "standard deviation of " if test.kind == "steadier" else ""
    first = f"{spread}{_subject(test)}"
    if test.against is None:
        return first
    same = test.against.measure == test.series.measure
    measure = "that" if same else _measure(test.against)
    second = f"{measure} of {_method(test, test.against, test.series.where)}"
    return f"{first} {'minus' if test.kind == 'difference' else 'divided by'} {second}"


def _within(test: Test) -> Region:
    if np.isfinite(test.at_least) or np.isfinite(test.at_most):
        return test.at_least, test.at_most
    return test.expected - test.tolerance, test.expected + test.tolerance


_CONTRASTS: dict[str, Callable[[Test, np.ndarray], Contrast]] = {
    "decreasing": _monotone, "increasing": _monotone, "largest": _best,
    "falls": _falls, "slope": _slope, "trend": _slope, "steady": _steady, "lower": _average,
    **dict.fromkeys(("level", "below", "steadier", "ratio", "difference", "differs"), _each_point),
}  # fmt: skip
"""Contrasts of each kind along x; comparisons use them for first minus second series."""


def _compared(test: Test) -> Region:
    if test.kind in ("difference", "level"):
        return test.at_least, test.at_most
    centre = float(np.log(test.expected))
    margin = float(np.log1p(test.tolerance))
    if test.kind in FACTORS:
        return -np.inf, centre
    return (margin, np.inf) if test.kind == "differs" else (centre - margin, centre + margin)


def _both(test: Test, runs: pl.DataFrame) -> tuple[list[str], np.ndarray, list[np.ndarray]]:
    """Return labels of groups, [points, runs] of both series in succession, and values of x."""
    if test.against is None:
        raise InvalidInput("test.against", None, f"a series for kind {test.kind}")
    labels, first, x = measured(test.series, runs, test.x, test.other_axes)
    _, second, other_x = measured(test.against, runs, test.x, test.other_axes)
    if [list(points) for points in x] != [list(points) for points in other_x]:
        expected = f"measurements at the same values of {test.x} as the tested series"
        raise InvalidInput("test.against", test.against.variant, expected)
    return labels, np.concatenate(paired(first, second)), x


def _linear(
    test: Test,
    names: list[str],
    matrix: np.ndarray,
    values: np.ndarray,
    regions: np.ndarray,
    is_step: np.ndarray,
) -> Estimates:
    """Estimate linear contrasts, with the intervals of :func:`.intervals.limits`.

    For the kind ``differs``, the estimates are absolute values. The ends for a step of a monotone
    claim are two lower limits: at a level for all steps together, and at 5 % for this step alone.
    """
    levels = values.std(1) if test.kind == "steadier" else values.mean(1)
    means = [levels[weights != 0] for weights in matrix]
    infinite = np.isinf(values).any(1)
    values = np.minimum(values, HUGE)
    scale = _log if test.kind in RATIO_TESTS or test.kind == "slope" else np.asarray
    if test.kind == "steadier":
        scale = _log_deviations
        centred = values - values.mean(1, keepdims=True)
        values = np.concatenate([centred, centred**2])
    value, error, skewness = jackknife(lambda means: matrix @ scale(means), values)
    # A mean is infinite if one run is, whatever the values of the other runs.
    error = np.where((np.abs(matrix) > 0) @ infinite, 0.0, error)
    value = np.where(np.abs(value) > ROUNDING * HUGE, np.copysign(np.inf, value), value)
    runs = values.shape[1]

    def ends(alpha: float) -> tuple[np.ndarray, np.ndarray]:
        low, high = limits(value, error, skewness, runs, alpha)
        if is_step.any():
            # One-sided, since only steps in the wrong direction count.
            together, _ = limits(value, error, skewness, runs, 2 * alpha / is_step.sum())
            alone, _ = limits(value, error, skewness, runs, 2 * ALPHA)
            low, high = np.where(is_step, together, low), np.where(is_step, alone, high)
        return without_sign(low, high) if test.kind == "differs" else (low, high)

    # The pseudo-values of -x have the opposite skewness.
    sign = np.where(value < 0, -1.0, 1.0) if test.kind == "differs" else np.ones(len(value))
    return Estimates(
        test, names, sign * value, regions, error, sign * skewness, runs, ends, is_step,
        means,
    )  # fmt: skip


def without_sign(low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the interval of |x| from those of x."""
    return np.maximum(0.0, np.maximum(low, -high)), np.maximum(np.abs(low), np.abs(high))


def _arrival_ratio(
    test: Test, labels: Sequence[str], values: np.ndarray, x: Sequence[np.ndarray]
) -> Estimates:
    """Estimate the log ratio of the x at which two series reach their goals permanently.

    A series has arrived by x if the upper limits of its mean are at or below the goal from x on.
    This needs no correction for multiplicity, since all of these limits have to be. It has not
    arrived by x if the lower limit at a later point is above the goal; the level of this test is
    divided by the number of points.
    """
    size, both_x = values.shape[1], [*x, *x]
    groups = np.split(np.arange(len(values)), np.cumsum([len(points) for points in both_x])[:-1])

    def excess(means: np.ndarray) -> np.ndarray:
        logs = _log(means)
        return logs - np.concatenate([_goal(test, logs, group) for group in groups])

    value, error, skewness = jackknife(excess, np.minimum(values, HUGE))

    def arrivals(above: np.ndarray) -> np.ndarray:
        arrived = [_arrived(above[group], p) for group, p in zip(groups, both_x, strict=True)]
        return np.array(arrived).reshape(2, len(x))

    def ends(alpha: float) -> tuple[np.ndarray, np.ndarray]:
        # Half of the level for each of the two series.
        _, above = limits(value, error, skewness, size, alpha / 2)
        longest = max(map(len, x))
        below, _ = limits(value, error, skewness, size, alpha / (2 * longest))
        early, late = arrivals(below > 0), arrivals(above > 0)
        return np.log(early[0] / late[1]), np.log(late[0] / early[1])

    times = arrivals(value > 0)
    first, second = (f"{series.method}.{series.variant}" for series in test.all_series)
    name = f"{axis_words(test.x)} at which {first} reaches its goal divided by that of {second}"
    names = [f"{name}{label}" for label in labels]
    accept, unknown = np.array([(-np.inf, 0.0)] * len(names)), np.full(len(names), np.nan)
    ratio, is_step = np.log(times[0] / times[1]), np.zeros(len(names), bool)
    return Estimates(
        test, names, ratio, accept, unknown, unknown, size, ends, is_step, list(times.T)
    )


def _goal(test: Test, logs: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Return the logarithm of the goal of a group at each of its points, [points, k]."""
    if test.goal is not None:
        return np.full((len(group), logs.shape[1]), np.log(test.goal))
    return np.repeat(logs[group[-1:]] + np.log(test.expected), len(group), axis=0)


def _arrived(above: np.ndarray, x: np.ndarray) -> float:
    """Return the x from which a series stays at or below its goal; twice the last x if never."""
    last = np.flatnonzero(above)
    return float(np.append(x, 2.0 * x[-1])[last[-1] + 1 if len(last) else 0])


def _privacy(test: Test, privacy: pl.DataFrame) -> Estimates:
    """Estimate ln(epsilon / claimed epsilon) from the privacy table.

    Each interval reaches from the lower bound of an attack to the accountant's epsilon. Its upper
    end is infinite if the accountant's epsilon is not proven.
    """
    frame = rows_of(test.series, privacy)
    claimed = np.log(frame["epsilon_claimed"].to_numpy())
    accounted = _without_rounding(_log(frame["epsilon_accountant"].to_numpy()) - claimed)
    lower_bounds = frame["epsilon_lower"].fill_null(0.0).to_numpy()
    # Without a lower bound, the lower end is minus infinity.
    log_lower = np.where(lower_bounds > 0, _log(lower_bounds), -np.inf)
    lower = _without_rounding(log_lower - claimed)
    upper = np.where(frame["proven"].to_numpy(), accounted, np.inf)
    names = [f"accountant's epsilon divided by the claimed {value:g}" for value in np.exp(claimed)]
    accept = np.array([(-np.inf, np.log1p(test.tolerance))] * len(names))
    exact = np.zeros(len(names))
    means = frame.select("epsilon_accountant", "epsilon_claimed").to_numpy()
    return Estimates(
        test, names, accounted, accept, exact, exact, 1, lambda alpha: (lower, upper), exact != 0,
        list(means),
    )  # fmt: skip


def _without_rounding(excess: np.ndarray) -> np.ndarray:
    """Set an excess over the claimed epsilon that is within rounding to 0."""
    return np.where((excess > 0) & (excess <= SLACK), 0.0, excess)


def _log_deviations(moments: np.ndarray) -> np.ndarray:
    """Return the logarithm of standard deviations from stacked first and second moments."""
    first, second = np.split(moments, 2)
    return _log(second - first**2) / 2


def _log(means: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(means, TINY))
