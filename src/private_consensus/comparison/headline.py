"""Headline of the comparison, computed from its results.

It states on how many problems a baseline without private data has a lower mean loss than every
private method (:func:`ahead_of_private`). The other sentences (:func:`sentences`) state in how many
cells the budget is too small if it covers the tuning, which methods have the lowest mean rank in
the other cells, for each kind of tuning, and where local training is best. In a base cell, local
training is best if it is the only private method that may be best (:mod:`.statistics`). All base
cells share one level (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import polars as pl

from private_consensus.common.multiplicity import ALPHA

from .ranks import Ranking
from .schema import ANYONE, OBSERVERS, PRIMARY
from .statistics import LOCAL, methods_by_mean
from .tables import Cube, base_cells, compared, cube, remaining

PHRASES = {
    "tuned_paid": "If tuning is counted in the budget",
    "tuned": "If the best parameters were known",
    "transferred": "With parameters from other problems and without public records",
}
"""Condition of a kind of tuning, as a sentence states it."""

BASELINE = " (baseline without private data)"
"""Suffix of the title of a baseline."""

WINS, OPEN, BEATEN = "wins", "open", "beaten"
"""Outcomes of local training: only it may be best; others may be too; some method is better."""


def ahead_of_private(
    losses: Cube, baselines: Collection[str], design: Mapping[str, Any]
) -> list[str]:
    """State on how many problems a baseline has a lower mean loss than every private method.

    Parameters
    ----------
    losses : Cube
        Losses of the private methods and the baselines, with the primary tuning.
    baselines : collection of str
        Names of the baselines.
    design : mapping
        Content of ``cells.json``; its base cells are counted.

    Returns
    -------
    list of str
        One sentence; none without such a base cell.
    """
    base = base_cells(design["cells"])
    best_by_budget: dict[float, list[str]] = {}
    for i, cell in enumerate(losses.cells):
        if cell in base:
            means = {name: runs.mean() for name, runs in losses.of_cell(i).items()}
            best_by_budget.setdefault(cell[-1], []).append(min(means, key=means.__getitem__))
    best = set(chain(*best_by_budget.values()))
    titles = [m["title"] for m in design["methods"] if m["name"] in best & set(baselines)]
    if not titles:
        return []
    counts = [
        f"at ε = {epsilon:g} on {sum(name in baselines for name in names)} of {len(names)}"
        for epsilon, names in sorted(best_by_budget.items())
    ]
    return [
        f"{PHRASES[PRIMARY]}, a baseline without private data ({_listed(titles)}) has a lower mean "
        f"loss than every private method in base cells: {', '.join(counts)} problems."
    ]


def local_baselines(
    table: pl.DataFrame,
    cells: Iterable[Mapping[str, Any]],
    outcomes: Mapping[tuple, bool | None],
) -> dict[str, list[tuple[float, str]]]:
    """Compare local training with the other private methods, by problem and budget of base cells.

    Methods are those for the eavesdropper, with the primary tuning.

    Parameters
    ----------
    table : DataFrame
        Results with the columns of :mod:`.schema`.
    cells : iterable of mappings
        Rows of ``cells.json``.
    outcomes : mapping of tuple to bool or None
        For each cell, whether some private method is better than all baselines
        (:func:`.tables.learnable`). Cells without such a method are omitted.

    Returns
    -------
    dict of str to list of tuple
        For each problem, the budgets in ascending order with the outcomes of local training.
    """
    base = base_cells(cells)
    private = compared(table, OBSERVERS[0]).filter(pl.col("observer") != ANYONE)
    losses = remaining(cube(private, "excess_loss_mean"), outcomes)
    rows = [i for i, cell in enumerate(losses.cells) if cell in base]
    by_problem: dict[str, list[tuple[float, str]]] = {}
    for row in rows:
        ranked = methods_by_mean(losses.of_cell(row), ALPHA / len(rows))
        problem_outcomes = by_problem.setdefault(losses.cells[row][0], [])
        problem_outcomes.append(
            (losses.cells[row][-1], _outcome([p.method for p in ranked if p.may_be_best]))
        )
    return {problem: sorted(words) for problem, words in by_problem.items()}


def _outcome(best: Sequence[str]) -> str:
    if LOCAL not in best:
        return BEATEN
    return WINS if len(best) == 1 else OPEN


def sentences(
    rankings: Mapping[str, Ranking],
    outcomes: Mapping[tuple, bool | None],
    transferred: Mapping[tuple, bool | None],
    local: Mapping[str, Sequence[tuple[float, str]]],
    design: Mapping[str, Any],
) -> list[str]:
    """Return the sentence of the headline, and the sentences below it.

    Parameters
    ----------
    rankings : mapping of str to Ranking
        Ranking over the cells that remain, for each kind of tuning, the primary one first.
    outcomes : mapping of tuple to bool or None
        Results of :func:`.tables.learnable_cells` for the primary tuning.
    transferred : mapping of tuple to bool or None
        Result of :func:`.tables.learnable_by_transfer`.
    local : mapping of str to sequence of tuple
        Result of :func:`local_baselines`.
    design : mapping
        Content of ``cells.json``; the keys ``methods``, ``titles`` and ``trials`` are used.

    Returns
    -------
    list of str
    """
    methods = {
        method["name"]: method["title"] + BASELINE * bool(method.get("baseline"))
        for method in design["methods"]
    }
    lines = [
        _lowest(tuning, ranking, methods) for tuning, ranking in rankings.items() if ranking.cells
    ]
    lines += _too_small(outcomes, transferred, design["trials"])
    lines += _local(local, design["titles"]["problem"])
    return lines or ["Nothing has been compared."]


def _lowest(tuning: str, ranking: Ranking, methods: Mapping[str, str]) -> str:
    """State the method with the lowest mean rank, and the methods that do not differ from it.

    If methods are left out of the ranking, state how often one of them has a lower loss.
    """
    count, problems = len(ranking.methods), len(ranking.problems)
    best = methods.get(ranking.methods[0], ranking.methods[0])
    interval = f", 95 % interval {ranking.low[0]:.1f} to {ranking.high[0]:.1f}"
    complete = f" in which all {count} methods ran" * bool(ranking.left_out)
    line = (
        f"{PHRASES[tuning]}, {best} has the lowest mean rank: {ranking.mean_ranks[0]:.1f} of "
        f"{count}{interval if problems > 1 else ''}, in {ranking.cells} cells of {problems} "
        f"problem{'s' * (problems > 1)}{complete}."
    )
    lower = (
        f" A method that did not run in all these cells has a lower loss in "
        f"{ranking.left_out_lower} of the {ranking.of} cells with a sufficient budget."
    ) * bool(ranking.left_out_lower)
    equal = [methods.get(name, name) for name in ranking.indistinguishable()]
    if problems < 2:
        significance = "One problem does not suffice to compare methods"
    elif equal:
        significance = f"Over the problems, it does not differ significantly from {_summary(equal)}"
    else:
        significance = "Its difference from every other method exceeds the variation of problems"
    return f"{line} {significance}.{lower}"


def _summary(titles: Sequence[str], max_count: int = 3) -> str:
    """List a few titles; of many, state the number and list the baselines without private data."""
    if len(titles) <= max_count:
        return _listed(titles)
    baselines = [title for title in titles if title.endswith(BASELINE)]
    including = f", including {_listed(baselines)}" if baselines else ""
    return f"{len(titles)} other methods{including}"


def _listed(names: Sequence[str], max_count: int = 6) -> str:
    if len(names) > max_count:
        return f"{'; '.join(names[:max_count])} and {len(names) - max_count} more"
    return names[0] if len(names) == 1 else f"{'; '.join(names[:-1])} and {names[-1]}"


def _too_small(
    outcomes: Mapping[tuple, bool | None], transferred: Mapping[tuple, bool | None], trials: int
) -> list[str]:
    """State the fraction of cells with a budget that is too small, in total and by budget.

    Next to it, state in how many cells parameters from other problems suffice.
    """
    judged = {cell: outcome for cell, outcome in outcomes.items() if outcome is not None}
    if not judged:
        return []
    small = [cell for cell, outcome in judged.items() if not outcome]
    counts = []
    for epsilon in sorted({cell[-1] for cell in judged}):
        all_of = sum(cell[-1] == epsilon for cell in judged)
        count = sum(cell[-1] == epsilon for cell in small)
        counts.append(f"{count} of {all_of} at ε = {epsilon:g}")
    line = (
        f"In {len(small)} of {len(judged)} cells the budget is too small if {trials} trials are "
        "counted in the budget: no private method is better than all models without privacy cost "
        f"({', '.join(counts)})."
    )
    outcomes_of_transfer = [outcome for outcome in transferred.values() if outcome is not None]
    if outcomes_of_transfer:
        changed = sum(transferred.get(cell) is True for cell in small)
        line += (
            f" With parameters from other problems, some private method is better in "
            f"{sum(outcomes_of_transfer)} of {len(outcomes_of_transfer)} cells, including "
            f"{changed} of these {len(small)}; the search on the other problems is not counted."
        )
    return [line]


def _local(
    local: Mapping[str, Sequence[tuple[float, str]]], titles: Mapping[str, str]
) -> list[str]:
    """State where local training is the only private method that may be best, and where not."""
    by_word: dict[str, list[str]] = {}
    for problem, outcomes in local.items():
        for epsilon, word in outcomes:
            title = titles.get(problem, problem)
            by_word.setdefault(word, []).append(f"{title} at ε = {epsilon:g}")
    cells = sum(map(len, by_word.values()))
    if not cells:
        return []
    beaten, wins = by_word.get(BEATEN, []), by_word.get(WINS, [])
    line = f"Some method that communicates is better than local training in {len(beaten)} of "\
           f"{cells} base cells that remain"  # fmt: skip
    if wins:
        line += f"; local training is best on {_listed(wins)}"
    return [f"{line}."]
