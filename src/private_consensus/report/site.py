"""Write the folder of the report: pages, style, scripts and downloads."""

import shutil
from functools import cache
from importlib.resources import files
from pathlib import Path

import polars as pl

from private_consensus.common.provenance import (
    atomic_write,
    checksums,
    settings_hash,
    write_json,
    write_text,
)
from private_consensus.common.spreadsheets import csv
from private_consensus.reproduction.results.files import CHECKSUMS, rows_of

from .page import page, pages
from .reading import Results
from .views import scorecard
from .views.figures import TABLE_LINKS

DRAWINGS = ("repairs", "observers")
"""Names of the figures of audits, which belong to no paper."""

CSV_DIGITS = 6
"""Significant digits of numbers in CSV files; Parquet files have all digits."""


def write_site(results: Results, source: str | Path, folder: str | Path) -> None:
    """Write the report as a folder, from the folder of a scale."""
    source, folder = Path(source), Path(folder)
    rendered = pages(results)
    for name, text in _texts("assets").items():
        write_text(folder / "assets" / name, text)
    write_downloads(results, source, folder / "figures")
    for name in results.tables:
        for kind in TABLE_LINKS:
            copy(source / "tables" / f"{name}.{kind}", folder / "tables" / f"{name}.{kind}")
    settings = pl.DataFrame(results.privacy, infer_schema_length=None)
    write_text(folder / "privacy.csv", csv(rounded(settings)))
    front = {"index.html": page(results)}
    for name, text in {**front, **rendered, **scorecard.files(scorecard.scored(results))}.items():
        write_text(folder / name, text)
    for name in {*DRAWINGS} & {*results.audit}:
        copy(source / "audit" / f"{name}.svg", folder / "figures" / f"{name}.svg")
        numbers = rows_of(source / "audit" / f"{name}.parquet")
        write_text(folder / "figures" / f"{name}.csv", csv(rounded(numbers)))
    if results.comparison:
        for kind in ("svg", "csv"):
            copy(
                results.comparison / f"comparison.{kind}", folder / "figures" / f"comparison.{kind}"
            )
    written = [file for file in folder.rglob("*") if file.is_file() and file.name != CHECKSUMS]
    write_json(folder / CHECKSUMS, checksums(written, folder))


def write_downloads(results: Results, source: Path, folder: Path) -> None:
    """Copy the files of figures, and write their numbers as CSV, for download.

    The published reference has no PDF files.
    """
    for name in results.facts:
        for kind in ("svg", "png") if results.is_reference else ("svg", "png", "pdf"):
            copy(source / "figures" / f"{name}.{kind}", folder / f"{name}.{kind}")
        numbers = source / "data" / f"{name}.parquet"
        copy(numbers, folder / numbers.name)
        write_text(folder / f"{name}.csv", csv(rounded(rows_of(numbers))))


def rounded(numbers: pl.DataFrame) -> pl.DataFrame:
    """Round the numbers of a table to :data:`CSV_DIGITS` significant digits."""
    return numbers.with_columns(pl.col(pl.Float64).round_sig_figs(CSV_DIGITS))


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
