"""Columns of the comparison's results, from which statistics and pages are computed.

There is one row per cell, method, tuning, run and measure. ``epsilon`` is the budget of the cell,
at ``delta`` for the observer of the method. ``epsilon_accountant`` is the accountant's result at
the noise of the run, and ``epsilon_lower`` is a lower bound on every guarantee. A row that is not
``proven`` is not ranked.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import polars as pl

from private_consensus.common.errors import InvalidInput, arguments, require
from private_consensus.common.readable import readable

TUNINGS = ("tuned_paid", "tuned", "transferred")
"""Parameters of the best trial, with all trials counted in the budget; of the best trial, with none
counted; of the trial that is best on the other problems, without any public record."""
PRIMARY = TUNINGS[0]
"""Tuning of the primary ranking."""
TRANSFERRED = TUNINGS[2]

NEIGHBOUR, ANYONE = "neighbour", "anyone"
OBSERVERS = ("eavesdropper", "outsider", "sums", NEIGHBOUR, ANYONE, "none")
"""Observers against whom a method protects a record. An eavesdropper receives all messages. An
outsider receives them without the secrets that neighbours share. ``sums`` receives sums of messages
only, as under secure aggregation. A neighbour is any agent, which receives the messages sent to it.
``anyone`` learns nothing about an agent's record: the model is a baseline without privacy cost.
``none`` is no privacy."""

NEGATIVE_EXCESS = -1e-6
"""Smallest excess loss: by rounding, a model may be better than the computed minimum."""
MEASURES = {
    **dict.fromkeys(("excess_loss_mean", "excess_loss_worst"), (NEGATIVE_EXCESS, float("inf"))),
    **dict.fromkeys(("accuracy_mean", "accuracy_worst"), (0.0, 1.0)),
    **dict.fromkeys(
        ("consensus_error", "messages", "bits", "gradient_evaluations", "seconds"),
        (0.0, float("inf")),
    ),
}
"""Smallest and largest value of each measure. Infinity is the loss of a run that diverged.

- ``excess_loss_mean``, ``excess_loss_worst``: excess loss of the released models, mean over agents
  and worst agent
- ``accuracy_mean``, ``accuracy_worst``: test accuracy of the released models, mean over agents and
  worst agent
- ``consensus_error``: mean squared distance of agents from their mean
- ``messages``, ``bits``: messages and bits sent by all agents
- ``gradient_evaluations``: gradients of single records computed by all agents
- ``seconds``: wall time of a run, in seconds
"""
ROUNDING = 1e-6
"""Relative difference by which a lower bound may exceed the accountant's epsilon."""
SLUG = re.compile(r"[a-z][a-z0-9_]{0,59}")
"""Pattern of the name of a method."""
LABEL = re.compile(r"[^<>\[\]{}`|]{1,80}")
"""Pattern of a label, without characters that HTML or Markdown interpret."""

ENVIRONMENT = {
    "problem": pl.String,
    "agents": pl.Int64,
    "graph": pl.String,
    "partition": pl.String,
    "missing": pl.Float64,
    "links": pl.Float64,
}
CELL = {**ENVIRONMENT, "epsilon": pl.Float64}
COLUMNS = {
    **CELL,
    "delta": pl.Float64,
    "observer": pl.String,
    "method": pl.String,
    "label": pl.String,
    "tuning": pl.String,
    "run": pl.Int64,
    "measure": pl.String,
    "value": pl.Float64,
    "proven": pl.Boolean,
    "epsilon_accountant": pl.Float64,
    "epsilon_lower": pl.Float64,
}
KEYS = [*CELL, "observer", "method", "tuning", "run", "measure"]


def one_row_per_run(frame: pl.DataFrame) -> pl.DataFrame:
    """Return results with one row per cell, method, tuning and run, and one column per measure."""
    index = [column for column in COLUMNS if column not in ("measure", "value")]
    wide = frame.pivot(on="measure", index=index, values="value", maintain_order=True)
    return wide.select([*index, *(measure for measure in MEASURES if measure in wide.columns)])


