"""Synthetic curves for tests of claims: curves that satisfy a claim, and curves that violate it.

A mutant contradicts the claim by the definition of its kind of test and by the number in the paper,
not by the tolerance of the configuration: a slope of -1 is neither -2 nor -1/2, a decreasing curve
is neither increasing nor flat, and the better of two methods is not the worse.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np

from private_consensus.reproduction.claims import Series, Test
from private_consensus.reproduction.claims.judging import Judgement
from private_consensus.reproduction.claims.schema import COMPARISONS
from private_consensus.reproduction.claims.statements import estimated
from private_consensus.reproduction.configuration.plan import Plan

RUNS = 6
SPREAD = 1e-9
"""Relative spread of the synthetic runs: each element has a verdict, and none is exact."""

Means = list[np.ndarray]


def layout(plan: Plan, test: Test) -> list[np.ndarray]:
    """Return the x values of each group of a test at paper scale, from the configuration."""
    columns = axes(plan, test.series)
    levels = [columns[name] for name in test.other_axes]
    groups = len(list(product(*levels)))
    return [np.array(columns[test.x], float)] * groups


def axes(plan: Plan, series: Series) -> dict[str, list[Any]]:
    """Return the values of all axes of a series, and of t."""
    cell = plan.cell(series.experiment, series.method)
    settings = [s for s in cell["settings"] if s["variant"] == series.variant]
    horizon = max(setting["horizon"] for setting in settings)
    axis_values = {name: [s["columns"][name] for s in settings] for name in settings[0]["columns"]}
    times = sorted({t for t in cell["iterations"] if t <= horizon} | {horizon})
    if series.last_iteration_only:
        times = times[-1:]
    axis_values = {
        name: sorted(set(values)) for name, values in {**axis_values, "t": times}.items()
    }
    return {
        name: [v for v in values if _kept(v, series.where.get(name))]
        for name, values in axis_values.items()
    }


def _kept(value: Any, selection: Any) -> bool:
    if selection is None:
        return True
    if isinstance(selection, list | tuple):
        return selection[0] <= value <= selection[1]
    return value == selection


def verdict(test: Test, x: list[np.ndarray], means: Means, *, exact: bool = False) -> str:
    """Return the verdict on a test for runs with the specified means."""
    means = np.concatenate(means)
    noise = np.random.default_rng(0).normal(size=(len(means), RUNS))
    noise *= 0.0 if exact else SPREAD
    if test.kind == "steadier":  # spreads are then in the ratio of the means
        noise[:] = noise[0]
    values = means[:, None] + np.maximum(np.abs(means), 1e-3)[:, None] * noise
    return Judgement([estimated(test, [""] * len(x), values, x)]).at(0.05)


def true_means(test: Test, x: list[np.ndarray]) -> Means:
    """Return curves that satisfy the claim, away from its bounds."""
    if test.kind == "reaches_earlier":
        return [*(_arriving(test, g, 0.2) for g in x), *(_arriving(test, g, 0.7) for g in x)]
    if test.kind in COMPARISONS:
        return _pair(x, _truth(test), test.kind)
    return [_TRUE[test.kind](test, points) for points in x]


def mutants(test: Test, x: list[np.ndarray]) -> Iterator[tuple[str, Means]]:
    """Yield curves that violate the claim, with their names."""
    if test.kind in COMPARISONS:
        yield from _compared(test, x)
    else:
        names = _FALSE[test.kind](test, x[0])
        for name in names:
            yield name, [_FALSE[test.kind](test, points)[name] for points in x]


def _pair(x: list[np.ndarray], value: float, kind: str) -> Means:
    """Return means of two series with the specified ratio or difference."""
    second = [np.full(len(points), 2.0) for points in x]
    first = [v + value if kind == "difference" else v * value for v in second]
    return [*first, *second]


def _truth(test: Test) -> float:
    if test.kind == "difference":
        if np.isinf(test.at_least):
            return test.at_most - 1.0
        return test.at_least + 1.0 if np.isinf(test.at_most) else (test.at_least + test.at_most) / 2
    if test.kind == "differs":
        return 2 * (1 + test.tolerance)
    return test.expected if test.kind == "ratio" else test.expected / 2


def _compared(test: Test, x: list[np.ndarray]) -> Iterator[tuple[str, Means]]:
    """Yield exchanged series if one has to be better, and equal series if they have to differ."""
    ordered = _ordered(test)
    truth = true_means(test, x)
    half = len(truth) // 2
    if ordered:
        yield "swapped", [*truth[half:], *truth[:half]]
    if ordered and (test.quantifier != "universal" or test.kind == "differs"):
        yield "flat", [*truth[half:], *truth[half:]]
    if test.kind == "differs":
        yield "flat", [*truth[half:], *truth[half:]]
    if test.kind == "ratio":
        yield "twice", _pair(x, 2 * test.expected, test.kind)
        yield "half", _pair(x, test.expected / 2, test.kind)
    if test.kind in ("below", "lower", "steadier") and not ordered:
        yield "twice", _pair(x, 2 * test.expected, test.kind)
    if test.kind == "difference" and not ordered:
        # Twice a difference that the claim calls small is not small.
        for name in ("at_least", "at_most"):
            if np.isfinite(getattr(test, name)):
                yield f"twice {name}", _pair(x, 2 * getattr(test, name), test.kind)


def _ordered(test: Test) -> bool:
    """Return True if a comparison orders the two series, so that equal series contradict it."""
    if test.kind == "difference":
        return test.at_most <= 0 or test.at_least >= 0
    return test.kind == "reaches_earlier" or (
        test.kind in ("below", "lower", "steadier") and test.expected <= 1
    )


def _arriving(test: Test, x: np.ndarray, share: float) -> np.ndarray:
    """Return a curve that falls below the goal after a fraction of the axis."""
    goal = 1.0 if test.goal is None else test.goal / 2
    start = goal * max(10.0, 10.0 * test.expected)
    return np.where(np.arange(len(x)) < max(1, int(share * len(x))), start, goal)


def _stated(test: Test) -> float:
    """Return the slope that the claim states, or the mean of its finite bounds."""
    sides = [side for side in (test.at_least, test.at_most) if np.isfinite(side)]
    return test.expected if not sides else float(np.mean(sides))


def _other_rates(test: Test, x: np.ndarray) -> dict[str, np.ndarray]:
    """Return slopes that violate the claim: twice and half of the claimed slope.

    For a bound, only the violating side is returned; for slope 0, twice the tolerance.
    """
    make = _power if test.kind == "slope" else _line
    stated = _stated(test)
    if test.at_least == 0 and np.isinf(test.at_most):
        return {"falling": make(x, -1.0)}
    if stated == 0:
        allowed = test.tolerance if np.isinf(test.at_most) else test.at_most
        return {"rising": make(x, 2 * allowed), "falling": make(x, -2 * allowed)}
    rates = {"twice the rate": 2 * stated, "half of the rate": stated / 2, "flat": 0.0}
    rates["reversed"] = -stated
    if np.isfinite(test.at_most) and np.isinf(test.at_least):
        rates = {name: rate for name, rate in rates.items() if rate > test.at_most}
    if np.isfinite(test.at_least) and np.isinf(test.at_most):
        rates = {name: rate for name, rate in rates.items() if rate < test.at_least}
    return {name: make(x, rate) for name, rate in rates.items()}


def _power(x: np.ndarray, rate: float) -> np.ndarray:
    return x**rate


def _line(x: np.ndarray, rate: float) -> np.ndarray:
    return rate * (x - x.mean())


def _inside(test: Test) -> float:
    """Return a slope well inside the bounds of the claim."""
    stated = _stated(test)
    if np.isfinite(test.at_most) and np.isinf(test.at_least):
        return stated - abs(stated)
    if np.isfinite(test.at_least) and np.isinf(test.at_most):
        return stated + (abs(stated) / 2 or 1.0)
    return stated


def _ramp(test: Test, x: np.ndarray) -> np.ndarray:
    """Return a curve that falls or rises by a factor of two per point."""
    sign = -1.0 if test.kind == "decreasing" else 1.0
    return 2.0 ** (sign * np.arange(len(x)))


def _not_monotone(test: Test, x: np.ndarray) -> dict[str, np.ndarray]:
    ramp = _ramp(test, x)
    false_curves = {"reversed": ramp[::-1]}
    if test.tolerance == 0:
        false_curves["flat"] = np.ones(len(x))
    if len(x) > 2:
        false_curves["shuffled"] = np.roll(ramp, 1)
    return false_curves


def _peaked(test: Test, x: np.ndarray) -> np.ndarray:
    return np.where(np.isclose(x, test.best_at, rtol=1e-9), 2.0, 1.0)


def _not_peaked(test: Test, x: np.ndarray) -> dict[str, np.ndarray]:
    peak = _peaked(test, x)
    false_curves = {"worst": 1 / peak, "shuffled": np.roll(peak, 1)}
    if test.tolerance == 0:
        false_curves["flat"] = np.ones(len(x))
    return false_curves


def _levels(test: Test, x: np.ndarray) -> dict[str, np.ndarray]:
    """Return curves that violate each bound, by the size of the bound, or by 1 if it is 0."""
    false_curves = {}
    if np.isfinite(test.at_most):
        false_curves["above"] = np.full(len(x), test.at_most + (abs(test.at_most) or 1.0))
    if np.isfinite(test.at_least):
        false_curves["below"] = np.full(len(x), test.at_least - (abs(test.at_least) or 1.0))
    return false_curves


def _at_level(test: Test, x: np.ndarray) -> np.ndarray:
    if np.isinf(test.at_least):
        return np.full(len(x), test.at_most - (abs(test.at_most) or 1.0) / 2)
    if np.isinf(test.at_most):
        return np.full(len(x), test.at_least + (abs(test.at_least) or 1.0))
    return np.full(len(x), (test.at_least + test.at_most) / 2)


def _fallen(test: Test, x: np.ndarray) -> np.ndarray:
    return np.geomspace(1.0, test.expected / 2, len(x))


_TRUE = {
    "decreasing": _ramp,
    "increasing": _ramp,
    "largest": _peaked,
    "falls": _fallen,
    "slope": lambda test, x: _power(x, _inside(test)),
    "trend": lambda test, x: _line(x, _inside(test)),
    "steady": lambda _, x: _line(x, -1.0),
    "level": _at_level,
}

_FALSE: Mapping[str, Any] = {
    "decreasing": _not_monotone,
    "increasing": _not_monotone,
    "largest": _not_peaked,
    "falls": lambda test, x: {
        "flat": np.ones(len(x)), "reversed": _fallen(test, x)[::-1],
        "half as far": np.geomspace(1.0, np.sqrt(test.expected), len(x)),
    },
    "slope": _other_rates,
    "trend": _other_rates,
    "steady": lambda _, x: {
        "flat": np.ones(len(x)), "reversed": _line(x, 1.0), "another rate": -np.log(x),
    },
    "level": _levels,
}  # fmt: skip
