"""Write the page of a study in Markdown: figures, claims, privacy with verdicts, and audits."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from private_consensus.common.spreadsheets import markdown, markdown_table
from private_consensus.privacy.verdicts import DIFFERS

from ..audits.table import judged
from ..claims import adjusted
from ..claims.statements import RATIO_TESTS
from ..results.files import read_all
from ..statements.table import Erratum

CLAIMS = ("claim", "verdict", "statistic", "value", "low", "high", "runs")
PRIVACY = ("experiment", "algorithm", "variant", "epsilon_claimed", "epsilon_formula",
           "epsilon_accountant", "epsilon_lower", "epsilon_empirical", "delta", "relation",
           "verdict", "audit_verdict", "audit_findings")  # fmt: skip
AUDITS = ("experiment", "algorithm", "variant", "setting", "level", "claimed", "declared",
          "reached", "pairs", "agents", "iterations", "verdict", "reason")  # fmt: skip


def summary(
    figures: Iterable[str], tables: Iterable[str], claims: Iterable[str], privacy: Iterable[str],
    audits: Iterable[str], *, errata: Mapping[str, Erratum],
) -> str:  # fmt: skip
    """Return the page with files of figures and tables, and rows of claims, privacy and audits.

    The files of one figure share one line. The verdict of a privacy row combines accountant, lower
    bound and audits, as in the privacy table of the report.
    """
    audited = read_all(audits).to_dicts()
    settings = judged(read_all(privacy), errata, audited).to_dicts()
    sections = [
        ("Figures and tables", _names([*figures, *tables]) + _differing(settings)),
        ("Claims", _table(_ratios(adjusted(read_all(claims))).to_dicts(), CLAIMS)),
        ("Privacy", _table(settings, PRIVACY)),
        ("Audits", _table(audited, AUDITS)),
    ]
    return "\n".join(f"## {title}\n\n{text}" for title, text in sections if text)


def findings(audits: Iterable[str]) -> list[str]:
    """Return one line per audit that contradicts a privacy claim."""
    return [
        f"{row['experiment']}, {row['algorithm']}.{row['variant']}, {row['setting']}: "
        f"{row['verdict']}: {row['reason']}"
        for row in read_all(audits).to_dicts()
        if row["flagged"]
    ]


def _ratios(claims: pl.DataFrame) -> pl.DataFrame:
    """Convert logarithms of ratios to ratios."""
    is_ratio = pl.col("kind").is_in(RATIO_TESTS)
    numbers = ("value", "low", "high")
    return claims.with_columns(
        pl.when(is_ratio).then(pl.col(n).exp()).otherwise(n).alias(n) for n in numbers
    )


def _differing(settings: Iterable[Mapping[str, Any]]) -> str:
    """Return a warning about algorithms that differ from their declaration.

    The figures of these algorithms do not show this finding.
    """
    names = dict.fromkeys(row["algorithm"] for row in settings if row["verdict"] == DIFFERS)
    if not names:
        return ""
    listed = ", ".join(map(markdown, names))
    return f"\nFigures state no guarantee for {listed}: the execution {DIFFERS}.\n"


def _names(files: Iterable[str]) -> str:
    """Return a list of files, with one line per name and its suffixes."""
    kinds: dict[Path, list[str]] = {}
    for path in map(Path, files):
        kinds.setdefault(path.with_suffix(""), []).append(path.suffix)
    return "".join(f"- `{stem}` ({', '.join(suffixes)})\n" for stem, suffixes in kinds.items())


def _table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Return some columns of rows as a Markdown table, empty without rows."""
    if not rows:
        return ""
    titles = [name.replace("_", " ") for name in columns]
    return markdown_table(titles, ([_cell(row.get(name)) for name in columns] for row in rows))


def _cell(value: Any) -> str:
    """Return a value as text of a Markdown table, "-" if it is missing."""
    if value is None or value == "":
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else markdown(str(value))
