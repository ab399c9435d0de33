r"""Verdicts on claims, from measurements of runs.

A claim becomes elements, each a statistic of mean measurements with a region in which the claim is
true. A bootstrap over runs (the same runs for all curves, so that comparisons stay paired) gives
each element an interval; the level is shared out among a claim's elements. An element is confirmed
if its interval lies inside the region, contradicted if outside, else undecided. The claim

- held, if all elements are confirmed;
- held in part, if some are confirmed and some are not;
- did not hold, if none is confirmed and one is contradicted;
- cannot be tested, if all are undecided: the runs do not suffice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any, Literal

import numpy as np
import polars as pl
from pydantic import BaseModel, ConfigDict, Field

from .errors import InvalidInput, require
from .fields import Flag, Number
from .multiplicity import p_of
from .randomness import generator

LEVEL = 0.95
RESAMPLES = 4000
TINY, HUGE = 1e-300, 1e300
"""What takes the place of zero and of infinity where a logarithm follows."""

HELD, IN_PART, NOT_HELD, UNTESTED = "held", "held in part", "did not hold", "cannot be tested"

Kind = Literal[
    "decreasing",
    "increasing",
    "falls",
    "flat",
    "slope",
    "below",
    "ratio",
    "difference",
    "differs",
    "sooner",
    "level",
    "trend",
    "private",
    "tight",
]


COMPARISONS = ("below", "ratio", "difference", "differs", "sooner")


class Series(BaseModel):
    """Which measurements: those of one algorithm, run variant, quantity and metric."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    experiment: str
    algorithm: str
    run: str
    quantity: str = ""
    metric: str = ""
    where: dict[str, Any] = Field(default_factory=dict)
    last: Flag = Field(default=False, description="of all recorded iterations only the last")


class Test(BaseModel):
    """A kind of statement about one series, or about two.

    ``decreasing``, ``increasing``: along ``x``, each mean against the one before, allowing a
    relative ``tolerance`` in the wrong direction. ``falls``: the last mean is at most ``expected``
    times the first. ``flat``: the last two means differ by at most ``tolerance``, relatively.
    ``slope``: of ln mean on ln x, ``expected`` within ``tolerance``, or between ``at_least`` and
    ``at_most`` where one of these is given; so is ``trend``. ``below``: mean of the series at most
    ``expected`` times that of ``against``. ``ratio``: series over ``against`` is
    ``expected`` within a relative ``tolerance``. ``differs``: the two differ, in whichever
    direction, by more than a relative ``tolerance``. ``difference``: series minus ``against`` lies
    between ``at_least`` and ``at_most``. ``sooner``: along ``x``, the series comes down for good to
    its goal before that of ``against`` does to its own; the goal is ``goal``, or ``expected`` times
    a series' own last mean. ``trend``: slope of the mean on ``x``, without logarithms,
    ``expected`` within ``tolerance``. ``level``: the means lie between ``at_least`` and
    ``at_most``. ``private``: the accountant's epsilon is at most the claimed one, relatively within
    ``tolerance``; ``tight``: it is not less than the claimed one either.

    Where one of two series is exact, having one run only, it is compared with every run of the
    other.
    """

    __test__ = False
    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Kind
    series: Series
    against: Series | None = None
    x: str | None = None
    each: list[str] = Field(default_factory=list)
    expected: Number = 1.0
    goal: Number | None = None
    tolerance: Number = Field(default=0.0, ge=0)
    at_least: Number = -np.inf
    at_most: Number = np.inf


class Claim(BaseModel):
    """A statement of a paper, in our words, and how it is put to the test in each variant."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    claim: str
    place: str
    figure: str
    because: str = Field(description="where the tolerance comes from")
    headline: str = Field(description="the variant whose verdict counts")
    variants: dict[str, list[Test]]
    reading: dict[str, str] = Field(default_factory=dict)
    untestable: str = Field(default="", description="why it cannot be tested at all")


@dataclass(frozen=True)
class Element:
    """One statistic, its interval and the region in which the claim is true."""

    kind: str
    name: str
    value: float
    low: float
    high: float
    accept: tuple[float, float]

    @property
    def state(self) -> str:
        lowest, highest = self.accept
        if lowest <= self.low and self.high <= highest:
            return "confirmed"
        return "contradicted" if self.high < lowest or self.low > highest else "undecided"

    @property
    def slack(self) -> float:
        """How far the estimate is inside the region; negative outside."""
        return min(self.value - self.accept[0], self.accept[1] - self.value)


@dataclass(frozen=True)
class Verdict:
    """What came of a claim in one variant; value and interval of the element nearest to failing."""

    verdict: str
    kind: str
    statistic: str
    value: float
    low: float
    high: float
    accept: tuple[float, float]
    elements: tuple[Element, ...]
    runs: int


def verdict_of(states: Sequence[str]) -> str:
    """How the states of a claim's elements combine."""
    if not states or all(state == "undecided" for state in states):
        return UNTESTED
    if all(state == "confirmed" for state in states):
        return HELD
    return IN_PART if "confirmed" in states else NOT_HELD


