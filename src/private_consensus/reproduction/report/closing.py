"""The last lines of a run: the path of the report, and the surrogate data sets."""

from __future__ import annotations

from pathlib import Path

from ..datasets.acquisition import read_provenance

FOR_REAL_DATA = "To use real data, name a mirror (make reproduce MIRROR=folder) or go online."


def closing_lines(results: str | Path) -> list[str]:
    """Return the lines that are printed at the end of a run.

    Parameters
    ----------
    results : path
        Folder of a scale, such as ``results/paper``.

    Returns
    -------
    list of str
        Path of the report if it exists, one line with a reason per surrogate, and a line on real
        data if there are surrogates.
    """
    results = Path(results)
    page = results / "report" / "index.html"
    lines = [f"Report: {page}"] if page.is_file() else []
    files = sorted((results / "raw").glob("*.provenance.json"))
    surrogates = [
        provenance for provenance in map(read_provenance, files) if provenance.is_surrogate
    ]
    lines += [
        f"{provenance.dataset} is SURROGATE DATA: {provenance.because}" for provenance in surrogates
    ]
    return [*lines, FOR_REAL_DATA] if surrogates else lines
