"""Test statements of the papers."""

from __future__ import annotations

from argparse import Namespace

from .describing import summary_of
from .output import emit, progress, table


def counterexample(options: Namespace) -> None:
    """Print a computed counter-example, or the list of all counter-examples."""
    from ..reproduction.statements.counterexamples import COMPUTATIONS, compute

    if options.id is None:
        rows = {erratum: summary_of(computation) for erratum, computation in COMPUTATIONS.items()}
        emit(options, rows, table(["counterexample", "computation"], list(rows.items())))
        return
    with progress(f"counterexample {options.id}"):
        result = compute(options.id)
    contents = {"id": options.id, **vars(result)}
    numbers = f"{result.claimed:.4g} according to the paper, {result.computed:.4g} computed"
    lines = [result.description, f"{result.quantity}: {numbers}", f"{options.id}: {result.outcome}"]
    emit(options, contents, *lines)


def theorem(options: Namespace) -> None:
    """Print the test of a numbered statement."""
    from ..reproduction.statements import compute

    with progress(f"theorem {options.computation}"):
        result = compute(options.computation)
    lines = [result.description, *map(str, result.parts)]
    contents = {
        "computation": options.computation,
        "parts": [
            {key: getattr(inequality, key) for key in ("quantity", "stated", "measured", "holds")}
            for inequality in result.parts
        ],
        "description": result.description,
        "verdict": result.verdict,
    }
    emit(options, contents, *lines, f"{options.computation}: {result.verdict}")
