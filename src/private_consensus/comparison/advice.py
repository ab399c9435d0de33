"""Advice: questions about the comparison, each with a test that was fixed before the full run.

A question of ``config/advice.yaml`` has a test: which method has the smaller mean in which cells.
Its answer is the verdict of the test. Cells whose budget is too small if it covers the tuning
(:func:`.tables.learnable`) are omitted. A question is undecided if fewer than ``min_problems``
problems have cells. Tests are judged like the claims of papers
(:mod:`..claims.judging`), by differences of means over common runs. Holm's method corrects for the
number of questions. Questions whose test does not hold are reported too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field

from private_consensus.common import yamls
from private_consensus.common.errors import require
from private_consensus.common.fields import Strict, validate
from private_consensus.common.multiplicity import ALPHA, holm
from private_consensus.reproduction.claims.judging import NEVER, Verdict, judge
from private_consensus.reproduction.claims.schema import Series, Test
from private_consensus.reproduction.claims.statements import Estimates, estimated
from private_consensus.reproduction.claims.words import (
    CONFIRMED,
    CONTRADICTED,
    HELD,
    IN_PART,
    NOT_HELD,
    TIED,
    UNDECIDED,
    UNTESTABLE,
)

from .schema import ANYONE, CELL, MEASURES, require_known
from .tables import baselines_of, compared, cube, learnable_cells

ANSWERS = {
    HELD: "yes", IN_PART: "in part", NOT_HELD: "no", UNDECIDED: "undecided",
    UNTESTABLE: "not answered",
}  # fmt: skip
"""Answer to a question, by the verdict of its test."""
TUNED = {
    "tuned_paid": "counted tuning", "tuned": "known parameters",
    "transferred": "parameters from other problems",
}  # fmt: skip
"""Description of each kind of tuning."""
OTHERS, EACH = "others", "each"
"""Placeholders for a method: every other method that is ranked for the observer of the question;
each of these methods, compared with itself."""

Cells = Literal["base", "agents", "graph", "partition", "missing", "links", "sample", "all"]


class Side(Strict):
    """Side of a comparison: a method, its tuning, and values of axes that replace the cell's."""

    method: str
    """Method of the design; `others` for every other ranked method; `each` for every ranked method,
    compared with itself."""
    tuning: Literal["tuned_paid", "tuned", "transferred"] = "tuned_paid"
    """tuned_paid: tuning counted in the budget; tuned: tuning that is not counted; transferred:
    parameters of other problems."""
    where: dict[str, Any] = Field(default_factory=dict)
    """Values of axes that replace those of the cell."""


class Pairwise(Strict):
    """Test that the mean of one side is smaller than that of the other, in each of some cells.

    ``quantifier`` states for how many pairs of cell and method this is claimed: each, ``universal``
    (a single pair contradicts), most, some. With ``group_by: problem`` it applies to each problem
    separately.
    """

    smaller: Side
    """Side that has the smaller mean if the test holds."""
    than: Side
    """Other side of the comparison."""
    measure: str = "excess_loss_mean"
    """Measure whose mean is compared."""
    cells: Cells = "base"
    """Compared cells: the base cells, those that vary one axis, the sample, or all."""
    where: dict[str, list[Any]] = Field(default_factory=dict)
    """Values of axes of the compared cells."""
    quantifier: Literal["each", "universal", "most", "some"] = "universal"
    """Pairs of cell and method for which the inequality has to hold."""
    group_by: Literal["", "problem"] = ""
    """problem: the quantifier applies to each problem separately."""


class Sentence(Strict):
    """Question and the tests that answer it."""

    question: str = Field(min_length=1)
    """Question as the report shows it."""
    because: str = Field(min_length=1)
    """Methods and cells that answer the question, in words."""
    observer: str = "eavesdropper"
    """Observer for whom the compared methods are ranked."""
    tests: list[Pairwise] = Field(min_length=1)
    """Tests whose verdict is the answer."""


class Advice(Strict):
    """Content of ``config/advice.yaml``."""

    min_problems: int = Field(ge=1)
    """Number of problems with cells that an answer needs."""
    sentences: dict[str, Sentence]
    """Questions with their tests, by name."""


