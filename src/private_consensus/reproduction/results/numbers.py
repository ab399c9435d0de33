"""Compute the points of figures from measurements of runs, one row per point."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from private_consensus.common.errors import require
from private_consensus.common.fields import split_measure
from private_consensus.common.row_filters import selected
from private_consensus.core import networks
from private_consensus.core.randomness import Streams
from private_consensus.privacy.verdicts import HOLDS, HOLDS_BY_SLACK, NO_CLAIM, VIOLATED

FIXED = ("experiment", "algorithm", "variant", "interpretation", "quantity", "metric", "t", "run",
         "value", "source")  # fmt: skip
INTERVAL = "mean +- standard error"
QUARTILES = "median and quartiles"
RANGE = "least and largest run"
SPREAD = "mean +- standard deviation"
PROVEN, UNPROVEN, REFUTED = "proven", "not proven", "refuted"
"""Guarantee of a curve: the claimed epsilon is proven for all of its settings, is not proven for
one of them, or is violated by one of them."""
SENT = ("released", "consensus")
"""Quantities that are functions of sent messages."""
DATA_FREE = ("majority", "origin")
"""First words of metrics that depend on no model: those of the most frequent label, and of the zero
vector."""
KEY = ["panel", "algorithm", "variant", "style", "interpretation"]
POINT = ["series", "guarantee", "x", "y", "low", "high", "runs", "interval", "source"]


def figure_numbers(
    panels: Sequence[Mapping[str, Any]],
    cells: Mapping[tuple[str, str], tuple[pl.DataFrame, pl.DataFrame]],
    *,
    source: str,
) -> pl.DataFrame:
    """Compute all points of a figure.

    ``panels`` are serialized :class:`.schema.Panel`, and ``cells`` map (experiment,
    algorithm) to runs and privacy. The columns are panel, algorithm, variant, style,
    interpretation, those of the axes, x, y, low, high, runs, interval, source, guarantee and
    ``series``, which distinguishes the curves of one variant.
    """
    frames = []
    for panel in panels:
        drawn = [graph_points(panel["network"], panel["seed"])] if panel["graph"] else []
        for curve in panel["curves"]:
            runs, privacy = cells[curve["experiment"], curve["method"]]
            points = curve_points(runs, privacy, curve, panel["x"], panel["statistic"])
            points = points.with_columns(guarantee=pl.lit(guarantee_of(privacy, curve)))
            drawn.append(cost_to_reach(points, goals) if (goals := panel.get("goals")) else points)
        frames += [points.with_columns(panel=pl.lit(panel["title"])) for points in drawn]
    numbers = pl.concat(frames, how="diagonal_relaxed").with_columns(source=pl.lit(source))
    axes = [column for column in numbers.columns if column not in KEY + POINT]
    return numbers.select(KEY + axes + POINT)


def curve_points(
    runs: pl.DataFrame,
    privacy: pl.DataFrame,
    curve: Mapping[str, Any],
    x: str,
    statistic: str = "mean",
) -> pl.DataFrame:
    """Compute the points of one curve: mean or median over runs, with an interval, in order of x.

    Runs that diverged count as infinite, and so does the mean. If there are such runs, the column
    ``diverged`` contains their number. ``x`` is an axis, t, a column of the privacy table, or a
    measured quantity such as simulated seconds, whose mean over runs is used.
    """
    axes = [column for column in runs.columns if column not in FIXED]
    values = _measured(runs, curve, curve["measure"])
    if curve.get("last_iteration_only"):
        values = values.filter(pl.col("t") == pl.col("t").max().over(["run", *axes]))
    if x not in values.columns and x in runs["quantity"]:
        cost = _measured(runs, curve, x).group_by("t", *axes)
        values = values.join(cost.agg(pl.col("value").mean().alias(x)), on=["t", *axes])
    elif x not in values.columns:
        keys = ["variant", *axes]
        # A setting may have several privacy rows; the first is that of its own relation.
        stated = privacy.select(*keys, x).unique(keys, keep="first", maintain_order=True)
        values = values.join(stated, on=keys)
    median = statistic == "median"
    kind = "quartiles" if median else curve.get("interval", "standard error")
    low, high, interval = _interval(kind)
    value = pl.col("value")
    y = value.median() if median else value.mean()
    diverged = {}
    if not values["value"].is_finite().all():
        diverged = {"diverged": (~value.is_finite()).sum()}
        if not median:
            is_finite = pl.when(value.is_finite().all())
            low, high = (is_finite.then(end).otherwise(float("inf")) for end in (low, high))
    by = curve["by"]
    keys = list(dict.fromkeys([*axes, x]))
    points = (
        values.group_by(*keys)
        .agg(y=y, low=low, high=high, runs=pl.len(), **diverged)
        .with_columns(
            pl.col(x).cast(float).alias("x"),
            algorithm=pl.lit(curve["method"]),
            variant=pl.lit(curve["variant"]),
            style=pl.lit(curve["style"]),
            interpretation=pl.lit(curve["interpretation"]),
            series=pl.format("{} = {}", pl.lit(curve.get("by_title") or by), pl.col(by))
            if by
            else pl.lit(curve["label"]),
            interval=pl.lit(curve["band"])
            if curve["low"]
            else pl.when(pl.col("runs") > 1).then(pl.lit(interval)).otherwise(pl.lit("")),
        )
    )
    for end in ("low", "high") if curve["low"] else ():
        # The band between two measured quantities replaces the interval over runs.
        means = _measured(runs, curve, curve[end]).group_by(*keys).agg(pl.col("value").mean())
        points = points.drop(end).join(means.rename({"value": end}), on=keys)
    order = dict.fromkeys([*([by] if by in points.columns else []), "series", "x"])
    return points.sort(*order).drop([] if x in axes else [x])


def guarantee_of(privacy: pl.DataFrame, curve: Mapping[str, Any]) -> str:
    """Return ``PROVEN``, ``UNPROVEN`` or ``REFUTED``, the mark of a curve, or an empty string.

    A violated or unproven claim is reported for every quantity, also for message counts and models
    that are not sent. A proof is reported only for quantities that agents send. The string is empty
    if the metric belongs to no model, or if the settings claim no guarantee. Audits and errata do
    not enter, so that a figure needs its own cells only; ``privacy.parquet`` has the final verdict.
    """
    quantity, metric = split_measure(curve["measure"])
    if metric.startswith(DATA_FREE):
        return ""
    where = {key: value for key, value in curve["where"].items() if key in privacy.columns}
    rows = privacy.filter(pl.col("variant") == curve["variant"], *selected(where))
    verdicts = set(rows["verdict"]) - {NO_CLAIM}
    if not verdicts:
        return ""
    if not verdicts <= {HOLDS, HOLDS_BY_SLACK}:
        return REFUTED if VIOLATED in verdicts else UNPROVEN
    return PROVEN if quantity in SENT else ""


def cost_to_reach(points: pl.DataFrame, goals: Sequence[float]) -> pl.DataFrame:
    """Compute the smallest x from which a curve stays at or below each goal.

    The points are in ascending order of x. Between neighbouring points, the curve is linear in ln
    x. The cost ``y`` is the first x if all points are at or below the goal ``x``, and infinite if
    the last point is above it. The band has the costs of the two ends of the measurement's
    interval.
    """
    cost = points["x"].to_numpy()
    ends = {name: _costs(cost, points[name].to_numpy(), goals) for name in ("y", "low", "high")}
    first = points.select(*(c for c in points.columns if c not in {"x", *ends})).head(1)
    return pl.DataFrame({"x": [float(goal) for goal in goals], **ends}).join(first, how="cross")


def _costs(cost: np.ndarray, values: np.ndarray, goals: Sequence[float]) -> np.ndarray:
    costs = []
    for goal in goals:
        above = np.flatnonzero(~(values <= goal))
        if not len(above):
            costs.append(cost[0])
        elif above[-1] == len(values) - 1:
            costs.append(np.inf)
        else:
            last_above = above[-1]
            fall = values[last_above] - values[last_above + 1]
            fraction = (values[last_above] - goal) / fall if np.isfinite(fall) else 1.0
            costs.append(cost[last_above] * (cost[last_above + 1] / cost[last_above]) ** fraction)
    return np.array(costs)


def _interval(kind: str) -> tuple[pl.Expr, pl.Expr, str]:
    """Return lower end, upper end and description of an interval over runs."""
    value = pl.col("value")
    deviation = value.std(ddof=1).fill_null(0.0)
    error = deviation / pl.len().sqrt()
    return {
        "range": (value.min(), value.max(), RANGE),
        "quartiles": (value.quantile(0.25, "nearest"), value.quantile(0.75, "nearest"), QUARTILES),
        "standard deviation": (value.mean() - deviation, value.mean() + deviation, SPREAD),
        "standard error": (value.mean() - error, value.mean() + error, INTERVAL),
        "none": (value.mean(), value.mean(), ""),
    }[kind]


def _measured(runs: pl.DataFrame, curve: Mapping[str, Any], measure: str) -> pl.DataFrame:
    quantity, metric = split_measure(measure)
    names = {"variant": curve["variant"], "quantity": quantity, "metric": metric}
    rows = runs.filter(*selected(curve["where"]), **names)
    expected = f"measurements of {measure}: check variant, where and the measures of the experiment"
    require(rows.height > 0, "curve", dict(curve), expected)
    return rows


def graph_points(network: Mapping[str, Any], seed: int) -> pl.DataFrame:
    """Place the agents of a network on a circle; return one row per node and per edge.

    Agents are numbered from 1, clockwise from the top. If graphs are random, the graph of run 0 is
    used. Columns x and y are the position of a node or of the start of an edge; x_end and y_end
    that of the end of an edge.
    """
    built = networks.build(Streams(seed, (0,)), **network)
    angle = 2.0 * np.pi * np.arange(built.n_agents) / built.n_agents
    x, y = np.sin(angle).round(12), np.cos(angle).round(12)
    edges = [
        {"kind": "edge", "x": x[i], "y": y[i], "x_end": x[j], "y_end": y[j]}
        for i, j in np.argwhere(np.triu(built.of_run(0).adjacency))
    ]
    nodes = [{"kind": "node", "node": i + 1, "x": x[i], "y": y[i]} for i in range(built.n_agents)]
    fixed = {"algorithm": "", "variant": "", "style": "graph", "interpretation": "resolved",
             "series": "", "guarantee": "", "low": None, "high": None, "runs": 0,
             "interval": ""}  # fmt: skip
    points = pl.DataFrame([{**row, **fixed} for row in nodes + edges], infer_schema_length=None)
    return points.cast({"low": pl.Float64(), "high": pl.Float64()})
