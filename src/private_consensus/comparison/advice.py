"""Advice: questions about the comparison, each with a test that was fixed before the full run.

A question of ``config/advice.yaml`` has a test: which method has the smaller mean in which cells.
Its answer is the verdict of the test. Cells whose budget is too small for the data
(:mod:`.baselines`) are omitted. It is
judged like the claims of papers (:mod:`..claims.judging`), by differences of means over common
runs. Holm's method corrects for the number of sentences. Sentences that do not hold are retained,
with their verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl
from pydantic import Field

from private_consensus.common import yamls
from private_consensus.common.errors import require
from private_consensus.common.multiplicity import ALPHA, holm
from private_consensus.reproduction.claims.judging import Verdict, judge
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
from private_consensus.reproduction.experiments.schema import Strict, validate

from .baselines import baselines_of, learnable_cells
from .schema import ANYONE, CELL, MEASURES
from .tables import Cube, Parts, compared, cube

ANSWERS = {
    HELD: "yes", IN_PART: "in part", NOT_HELD: "no", UNDECIDED: "undecided",
    UNTESTABLE: "not answered",
}  # fmt: skip
"""Answer to a question, by the verdict of its test."""
OTHERS, EACH = "others", "each"
"""Placeholders for a method: every other method that is ranked for the sentence's observer; each
of these methods, compared with itself."""

Cells = Literal["base", "agents", "graph", "partition", "missing", "links", "sample", "all"]


class Side(Strict):
    """Side of a comparison: a method, its tuning, and its cells if they are not the test's."""

    method: str = Field(description="a method of the design, `others` or `each`")
    tuning: Literal["tuned_paid", "tuned", "transferred"] = "tuned_paid"
    where: dict[str, Any] = Field(default_factory=dict, description="instead of the cell's own")


class Pairwise(Strict):
    """Test that the mean of one side is smaller than that of the other, in each of some cells.

    ``quantifier`` states for how many pairs of cell and method this is claimed: each, ``universal``
    (a single pair contradicts), most, some. With ``part: problem`` it applies to each problem
    separately.
    """

    smaller: Side
    than: Side
    measure: str = "excess_loss_mean"
    cells: Cells = "base"
    where: dict[str, list[Any]] = Field(default_factory=dict)
    quantifier: Literal["each", "universal", "most", "some"] = "universal"
    part: Literal["", "problem"] = ""


class Sentence(Strict):
    """Question and the tests that answer it."""

    question: str = Field(min_length=1)
    because: str = Field(min_length=1, description="which methods are compared in which cells")
    observer: str = "eavesdropper"
    tests: list[Pairwise] = Field(min_length=1)


class Advice(Strict):
    """Content of ``config/advice.yaml``."""

    sentences: dict[str, Sentence]


def read_advice(path: str | Path, methods: Sequence[str]) -> dict[str, Sentence]:
    """Return the sentences of a file.

    Parameters
    ----------
    path : path
        YAML file.
    methods : sequence of str
        Methods of the design.

    Returns
    -------
    dict of str to Sentence

    Raises
    ------
    InvalidInput
        For an invalid file, and for methods, measures and axes that the design does not have.
    """
    sentences = validate(Advice, yamls.read(path)).sentences
    for name, sentence in sentences.items():
        for test in sentence.tests:
            for key in ("smaller", "than"):
                side, at = getattr(test, key), f"sentences.{name}.{key}"
                allowed_methods = (*methods, OTHERS, EACH)
                expected = f"one of {', '.join(allowed_methods)}"
                require(side.method in allowed_methods, f"{at}.method", side.method, expected)
                _require_axes(f"{at}.where", side.where)
            both = {test.smaller.method, test.than.method}
            alike = both == {EACH} or not both & {EACH}
            require(alike, f"sentences.{name}", EACH, "on both sides or on neither")
            _require_axes(f"sentences.{name}.where", test.where)
            measures = ", ".join(MEASURES)
            key = f"sentences.{name}.measure"
            require(test.measure in MEASURES, key, test.measure, f"one of {measures}")
    return sentences