def read_advice(path: str | Path, methods: Sequence[str]) -> Advice:
    """Read questions and their tests from a file.

    Parameters
    ----------
    path : path
        YAML file.
    methods : sequence of str
        Methods of the design.

    Returns
    -------
    Advice

    Raises
    ------
    InvalidInput
        For an invalid file, and for methods, measures and axes that the design does not have.
    """
    advice = validate(Advice, yamls.read(path))
    for name, sentence in advice.sentences.items():
        path_of_sentence = f"sentences.{name}"
        for test in sentence.tests:
            for key in ("smaller", "than"):
                side, path_of_side = getattr(test, key), f"{path_of_sentence}.{key}"
                require_known(f"{path_of_side}.method", [side.method], (*methods, OTHERS, EACH))
                require_known(f"{path_of_side}.where", side.where, CELL)
            both = {test.smaller.method, test.than.method}
            expected = "in both smaller and than, or in neither"
            require(both == {EACH} or EACH not in both, path_of_sentence, EACH, expected)
            require_known(f"{path_of_sentence}.where", test.where, CELL)
            require_known(f"{path_of_sentence}.measure", [test.measure], MEASURES)
    return advice


class Sides(NamedTuple):
    """Losses of the two compared methods in a cell, one per run, with the name of the pair."""

    name: str
    cell: tuple
    smaller: np.ndarray
    than: np.ndarray


