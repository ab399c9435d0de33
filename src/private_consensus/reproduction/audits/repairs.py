"""Comparison of the utility of published and corrected variants, with their true epsilon."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

QUANTITIES = ("consensus", "released")
"""Compared released quantities, in order of preference. Iterates that an agent does not release are
no utility of a private method."""
NOT_AXES = {
    "experiment", "algorithm", "variant", "interpretation", "run", "t", "quantity", "metric",
    "value", "source", "steps", "delta",
}  # fmt: skip
"""Columns of runs that are not axes of an experiment."""
SIDES = ("published", "corrected")
BASELINES = ("majority", "origin")
"""Prefixes of metrics that do not depend on the algorithm."""

Pairs = Iterable[Mapping[str, Any]]
"""Entries of ``config/repairs.yaml``: two names ``algorithm.variant`` and an optional filter."""


def cells_of(pairs: Pairs) -> set[str]:
    """Return the algorithms that the pairs name."""
    return {pair[side].partition(".")[0] for pair in pairs for side in SIDES}


def released_rows(pairs: Pairs, runs: pl.DataFrame) -> pl.DataFrame:
    """Select the rows of runs that any pair compares: released quantities of its variants."""
    names = sorted({tuple(pair[side].split(".", 1)) for pair in pairs for side in SIDES})
    variants = pl.DataFrame(names, schema=["algorithm", "variant"], orient="row")
    released = runs.filter(pl.col("quantity").is_in(QUANTITIES))
    return released.join(variants, on=variants.columns, how="semi", maintain_order="left")


def compared(pairs: Pairs, runs: pl.DataFrame, privacy: pl.DataFrame) -> list[dict[str, Any]]:
    """Compare pairs of variants in each experiment and setting that contains both variants.

    A pair has an optional filter ``where``. The value is the mean over runs at the last iteration;
    the epsilons are the accountant's, for the same setting.
    """
    # Rows are partitioned once: a pair uses two variants of millions of rows.
    released = runs.filter(pl.col("quantity").is_in(QUANTITIES))
    variants = {
        ".".join(names): rows
        for names, rows in released.partition_by("algorithm", "variant", as_dict=True).items()
    }
    return [
        row
        for pair in pairs
        for row in _pair_rows(
            pair, {side: variants.get(pair[side], released.clear()) for side in SIDES}, privacy
        )
    ]


def _pair_rows(
    pair: Mapping[str, Any], frames: Mapping[str, pl.DataFrame], privacy: pl.DataFrame
) -> list[dict[str, Any]]:
    """Return the rows of one pair, from the runs of both of its variants."""
    frames = {side: _filtered(frame, pair.get("where", {})) for side, frame in frames.items()}
    rows = []
    for experiment in sorted(set.intersection(*(set(f["experiment"]) for f in frames.values()))):
        sides = {side: f.filter(pl.col("experiment") == experiment) for side, f in frames.items()}
        measure = _measure(sides)
        if measure is None:
            continue
        axes = [
            name for name in sides["published"].columns
            if name not in NOT_AXES
            and all(frame[name].null_count() < frame.height for frame in sides.values())
        ]  # fmt: skip
        means = {side: _last_means(frame, measure, axes) for side, frame in sides.items()}
        for point in means["published"]:
            if point not in means["corrected"]:
                continue
            row = {"experiment": experiment, "algorithm": pair["published"].partition(".")[0]}
            row |= {"quantity": measure[0], "metric": measure[1]}
            for side in SIDES:
                setting = {"experiment": experiment, **dict(zip(axes, point, strict=True))}
                claimed, accounted = _epsilons(privacy, pair[side], setting)
                row |= {side: pair[side], f"value_{side}": means[side][point]}
                row |= {f"epsilon_{side}": accounted, "epsilon_claimed": claimed}
            rows.append(row)
    return rows


def _filtered(frame: pl.DataFrame, values: Mapping[str, Any]) -> pl.DataFrame:
    """Return the rows with the given value, or one of the given values, on each axis."""
    return frame.filter(*(
        pl.col(axis).is_in(value if isinstance(value, list) else [value])
        for axis, value in values.items()
        if axis in frame.columns
    ), True)  # fmt: skip


def _measure(sides: Mapping[str, pl.DataFrame]) -> tuple[str, str] | None:
    """Return the quantity and metric that both sides have; test metrics have precedence."""
    common = set.intersection(
        *(set(frame.select("quantity", "metric").unique().rows()) for frame in sides.values())
    )
    measures = sorted(
        (measure for measure in common if not measure[1].startswith(BASELINES)),
        key=lambda m: (QUANTITIES.index(m[0]), "test" not in m[1], m[1]),
    )
    return measures[0] if measures else None


def _last_means(
    frame: pl.DataFrame, measure: tuple[str, str], axes: list[str]
) -> dict[tuple, float]:
    """Return the mean over runs at the last iteration, by point of the axes."""
    rows = frame.filter(pl.col("quantity") == measure[0], pl.col("metric") == measure[1])
    groups = rows.group_by(axes, maintain_order=True) if axes else [((), rows)]
    return {
        tuple(point): group.filter(pl.col("t") == group["t"].max()).select(pl.mean("value")).item()
        for point, group in groups
    }


def _epsilons(
    privacy: pl.DataFrame, name: str, point: Mapping[str, Any]
) -> tuple[float | None, float | None]:
    """Return the claimed and the accounted epsilon of a variant at a point of an experiment."""
    algorithm, _, variant = name.partition(".")
    values = {"algorithm": algorithm, "variant": variant, **point}
    rows = privacy.filter(*(
        pl.col(column) == value
        for column, value in values.items()
        if column in privacy.columns and value is not None
    ))  # fmt: skip
    if not rows.height:
        return None, None
    accounted: Any = rows["epsilon_accountant"].max() if rows["proven"].all() else float("inf")
    claimed: Any = rows["epsilon_claimed"].max()
    return claimed, accounted
