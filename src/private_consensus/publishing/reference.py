"""Write the reference results: figures, tables, claims, audits and a manifest."""

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from private_consensus.common.errors import require
from private_consensus.common.provenance import checksums, write_json, write_text
from private_consensus.common.spreadsheets import csv, markdown, markdown_table
from private_consensus.common.symbols import typeset
from private_consensus.report.reading import Results, surrogates_in
from private_consensus.report.site import copy
from private_consensus.report.views import scorecard, verdicts
from private_consensus.reproduction.results.files import rows_of

from .manifest import manifest, wall_seconds

MAX_BYTES = 25_000_000
"""Largest size of the folder of reference results."""
LONG_TABLE = "privacy"
"""Table with thousands of rows, which is not converted to CSV."""
DRAWINGS, TABLES = ("svg", "png"), ("csv", "md")
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
) -> None:
    """Write the reference results of a run, ``results/<scale>``, and replace earlier ones.

    A run that cannot serve as a reference, for example without one of the ``papers``, raises
    ``InvalidInput``, and nothing is written.
    """
    run, folder = Path(run), Path(folder)
    require_citable(results, config, papers)
    for name in [*results.facts, *results.tables]:
        require_aggregates(name, rows_of(run / "data" / f"{name}.parquet"))
    for path in (run / "audit").glob("*.parquet"):
        require_aggregates(f"audit/{path.stem}", rows_of(path))
    new = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    try:
        _write(results, run, new)
        if results.comparison:
            shutil.copytree(results.comparison, new / "comparison")
        files = [path for path in new.rglob("*") if path.is_file()]
        seconds = wall_seconds(run / "logs")
        content = manifest(results, config, seconds=seconds, files=checksums(files, new))
        write_json(new / "manifest.json", content)
        size = sum(path.stat().st_size for path in files)
        expected = f"at most {MAX_BYTES} bytes in all"
        require(size <= MAX_BYTES, "reference", f"{size} bytes", expected)
        shutil.rmtree(folder, ignore_errors=True)
        new.replace(folder)
    finally:
        shutil.rmtree(new, ignore_errors=True)


def require_citable(results: Results, config: Mapping[str, Any], papers: Iterable[str]) -> None:
    """Raise ``InvalidInput`` for a reduced run, surrogate data, or papers that are missing."""
    scale, runs, surrogates = results.scale, config.get("runs"), _surrogates(results)
    require(scale == "paper", "scale", scale, "paper: only a full run is a reference")
    require(runs is None, "runs", runs, "no key runs, for a reference")
    require(not surrogates, "data", surrogates, "real data: set data.mirror and run again")
    missing = ", ".join(sorted(set(papers) - set(config["papers"])))
    require(not missing, "papers", f"without {missing}", "all papers")


def _surrogates(results: Results) -> str:
    """List the surrogate data sources of figures, tables, claims, privacy rows and data cards."""
    rows = (*results.facts.values(), *results.claims, *results.privacy)
    sources = [row.get("source") or "" for row in rows]
    sources += [s for frame in results.tables.values() for s in frame["source"].unique()]
    sources += [f"{card['dataset']} ({card['source']})" for card in results.cards]
    return "; ".join(surrogates_in(sources))


def require_aggregates(name: str, frame: pl.DataFrame) -> None:
    """Raise ``InvalidInput`` if a table could contain individual records.

    That is a column that identifies single records or runs, a column of lists or bytes, or more
    than :data:`MAX_ROWS` rows.
    """
    identifiers = sorted(IDENTIFIERS & set(frame.columns))
    nested = [
        column for column, kind in frame.schema.items() if kind.is_nested() or kind == pl.Binary
    ]
    columns = ", ".join(identifiers + nested)
    expected = "columns of aggregates, without identifiers and nested values"
    require(not columns, f"{name}: columns", columns, expected)
    expected = f"at most {MAX_ROWS} rows of aggregates"
    require(frame.height <= MAX_ROWS, f"{name}: rows", frame.height, expected)


def _write(results: Results, run: Path, folder: Path) -> None:
    audited = [f"audit/{path.stem}" for path in (run / "audit").glob("*.parquet")]
    tables = ["claims", "privacy", *(["statements"] if results.statements else []), *audited]
    names = [f"figures/{name}.{kind}" for name in results.facts for kind in DRAWINGS]
    names += [f"audit/{file.name}" for kind in DRAWINGS for file in run.glob(f"audit/*.{kind}")]
    names += [f"tables/{name}.{kind}" for name in results.tables for kind in TABLES]
    names += [f"data/{name}.parquet" for name in (*results.facts, *results.tables)]
    for name in (*names, *(f"{name}.parquet" for name in tables)):
        copy(run / name, folder / name)
    for name in tables:
        if name != LONG_TABLE:
            # The text of all elements of a claim has 13 kB per row.
            rows = rows_of(run / f"{name}.parquet").drop("elements", strict=False)
            write_text(folder / f"{name}.csv", csv(rows))
    for name, text in scorecard.files(scorecard.scored(results)).items():
        write_text(folder / name, text)
    write_text(folder / "README.md", gallery(results))


def gallery(results: Results) -> str:
    """Format the counts of the scorecard and the papers' figures with captions as Markdown.

    Added figures are listed without a picture.
    """
    counts = verdicts.counts(scorecard.scored(results))
    lines = [
        "# Reference results", "",
        f"Results of commit `{results.commit}` at the scale of the papers, on real data. Claims: "
        + ", ".join(f"{c['count']} {c['verdict']}" for c in counts)
        + ". [All verdicts](scorecard.md), [versions, data and machine](manifest.json).",
    ]  # fmt: skip
    for key, paper in results.papers.items():
        rows = [
            (f'<a href="figures/{name}.svg"><img src="figures/{name}.png" width="260" alt=""></a>',
             f"**{markdown(typeset(spec['title']))}.** {markdown(typeset(spec['caption']))} "
             f"[Numbers](data/{name}.parquet); `snakemake --cores 2 {name}`")
            for name, spec in paper["figures"].items() if not spec["added"]
        ]  # fmt: skip
        added = [
            f"[{markdown(typeset(spec['title']))}](figures/{name}.svg)"
            for name, spec in paper["figures"].items()
            if spec["added"]
        ]
        lines += ["", f"## {results.names[key]}: {paper['paper']['title']}", ""]
        lines += [markdown_table(("Figure", "Caption"), rows)] if rows else []
        lines += [f"In addition: {'; '.join(added)}."] if added else []
    return "\n".join(lines) + "\n"
