"""Write the folder of the report: pages, style, scripts and downloads."""

import shutil
from functools import cache
from importlib.resources import files
from pathlib import Path

import polars as pl

from private_consensus.common.provenance import atomic_write, settings_hash, write_text
from private_consensus.common.spreadsheets import csv
from private_consensus.reproduction.results.files import rows_of

from .page import pages
from .reading import Results
from .views import scorecard
from .views.figures import TABLE_LINKS, drawn

DRAWINGS = ("repairs", "observers")
"""Names of the figures of audits, which belong to no paper."""

CSV_DIGITS = 6
"""Significant digits of numbers in CSV files; Parquet files have all digits."""


def write_site(results: Results, source: str | Path, folder: str | Path) -> None:
    """Write the report as a folder, from the folder of a scale."""
    source, folder = Path(source), Path(folder)
    texts = pages(results) | scorecard.files(scorecard.scored(results))
    texts |= {f"assets/{name}": text for name, text in _texts("assets").items()}
    texts |= {"privacy.csv": _csv(pl.DataFrame(results.privacy, infer_schema_length=None))}
    figures = [source / "figures" / f"{name}.{k}" for name in results.facts for k in drawn(results)]
    tables = [source / "tables" / f"{name}.{k}" for name in results.tables for k in TABLE_LINKS]
    numbers = [source / "data" / f"{name}.parquet" for name in results.facts]
    audits = [source / "audit" / f"{name}.svg" for name in DRAWINGS if name in results.audit]
    for path in (*numbers, *(path.with_suffix(".parquet") for path in audits)):
        texts[f"figures/{path.stem}.csv"] = _csv(rows_of(path))
    compared = [
        results.comparison / f"comparison.{k}" for k in ("svg", "csv") if results.comparison
    ]
    for path in (*figures, *numbers, *audits, *compared):
        copy(path, folder / "figures" / path.name)
    for path in tables:
        copy(path, folder / "tables" / path.name)
    for name, text in texts.items():
        write_text(folder / name, text)


def _csv(numbers: pl.DataFrame) -> str:
    """Format a table as CSV, with numbers of :data:`CSV_DIGITS` significant digits."""
    return csv(numbers.with_columns(pl.col(pl.Float64).round_sig_figs(CSV_DIGITS)))


@cache
def assets_hash() -> str:
    """Return the hash of templates, style and scripts, which is no part of the hash of the code."""
    return settings_hash({**_texts("templates"), **_texts("assets")})


@cache
def _texts(folder: str) -> dict[str, str]:
    directory = files("private_consensus.report") / folder
    return {
        file.name: file.read_text(encoding="utf-8")
        for file in directory.iterdir()
        if file.is_file()
    }


def copy(source: Path, target: Path) -> None:
    """Copy a file; the target is complete or absent."""
    with atomic_write(target) as temporary:
        shutil.copyfile(source, temporary)
