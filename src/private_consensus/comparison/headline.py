"""Headline: the budget below which local training is best, for each problem.

In each base cell, local training is best if it is the only method that may be best
(:mod:`.leaders`). All base cells share one level (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from private_consensus.common.multiplicity import ALPHA

from .gap import LOCAL
from .leaders import places
from .schema import CELL
from .tables import compared, cube

WINS, OPEN, BEATEN = "wins", "open", "beaten"
"""Outcomes of local training: only it may be best; others may be too; some method is better."""


class Alone(NamedTuple):
    """Outcome of local training for one problem, by budget in ascending order."""

    problem: str
    outcomes: list[tuple[float, str]]

    def until(self, *words: str) -> float | None:
        """Return the largest budget up to which every outcome is in ``words``, or None."""
        largest = None
        for epsilon, outcome in self.outcomes:
            if outcome not in words:
                break
            largest = epsilon
        return largest


def alone(
    table: pl.DataFrame,
    cells: Iterable[Mapping[str, Any]],
    tuning: str = "default",
    observer: str = "eavesdropper",
    measure: str = "excess_loss_mean",
) -> list[Alone]:
    """Return whether local training has the lowest loss, by problem and budget of the base cells.

    Parameters
    ----------
    table : DataFrame
        Results with the columns of :mod:`.schema`.
    cells : iterable of mappings
        Rows of ``cells.json``.
    tuning : str
        Kind of tuning.
    observer : str
        Observer of the ranking.
    measure : str
        Name of the loss.

    Returns
    -------
    list of Alone
    """
    base = {tuple(cell[key] for key in CELL) for cell in cells if cell["axis"] == "base"}
    losses = cube(compared(table, observer), measure, tuning)
    rows = [i for i, cell in enumerate(losses.cells) if cell in base]
    by_problem: dict[str, list[tuple[float, str]]] = {}
    for row in rows:
        ranked = places(losses.of_cell(row), ALPHA / len(rows))
        outcomes = by_problem.setdefault(losses.cells[row][0], [])
        outcomes.append(
            (losses.cells[row][-1], _outcome([p.method for p in ranked if p.may_be_best]))
        )
    return [Alone(problem, sorted(outcomes)) for problem, outcomes in by_problem.items()]


def _outcome(best: Sequence[str]) -> str:
    if LOCAL not in best:
        return BEATEN
    return WINS if len(best) == 1 else OPEN


def sentences(outcomes: Sequence[Alone], titles: Mapping[str, str]) -> list[str]:
    """Return the sentence of the headline, and the sentences below it.

    Parameters
    ----------
    outcomes : sequence of Alone
        Outcomes by problem.
    titles : mapping
        Titles of the problems.

    Returns
    -------
    list of str
    """
    if not outcomes:
        return ["Nothing has been compared."]
    wins = [(outcome, outcome.until(WINS)) for outcome in outcomes]
    winners = [
        (titles.get(outcome.problem, outcome.problem), e) for outcome, e in wins if e is not None
    ]
    if winners:
        listed = ", ".join(f"{title} (ε ≤ {epsilon:g})" for title, epsilon in winners)
        extent = (
            "on every problem"
            if len(winners) == len(outcomes)
            else f"on {len(winners)} of {len(outcomes)}"
        )
        lines = [f"Below some ε it is best to train alone {extent}: {listed}."]
    else:
        lines = ["At no ε of the base cells is it shown that training alone is best."]
    unbeaten = [
        f"{titles.get(outcome.problem, outcome.problem)} (ε ≤ {end:g})"
        for outcome, start in wins
        if (end := outcome.until(WINS, OPEN)) is not None and end != start
    ]
    if unbeaten:
        lines.append(f"No method is shown to beat it either on {', '.join(unbeaten)}.")
    beaten = [
        titles.get(outcome.problem, outcome.problem)
        for outcome in outcomes
        if outcome.outcomes and outcome.outcomes[0][1] == BEATEN
    ]
    if beaten:
        lines.append(f"Talking pays at every ε from the smallest on: {', '.join(beaten)}.")
    return lines
