"""Remove decisions from the answers of a comparison that was run at a reduced scale."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from private_consensus.reproduction.claims import UNDECIDED, UNTESTABLE

Answers = Mapping[str, Any]

WITHOUT_VERDICT = {"verdict": UNDECIDED, "verdict_alone": UNDECIDED, "answer": UNDECIDED}
"""Replaced entries of a question: its verdicts and its answer."""
DECISIONS = ("may_be_best", "behind_low")
"""Columns of a ranking that decide between methods; they are set to None."""


def scale_notice(scale: str) -> str:
    """Return the notice that results of a reduced scale decide no claim."""
    return (
        f"The {scale} scale decides no claim: it tests the workflow, with fewer runs and shorter "
        "grids than the papers."
    )


def without_decisions(answers: Answers, scale: str) -> dict[str, object]:
    """Return the answers with numbers but without verdicts, best methods and recommendations.

    Parameters
    ----------
    answers : mapping
        Content of ``answers.json``.
    scale : str
        Name of the scale.

    Returns
    -------
    dict
        A copy in which each question with a test is undecided, no method is marked as possibly
        best, and no sentence recommends a method.
    """
    changes = {
        "headline": lambda _: [scale_notice(scale)],
        "learned": lambda _: [],
        "advice": lambda rows: [
            row if row["verdict"] == UNTESTABLE else {**row, **WITHOUT_VERDICT} for row in rows
        ],
        "ranks": _ranks,
        "problems": lambda problems: _problems(problems, answers),
    }
    return {key: changes.get(key, lambda value: value)(value) for key, value in answers.items()}


def _ranks(ranks: Answers) -> dict[str, object]:
    """Remove the result of the test that separates methods, and its p-value."""
    return {
        observer: {
            tuning: {
                key: {**ranking, "indistinguishable": [], "p": None}
                for key, ranking in columns.items()
            }
            for tuning, columns in by_tuning.items()
        }
        for observer, by_tuning in ranks.items()
    }


def _problems(problems: Answers, answers: Answers) -> dict[str, object]:
    """Set the decisions of each row of each ranking to None."""
    columns = [i for i, name in enumerate(answers.get("place", ())) if name in DECISIONS]
    return {
        problem: [_cell(cell, answers.get("observers", ()), columns) for cell in cells]
        for problem, cells in problems.items()
    }


def _cell(cell: Answers, observers: Collection[str], columns: list[int]) -> dict[str, object]:
    """Set columns, named by their indices, to None in all rankings of one cell."""
    return {
        key: {
            name: [[None if i in columns else x for i, x in enumerate(row)] for row in rows]
            if name in observers else rows
            for name, rows in tuned.items()
        } if isinstance(tuned, Mapping) else tuned
        for key, tuned in cell.items()
    }  # fmt: skip
