"""The folder of the report: page, what it needs to draw, and everything to download."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
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

from .page import context, findable, page, pages, private_papers, scored
from .pdf import write_pdf
from .reading import Results
from .views import comparison, observers, privacy, scorecard
from .views.tables import LINKS as TABLE_LINKS

BUNDLE = "import sys, vl_convert; sys.stdout.buffer.write(vl_convert.javascript_bundle().encode())"

WRITTEN = ("report.css", "report.js", "observers.js", "comparison.js")
ASSETS = (*WRITTEN, "search.js", "learned.js", "vega.js")
"""Files of ``report/assets``: style, scripts, what can be found, what observers learn, the Vega
runtime; and what was compared, where something was."""

CHECKSUMS = "checksums.json"
"""Of all files of the report."""

REPAIRS = "repairs"
"""The summary figure of repairs, which belongs to no paper."""

COPIED = ("svg", "png", "pdf")
DOWNLOADS = (*COPIED, "parquet", "csv.zip", "js")
"""Kinds of files of ``report/figures``. CSV is compressed, to a tenth; ``js`` is the specification
as a script: a page that was opened from a disk may load scripts, but not JSON, and one copy is
enough."""
DIGITS = 6
"""Significant digits of numbers as CSV; Parquet has them all."""


def write_site(results: Results, made: str | Path, folder: str | Path) -> None:
    """Write the report.

    Parameters
    ----------
    made : path
        Where ``figures``, ``tables`` and ``data`` of this scale are.
    folder : path
        Where the report goes.
    """
    made, folder = Path(made), Path(folder)
    # The page and the PDF show the same, which is made once.
    context(results)
    with ThreadPoolExecutor() as beside:
        waited = [
            beside.submit(write_runtime, folder / "assets" / "vega.js"),
            beside.submit(write_pdf, results, made, folder / "report.pdf"),
        ]
        _write_pages(results, made, folder)
        for one in waited:
            one.result()
    written = [file for file in folder.rglob("*") if file.is_file() and file.name != CHECKSUMS]
    write_json(folder / CHECKSUMS, checksums(written, folder))


def _write_pages(results: Results, made: Path, folder: Path) -> None:
    """Write the pages that Python renders, while other processes write the rest."""
    for name, text in own_assets().items():
        write_text(folder / "assets" / name, text)
    write_text(folder / "assets" / "search.js", f"searchable({json.dumps(findable(results))});\n")
    pairs = json.dumps(observers.learned(results.audit.get("observers", [])), allow_nan=False)
    write_text(folder / "assets" / "learned.js", f"learned({pairs});\n")
    for name, text in comparison.scripts(results.comparison).items():
        write_text(folder / "assets" / name, text)
    write_downloads(results.facts, made, folder / "figures")
    for name in results.tables:
        for kind, _ in TABLE_LINKS:
            _copy(made / "tables" / f"{name}.{kind}", folder / "tables" / f"{name}.{kind}")
    for key in private_papers(results):
        own = results.papers[key]["experiments"]
        numbers = privacy.settings_table(results.privacy, own)
        write_text(folder / "settings" / f"{key}.csv", csv(in_short(numbers)))
    for name, text in {**pages(results), **scorecard.files(scored(results))}.items():
        write_text(folder / name, text)
    for kind in (*COPIED,) if results.audit.get("repairs") is not None else ():
        _copy(made / "audit" / f"{REPAIRS}.{kind}", folder / "figures" / f"{REPAIRS}.{kind}")
    write_text(folder / "index.html", page(results))


def write_runtime(path: Path) -> None:
    """The Vega runtime, once for all charts; its bundler lets no other thread of a process work."""
    call = [sys.executable, "-c", BUNDLE]
    bundle = subprocess.run(call, stdout=subprocess.PIPE, check=True).stdout
    write_text(path, bundle.decode())


def write_downloads(figures: Iterable[str], made: Path, folder: Path) -> None:
    """Copy figures and numbers, and write the numbers as zipped CSV, for download.

    Parameters
    ----------
    figures : iterable of str
        Names of figures.
    made : Path
        Folder with the subfolders ``figures`` and ``data``.
    folder : Path
        Target folder.
    """
    for name in figures:
        for kind in COPIED:
            _copy(made / "figures" / f"{name}.{kind}", folder / f"{name}.{kind}")
        numbers = made / "data" / f"{name}.parquet"
        _copy(numbers, folder / numbers.name)
        write_zipped(folder / f"{name}.csv.zip", csv(in_short(pl.read_parquet(numbers))))
        specification = (made / "figures" / f"{name}.json").read_text(encoding="utf-8")
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
    with atomic_write(path) as part, ZipFile(part, "w") as archive:
        archive.writestr(ZipInfo(path.stem), text, ZIP_DEFLATED)


def in_short(numbers: pl.DataFrame) -> pl.DataFrame:
    """Numbers as a page or a spreadsheet needs them."""
    return numbers.with_columns(pl.col(pl.Float64).round_sig_figs(DIGITS))


@cache
def own_assets() -> dict[str, str]:
    """Style and script of the page."""
    folder = files("private_consensus.reproduction.report") / "assets"
    return {name: (folder / name).read_text(encoding="utf-8") for name in WRITTEN}


@cache
def assets_hash() -> str:
    """Digest of templates, style and script, which the hash of the code does not see."""
    folder = files("private_consensus.reproduction.report") / "templates"
    templates = {
        file.name: file.read_text(encoding="utf-8") for file in folder.iterdir() if file.is_file()
    }
    return settings_hash({**templates, **own_assets()})


def _copy(source: Path, target: Path) -> None:
    with atomic_write(target) as part:
        shutil.copyfile(source, part)