def judge(elements: Sequence[Element], runs: int) -> Verdict:
    """The verdict on a list of elements."""
    if not elements:
        return Verdict(UNTESTED, "", "", np.nan, np.nan, np.nan, (np.nan, np.nan), (), runs)
    worst = min(elements, key=lambda element: element.slack)
    states = [element.state for element in elements]
    return Verdict(
        verdict_of(states),
        worst.kind,
        worst.name,
        worst.value,
        worst.low,
        worst.high,
        worst.accept,
        tuple(elements),
        runs,
    )


def evaluate(
    tests: Sequence[Test], runs: pl.DataFrame, privacy: pl.DataFrame, *, name: str
) -> Verdict:
    """Put one variant of a claim to the test.

    Parameters
    ----------
    runs : DataFrame
        Columns experiment, algorithm, variant, quantity, metric, run, value and those of the axes.
    privacy : DataFrame
        Columns experiment, algorithm, variant, epsilon_claimed, epsilon_accountant and axes.
    name : str
        Names the random numbers of the bootstrap.
    """
    prepared = [(test.kind, *_elements_of(test, runs, privacy)) for test in tests]
    count = sum(len(names) for _, names, *_ in prepared)
    elements, sizes = [], []
    for kind, names, statistic, values, accept in prepared:
        low, high, size = _interval(statistic, values, LEVEL, count, name)
        estimate = statistic(values.mean(-1))
        elements += [
            Element(kind, *row, region)
            for *row, region in zip(names, estimate, low, high, accept, strict=True)
        ]
        sizes.append(size)
    return judge(elements, min(sizes, default=0))


def _elements_of(test: Test, runs: pl.DataFrame, privacy: pl.DataFrame):
    """Names, statistic of means [..., points], values [points, runs], accepted regions."""
    if test.kind in ("private", "tight"):
        return _private(test, privacy)
    require(
        test.kind in COMPARISONS or test.against is None,
        "test.against",
        test.against,
        f"nothing for kind {test.kind}",
    )
    if test.kind == "sooner":
        return _arrival(test, runs)
    if test.kind in COMPARISONS:
        return _comparison(test, runs)
    return _along(test, runs)


def _along(test: Test, runs: pl.DataFrame):
    names, values, x = _collect(test.series, runs, test.x, test.each)
    statistics: list[Callable] = []
    labels: list[str] = []
    accept: list[tuple[float, float]] = []
    position = 0
    for label, points in zip(names, x, strict=True):
        index = np.arange(position, position + len(points))
        position += len(points)
        statistic, parts, region = _KINDS[test.kind](test, points)
        statistics.append(lambda means, i=index, f=statistic: f(means[..., i]))
        labels += [f"{part}{label}" for part in parts]
        accept += [region] * len(parts)
    return labels, lambda m: np.concatenate([f(m) for f in statistics], -1), values, accept


def _steps(test: Test, x: np.ndarray):
    sign = 1.0 if test.kind == "decreasing" else -1.0
    names = [f"{test.x} {a:g} to {b:g}" for a, b in pairwise(x)]
    region = (-np.inf, float(np.log1p(test.tolerance)))
    return lambda means: sign * np.diff(_log(means), axis=-1), names, region


def _flat(test: Test, x: np.ndarray):
    region = (-float(np.log1p(test.tolerance)), float(np.log1p(test.tolerance)))
    name = f"{test.x} {x[-2]:g} to {x[-1]:g}"
    return lambda means: np.diff(_log(means[..., -2:]), axis=-1), [name], region


def _falls(test: Test, x: np.ndarray):
    region = (-np.inf, float(np.log(test.expected)))
    name = f"{test.x} {x[0]:g} to {x[-1]:g}"
    return lambda means: _log(means[..., [-1]]) - _log(means[..., [0]]), [name], region


def _slope(test: Test, x: np.ndarray):
    centred = np.log(x) - np.log(x).mean()
    return (
        lambda means: (_log(means) @ centred / (centred @ centred))[..., None],
        [f"slope in {test.x}"],
        _region(test),
    )


def _region(test: Test) -> tuple[float, float]:
    if np.isfinite(test.at_least) or np.isfinite(test.at_most):
        return test.at_least, test.at_most
    return test.expected - test.tolerance, test.expected + test.tolerance


def _trend(test: Test, x: np.ndarray):
    centred = x - x.mean()
    name = f"trend in {test.x}"
    return lambda means: (means @ centred / (centred @ centred))[..., None], [name], _region(test)


