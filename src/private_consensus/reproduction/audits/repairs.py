"""Comparison of the utility of published and corrected variants, with their true epsilon."""

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from ..results.numbers import FIXED

QUANTITIES = ("consensus", "released")
"""Compared released quantities, in order of preference. Iterates that an agent does not release are
no utility of a private method."""
NOT_AXES = {*FIXED, "steps"}
"""Columns of runs that are not axes of an experiment."""
NAME = pl.concat_str("algorithm", "variant", separator=".")
SIDES = ("published", "corrected")
BASELINES = "^(majority|origin)"
"""Prefixes of metrics that do not depend on the algorithm."""

Pairs = Iterable[Mapping[str, Any]]
"""Entries of ``config/repairs.yaml``: two names ``algorithm.variant`` and an optional filter."""


def cells_of(pairs: Pairs) -> set[str]:
    """Return the algorithms that the pairs name."""
    return {pair[side].partition(".")[0] for pair in pairs for side in SIDES}


def last_means(pairs: Pairs, runs: pl.DataFrame) -> pl.DataFrame:
    """Return the mean over runs at the last iteration, for the variants that the pairs name.

    There is one row per variant, point of the axes and measure of a released quantity.
    """
    rows = runs.with_columns(name=NAME).filter(
        pl.col("name").is_in([pair[side] for pair in pairs for side in SIDES]),
        pl.col("quantity").is_in(QUANTITIES),
        ~pl.col("metric").str.contains(BASELINES),
    )
    axes = [column for column in runs.columns if column not in NOT_AXES]
    keys = ["experiment", "name", *axes, "quantity", "metric"]
    last = rows.filter(pl.col("t") == pl.col("t").max().over(keys))
    groups = last.group_by(keys, maintain_order=True)
    means = [group["value"].mean() for _, group in groups]
    return groups.agg().with_columns(value=pl.Series(means, dtype=pl.Float64))


def compared(pairs: Pairs, means: pl.DataFrame, privacy: pl.DataFrame) -> pl.DataFrame:
    """Compare pairs of variants in each experiment and setting that contains both variants.

    The measure is the first one that both variants have, and the epsilons are the accountant's, for
    the same setting. A pair has an optional filter ``where``.
    """
    if "delta" not in means.columns:
        means = means.with_columns(delta=pl.lit(None, pl.Float64))
    axes = [column for column in means.columns if column not in {*NOT_AXES, "name"}]
    keys = ["experiment", *axes]
    # Every guarantee has a delta, which is an axis only in experiments whose runs have one.
    has_axis = pl.col("experiment").is_in(means.drop_nulls("delta")["experiment"].to_list())
    by_setting = privacy.with_columns(delta=pl.when(has_axis).then("delta"))
    accounted = pl.col("epsilon_accountant").max()
    epsilons = by_setting.group_by("algorithm", "variant", *keys).agg(
        accounted=pl.when(pl.col("proven").all()).then(accounted).otherwise(float("inf")),
        claimed=pl.col("epsilon_claimed").max(),
    )
    settings = means.join(
        epsilons.with_columns(name=NAME), on=["name", *keys], how="left", nulls_equal=True,
        maintain_order="left",
    )  # fmt: skip
    return pl.concat(_pair_rows(pair, settings, keys) for pair in pairs)


def _pair_rows(pair: Mapping[str, Any], settings: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Return the rows of one pair, sorted by experiment."""
    where = [
        pl.col(axis).is_in(value if isinstance(value, list) else [value])
        for axis, value in pair.get("where", {}).items()
        if axis in settings.columns
    ]
    published, corrected = (settings.filter(*where, name=pair[side]) for side in SIDES)
    both = published.join(
        corrected, on=[*keys, "quantity", "metric"], suffix="_corrected", nulls_equal=True,
        maintain_order="left",
    )  # fmt: skip
    is_training = ~pl.col("metric").str.contains("test")
    both = both.sort("experiment", "quantity", is_training, "metric", maintain_order=True)
    measure = pl.col("quantity", "metric")
    is_first = pl.all_horizontal(measure == measure.first().over("experiment"))
    return both.filter(is_first).select(
        "experiment", "algorithm", "quantity", "metric", "delta",
        published="name", value_published="value", epsilon_published="accounted",
        epsilon_claimed="claimed_corrected", corrected="name_corrected",
        value_corrected="value_corrected", epsilon_corrected="accounted_corrected",
    )  # fmt: skip