def read_results(path: str | Path) -> pl.DataFrame:
    """Read results of a comparison from a Parquet file.

    Raises
    ------
    InvalidInput
        For an invalid file, a missing column or one of another type, an empty value, an unknown
        measure, tuning or observer, a value outside the range of its measure, a repeated row, or a
        guarantee that its rows contradict.
    """
    with readable(path):
        frame = pl.read_parquet(path)
    return checked(frame, str(path))


def checked(frame: pl.DataFrame, name: str = "results") -> pl.DataFrame:
    """Return the columns of :data:`COLUMNS` in order, after checking them.

    Parameters
    ----------
    frame : DataFrame
        Results; further columns are dropped.
    name : str
        Name for error messages.

    Returns
    -------
    DataFrame

    Raises
    ------
    InvalidInput
        See :func:`read_results`.
    """
    for column, kind in COLUMNS.items():
        present_kind = frame.schema.get(column)
        require(present_kind == kind, f"{name}.{column}", present_kind, f"a column of {kind}")
    frame = frame.select(list(COLUMNS))
    for column in COLUMNS:
        is_complete = not frame[column].null_count()
        require(is_complete, f"{name}.{column}", "an empty value", "a value in every row")
    for method, label in frame.select("method", "label").unique().rows():
        slug = bool(SLUG.fullmatch(method))
        expected = "at most 60 lower-case letters, digits and underscores, first a letter"
        require(slug, f"{name}.method", method, expected)
        printable = label.isprintable() and bool(LABEL.fullmatch(label.strip()))
        expected = "1 to 80 printable characters without < > [ ] { } ` |"
        require(printable, f"{name}.label", label, expected)
    for column, allowed in {"measure": MEASURES, "tuning": TUNINGS, "observer": OBSERVERS}.items():
        require_known(f"{name}.{column}", frame[column].unique(), allowed)
    twice = frame.filter(pl.struct(KEYS).is_duplicated())
    if twice.height:
        raise InvalidInput(name, _first(twice), "every row once")
    _check_ranges(frame, name)
    _check_guarantees(frame, name)
    return frame


def require_known(key: str, names: Iterable[str], allowed: Collection[str]) -> None:
    """Refuse a name that is not among the allowed ones.

    Parameters
    ----------
    key : str
        Key that the error names.
    names, allowed : collection of str
        Names to check, and all valid names.
    """
    for name in names:
        arguments.choice(key, name, allowed)


def _check_ranges(frame: pl.DataFrame, name: str) -> None:
    """Refuse values that their measure cannot have."""
    for measure, (low, high) in MEASURES.items():
        rows = frame.filter(pl.col("measure") == measure)
        invalid_rows = rows.filter(
            pl.col("value").is_nan() | (pl.col("value") < low) | (pl.col("value") > high)
        )
        if invalid_rows.height:
            key, value = f"{name}.value of {measure}", invalid_rows["value"][0]
            raise InvalidInput(key, value, f"a number between {low:g} and {high:g}")


def _check_guarantees(frame: pl.DataFrame, name: str) -> None:
    """Refuse bounds of epsilon that contradict each other or the budget."""
    for column in ("epsilon_accountant", "epsilon_lower"):
        invalid_rows = frame.filter(pl.col(column).is_nan() | (pl.col(column) < 0))
        if invalid_rows.height:
            raise InvalidInput(f"{name}.{column}", invalid_rows[column][0], "a number >= 0")
    above_budget = frame.filter(
        pl.col("proven")
        & (pl.col("observer") != "none")
        & ~(pl.col("epsilon_accountant") <= pl.col("epsilon"))
    )
    if above_budget.height:
        raise InvalidInput(f"{name}.epsilon_accountant", _first(above_budget), "at most the budget")
    largest = pl.col("epsilon_accountant") * (1 + ROUNDING)
    above = frame.filter(pl.col("epsilon_lower") > largest)
    if above.height:
        raise InvalidInput(
            f"{name}.epsilon_lower", above["epsilon_lower"][0],
            f"at most epsilon_accountant, {above['epsilon_accountant'][0]:g}",
        )  # fmt: skip


def _first(frame: pl.DataFrame) -> dict[str, Any]:
    return frame.select(KEYS).row(0, named=True)
