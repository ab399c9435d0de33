"""Read the results of a run from its files, for the pages of the report."""

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from private_consensus.common.provenance import versions
from private_consensus.common.readable import read_json
from private_consensus.reproduction.configuration.schema import cited
from private_consensus.reproduction.data.raw import read_provenance
from private_consensus.reproduction.results.files import provenance_of, rows_of

Row = Mapping[str, Any]
UNKNOWN_COMMIT = "unknown"
REAL_DATA_HINT = (
    "To use real data, set a mirror (make reproduce MIRROR=folder) or connect to the internet."
)
REFERENCE = "reference"
"""Folder of the published results."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Results:
    """All results that the report shows, at one scale.

    Objects are hashed by identity, so that functions of the results can be cached.

    Parameters
    ----------
    papers : mapping
        Key to a paper, dumped from :class:`~.reproduction.configuration.schema.Paper`.
    claims, privacy, statements : list of rows
        Rows of the Parquet files with these names.
    facts : mapping
        Figure to its data source and range of numbers of runs, ``source`` and ``runs``.
    tables : mapping
        Table to its numbers.
    cards : list of rows
        Cards of the prepared data.
    audit : mapping
        Rows of the tables in ``audit``, by name: ``audits``, ``observers`` and ``repairs``.
    labels : mapping
        ``algorithm.variant`` to the label of its curves.
    comparison : Path, optional
        Folder of the published comparison of methods.
    is_reference : bool
        True for the published reference, which has no PDF files.
    commit, versions
        Commit and library versions; they may differ between runs with equal results.
    """

    scale: str
    papers: Mapping[str, Row]
    claims: Sequence[Row]
    privacy: Sequence[Row]
    facts: Mapping[str, Row]
    tables: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    cards: Sequence[Row] = field(default_factory=list)
    audit: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    statements: Sequence[Row] = field(default_factory=list)
    labels: Mapping[str, str] = field(default_factory=dict)
    comparison: Path | None = None
    is_reference: bool = False
    seed: int | None = None
    commit: str = UNKNOWN_COMMIT
    versions: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def paper_of(self) -> dict[str, str]:
        """Return the key of the paper of each experiment."""
        return {name: key for key, paper in self.papers.items() for name in paper["experiments"]}

    @cached_property
    def experiments(self) -> dict[str, Row]:
        """Return all experiments by name."""
        return {k: v for paper in self.papers.values() for k, v in paper["experiments"].items()}

    @cached_property
    def names(self) -> dict[str, str]:
        """Return the citation of each paper by key."""
        return {key: cited(paper["paper"]) for key, paper in self.papers.items()}


def read_results(plan: Row, files: Any, *, scale: str, commit: str) -> Results:
    """Read the results from the files of the workflow.

    Parameters
    ----------
    plan : mapping
        Content of ``plan.json``: ``papers``, ``labels`` and the configuration ``config``.
    files : mapping or Namedlist of Snakemake
        Paths by kind: ``claims``, ``privacy``, ``numbers`` (one per figure), and ``cards`` (JSON);
        optionally ``tables``, ``audit``, ``statements`` and ``compared``.
    """
    statements, compared = files.get("statements"), files.get("compared")
    return Results(
        scale=scale,
        papers=plan["papers"],
        labels=plan["labels"],
        commit=commit,
        versions=versions(),
        seed=plan["config"]["seed"],
        claims=rows_of(files["claims"]).to_dicts(),
        privacy=rows_of(files["privacy"]).to_dicts(),
        facts={Path(path).stem: figure_facts(path) for path in files["numbers"]},
        tables={Path(path).stem: rows_of(path) for path in files.get("tables", ())},
        cards=[read_json(path) for path in sorted(set(files["cards"]))],
        audit={Path(path).stem: rows_of(path).to_dicts() for path in files.get("audit", ())},
        statements=rows_of(statements).to_dicts() if statements else [],
        comparison=Path(compared[0]).parent if compared else None,
    )


def figure_facts(path: str | Path) -> dict[str, Any]:
    """Return data source and range of numbers of runs of a figure."""
    counts = [count for count in rows_of(path)["runs"] if count is not None] or [0]
    return {"source": provenance_of(path)["source"], "runs": (min(counts), max(counts))}


def surrogates_in(sources: Iterable[str]) -> list[str]:
    """List the surrogate data that descriptions of sources name, without duplicates."""
    origins = [origin for source in sources for origin in source.split("; ")]
    return list(dict.fromkeys(origin for origin in origins if "surrogate" in origin))


def described_commit(folder: str | Path) -> str:
    """Describe the commit of a repository (``git describe``); ``unknown`` without a commit."""
    call = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(call, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return UNKNOWN_COMMIT
    return done.stdout.strip() or UNKNOWN_COMMIT


def closing_lines(results: str | Path, provenances: Iterable[str | Path] = ()) -> list[str]:
    """Return the path of the report, the surrogate data sets with reasons, and how to replace them.

    ``provenances`` are the files of the data sets that the requested results use.
    """
    results = Path(results)
    page = results / "report" / "index.html"
    lines = [f"Report: {page}"] if page.is_file() else []
    surrogates = [
        f"{provenance.dataset} is SURROGATE DATA: {provenance.because}"
        for provenance in map(read_provenance, sorted(set(provenances)))
        if provenance.is_surrogate
    ]
    return [*lines, *surrogates, REAL_DATA_HINT] if surrogates else lines
