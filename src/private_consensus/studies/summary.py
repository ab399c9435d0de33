"""What a study found, as one page of Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..experiments.results import rows_of
from ..spreadsheets import markdown

CLAIMS = ("claim", "verdict", "statistic", "value", "low", "high", "runs")
PRIVACY = ("experiment", "algorithm", "variant", "epsilon_claimed", "epsilon_formula",
           "epsilon_accountant", "epsilon_lower", "delta", "relation", "verdict")  # fmt: skip
AUDITS = ("experiment", "algorithm", "variant", "setting", "claimed", "bound", "runs", "flagged",
          "findings")  # fmt: skip


def summary(
    figures: Iterable[str], tables: Iterable[str], claims: Iterable[str], privacy: Iterable[str],
    audits: Iterable[str],
) -> str:  # fmt: skip
    """Markdown: which figures and tables there are, and rows of claims, privacy and audits.

    Parameters
    ----------
    figures, tables : iterable of str
        Their files; several of one figure are one line.
    claims, privacy, audits : iterable of str
        Parquet files with their rows.

    Returns
    -------
    str
        A page with a section for each of these of which there is any.
    """
    parts = [
        ("Figures and tables", _names([*figures, *tables])),
        ("Claims", _table(claims, CLAIMS)),
        ("Privacy", _table(privacy, PRIVACY)),
        ("Audits", _table(audits, AUDITS)),
    ]
    return "\n".join(f"## {title}\n\n{text}" for title, text in parts if text)


def _names(files: Iterable[str]) -> str:
    kinds: dict[Path, list[str]] = {}
    for path in map(Path, files):
        kinds.setdefault(path.with_suffix(""), []).append(path.suffix)
    return "".join(f"- `{stem}` ({', '.join(found)})\n" for stem, found in kinds.items())


def _table(files: Iterable[str], columns: Sequence[str]) -> str:
    rows = [row for path in files for row in rows_of(path).to_dicts()]
    if not rows:
        return ""
    lines = [
        f"| {' | '.join(name.replace('_', ' ') for name in columns)} |",
        "|---" * len(columns) + "|",
    ]
    lines += [f"| {' | '.join(_cell(row.get(name)) for name in columns)} |" for row in rows]
    return "\n".join(lines) + "\n"


def _cell(value: Any) -> str:
    if value is None or value == "":
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else markdown(str(value))