def _require_axes(key: str, where: Mapping[str, Any]) -> None:
    for axis in where:
        require(axis in CELL, key, axis, f"one of {', '.join(CELL)}")


class Sides(NamedTuple):
    """Pair of a test: a cell and a method per side, with their runs."""

    name: str
    problem: str
    smaller: np.ndarray
    than: np.ndarray


def judged(
    sentences: Mapping[str, Sentence], table: pl.DataFrame, cells: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the verdict of each sentence, alone and after Holm's correction.

    Parameters
    ----------
    sentences : mapping
        Sentences by name.
    table : DataFrame
        Results with the columns of :mod:`.schema`.
    cells : sequence of mappings
        Rows of ``cells.json``: the design, with the ``axis`` of each cell.

    Returns
    -------
    list of dict
        One row per sentence, with the pair nearest to failing.
    """
    axis = {tuple(cell[key] for key in CELL): cell["axis"] for cell in cells}
    cubes = _Cubes(table)
    free = baselines_of(table)
    small = {
        observer: _too_small(table, observer, free)
        for observer in {sentence.observer for sentence in sentences.values()}
    }
    verdicts = {
        name: _verdict(
            sentence,
            cubes.of(sentence.observer),
            {cell: kind for cell, kind in axis.items() if cell not in small[sentence.observer]},
        )
        for name, sentence in sentences.items()
    }
    p, _ = holm([verdict.p for verdict in verdicts.values()])
    return [
        _row(name, sentences[name], verdict, float(after))
        for (name, verdict), after in zip(verdicts.items(), p, strict=True)
    ]


def _too_small(table: pl.DataFrame, observer: str, free: Sequence[str]) -> set[tuple]:
    """Return the cells in which no private method is better than all baselines."""
    losses = cube(compared(table, observer), "excess_loss_mean")
    outcomes = learnable_cells(losses, free)
    return {cell for cell, outcome in outcomes.items() if outcome is False}


class _Cubes:
    """Cubes of one table; each is computed once."""

    def __init__(self, table: pl.DataFrame) -> None:
        self.table, self.made = table, {}
        self.proven = Parts(table.filter(pl.col("proven") | (pl.col("observer") == "none")))

    def of(self, observer: str) -> _Observed:
        """Return the cubes and the methods that are ranked for an observer."""
        rows = compared(self.table, observer).filter(pl.col("observer") != ANYONE)
        ranked = rows["method"].unique().sort().to_list()
        return _Observed(self, ranked)

    def cube(self, measure: str, tuning: str) -> Cube:
        """Return the cube of proven or non-private rows.

        Parameters
        ----------
        measure : str
            Name of the measure.
        tuning : str
            Kind of tuning.

        Returns
        -------
        Cube
        """
        if (measure, tuning) not in self.made:
            self.made[measure, tuning] = self.proven.cube(measure, tuning)
        return self.made[measure, tuning]


class _Observed(NamedTuple):
    """Cubes, and the methods that are ranked for one observer."""

    cubes: _Cubes
    ranked: list[str]


def _verdict(sentence: Sentence, observed: _Observed, axis: Mapping[tuple, str]) -> Verdict:
    return judge(
        [estimates for test in sentence.tests for estimates in _estimates(test, observed, axis)]
    )


def _estimates(
    test: Pairwise, observed: _Observed, axis: Mapping[tuple, str]
) -> Iterator[Estimates]:
    """Yield the estimates of a test, separately for each of its parts."""
    pairs = list(_pairs(test, observed, axis))
    problems = dict.fromkeys(pair.problem for pair in pairs) if test.part else {"": None}
    for problem in problems:
        problem_pairs = [pair for pair in pairs if problem in ("", pair.problem)]
        if problem_pairs:
            yield _of_pairs(test, problem, problem_pairs)


def _of_pairs(test: Pairwise, problem: str, pairs: Sequence[Sides]) -> Estimates:
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


def _pairs(test: Pairwise, observed: _Observed, axis: Mapping[tuple, str]) -> Iterator[Sides]:
    """Yield every pair of cells and methods that the test compares and that have runs."""
    first_cube, second_cube = (
        observed.cubes.cube(test.measure, side.tuning) for side in (test.smaller, test.than)
    )
    first_rows = {cell: i for i, cell in enumerate(first_cube.cells)}
    second_rows = {cell: i for i, cell in enumerate(second_cube.cells)}
    for cell, kind in axis.items():
        if test.cells not in ("all", kind) or not _within(cell, test.where):
            continue
        first_cell, second_cell = _moved(cell, test.smaller.where), _moved(cell, test.than.where)
        if first_cell not in first_rows or second_cell not in second_rows:
            continue
        for a, b in _methods(test, observed.ranked):
            values = _paired(
                _runs(first_cube, first_rows[first_cell], a),
                _runs(second_cube, second_rows[second_cell], b),
            )
            if values.size:
                yield Sides(f"{a} against {b}, {_said(cell)}", str(cell[0]), *values)


def _runs(cube: Cube, cell: int, method: str) -> np.ndarray:
    columns = [i for i, name in enumerate(cube.methods) if name == method]
    return cube.values[cell, columns].reshape(-1)


def _paired(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Restrict both sides to their common runs; [2, runs]."""
    common = min(len(first), len(second))
    both = np.array([first[:common], second[:common]])
    return both[:, ~np.isnan(both).any(0)]


def _within(cell: tuple, where: Mapping[str, Sequence[Any]]) -> bool:
    return all(cell[list(CELL).index(key)] in values for key, values in where.items())


def _moved(cell: tuple, where: Mapping[str, Any]) -> tuple:
    return tuple(where.get(key, value) for key, value in zip(CELL, cell, strict=True))


def _methods(test: Pairwise, ranked: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pairs of methods to compare; `each` is the same method on both sides."""
    smaller, than = test.smaller.method, test.than.method
    if smaller == EACH:
        return [(name, name) for name in ranked]
    firsts = [name for name in ranked if name != than] if smaller == OTHERS else [smaller]
    seconds = [name for name in ranked if name != smaller] if than == OTHERS else [than]
    return [(a, b) for a in firsts for b in seconds]


def _said(cell: tuple) -> str:
    problem, agents, graph, partition, missing, links, epsilon = cell
    faults = f", {missing:g} missing" * bool(missing) + f", {links:g} of links" * bool(links)
    return f"{problem}, N = {agents}, {graph}, {partition}{faults}, epsilon = {epsilon:g}"


def _row(name: str, sentence: Sentence, verdict: Verdict, p: float) -> dict[str, Any]:
    states = [element.state for element in verdict.elements]
    stands = p <= ALPHA or verdict.verdict == UNTESTABLE
    return {
        "id": name,
        "question": sentence.question,
        "answer": ANSWERS[verdict.verdict if stands else UNDECIDED],
        "because": sentence.because,
        "observer": sentence.observer,
        "verdict": verdict.verdict if stands else UNDECIDED,
        "verdict_alone": verdict.verdict,
        "p": verdict.p,
        "p_holm": p,
        "pairs": len(states),
        "confirmed": states.count(CONFIRMED),
        "contradicted": states.count(CONTRADICTED) + states.count(TIED),
        "nearest": verdict.statistic,
        "value": _number(verdict.value),
        "low": _number(verdict.low),
        "high": _number(verdict.high),
        "runs": verdict.runs,
    }


def _number(value: float) -> float | None:
    """Convert a value to a number that JSON can represent."""
    return float(value) if np.isfinite(value) else None
