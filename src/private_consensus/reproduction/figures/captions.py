"""Notes below the title of a figure: coinciding curves, and the explanation of the marks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from private_consensus.common.symbols import typeset

from .figure_styles import MARKS

if TYPE_CHECKING:
    from .curves import Panel

ON, ABOVE, BELOW = "on the axis", "above the axis", "below the axis"
"""Places of values."""

MAX_DISTANCE = 0.004
"""Largest distance of coinciding curves, as a fraction of the axis: less than the line width."""
MAX_GROUPS = 2
"""Largest number of groups in the note."""


def marks(numbers: pl.DataFrame, *, beyond: bool) -> str:
    """Explain the marks of a figure; ``beyond`` states that values lie beyond an axis."""
    guarantees = set(numbers["guarantee"])
    notes = [" ".join(mark) for guarantee, mark in MARKS.items() if guarantee in guarantees]
    return "; ".join([*notes, *(["▲ ▼ 0, ∞ or a value beyond the axis"] * beyond)])


def coinciding(panels: Sequence[Panel]) -> str:
    """Return the note that names coinciding curves; empty if there are none."""
    panels_of_group: dict[tuple[str, ...], list[str]] = {}
    for panel in panels:
        for group in coinciding_groups(panel):
            panels_of_group.setdefault(tuple(group), []).append(typeset(panel.spec["title"]))
    clauses = [_clause(group, titles, len(panels)) for group, titles in panels_of_group.items()]
    omitted = f"; and {len(clauses) - MAX_GROUPS} more" if len(clauses) > MAX_GROUPS else ""
    return f"coinciding curves: {'; '.join(clauses[:MAX_GROUPS])}{omitted}" if clauses else ""


def _clause(group: Sequence[str], titles: Sequence[str], panels: int) -> str:
    names = " and ".join(group) if len(group) < 4 else f"{group[0]} and {len(group) - 1} others"
    panel_title = titles[0] if len(titles) == 1 and panels > 1 else ""
    return f"{names} ({panel_title})" if panel_title else names


def coinciding_groups(panel: Panel) -> list[list[str]]:
    """Group the curves whose points are closer than the width of a line to those of the first."""
    groups: list[tuple[dict[float, float], list[str]]] = []
    for (name,), curve in panel.points.group_by("curve", maintain_order=True):
        on_axis = curve.filter(pl.col("place") == ON).drop_nulls("y").select("x", "y")
        line = {x: panel.y.place(y) for x, y in on_axis.iter_rows()}
        group = next((group for first, group in groups if _close(first, line)), None)
        if group is None:
            groups.append((line, [str(name)]))
        else:
            group.append(str(name))
    return [group for _, group in groups if len(group) > 1]


def _close(first: dict[float, float], second: dict[float, float]) -> bool:
    shared = first.keys() & second.keys()
    if len(shared) < max(2, 0.9 * min(len(first), len(second))):
        return False
    return all(abs(first[x] - second[x]) <= MAX_DISTANCE for x in shared)
