"""Test statements of the papers."""

from __future__ import annotations

from argparse import Namespace

from .describing import summary_of
from .output import emit, progress, table


def statement(options: Namespace) -> None:
    """Print the inequalities of a statement with their errata, or the list of all statements."""
    from ..reproduction.statements import COMPUTATIONS, compute, description_of

    if options.computation is None:
        rows = {name: summary_of(computation) for name, computation in COMPUTATIONS.items()}
        emit(options, rows, table(["statement", "computation"], list(rows.items())))
        return
    with progress(f"statement {options.computation}"):
        inequalities = compute(options.computation)
    keys = ("quantity", "stated", "measured", "holds", "role", "erratum")
    contents = {
        "computation": options.computation,
        "parts": [{key: getattr(inequality, key) for key in keys} for inequality in inequalities],
        "description": description_of(options.computation),
    }
    emit(options, contents, contents["description"], *map(str, inequalities))
