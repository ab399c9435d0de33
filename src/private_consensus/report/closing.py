"""Compose the last lines of a run: the path of the report, and the surrogate data sets."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from private_consensus.reproduction.datasets.acquisition import read_provenance

REAL_DATA_HINT = (
    "To use real data, set a mirror (make reproduce MIRROR=folder) or connect to the internet."
)


def closing_lines(results: str | Path, provenances: Iterable[str | Path] = ()) -> list[str]:
    """Return the lines that are printed at the end of a run.

    They are the path of the report if it exists, one line with the reason per surrogate data set,
    and, if there are surrogates, how to use real data. ``provenances`` are the files of the data
    sets that the requested results use; the folder can contain those of earlier runs as well.
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
