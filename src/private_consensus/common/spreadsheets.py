"""Tables as text that a spreadsheet or a page of Markdown shows and does not execute."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import polars as pl

FORMULA = r"^[=+\-@\t\r]"
"""How a cell begins that a spreadsheet computes instead of showing it."""
MARKS = re.compile(r"([\\`*_\[\]<>|&])")


def csv(frame: pl.DataFrame) -> str:
    """CSV in which words that would be formulas begin with an apostrophe; numbers stay."""
    words = [pl.col(name) for name, kind in frame.schema.items() if kind == pl.String]
    escaped = [
        pl.when(word.str.contains(FORMULA)).then(pl.lit("'") + word).otherwise(word).name.keep()
        for word in words
    ]
    titles = {name: f"'{name}" for name in frame.columns if re.match(FORMULA, name)}
    return frame.with_columns(escaped).rename(titles).write_csv()


def markdown_table(titles: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """Format a Markdown table.

    Parameters
    ----------
    titles : sequence of str
        Heads of the columns.
    rows : iterable of iterable of str
        Cells, with marks that :func:`markdown` has escaped.

    Returns
    -------
    str
        Lines of the table, each with a line end.
    """
    lines = [titles, ["---"] * len(titles), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def markdown(text: str) -> str:
    """Text for a cell of a Markdown table: one line, of which nothing is a mark or a tag."""
    return MARKS.sub(r"\\\1", " ".join(text.split()))


def code(text: str) -> str:
    """Text for a cell of a Markdown table, shown as code."""
    return f"`{' '.join(text.split()).replace('`', chr(39)).replace('|', chr(92) + '|')}`"
