"""Write the reference results: figures, tables, claims, audits and a manifest."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from private_consensus.common.errors import InvalidInput
from private_consensus.common.provenance import atomic_write, checksums, write_json, write_text
from private_consensus.common.spreadsheets import csv

from ..experiments.freshness import actual_stamp
from ..experiments.results import rows_of
from ..plotting.drawings import png_of, small_svg
from ..report.reading import Results, surrogates_in, svg_size
from ..report.site import CORRECTIONS
from ..report.views import scorecard
from .manifest import manifest

MAX_BYTES = 25_000_000
"""Largest size of the folder of reference results."""
COMPARED = "comparison"
"""Folder with the results of ``make comparison``."""
LONG_TABLES = ("privacy", "audit/observers")
"""Tables with thousands of rows, which are not converted to CSV; a CSV of the run is copied."""
FAULTS = "faults.json"
"""File with the outcomes of the tests of faults, written by ``make faults``."""
WIDTH = 1600.0
"""Width of published PNG files, in pixels."""
TABLES = ("csv", "md", "tex")
IDENTIFIERS = frozenset({"record", "row_id", "index", "run", "person", "feature"})
"""Columns that identify single records or single runs."""
MAX_ROWS = 100_000
"""Largest number of rows of a table of aggregates."""


def publish(
    results: Results,
    *,
    run: str | Path,
    folder: str | Path,
    config: Mapping[str, Any],
    papers: Iterable[str],
    stamped: Iterable[str] = (),
    partial: bool = False,
) -> None:
    """Write the reference results, and replace earlier ones.

    Parameters
    ----------
    results : Results
        Results of the run.
    run : path
        ``results/<scale>``.
    folder : path
        Target folder.
    config : mapping
        Configuration of the run, with ``seed``, ``papers`` and ``runs``.
    papers : iterable of str
        Keys of all available papers.
    stamped : iterable of str
        Paths of the results whose provenance is written to the manifest.
    partial : bool
        True if papers may be missing; the manifest lists them.

    Raises
    ------
    InvalidInput
        If the run cannot serve as a reference. Nothing is written then.
    """
    run, folder = Path(run), Path(folder)
    missing = sorted(set(papers) - set(config["papers"]))
    require_citable(results, config, missing, partial=partial)
    frames = {
        name: rows_of(run / "data" / f"{name}.parquet")
        for name in [*results.facts, *results.tables]
    }
    frames |= {f"audit/{path.stem}": rows_of(path) for path in (run / "audit").glob("*.parquet")}
    for name, frame in frames.items():
        require_aggregates(name, frame)
    new = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    try:
        _write(results, run, new)
        _copy_audited_faults(folder, new)
        _copy_comparison(run, folder, new)
        stamps = {str(path): actual_stamp(path) for path in stamped}
        files = [path for path in new.rglob("*") if path.is_file()]
        content = manifest(
            scale=results.scale, commit=results.commit, config=config, missing=missing,
            cards=results.cards, timings=results.timings, files=checksums(files, new),
            stamps={path: {k: s[k] for k in ("settings", "code", "data") if k in s}
                    for path, s in stamps.items()},
        )  # fmt: skip
        write_json(new / "manifest.json", content)
        if (size := sum(path.stat().st_size for path in files)) > MAX_BYTES:
            raise InvalidInput("reference", f"{size} bytes", f"at most {MAX_BYTES} bytes in all")
        shutil.rmtree(folder, ignore_errors=True)
        new.replace(folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def require_citable(
    results: Results, config: Mapping[str, Any], missing: Iterable[str], *, partial: bool
) -> None:
    """Raise an error for a reduced run, surrogate data, or missing papers.

    Parameters
    ----------
    results : Results
        Results of the run.
    config : mapping
        Configuration of the run.
    missing : iterable of str
        Keys of missing papers.
    partial : bool
        True if papers may be missing.

    Raises
    ------
    InvalidInput
        If the run cannot serve as a reference.
    """
    missing = list(missing)
    if results.scale != "paper":
        raise InvalidInput("scale", results.scale, "paper: only a full run is a reference")
    if config.get("runs") is not None:
        raise InvalidInput("runs", config["runs"], "no key runs, for a reference")
    if surrogates := _surrogates(results):
        raise InvalidInput("data", surrogates, "real data: set data.mirror and run again")
    if missing and not partial:
        raise InvalidInput(
            "papers", f"without {', '.join(missing)}", "all papers, or `make publish PARTIAL=1`"
        )


def _surrogates(results: Results) -> str:
    """List the surrogate data sources of figures, tables, claims, privacy rows and data cards."""
    sources = [fact["source"] for fact in results.facts.values()]
    sources += [row.get("source") or "" for row in (*results.claims, *results.privacy)]
    sources += [s for frame in results.tables.values() for s in frame["source"].unique()]
    sources += [f"{card['dataset']} ({card['source']})" for card in results.cards]
    return "; ".join(surrogates_in(sources))


def require_aggregates(name: str, frame: pl.DataFrame) -> None:
    """Raise an error if a table could contain individual records.

    Parameters
    ----------
    name : str
        Name of the table in the message.
    frame : DataFrame
        Table to publish.

    Raises
    ------
    InvalidInput
        If a column identifies single records or runs, a column has lists or bytes, or there are
        more than :data:`MAX_ROWS` rows.
    """
    identifiers = sorted(IDENTIFIERS & set(frame.columns))
    nested = [
        column for column, kind in frame.schema.items() if kind.is_nested() or kind == pl.Binary
    ]
    if identifiers or nested:
        expected = "columns of aggregates, without identifiers and nested values"
        raise InvalidInput(f"{name}: columns", ", ".join(identifiers + nested), expected)
    if frame.height > MAX_ROWS:
        raise InvalidInput(f"{name}: rows", frame.height, f"at most {MAX_ROWS} rows of aggregates")


def _write(results: Results, run: Path, folder: Path) -> None:
    figures = [run / "figures" / f"{name}.svg" for name in results.facts]
    repairs = run / "audit" / f"{CORRECTIONS}.svg"
    for file in [*figures, *filter(Path.is_file, [repairs])]:
        svg = file.read_text(encoding="utf-8")
        write_text(folder / "figures" / file.name, small_svg(svg))
        with atomic_write(folder / "figures" / f"{file.stem}.png") as temporary:
            temporary.write_bytes(small_png(svg))
    for name in results.tables:
        for kind in TABLES:
            _copy(run / "tables" / f"{name}.{kind}", folder / "tables" / f"{name}.{kind}")
    for name in [*results.facts, *results.tables]:
        _copy(run / "data" / f"{name}.parquet", folder / "data" / f"{name}.parquet")
    audited = sorted(f"audit/{path.stem}" for path in (run / "audit").glob("*.parquet"))
    theorems = ["theorems"] if results.theorems else []
    for name in ("claims", "privacy", *theorems, *audited):
        _copy(run / f"{name}.parquet", folder / f"{name}.parquet")
        if name not in LONG_TABLES:
            text = csv(rows_of(run / f"{name}.parquet"))
            write_text(folder / f"{name}.csv", text)
        elif (run / f"{name}.csv").is_file():
            _copy(run / f"{name}.csv", folder / f"{name}.csv")
    for name, text in scorecard.files(scorecard.scored(results)).items():
        write_text(folder / name, text)
    write_text(folder / "README.md", gallery(results))


def _copy_audited_faults(old: Path, new: Path) -> None:
    """Copy the audits and tests of faults from the old reference if they were not run again."""
    if (old / FAULTS).is_file():
        _copy(old / FAULTS, new / FAULTS)
    for kind in ("parquet", "csv"):
        old_file, new_file = (folder / "audit" / f"mutants.{kind}" for folder in (old, new))
        if old_file.is_file() and not new_file.exists():
            _copy(old_file, new_file)


def _copy_comparison(run: Path, old: Path, new: Path) -> None:
    """Copy the comparison of this run, or of the old reference if it was not run again."""
    source = next((f for f in (run, old) if (f / COMPARED / "answers.json").is_file()), None)
    if source is None:
        return
    for name in ("answers.json", "cells.json", "runs.parquet", "published.json"):
        if (source / COMPARED / name).is_file():
            _copy(source / COMPARED / name, new / COMPARED / name)
    if source == run:
        today = datetime.now(UTC).date().isoformat()
        write_json(new / COMPARED / "published.json", {"date": today})


def small_png(svg: str) -> bytes:
    """Render a figure as PNG of :data:`WIDTH` pixels."""
    return png_of(svg, WIDTH / svg_size(svg).get("width", WIDTH))


def gallery(results: Results) -> str:
    """Format the counts of the scorecard and all figures as Markdown, with relative links."""
    introduction = (
        f"Results of commit `{results.commit}` at the scale of the papers, on real data. "
        "`manifest.json` lists versions, data and machine; `scorecard.md` lists the verdicts."
    )
    lines = ["# Reference results", "", introduction, ""]
    lines += [f"- {c['verdict']}: {c['count']} ({c['count_after_holm']} after Holm's adjustment)"
              for c in scorecard.counts(scorecard.scored(results))]  # fmt: skip
    for paper in results.papers.values():
        lines += [
            "",
            f"## {' '.join(filter(None, (paper['paper']['number'], paper['paper']['title'])))}",
        ]
        for name, spec in paper["figures"].items():
            title = spec["title"].replace("[", "(").replace("]", ")")
            lines += ["", f"### {title}", "",
                      f"[![{title}](figures/{name}.png)](figures/{name}.svg)", "",
                      f"`snakemake --cores 2 {name}`"]  # fmt: skip
    return "\n".join(lines) + "\n"


def _copy(source: Path, target: Path) -> None:
    with atomic_write(target) as temporary:
        shutil.copyfile(source, temporary)
