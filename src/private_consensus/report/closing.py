"""Compose the last lines of a run: the path of the report, and the surrogate data sets."""

from __future__ import annotations

from pathlib import Path

from private_consensus.reproduction.datasets.acquisition import read_provenance

REAL_DATA_HINT = (
    "To use real data, set a mirror (make reproduce MIRROR=folder) or connect to the internet."
)


def closing_lines(results: str | Path) -> list[str]:
    """Return the lines that are printed at the end of a run.

    Parameters
    ----------
    results : path
        Folder of a scale, such as ``results/paper``.

    Returns
    -------
    list of str
        Path of the report if it exists, one line with the reason per surrogate data set, and, if
        there are surrogates, how to use real data.
    """
    results = Path(results)
    page = results / "report" / "index.html"
    lines = [f"Report: {page}"] if page.is_file() else []
    provenances = map(read_provenance, sorted((results / "raw").glob("*.provenance.json")))
    surrogates = [
        f"{provenance.dataset} is SURROGATE DATA: {provenance.because}"
        for provenance in provenances
        if provenance.is_surrogate
    ]
    return [*lines, *surrogates, REAL_DATA_HINT] if surrogates else lines
