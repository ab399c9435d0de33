"""Ranking of an algorithm among all others, from the command line: executed here or submitted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from private_consensus.common import yamls
from private_consensus.common.errors import require
from private_consensus.core import algorithms
from private_consensus.reproduction.claims.intervals import MIN_RUNS

from .answers import LOSS, STRONGEST
from .design import ComparisonDesign, MethodDesign, read_comparison
from .ranks import Ranking, rank
from .schema import ANYONE, read_results, require_known
from .statistics import LOCAL, methods_by_mean
from .submissions import (
    NOT_TUNED,
    PLACE,
    covers,
    places,
    submission,
    together,
    writable,
    write_submission,
)
from .tables import baselines_of, compared, cube, learnable_cells, remaining

SUFFIX = ".parquet"


HEADS = ("method", "mean rank", "may be best in", "better than local training in", "cells")

Prepared = Callable[[Sequence[str]], Mapping[str, Any]]
"""Map from names of prepared data sets to the data."""


class Ranked(NamedTuple):
    """Ranking table of an algorithm, and the reasons for cells without the algorithm."""

    rows: list[tuple[str, ...]]
    caption: str
    absent: list[str]


class Standing(NamedTuple):
    """Standing of a method among those that are ranked for an observer.

    Parameters
    ----------
    method : str
        Name of the method.
    mean_rank : float, optional
        Mean over the cells in which all compared methods ran; None for other methods.
    best, alone, cells : int
        Numbers of cells in which it may be best, in which local training is shown to be worse, and
        in which it ran.
    """

    method: str
    mean_rank: float | None
    best: int
    alone: int
    cells: int


def ranked(
    names_and_files: Sequence[str],
    design: str | Path,
    scale: str,
    *,
    against: str | Path | None,
    out: str | Path | None,
    prepared: Prepared,
    progress: Callable[[str], None],
) -> Ranked:
    """Rank algorithms, which are executed here, and files of results among all others.

    Parameters
    ----------
    names_and_files : sequence of str
        Names of the registry, and files of :mod:`.submissions`.
    design : path
        File of the design; see :func:`design_of`.
    scale : str
        Scale of the design.
    against : path, optional
        Results of the other methods. By default they are executed too.
    out : path, optional
        File for the results of the names, to be submitted.
    prepared : callable
        Map from names of prepared data sets to the data.
    progress : callable
        Receives each problem before it starts.

    Returns
    -------
    Ranked

    Raises
    ------
    InvalidInput
        Before anything runs, for a name, design, scale or file that cannot be used.
    """
    names = [text for text in names_and_files if not text.endswith(SUFFIX)]
    files = [text for text in names_and_files if text.endswith(SUFFIX)]
    expected = "a method NAME, too: the file contains the results of the methods that are run"
    require(out is None or bool(names), "--out", out, expected)
    if out is not None:
        writable(out)
    rules = design_of(design, scale, names)
    submitted = [submission(file, rules) for file in files]
    submitted_tables = [entry.table for entry in submitted]
    references = {LOCAL, *(name for name, method in rules.methods.items() if method.baseline)}
    for file, table in zip(files, submitted_tables, strict=True):
        replaced = sorted(references & set(_methods(table)))
        expected = "a name that is no reference: local training and baselines are run again"
        require(not replaced, f"{file}: method", replaced, expected)
    other_tables = [] if against is None else [_others(against, names)]
    entered = [*names, *(name for table in submitted_tables for name in _methods(table))]
    present = {name for table in (*submitted_tables, *other_tables) for name in _methods(table)}
    observers = {rules.methods[name].observer for name in names}
    observers |= {observer for table in submitted_tables for observer in table["observer"].unique()}
    methods = names if other_tables else [*names, *_rivals(rules, {*names, *present}, observers)]
    results_table, absent = run(rules, methods, prepared(rules.prepared), progress)
    if out is not None:
        results = results_table.filter(pl.col("method").is_in(names))
        write_submission(results, rules, out, absences(rules, results, absent, names))
    table = together([*submitted_tables, *other_tables, results_table])
    ranking, rows = standings(table, observer_of(table, entered))
    has_few_runs = rules.runs < MIN_RUNS
    few = f"; {rules.runs} runs per cell are too few to compare methods in a cell"
    note = few if has_few_runs else ""
    problems = len(ranking.problems)
    lines = [
        f"{row['method']}: {row['because']}"
        for row in [*absent, *(row for entry in submitted for row in entry.absent)]
        if row["method"] in entered and row["because"] != NOT_TUNED
    ]
    return Ranked(
        [_table_row(row, entered, has_few_runs) for row in rows],
        f"tuning counted in the budget; {ranking.cells} of {ranking.of} cells in which all "
        f"compared methods ran; mean over {problems} problem{'s' * (problems != 1)}{note}",
        list(dict.fromkeys(lines)),
    )


def absences(
    design: ComparisonDesign,
    results: pl.DataFrame,
    absent: Iterable[Mapping[str, Any]],
    names: Sequence[str],
) -> list[dict[str, Any]]:
    """Return the absences that methods which were executed here declare.

    Parameters
    ----------
    design : ComparisonDesign
        Design of the comparison.
    results : DataFrame
        Rows of the methods.
    absent : iterable of mapping
        Absences that the engine reports.
    names : sequence of str
        Names of the methods.

    Returns
    -------
    list of dict
        Absences of the engine, problems on which a method is not entered, and cells in which a
        method with default parameters has no tuned ones.
    """
    declared = [dict(row) for row in absent if row["method"] in names]
    for name in names:
        declared += [
            {"method": name, "problem": problem, "because": "not entered on this problem"}
            for problem in design.problems
            if name not in design.methods_of(problem)
        ]
        of_method = [row for row in declared if row["method"] == name]
        method_rows = results.filter(pl.col("method") == name)
        present = set(method_rows.select(PLACE).unique().rows())
        present_cells = {point[:-1] for point in present}
        declared += [
            {**dict(zip(PLACE, point, strict=True)), "method": name, "because": NOT_TUNED}
            for point in places(design)
            if point[:-1] in present_cells and point not in present
            if not any(covers(row, point) for row in of_method)
        ]
    return declared


def _others(path: str | Path, names: Sequence[str]) -> pl.DataFrame:
    return read_results(path).filter(~pl.col("method").is_in(list(names)))


def _methods(table: pl.DataFrame) -> list[str]:
    return table["method"].unique().sort().to_list()


def _rivals(design: ComparisonDesign, excluded: set[str], observers: set[str]) -> list[str]:
    """Return the methods to compare with: local training, and those for the same observers."""
    return [
        name
        for name, method in design.methods.items()
        if name not in excluded
        and method.proven
        and (method.observer in {*observers, ANYONE} or name == LOCAL)
    ]


def _table_row(row: Standing, entered: Sequence[str], has_few_runs: bool) -> tuple[str, ...]:
    """Return a row of the ranking table; counts of cells are omitted if there are few runs."""
    return (
        f"> {row.method}" if row.method in entered else row.method,
        "-" if row.mean_rank is None else f"{row.mean_rank:.2f}",
        *("-" if has_few_runs else str(count) for count in (row.best, row.alone)),
        str(row.cells),
    )


def design_of(path: str | Path, scale: str, names: Iterable[str] = ()) -> ComparisonDesign:
    """Return the design of a file at a scale, and enter missing algorithms of the registry.

    Parameters
    ----------
    path : path
        YAML file of the design.
    scale : str
        ``paper`` or a declared scale.
    names : iterable of str
        Algorithms to enter.

    Returns
    -------
    ComparisonDesign

    Raises
    ------
    InvalidInput
        For an invalid file, an undeclared scale, or an unknown algorithm.
    """
    path = Path(path)
    expected = "the file of a design: run in the folder of the repository, or give --design FILE"
    require(path.is_file(), "--design", str(path), expected)
    design = read_comparison(yamls.read(path))
    scales = ("paper", *design.scales)
    require_known("--scale", [scale], scales)
    methods = dict(design.methods)
    for name in names:
        require_known("NAME", [name], algorithms.names())
        if name not in methods:
            methods[name] = MethodDesign(title=name.replace("_", " "), algorithm={"name": name})
    return design.model_copy(update={"methods": methods}).at(scale)


def run(
    design: ComparisonDesign,
    methods: Sequence[str],
    prepared: Mapping[str, Any],
    progress: Callable[[str], None] = lambda problem: None,
) -> tuple[pl.DataFrame, list[dict[str, Any]]]:
    """Run methods in all cells of a design.

    Parameters
    ----------
    design : ComparisonDesign
        Design of the comparison.
    methods : sequence of str
        Names of the methods.
    prepared : mapping
        Prepared data sets by name.
    progress : callable
        Receives the name of each step before it starts.

    Returns
    -------
    table : DataFrame
        Rows with the columns of :mod:`.schema`.
    absent : list of dict
        Cells without results, with the reasons.
    """
    from .engine import entries_of

    progress("trials")
    tables, absent = [], []
    for entry in entries_of(design, prepared, methods):
        progress(entry.problem)
        tables.append(entry.rows())
        absent += entry.absent
    return pl.concat(tables), absent


def observer_of(table: pl.DataFrame, methods: Sequence[str]) -> str:
    """Return the observer for whom some methods are ranked.

    Parameters
    ----------
    table : DataFrame
        Results with the columns of :mod:`.schema`.
    methods : sequence of str
        Names of the methods.

    Returns
    -------
    str

    Raises
    ------
    InvalidInput
        If the methods have no observer, or different ones.
    """
    observed = table.filter(pl.col("method").is_in(list(methods)) & pl.col("proven"))["observer"]
    observers = sorted(observed.unique())
    expected = "methods with a proof for one common observer, which ran in at least one cell"
    require(len(observers) == 1, "NAME", ", ".join(observers) or None, expected)
    return observers[0]


def standings(table: pl.DataFrame, observer: str) -> tuple[Ranking, list[Standing]]:
    """Rank the methods for an observer, with tuning counted in the budget.

    Cells whose budget is too small are omitted (:func:`.tables.learnable`).

    Parameters
    ----------
    table : DataFrame
        Results with the columns of :mod:`.schema`.
    observer : str
        Observer of the ranking.

    Returns
    -------
    ranking : Ranking
        Mean ranks over cells.
    standings : list of Standing
        In the order of the ranking, then methods outside it.
    """
    rows = compared(table, observer, () if observer == STRONGEST else [LOCAL])
    losses = cube(rows, LOSS)
    losses = remaining(losses, learnable_cells(losses, baselines_of(rows)))
    expected = "a method that ran in at least one cell for this observer"
    require(bool(losses.cells), "NAME", observer, expected)
    ranking = rank(losses.methods, losses.means, [cell[0] for cell in losses.cells])
    best, alone, ran = ({name: 0 for name in losses.methods} for _ in range(3))
    for cell in range(len(losses.cells)):
        runs = losses.of_cell(cell)
        for standing in methods_by_mean(runs):
            best[standing.method] += standing.may_be_best
            ran[standing.method] += 1
            alone[standing.method] += _better(runs, standing.method, LOCAL)
    means = dict(zip(ranking.methods, ranking.mean_ranks.tolist(), strict=True))
    order = [*ranking.methods, *sorted(ranking.left_out)]
    return ranking, [
        Standing(name, means.get(name), best[name], alone[name], ran[name]) for name in order
    ]


def _better(runs: Mapping[str, Any], method: str, rival: str) -> bool:
    """Return True if one method is better than another in a cell at the 95 % level."""
    if rival not in runs or method == rival:
        return False
    compared_methods = methods_by_mean({name: runs[name] for name in (method, rival)})
    return not next(row.may_be_best for row in compared_methods if row.method == rival)
