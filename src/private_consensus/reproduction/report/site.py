"""Write the folder of the report: pages, assets and downloads."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import polars as pl

from private_consensus.common.provenance import (
    atomic_write,
    checksums,
    settings_hash,
    write_json,
    write_text,
)
from private_consensus.common.spreadsheets import csv

from ..experiments.results import CHECKSUMS
from . import search
from .page import page, pages, private_papers, scored
from .pdf import write_pdf
from .reading import Results
from .views import comparison, observers, privacy, scorecard
from .views.tables import LINKS as TABLE_LINKS

WRITTEN = ("report.css", "report.js", "observers.js", "comparison.js")
ASSETS = (*WRITTEN, "search.js", "learned.js", "vega.js")
"""Files of ``report/assets``: style, scripts, entries of the search, privacy losses to observers,
and the Vega runtime. A report with a comparison has further files."""

REPAIRS = "repairs"
"""Name of the figure of corrected variants, which belongs to no paper."""

COPIED = ("svg", "png", "pdf")
DOWNLOADS = (*COPIED, "parquet", "csv.zip", "js")
"""Kinds of files of ``report/figures``. CSV is compressed to a tenth of its size. ``js`` contains
the specification as a script, since a page on a disk can load scripts but not JSON."""
DIGITS = 6
"""Significant digits of numbers in CSV files; Parquet files have all digits."""


def write_site(
    results: Results,
    source: str | Path,
    folder: str | Path,
    *,
    documentation: Iterable[Mapping[str, str]] = (),
) -> None:
    """Write the report.

    Parameters
    ----------
    results : Results
        Results of one scale.
    source : path
        Folder with ``figures``, ``tables`` and ``data`` of this scale.
    folder : path
        Target folder.
    documentation : iterable of mapping, optional
        Entries of the search for pages outside the report.
    """
    source, folder = Path(source), Path(folder)
    _write_pages(results, source, folder, documentation)
    write_pdf(results, source, folder / "report.pdf")
    if not results.is_reference:
        write_runtime(folder / "assets" / "vega.js")
    written = [file for file in folder.rglob("*") if file.is_file() and file.name != CHECKSUMS]
    write_json(folder / CHECKSUMS, checksums(written, folder))


def _write_pages(
    results: Results,
    source: Path,
    folder: Path,
    documentation: Iterable[Mapping[str, str]],
) -> None:
    """Write the pages, their scripts, and the downloads."""
    rendered = pages(results)
    entries = json.dumps([*search.entries(results, rendered), *documentation])
    pairs = json.dumps(observers.learned(results.audit.get("observers", [])), allow_nan=False)
    scripts = {
        **own_assets(),
        "search.js": f"searchable({entries});\n",
        "learned.js": f"learned({pairs});\n",
        **comparison.scripts(results.comparison),
    }
    for name, text in scripts.items():
        write_text(folder / "assets" / name, text)
    if comparison.is_current(results.comparison) and results.comparison.get("runs_path"):
        _copy(Path(results.comparison["runs_path"]), folder / comparison.RUNS)
    write_downloads(results.facts, source, folder / "figures", is_reference=results.is_reference)
    for name in results.tables:
        for kind, _ in TABLE_LINKS:
            _copy(source / "tables" / f"{name}.{kind}", folder / "tables" / f"{name}.{kind}")
    for key in private_papers(results):
        numbers = privacy.settings_table(results.privacy, results.papers[key]["experiments"])
        write_text(folder / "settings" / f"{key}.csv", csv(in_short(numbers)))
    front = {"index.html": page(results)}
    for name, text in {**front, **rendered, **scorecard.files(scored(results))}.items():
        write_text(folder / name, text)
    drawn = results.audit.get("repairs") is not None and not results.is_reference
    for kind in COPIED if drawn else ():
        _copy(source / "audit" / f"{REPAIRS}.{kind}", folder / "figures" / f"{REPAIRS}.{kind}")


def write_runtime(path: Path) -> None:
    """Write the Vega runtime, which draws the interactive charts."""
    import vl_convert

    # The stub lacks the default of the snippet.
    write_text(path, vl_convert.javascript_bundle())  # ty: ignore[missing-argument]


def write_downloads(
    figures: Iterable[str], source: Path, folder: Path, *, is_reference: bool = False
) -> None:
    """Copy figures and numbers, and write the numbers as zipped CSV, for download.

    Parameters
    ----------
    figures : iterable of str
        Names of figures.
    source : Path
        Folder with the subfolders ``figures`` and ``data``.
    folder : Path
        Target folder.
    is_reference : bool, default False
        True if ``source`` is the published reference, without PDF and specifications.
    """
    for name in figures:
        for kind in COPIED[:2] if is_reference else COPIED:
            _copy(source / "figures" / f"{name}.{kind}", folder / f"{name}.{kind}")
        numbers = source / "data" / f"{name}.parquet"
        _copy(numbers, folder / numbers.name)
        write_zipped(folder / f"{name}.csv.zip", csv(in_short(pl.read_parquet(numbers))))
        if is_reference:
            continue
        specification = (source / "figures" / f"{name}.json").read_text(encoding="utf-8")
        write_text(folder / f"{name}.js", f"figure({json.dumps(name)}, {specification});\n")


def write_zipped(path: Path, text: str) -> None:
    """Write a text as a ZIP archive of one file, with byte-identical output every time.

    Parameters
    ----------
    path : Path
        Archive; the file in it has this name without ``.zip``.
    text : str
        Contents of the file.
    """
    with atomic_write(path) as temporary, ZipFile(temporary, "w") as archive:
        archive.writestr(ZipInfo(path.stem), text, ZIP_DEFLATED)


def in_short(numbers: pl.DataFrame) -> pl.DataFrame:
    """Round the numbers of a table to :data:`DIGITS` significant digits."""
    return numbers.with_columns(pl.col(pl.Float64).round_sig_figs(DIGITS))


@cache
def own_assets() -> dict[str, str]:
    """Return style and scripts of the pages by file name."""
    return {name: text for name, text in _texts("assets").items() if name in WRITTEN}


@cache
def assets_hash() -> str:
    """Return the hash of templates, style and scripts, which the hash of the code omits."""
    return settings_hash({**_texts("templates"), **own_assets()})


def _texts(folder: str) -> dict[str, str]:
    directory = files("private_consensus.reproduction.report") / folder
    return {
        file.name: file.read_text(encoding="utf-8")
        for file in directory.iterdir()
        if file.is_file()
    }


def _copy(source: Path, target: Path) -> None:
    with atomic_write(target) as temporary:
        shutil.copyfile(source, temporary)