def _level(test: Test, x: np.ndarray):
    names = [f"{test.x} {point:g}" for point in x]
    return lambda means: means, names, (test.at_least, test.at_most)


_KINDS = {
    "decreasing": _steps,
    "increasing": _steps,
    "falls": _falls,
    "flat": _flat,
    "slope": _slope,
    "trend": _trend,
    "level": _level,
}


def _comparison(test: Test, runs: pl.DataFrame):
    require(test.against is not None, "test.against", None, f"a series for kind {test.kind}")
    names, first, x = _collect(test.series, runs, test.x, test.each)
    _, second, other_x = _collect(test.against, runs, test.x, test.each)
    if [list(points) for points in x] != [list(points) for points in other_x]:
        raise InvalidInput("test.against", test.against.run, "the same grid as the series")
    labels = [
        f"{test.x} {point:g}{name}"
        for name, points in zip(names, x, strict=True)
        for point in points
    ]
    count = len(labels)
    scale, region = _scale_and_region(test)
    first, second = _as_many_runs(first, second)
    runs_in_both = min(first.shape[1], second.shape[1])
    values = np.concatenate([first[:, :runs_in_both], second[:, :runs_in_both]])
    sign = np.abs if test.kind == "differs" else np.asarray
    statistic = lambda m: sign(scale(m[..., :count]) - scale(m[..., count:]))  # noqa: E731
    return labels, statistic, values, [region] * count


def _scale_and_region(test: Test) -> tuple[Callable, tuple[float, float]]:
    """The scale on which two series are subtracted, and the accepted differences."""
    if test.kind == "difference":
        return np.asarray, (test.at_least, test.at_most)
    centre = float(np.log(test.expected))
    spread = float(np.log1p(test.tolerance))
    if test.kind == "below":
        return _log, (-np.inf, centre)
    if test.kind == "differs":
        return _log, (spread, np.inf)
    return _log, (centre - spread, centre + spread)


def _arrival(test: Test, runs: pl.DataFrame):
    """Logarithms of the ratio of the points on the axis where the goals are reached."""
    require(test.against is not None, "test.against", None, "a series for kind sooner")
    names, first, x = _collect(test.series, runs, test.x, test.each)
    _, second, other_x = _collect(test.against, runs, test.x, test.each)
    first, second = _as_many_runs(first, second)
    both = min(first.shape[1], second.shape[1])
    values = np.concatenate([first[:, :both], second[:, :both]])
    ends = np.cumsum([len(points) for points in (*x, *other_x)])[:-1]

    def statistic(means):
        parts = np.split(means, ends, axis=-1)
        times = [_arrival_of(test, *part) for part in zip(parts, (*x, *other_x), strict=True)]
        own, others = times[: len(x)], times[len(x) :]
        return np.log(np.stack(own, -1) / np.stack(others, -1))

    # Equal means not sooner: the interval has to lie below zero by more than rounding.
    region = (-np.inf, -1e-12)
    return [f"arrival{name}" for name in names], statistic, values, [region] * len(names)


