"""Write tables as CSV or Markdown, with formulas and markup in their cells escaped."""

import re
from collections.abc import Iterable, Sequence

import polars as pl

FORMULA = r"^[=+\-@\t\r]"
"""Beginning of a cell that a spreadsheet program interprets as a formula."""
MARKS = re.compile(r"([\\`*_\[\]<>|&])")


def csv(frame: pl.DataFrame) -> str:
    """Format a table as CSV, with an apostrophe before texts that would be formulas."""
    escaped = pl.col(pl.String).str.replace(FORMULA, "'${0}")
    titles = {name: f"'{name}" for name in frame.columns if re.match(FORMULA, name)}
    return frame.with_columns(escaped).rename(titles).write_csv()


def markdown_table(titles: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """Format a Markdown table with cells that :func:`markdown` has escaped."""
    lines = [titles, ["---"] * len(titles), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def markdown(text: str) -> str:
    """Format a text for a cell of a Markdown table: one line with escaped markup."""
    return MARKS.sub(r"\\\1", " ".join(text.split()))


def code(text: str) -> str:
    """Format a text for a cell of a Markdown table as code."""
    return f"`{' '.join(text.split()).replace('`', chr(39)).replace('|', chr(92) + '|')}`"
