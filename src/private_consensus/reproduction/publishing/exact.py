r"""Compare every published number of two runs without regard to Monte-Carlo errors.

A change of structure must change no number. :func:`compare_exactly` compares all tables of the
reference (figure data, claims, privacy, statements, audits, observers) and the answers of the
comparison. Numbers y, y' are equal if :math:`|y - y'| \le 10^{-6} \max(|y|, |y'|)`; words, counts
and truth values must be identical.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from private_consensus.common.readable import read_json

from ..experiments.results import rows_of
from .comparison import ROUNDING, require_comparable

PROVENANCE = {"source", "commit", "seconds", "date"}
"""Columns that state where a number comes from."""
SEPARATE = {"mutants"}
"""Tables that another target computes."""


@dataclass(frozen=True)
class ExactComparison:
    """Result of an exact comparison.

    Parameters
    ----------
    compared : int
        Number of compared values.
    different : tuple of str
        One line per column or entry that differs.
    missing : tuple of str
        One line per table of the reference that the run lacks.
    """

    compared: int
    different: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def same(self) -> bool:
        """True if nothing differs and nothing is missing."""
        return not (self.different or self.missing)


def compare_exactly(run: str | Path, reference: str | Path) -> ExactComparison:
    """Compare every published value of a run with the reference.

    Parameters
    ----------
    run : path
        ``results/<scale>``.
    reference : path
        Folder that :func:`.reference.publish` wrote.

    Returns
    -------
    ExactComparison

    Raises
    ------
    InvalidInput
        If a folder lacks its results, or the scales differ.
    """
    run, reference = require_comparable(run, reference)
    compared, different, missing = 0, [], []
    for file in sorted(reference.rglob("*.parquet")):
        if file.stem in SEPARATE:
            continue
        name = file.relative_to(reference)
        if not (run / name).is_file():
            missing.append(f"{name}: not in the run")
            continue
        before, after = rows_of(file), rows_of(run / name)
        compared += before.height * len(before.columns)
        different += [f"{name}: {line}" for line in table_differences(before, after)]
    for file in sorted((reference / "comparison").glob("*.json")):
        name = file.relative_to(reference)
        if not (run / name).is_file():
            missing.append(f"{name}: not in the run")
            continue
        before, after = (dict(_entries(read_json(folder / name))) for folder in (reference, run))
        compared += len(before)
        different += [f"{name}: {line}" for line in _entry_differences(before, after)]
    return ExactComparison(compared, tuple(different), tuple(missing))


def table_differences(before: pl.DataFrame, after: pl.DataFrame) -> Iterator[str]:
    """Describe the columns in which two tables with the same order of rows differ.

    Parameters
    ----------
    before, after : DataFrame
        Table of the reference and of the run.

    Yields
    ------
    str
        One line per column, with the number of rows that differ and the first of them.
    """
    columns = [name for name in before.columns if name not in PROVENANCE]
    if absent := [name for name in columns if name not in after.columns]:
        yield f"columns {', '.join(absent)} are missing"
    if before.height != after.height:
        yield f"{before.height} rows became {after.height}"
        return
    columns = [name for name in columns if name in after.columns]
    for name in columns:
        rows = np.flatnonzero(_differs(before[name], after[name]))
        if len(rows):
            first = int(rows[0])
            yield (
                f"{name} differs in {len(rows)} of {before.height} rows, "
                f"e.g. {before[name][first]} became {after[name][first]}"
            )


def _differs(before: pl.Series, after: pl.Series) -> np.ndarray:
    if not before.dtype.is_float():
        return ~before.eq_missing(after.cast(before.dtype)).to_numpy()
    y, y_run = (series.cast(pl.Float64).to_numpy() for series in (before, after))
    with np.errstate(invalid="ignore"):
        close = np.abs(y - y_run) <= ROUNDING * np.fmax(np.abs(y), np.abs(y_run))
    return ~((y == y_run) | close | (np.isnan(y) & np.isnan(y_run)))


def _entries(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the path and the value of every leaf of a JSON document."""
    if isinstance(value, Mapping):
        for key, entry in value.items():
            yield from _entries(entry, f"{path}.{key}")
    elif isinstance(value, list):
        for number, entry in enumerate(value):
            yield from _entries(entry, f"{path}[{number}]")
    else:
        yield path.lstrip("."), value


def _entry_differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterable[str]:
    for path, value in before.items():
        new_value = after.get(path)
        numeric = isinstance(value, float) and isinstance(new_value, float | int)
        same = (
            abs(value - new_value) <= ROUNDING * max(abs(value), abs(new_value))
            if numeric
            else value == new_value
        )
        if not same:
            yield f"{path}: {value} became {new_value}"
