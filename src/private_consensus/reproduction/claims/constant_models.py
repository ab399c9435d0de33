"""Name tested methods that are no better than a constant model.

A comparison of methods says little if one of them is no better than the most frequent label, the
zero vector or a guess. Means over runs are compared, at the last tested iteration. The comparison
changes no verdict.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

import polars as pl

from private_consensus.common.grouping import grouped

from .schema import Series, Test
from .selection import rows_of
from .words import point_words

CLASSES = 10
"""Number of classes of the images of MNIST and CIFAR-10."""
ROUNDING = 1e-9
MOST_LISTED = 4
"""Largest number of values of an axis that are listed."""


@dataclass(frozen=True)
class Constant:
    """Constant model that a metric is compared with.

    Attributes
    ----------
    value : str or float
        Measured metric with its value, or the value itself.
    larger_is_better : bool
        True for accuracies, False for losses, errors and distances.
    is_accuracy : bool
        True if the named metric is an accuracy and the compared one an error, one minus accuracy.
    """

    name: str
    value: str | float
    larger_is_better: bool = False
    is_accuracy: bool = False


MAJORITY, ORIGIN = "predicting the majority class", "the zero vector"
UNIFORM = "equal probabilities of all classes"
CONSTANTS = {
    "own_test_accuracy": Constant(MAJORITY, "majority_test_accuracy", True),
    "own_train_accuracy": Constant(MAJORITY, "majority_train_accuracy", True),
    "accuracy": Constant(MAJORITY, "majority_accuracy", True),
    "error": Constant(MAJORITY, "majority_accuracy", is_accuracy=True),
    "own_test_error": Constant(MAJORITY, "majority_test_error"),
    "normalised_error": Constant(ORIGIN, 1.0),
    "node_error": Constant(ORIGIN, 1.0),
    "gratton.normalised_error": Constant(ORIGIN, 5.0),
    "others_extra_correlated.normalised_error": Constant(ORIGIN, 8.0),
    "log_distance": Constant(ORIGIN, "origin_log_distance"),
    "own_loss": Constant(ORIGIN, math.log(2)),
    "training_loss": Constant(UNIFORM, math.log(CLASSES)),
    "test_accuracy": Constant("guessing the class", 1 / CLASSES, True),
}
"""Constant model of each metric that has one; the prefix is a paper or an experiment.

Normalised errors of least squares are sums over agents: five of Gratton et al., eight of MAFALDA.
"""


def no_better(tests: Sequence[Test], runs: pl.DataFrame) -> str:
    """Name the tested methods that are no better than a constant model, one line per model.

    A line is, for example, ``the zero vector: pdop.resolved`` or ``predicting the majority class:
    pr_admm.per and dvp.zcdp at epsilon 0.1, 0.5``.
    """
    compared: dict[tuple[str, ...], dict[tuple[float, ...], bool]] = {}
    settings = _varied_settings(tests)
    for test in tests:
        axes = [axis for axis in (test.x, *test.other_axes) if axis and axis != "t"]
        for series in test.all_series:
            constant = _constant(series)
            if constant is not None:
                values = [(axis, series.where[axis]) for axis in settings if axis in series.where]
                setting = ", ".join(point_words(axis, value) for axis, value in values)
                setting = f" ({setting})" if setting else ""
                key = (constant.name, f"{series.method}.{series.variant}", setting, *axes)
                points = compared.setdefault(key, {})
                for point, loses in _losses(series, constant, axes, runs):
                    points[point] = loses or points.get(point, False)
    losing = [
        (name, f"{setting}{_places(axes, points)}", method)
        for (name, method, setting, *axes), points in compared.items()
        if any(points.values())
    ]
    lines = []
    for name, of_name in grouped(losing, itemgetter(0)).items():
        clauses = [
            " and ".join(method for *_, method in group) + place
            for place, group in grouped(of_name, itemgetter(1)).items()
        ]
        lines.append(f"{name}: {', and '.join(clauses)}")
    return "\n".join(lines)


def _varied_settings(tests: Sequence[Test]) -> list[str]:
    """Return the axes at which the tests select different single values."""
    values: dict[str, set[float]] = {}
    for test in tests:
        for series in test.all_series:
            for axis, value in series.where.items():
                if isinstance(value, int | float) and axis not in ("t", "run"):
                    values.setdefault(axis, set()).add(value)
    return [axis for axis, selected in values.items() if len(selected) > 1]


def _constant(series: Series) -> Constant | None:
    _, metric = series.measure or ("", "")
    paper = series.experiment.partition("_")[0]
    names = (f"{series.experiment}.{metric}", f"{paper}.{metric}", metric)
    return next((CONSTANTS[name] for name in names if name in CONSTANTS), None)


def _losses(
    series: Series, constant: Constant, axes: list[str], runs: pl.DataFrame
) -> list[tuple[tuple[float, ...], bool]]:
    """Return each point of the axes, and True if the series is no better than the constant."""
    rows = rows_of(series, runs)
    quantity, metric = series.measure or ("", "")
    points = [pl.col(axis).cast(pl.Float64) for axis in axes] or [pl.lit(0.0).alias("point")]

    def last_means(rows: pl.DataFrame) -> pl.DataFrame:
        last = pl.col("t") == pl.col("t").max().over(points)
        return rows.filter(last).group_by(points).agg(pl.col("value").mean())

    means = last_means(rows.filter(quantity=quantity, metric=metric))
    if isinstance(constant.value, str):
        # An experiment that does not record the constant has no rows left.
        levels = last_means(rows.filter(metric=constant.value)).drop_nulls()
        if constant.is_accuracy:
            levels = levels.with_columns(value=1.0 - pl.col("value"))
        means = means.join(levels.rename({"value": "level"}), on=means.columns[:-1])
    else:
        means = means.with_columns(level=pl.lit(constant.value))
    sign = 1.0 if constant.larger_is_better else -1.0
    return [
        (tuple(point), sign * (value - level) <= ROUNDING)
        for *point, value, level in means.sort(means.columns[:-2]).rows()
        # A normalised error is infinite if the minimiser of a run is zero.
        if math.isfinite(value)
    ]


def _places(axes: Sequence[str], points: Mapping[tuple[float, ...], bool]) -> str:
    """Describe the points at which a series is no better than the constant."""
    if not axes:
        return ""
    losing = [point for point, loses in points.items() if loses]
    if len(axes) > 1 or len(losing) > MOST_LISTED:
        return f" at {len(losing)} of {len(points)} points"
    return f" at {axes[0]} {', '.join(f'{value:g}' for (value,) in sorted(losing))}"
