"""The last lines of a run: where the report is, and which data are not the real ones."""

from __future__ import annotations

from pathlib import Path

from ..datasets.acquisition import read_provenance

FOR_REAL_DATA = "for real data name a mirror (make reproduce MIRROR=folder) or allow the internet"


def closing_lines(results: str | Path) -> list[str]:
    """Return the lines that are printed at the end of a run.

    Parameters
    ----------
    results : path
        Folder of a scale, such as ``results/paper``.

    Returns
    -------
    list of str
        The report's place if there is one; a line for each surrogate with its reason, and one that
        says what to do about them.
    """
    results = Path(results)
    page = results / "report" / "index.html"
    lines = [f"The report is {page}"] if page.is_file() else []
    files = sorted((results / "raw").glob("*.provenance.json"))
    surrogates = [one for one in map(read_provenance, files) if one.is_surrogate]
    lines += [f"{one.dataset} is a SURROGATE: {one.because}" for one in surrogates]
    return [*lines, FOR_REAL_DATA] if surrogates else lines