def _arrival_of(test: Test, means: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Where along x the means come down to the goal and stay; twice the end if nowhere."""
    goal = means[..., -1:] * test.expected if test.goal is None else test.goal
    above = means > goal
    staying = np.logical_or.accumulate(above[..., ::-1], axis=-1)[..., ::-1]
    position = staying.sum(-1)
    return np.append(x, 2.0 * x[-1])[position]


def _as_many_runs(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values [points, runs]; an exact series, of one run, is repeated."""
    runs = max(first.shape[1], second.shape[1])
    repeated = (np.repeat(v, runs, axis=1) if v.shape[1] == 1 else v for v in (first, second))
    return tuple(repeated)


def _private(test: Test, privacy: pl.DataFrame):
    frame = _filter(test.series, privacy)
    claimed = frame["epsilon_claimed"].to_numpy()
    accounted = frame["epsilon_accountant"].to_numpy()
    ratio = np.log(np.maximum(accounted, TINY)) - np.log(claimed)
    names = [f"ln(accountant / claimed), claimed {value:g}" for value in claimed]
    slack = float(np.log1p(test.tolerance))
    region = (-slack if test.kind == "tight" else -np.inf, slack)
    return names, lambda means: means, ratio[:, None], [region] * len(ratio)


def _filter(series: Series, frame: pl.DataFrame) -> pl.DataFrame:
    kept = frame.filter(
        (pl.col("experiment") == series.experiment)
        & (pl.col("algorithm") == series.algorithm)
        & (pl.col("variant") == series.run)
    )
    for column, wanted in series.where.items():
        if column not in kept.columns:
            raise InvalidInput("series.where", column, f"one of {', '.join(kept.columns)}")
        if isinstance(wanted, list | tuple):
            kept = kept.filter(pl.col(column).is_between(*wanted))
        else:
            kept = kept.filter(pl.col(column) == wanted)
    require(kept.height > 0, "series", series.model_dump(), "at least one row of results")
    return kept


def _collect(series: Series, runs: pl.DataFrame, x: str | None, each: Sequence[str]):
    """Labels of groups, values [points of all groups, runs], x of each group."""
    require(x is not None, "test.x", x, "the name of an axis")
    kept = _filter(series, runs).filter(
        (pl.col("quantity") == series.quantity) & (pl.col("metric") == series.metric)
    )
    require(kept.height > 0, "series", series.model_dump(), "at least one measurement")
    if series.last:
        kept = kept.filter(pl.col("t") == pl.col("t").max())
    levels = [kept[column].unique().sort().to_list() for column in each]
    labels, values, grids = [], [], []
    for group in product(*levels):
        part = kept
        for column, level in zip(each, group, strict=True):
            part = part.filter(pl.col(column) == level)
        wide = part.sort(x, "run").pivot(on="run", index=x, values="value")
        grids.append(wide[x].to_numpy())
        values.append(np.minimum(wide.drop(x).to_numpy(), HUGE))
        where = ", ".join(f"{c} {v:g}" for c, v in zip(each, group, strict=True))
        labels.append(f" at {where}" if where else "")
    return labels, np.concatenate(values), grids


def _interval(statistic: Callable, values: np.ndarray, level: float, count: int, name: str):
    runs = values.shape[1]
    if runs == 1:
        exact = statistic(values[:, 0])
        return exact, exact, runs
    draws = generator(0, "bootstrap", name, runs)
    weights = draws.multinomial(runs, np.full(runs, 1.0 / runs), size=RESAMPLES) / runs
    resampled = statistic(weights @ values.T)
    tail = (1.0 - level) / (2 * max(1, count))
    low, high = np.quantile(resampled, [tail, 1.0 - tail], axis=0)
    return low, high, runs


def _log(means: np.ndarray) -> np.ndarray:
    return np.log(np.maximum(means, TINY))


def judge_all(
    claims: Mapping[str, Claim], runs: pl.DataFrame, privacy: pl.DataFrame, *, paper: str
) -> pl.DataFrame:
    """One row a claim and variant, as ``claims.parquet`` holds them."""
    found = [
        {
            **_described(identity, claim, variant),
            "paper": paper,
            **_judged(identity, variant, tests, runs, privacy),
        }
        for identity, claim in claims.items()
        for variant, tests in claim.variants.items()
    ]
    return pl.DataFrame(found, schema=SCHEMA)


SCHEMA = {
    "id": pl.String,
    "paper": pl.String,
    "figure": pl.String,
    "claim": pl.String,
    "place": pl.String,
    "variant": pl.String,
    "headline": pl.Boolean,
    "reading": pl.String,
    "verdict": pl.String,
    "kind": pl.String,
    "statistic": pl.String,
    "value": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "accept_low": pl.Float64,
    "accept_high": pl.Float64,
    "tolerance": pl.Float64,
    "elements": pl.Int64,
    "confirmed": pl.Int64,
    "contradicted": pl.Int64,
    "p": pl.Float64,
    "because": pl.String,
    "runs": pl.Int64,
    "source": pl.String,
}


def _described(identity: str, claim: Claim, variant: str) -> dict[str, Any]:
    return {
        "id": identity,
        "figure": claim.figure,
        "claim": claim.claim,
        "place": claim.place,
        "variant": variant,
        "headline": variant == claim.headline,
        "reading": claim.reading.get(variant, "resolved"),
        "because": claim.untestable or claim.because,
    }


def _judged(identity: str, variant: str, tests: Sequence[Test], runs, privacy) -> dict[str, Any]:
    verdict = evaluate(tests, runs, privacy, name=f"{identity} {variant}")
    used = [series.experiment for test in tests for series in (test.series, test.against) if series]
    states = [element.state for element in verdict.elements]
    return {
        "verdict": verdict.verdict,
        "kind": verdict.kind,
        "statistic": verdict.statistic,
        "value": verdict.value,
        "low": verdict.low,
        "high": verdict.high,
        "accept_low": verdict.accept[0],
        "accept_high": verdict.accept[1],
        "tolerance": max((test.tolerance for test in tests), default=0.0),
        "elements": len(states),
        "confirmed": states.count("confirmed"),
        "contradicted": states.count("contradicted"),
        "p": p_of(verdict.elements),
        "runs": verdict.runs,
        "source": "; ".join(
            privacy.filter(pl.col("experiment").is_in(used))["source"].unique().sort()
        ),
    }
