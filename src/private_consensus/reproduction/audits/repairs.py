"""Utility at the true epsilon, as printed against as repaired, from the runs of experiments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

QUANTITIES = ("consensus", "released")
"""In this order of preference: iterates that are released. What an agent keeps to itself is no
utility of a private method."""

NOT_AXES = {
    "experiment", "algorithm", "variant", "reading", "run", "t", "quantity", "metric", "value",
    "source", "steps", "delta",
}  # fmt: skip


SIDES = ("printed", "repaired")
BASELINES = ("majority", "origin")
"""Metrics that begin so do not depend on the algorithm."""


def cells_of(pairs: Iterable[Mapping[str, Any]]) -> set[str]:
    """Algorithms that the pairs name."""
    return {pair[side].partition(".")[0] for pair in pairs for side in SIDES}


def asked_of(pairs: Iterable[Mapping[str, Any]], runs: pl.DataFrame) -> pl.DataFrame:
    """Select the rows of a cell that a pair compares: released quantities of the named variants."""
    named = {tuple(pair[side].split(".", 1)) for pair in pairs for side in SIDES}
    names = pl.DataFrame(sorted(named), schema=["algorithm", "variant"], orient="row")
    released = runs.filter(pl.col("quantity").is_in(QUANTITIES))
    return released.join(names, on=["algorithm", "variant"], how="semi", maintain_order="left")


def compared(
    pairs: Iterable[Mapping[str, Any]], runs: pl.DataFrame, privacy: pl.DataFrame
) -> list[dict[str, Any]]:
    """Compare pairs: one row per pair, experiment and setting that both have, within the filter
    ``where``.

    The value is the mean over runs at the last iteration; the epsilons are the accountant's, for
    the same setting.
    """
    # Of millions of rows a pair looks at those of two variants: they are told apart once.
    released = runs.filter(pl.col("quantity").is_in(QUANTITIES))
    variants = {
        ".".join(names): rows
        for names, rows in released.partition_by("algorithm", "variant", as_dict=True).items()
    }
    found = []
    for pair in pairs:
        frames = {side: variants.get(pair[side], released.clear()) for side in SIDES}
        found += _of_pair(pair, frames, privacy)
    return found


def _of_pair(pair, frames, privacy) -> list[dict[str, Any]]:
    sides = {side: _where(frame, pair.get("where", {})) for side, frame in frames.items()}
    found = []
    for experiment in sorted(set.intersection(*(set(s["experiment"]) for s in sides.values()))):
        own = {side: s.filter(pl.col("experiment") == experiment) for side, s in sides.items()}
        measure = _measure(own)
        if measure is None:
            continue
        axes = [c for c in own["printed"].columns if c not in NOT_AXES and _used(own, c)]
        means = {side: _last(frame, measure, axes) for side, frame in own.items()}
        for point in _points(means, axes):
            row = {"experiment": experiment, "algorithm": pair["printed"].partition(".")[0]}
            row |= {"quantity": measure[0], "metric": measure[1]}
            for side in SIDES:
                row[side] = pair[side]
                row[f"value_{side}"] = means[side][point]
                claimed, true = _epsilons(
                    privacy, pair[side], experiment, dict(zip(axes, point, strict=True))
                )
                row[f"epsilon_{side}"] = true
                row["epsilon_claimed"] = claimed
            found.append(row)
    return found


def _variant(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    algorithm, _, variant = name.partition(".")
    return frame.filter(pl.col("algorithm") == algorithm, pl.col("variant") == variant)


def _where(frame: pl.DataFrame, wanted: Mapping[str, Any]) -> pl.DataFrame:
    known = [
        pl.col(axis).is_in(value if isinstance(value, list) else [value])
        for axis, value in wanted.items()
        if axis in frame.columns
    ]
    return frame.filter(*known) if known else frame


def _measure(own: Mapping[str, pl.DataFrame]) -> tuple[str, str] | None:
    both = set.intersection(
        *(set(f.select("quantity", "metric").unique().rows()) for f in own.values())
    )
    both = {m for m in both if not m[1].startswith(BASELINES)}
    ordered = sorted(both, key=lambda m: ("test" not in m[1], m[1]))
    ranked = [m for quantity in QUANTITIES for m in ordered if m[0] == quantity]
    return ranked[0] if ranked else None


def _used(own: Mapping[str, pl.DataFrame], column: str) -> bool:
    return all(frame[column].null_count() < frame.height for frame in own.values())


def _last(frame: pl.DataFrame, measure, axes: list[str]) -> dict[tuple, float]:
    kept = frame.filter(pl.col("quantity") == measure[0], pl.col("metric") == measure[1])
    groups = kept.group_by(axes, maintain_order=True) if axes else [((), kept)]
    return {
        tuple(key): part.filter(pl.col("t") == part["t"].max()).select(pl.mean("value")).item()
        for key, part in groups
    }


def _points(means: Mapping[str, Mapping[tuple, float]], axes: list[str]) -> list[tuple]:
    return [point for point in means["printed"] if point in means["repaired"]]


def _epsilons(privacy: pl.DataFrame, name: str, experiment: str, point: Mapping[str, Any]):
    rows = _variant(privacy, name).filter(pl.col("experiment") == experiment)
    for axis, value in point.items():
        if axis in rows.columns and value is not None:
            rows = rows.filter(pl.col(axis) == value)
    if not rows.height:
        return None, None
    true = rows["epsilon_accountant"].max() if rows["proven"].all() else float("inf")
    return rows["epsilon_claimed"].max(), true