def judged(
    advice: Advice, table: pl.DataFrame, cells: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the verdict of each question, before and after Holm's correction.

    Parameters
    ----------
    advice : Advice
        Questions with their tests.
    table : DataFrame
        Results with the columns of :mod:`.schema`.
    cells : sequence of mappings
        Rows of ``cells.json``: the design, with the ``axis`` of each cell.

    Returns
    -------
    list of dict
        One row per question, with the pair of cell and method that is nearest to failing, and the
        problems and budgets of its cells.
    """
    axis_of_cell = {tuple(cell[key] for key in CELL): cell["axis"] for cell in cells}
    proven = table.filter(pl.col("proven") | (pl.col("observer") == "none"))
    baselines = baselines_of(table)

    @cache
    def observed(observer: str) -> tuple[list[str], dict[tuple, str]]:
        """Return the ranked methods, and the axis of each cell with a sufficient budget."""
        rows = compared(table, observer)
        outcomes = learnable_cells(cube(rows, "excess_loss_mean"), baselines)
        ranked = rows.filter(pl.col("observer") != ANYONE)["method"].unique().sort().to_list()
        return ranked, {
            cell: a for cell, a in axis_of_cell.items() if outcomes.get(cell) is not False
        }

    pairs = {
        name: [list(_pairs(test, proven, *observed(sentence.observer))) for test in sentence.tests]
        for name, sentence in advice.sentences.items()
    }
    budgets = {
        name: {
            problem: sorted({p.cell[-1] for p in chain(*of_tests) if p.cell[0] == problem})
            for problem in dict.fromkeys(cell["problem"] for cell in cells)
        }
        for name, of_tests in pairs.items()
    }
    verdicts = {
        name: _verdict(sentence.tests, pairs[name], budgets[name], advice.min_problems)
        for name, sentence in advice.sentences.items()
    }
    p, _ = holm([verdict.p for verdict in verdicts.values()])
    return [
        _row(name, advice, verdict, float(after), budgets[name])
        for (name, verdict), after in zip(verdicts.items(), p, strict=True)
    ]


def _verdict(
    tests: Sequence[Pairwise],
    pairs: Sequence[Sequence[Sides]],
    budgets: Mapping[str, Sequence[float]],
    min_problems: int,
) -> Verdict:
    """Judge the tests of a question by their pairs; undecided if too few problems have cells."""
    verdict = judge([
        estimates
        for test, of_test in zip(tests, pairs, strict=True)
        for estimates in _estimates(test, of_test)
    ])  # fmt: skip
    if 0 < sum(map(bool, budgets.values())) < min_problems:
        return replace(verdict, verdict=UNDECIDED, p=NEVER)
    return verdict


def _estimates(test: Pairwise, pairs: Sequence[Sides]) -> Iterator[Estimates]:
    """Yield the estimates of a test, for each problem separately if the test is grouped."""
    problems = dict.fromkeys(pair.cell[0] for pair in pairs) if test.group_by else {"": None}
    for problem in problems:
        problem_pairs = [pair for pair in pairs if problem in ("", pair.cell[0])]
        if problem_pairs:
            yield _estimates_of_pairs(test, problem, problem_pairs)


def _estimates_of_pairs(test: Pairwise, problem: str, pairs: Sequence[Sides]) -> Estimates:
    runs = min(len(pair.smaller) for pair in pairs)
    smaller_losses, reference_losses = (
        np.array([getattr(pair, key)[:runs] for pair in pairs]) for key in ("smaller", "than")
    )
    stated = Test(
        kind="difference", at_most=0.0, x="pair", quantifier=test.quantifier, part=problem,
        series=_series(test.smaller), against=_series(test.than),
    )  # fmt: skip
    # Problems have different units of loss: a difference is scaled by the larger loss.
    size = np.maximum(np.abs(smaller_losses), np.abs(reference_losses)).max(1, keepdims=True)
    unit = np.where((size > 0) & np.isfinite(size), size, 1.0)
    points = [np.arange(len(pairs), dtype=float)]
    estimates = estimated(
        stated, [""], np.concatenate([smaller_losses / unit, reference_losses / unit]), points
    )
    return replace(estimates, names=[pair.name for pair in pairs])


def _series(side: Side) -> Series:
    return Series(experiment="comparison", method=side.method, variant=side.tuning)


def _pairs(
    test: Pairwise, table: pl.DataFrame, ranked: Sequence[str], axis: Mapping[tuple, str]
) -> Iterator[Sides]:
    """Yield every pair of cells and methods that the test compares and that have runs."""
    sides = [(side, cube(table, test.measure, side.tuning)) for side in (test.smaller, test.than)]
    for cell, kind in axis.items():
        cell_values = dict(zip(CELL, cell, strict=True))
        if test.cells not in ("all", kind) or any(
            cell_values[k] not in v for k, v in test.where.items()
        ):
            continue
        for methods in _methods(test, ranked):
            runs = [
                losses.runs(tuple((cell_values | side.where).values()), method)
                for (side, losses), method in zip(sides, methods, strict=True)
            ]
            common = min(map(len, runs))
            values = np.array([series[:common] for series in runs])
            values = values[:, ~np.isnan(values).any(0)]
            if values.size:
                yield Sides(f"{_compared(test, *methods)}, {_describe(cell)}", cell, *values)


def _compared(test: Pairwise, first: str, second: str) -> str:
    """Describe a pair of methods, or of two settings of one method."""
    if first != second:
        return f"{first} against {second}"
    sides = [
        ", ".join([TUNED[side.tuning], *(f"{key} {value}" for key, value in side.where.items())])
        for side in (test.smaller, test.than)
    ]
    return f"{first}: {sides[0]} against {sides[1]}"


def _methods(test: Pairwise, ranked: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pairs of methods to compare; `each` is the same method on both sides."""
    smaller, than = test.smaller.method, test.than.method
    if smaller == EACH:
        return [(name, name) for name in ranked]
    firsts = [name for name in ranked if name != than] if smaller == OTHERS else [smaller]
    seconds = [name for name in ranked if name != smaller] if than == OTHERS else [than]
    return [(a, b) for a in firsts for b in seconds]


def _describe(cell: tuple) -> str:
    problem, agents, graph, partition, missing, links, epsilon = cell
    faults = f", {missing:g} missing" * bool(missing) + f", {links:g} of links" * bool(links)
    return f"{problem}, N = {agents}, {graph}, {partition}{faults}, epsilon = {epsilon:g}"


def _row(
    name: str, advice: Advice, verdict: Verdict, p: float, budgets: Mapping[str, Sequence[float]]
) -> dict[str, Any]:
    sentence, problems = advice.sentences[name], sum(map(bool, budgets.values()))
    states = [element.state for element in verdict.elements]
    is_significant = p <= ALPHA or verdict.verdict == UNTESTABLE
    word = ANSWERS[verdict.verdict if is_significant else UNDECIDED]
    required = f"; {advice.min_problems} are required" * (problems < advice.min_problems)
    return {
        "id": name,
        "question": sentence.question,
        "answer": f"{word} (cells of {problems} of {len(budgets)} problems{required})",
        "because": sentence.because,
        "observer": sentence.observer,
        "verdict": verdict.verdict if is_significant else UNDECIDED,
        "verdict_alone": verdict.verdict,
        "p": verdict.p,
        "p_holm": p,
        "budgets": budgets,
        "pairs": len(states),
        "confirmed": states.count(CONFIRMED),
        "contradicted": states.count(CONTRADICTED) + states.count(TIED),
        "nearest": verdict.deciding.name,
        "value": _number(verdict.deciding.value),
        "low": _number(verdict.deciding.low),
        "high": _number(verdict.deciding.high),
        "runs": verdict.runs,
    }


def _number(value: float) -> float | None:
    """Convert a value to a number that JSON can represent."""
    return float(value) if np.isfinite(value) else None
