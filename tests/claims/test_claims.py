"""Test the verdict of each kind of test on curves that satisfy and violate the claim."""

import re
from itertools import product

import numpy as np
import polars as pl
import pytest
from scipy.stats import t

from private_consensus.common.errors import InvalidInput
from private_consensus.reproduction.claims import Claim, Series, Test, adjusted, evaluate, judge_all
from private_consensus.reproduction.claims.judging import Judgement
from private_consensus.reproduction.claims.selection import measured
from private_consensus.reproduction.claims.statements import estimated
from private_consensus.reproduction.claims.table import SCHEMA
from private_consensus.reproduction.claims.words import (
    HELD,
    IN_PART,
    NOT_HELD,
    NOT_REFUTED,
    UNDECIDED,
    UNTESTABLE,
    combined,
)

RUNS = 100
X = [1.0, 2.0, 4.0, 8.0]


def measurements(run: str, means, *, spread=0.1, seed=0, x=X, **columns) -> pl.DataFrame:
    """Return positive measurements with the specified means along ``x`` and common noise."""
    noise = np.random.default_rng(seed).normal(1.0, spread, size=(len(x), RUNS))
    return pl.DataFrame(
        {
            "experiment": "e",
            "algorithm": "a",
            "variant": run,
            "quantity": "released",
            "metric": "distance",
            "x": np.repeat(np.array(x, float), RUNS),
            "run": np.tile(np.arange(RUNS), len(x)),
            "value": (np.array(means)[:, None] * noise).ravel(),
            **columns,
        }
    )


NO_PRIVACY = pl.DataFrame(
    {
        "experiment": ["e"],
        "algorithm": ["a"],
        "variant": ["one"],
        "epsilon_claimed": [1.0],
        "epsilon_accountant": [0.9],
        "epsilon_lower": [0.5],
        "proven": [True],
        "source": ["made"],
    }
)


def series(run="one", **where):
    return Series(experiment="e", method="a", variant=run, measure="released.distance", where=where)


def verdict(test: Test, *frames: pl.DataFrame, privacy=NO_PRIVACY) -> str:
    return evaluate([test], pl.concat(frames), privacy).verdict


FALLING, RISING, LEVEL = [8, 4, 2, 1], [1, 2, 4, 8], [3, 3, 3, 3]


@pytest.mark.parametrize(
    ("kind", "options", "true", "false"),
    [
        ("decreasing", {}, FALLING, RISING),
        ("increasing", {}, RISING, FALLING),
        ("falls", {"expected": 0.5}, [8, 9, 2, 1], [8, 4, 2, 7]),
        ("slope", {"expected": -1.0, "tolerance": 0.2}, FALLING, [8, 2, 0.5, 0.125]),
        ("trend", {"expected": -1.0, "tolerance": 0.2}, [8, 7, 5, 1], [8, 8, 7, 5]),
        ("slope", {"at_most": -0.9}, FALLING, [8, 6, 4, 3]),
        ("slope", {"at_least": -1.1, "at_most": -0.9}, FALLING, [8, 2, 0.5, 0.125]),
        ("level", {"at_least": 2.5, "at_most": 3.5}, LEVEL, [3, 3, 4, 3]),
    ],
)
def test_verdicts_of_tests_along_an_axis(kind, options, true, false):
    test = Test(kind=kind, series=series(), x="x", **options)
    assert verdict(test, measurements("one", true)) == HELD
    assert verdict(test, measurements("one", false)) in (NOT_HELD, IN_PART)
    assert verdict(test, measurements("one", false)) != HELD


@pytest.mark.parametrize(
    ("kind", "options", "true", "false"),
    [
        ("below", {}, [0.8, 0.8, 0.8, 0.8], [1.2, 1.2, 1.2, 1.2]),
        ("below", {"expected": 3.0}, [2.8, 2.8, 2.8, 2.8], [3.2, 3.2, 3.2, 3.2]),
        ("lower", {}, [0.5, 0.5, 1.5, 1.5], [0.6, 0.6, 2.0, 2.0]),
        ("lower", {"expected": 2.0}, [3.5, 3.5, 1.0, 1.0], [1.5, 1.5, 3.0, 3.0]),
        ("ratio", {"expected": 4.0, "tolerance": 0.1}, [4.1, 4.0, 3.9, 4.0], [5, 5, 5, 5]),
        ("difference", {"at_least": -0.4, "at_most": 0.4}, [1.2, 0.8, 1, 1], [1.6, 0.4, 1.7, 0]),
        ("difference", {"at_most": -0.5}, [0.2, 0.3, 0.1, 0.4], [0.8, 0.7, 0.6, 0.9]),
    ],
)
def test_verdicts_of_tests_that_compare_two_series(kind, options, true, false):
    test = Test(kind=kind, series=series("one"), against=series("two"), x="x", **options)
    reference = measurements("two", [1, 1, 1, 1])
    assert verdict(test, measurements("one", true), reference) == HELD
    assert verdict(test, measurements("one", false), reference) == NOT_HELD


def test_paired_runs_decide_a_comparison_that_unpaired_runs_do_not():
    """A difference of 2 % is significant at a spread of 20 % if both curves share their runs."""
    test = Test(kind="below", series=series("one"), against=series("two"), x="x")
    better = measurements("one", [0.98] * 4, spread=0.2)
    assert verdict(test, better, measurements("two", [1.0] * 4, spread=0.2)) == HELD
    assert verdict(test, better, measurements("two", [1.0] * 4, spread=0.2, seed=1)) != HELD


def test_the_steadier_series_has_the_smaller_standard_deviation():
    """The means are irrelevant; two series without variation are equal."""
    test = Test(kind="steadier", series=series("one"), against=series("two"), x="x")
    wide = measurements("two", [1.0] * 4, spread=0.2, seed=1)
    assert verdict(test, measurements("one", [2.0] * 4, spread=0.05), wide) == HELD
    assert verdict(test, measurements("one", [0.5] * 4, spread=0.8), wide) == NOT_HELD
    assert verdict(test, measurements("one", [1.0] * 4, spread=0.2), wide) == UNDECIDED
    exact = [measurements(name, [1.0] * 4, spread=0.0) for name in ("one", "two")]
    assert verdict(test, *exact) == NOT_HELD


def test_intervals_cover_the_ratio_of_standard_deviations():
    """At least 93 of 100 intervals at 95 % contain the ratio, for ten runs of normal values."""
    pairs, size = 1000, 10
    values = np.random.default_rng(0).normal(size=(2 * pairs, size))
    values[:pairs] *= 3.0
    test = Test(kind="steadier", series=series("one"), against=series("two"), x="x")
    low, high = estimated(test, [""], values, [np.arange(1.0, pairs + 1)]).ends(0.05)
    assert np.mean((low <= np.log(3.0)) & (np.log(3.0) <= high)) > 0.93


def test_the_last_iteration_is_selected_per_horizon():
    """A series along an axis of horizons uses the last iteration of each horizon."""
    steps = [(1.0, 10), (2.0, 10), (2.0, 20)]
    frames = [measurements("one", [k + 1.0], x=[x], t=t) for k, (x, t) in enumerate(steps)]
    last = series("one").model_copy(update={"last_iteration_only": True})
    [label], values, [grid] = measured(last, pl.concat(frames), "x", [])
    assert (label, grid.tolist()) == ("", [1.0, 2.0])
    assert values.mean(1) == pytest.approx([1.0, 3.0], rel=0.05)
    _, values, [grid] = measured(last, pl.concat(frames), "t", [])
    assert grid.tolist() == [20]


def test_the_average_along_an_axis_is_decided_although_its_points_are_not():
    """The standard error of an average decreases with the root of the number of points."""
    test = Test(kind="lower", series=series("one"), against=series("two"), x="x")
    less, reference = measurements("one", [0.985] * 4), measurements("two", [1.0] * 4, spread=0.0)
    points = test.model_copy(update={"kind": "below"})
    assert verdict(points, less, reference) == UNDECIDED
    evaluation = evaluate([test], pl.concat([less, reference]), NO_PRIVACY)
    logs = np.log(less.group_by("x").agg(pl.col("value").mean())["value"].to_numpy())
    assert evaluation.deciding.value == pytest.approx(logs.mean())
    assert (evaluation.verdict, len(evaluation.elements)) == (HELD, 1)


def test_privacy_claims_hold_by_proof_and_fail_only_by_a_lower_bound():
    test = Test(kind="private", series=Series(experiment="e", method="a", variant="one"))
    frame = measurements("one", LEVEL)
    assert verdict(test, frame) == HELD
    for accounted in (1.1, float("inf")):
        above = NO_PRIVACY.with_columns(epsilon_accountant=pl.lit(accounted))
        assert verdict(test, frame, privacy=above) == UNDECIDED
        exceeded = above.with_columns(epsilon_lower=pl.lit(1.05))
        assert verdict(test, frame, privacy=exceeded) == NOT_HELD
    assumed = NO_PRIVACY.with_columns(proven=pl.lit(False))
    assert verdict(test, frame, privacy=assumed) == UNDECIDED
    rounded = NO_PRIVACY.with_columns(
        epsilon_accountant=pl.lit(1 + 1e-12), epsilon_lower=pl.lit(1 + 1e-13)
    )
    assert verdict(test, frame, privacy=rounded) == HELD


def test_an_exact_series_is_compared_with_every_run_of_the_other_series():
    """One run of exact values does not reduce the other series to its first run."""
    exact = measurements("two", [1.0] * 4, spread=0.0).filter(pl.col("run") == 0)
    test = Test(kind="below", series=series("one"), against=series("two"), x="x", expected=1.1)
    pair = pl.concat([measurements("one", [1.0] * 4), exact])
    evaluation = evaluate([test], pair, NO_PRIVACY)
    assert (evaluation.verdict, evaluation.runs) == (HELD, RUNS)
    for element in evaluation.elements:
        assert element.high - element.low == pytest.approx(2 * 2.5 * 0.1 / np.sqrt(RUNS), rel=0.3)
    worse = pl.concat([measurements("one", [1.3] * 4), exact])
    assert evaluate([test], worse, NO_PRIVACY).verdict == NOT_HELD


def test_an_undecided_claim_states_the_number_of_runs_needed():
    """Three times the reported number of runs decide the claim."""
    test = Test(kind="decreasing", series=series(), x="x")
    means = [1.03, 1.02, 1.01, 1.0]
    noisy = measurements("one", means, spread=0.1, seed=5)
    evaluation = evaluate([test], noisy, NO_PRIVACY)
    assert evaluation.verdict == UNDECIDED
    assert evaluation.p == 1.0
    assert RUNS < evaluation.runs_needed < 1000
    rng = np.random.default_rng(1)
    runs = int(3 * evaluation.runs_needed)
    additional_runs = [
        pl.DataFrame({"x": x, "run": np.arange(runs), "value": m * rng.normal(1, 0.1, runs)})
        for x, m in zip(X, means, strict=True)
    ]
    columns = noisy.select("experiment", "algorithm", "variant", "quantity", "metric")[:1]
    assert verdict(test, pl.concat(additional_runs).join(columns, how="cross")) == HELD


def test_a_contradicted_part_excludes_held_and_a_confirmed_one_did_not_hold():
    tests = [Test(kind="decreasing", series=series(run), x="x") for run in ("one", "two")]
    noisy = measurements("two", [1.03, 1.02, 1.01, 1.0], spread=0.1, seed=5)
    for means, excluded, possible in ((RISING, HELD, NOT_HELD), (FALLING, NOT_HELD, HELD)):
        result = evaluate(tests, pl.concat([measurements("one", means), noisy]), NO_PRIVACY)
        assert result.excluding[excluded] < 1e-6 and result.excluding[possible] == 1.0


@pytest.mark.parametrize("runs", [1, 2, 4])
def test_fewer_than_five_runs_are_undecided_unless_the_values_are_constant(runs):
    test = Test(kind="decreasing", series=series(), x="x")
    few = measurements("one", FALLING, spread=0.001).filter(pl.col("run") < runs)
    assert verdict(test, few) == UNDECIDED
    same = measurements("one", FALLING, spread=0.0).filter(pl.col("run") < runs)
    evaluation = evaluate([test], same, NO_PRIVACY, deterministic={"a"})
    assert evaluation.verdict == HELD
    assert evaluate([test], same, NO_PRIVACY).verdict == (UNDECIDED if runs == 1 else HELD)


def test_parts_combine_to_the_verdict_on_the_claim():
    confirmed, contradicted, undecided = HELD, NOT_HELD, UNDECIDED
    assert combined([confirmed, confirmed]) == HELD
    assert combined([confirmed, contradicted, undecided]) == IN_PART
    assert combined([contradicted, undecided]) == NOT_HELD
    assert combined([confirmed, undecided]) == UNDECIDED
    assert combined([]) == UNTESTABLE


def test_one_point_contradicts_a_universal_claim_and_equality_does_not():
    """The reported value is the largest ratio of the series to the bound."""
    bound = measurements("two", [1, 1, 1, 1])
    test = Test(kind="below", quantifier="universal", series=series(), against=series("two"), x="x")
    evaluation = evaluate([test], pl.concat([measurements("one", [0.9, 0.9, 1.1, 0.9]), bound]),
                     NO_PRIVACY)  # fmt: skip
    assert evaluation.verdict == NOT_HELD
    assert np.exp(evaluation.deciding.value) == pytest.approx(1.1)
    assert verdict(test, measurements("one", [0.9, 1.0, 0.9, 0.9]), bound) == HELD
    each_point = test.model_copy(update={"quantifier": "each"})
    assert verdict(each_point, measurements("one", [0.9, 0.9, 1.1, 0.9]), bound) == IN_PART
    assert verdict(each_point, measurements("one", [0.9, 1.0, 0.9, 0.9]), bound) == IN_PART


def test_the_quantifier_some_requires_one_point_per_part():
    """One point confirms a part; the part fails only if all of its points are contradicted."""

    def below_test(name, run):
        return Test(kind="below", quantifier="some", part=name, series=series(run),
                    against=series("two"), x="x")  # fmt: skip

    frames = pl.concat([
        measurements("one", [1.1, 1.1, 0.9, 1.1]), measurements("never", [1.1] * 4),
        measurements("two", [1.0] * 4),
    ])  # fmt: skip
    for tests, expected in (
        ([below_test("a", "one"), below_test("a", "never")], HELD),
        ([below_test("a", "one"), below_test("b", "never")], IN_PART),
        ([below_test("b", "never")], NOT_HELD),
    ):
        assert evaluate(tests, frames, NO_PRIVACY).verdict == expected


@pytest.mark.parametrize(
    ("means", "expected"),
    [([1, 2, 1.5, 1], HELD), ([1, 2, 2.5, 1], NOT_HELD), ([1, 2, 2, 1], UNDECIDED)],
)
def test_no_other_value_is_better_than_the_best(means, expected):
    """An equal value does not contradict that a value is the best, and does not confirm it."""
    test = Test(kind="largest", best_at=2.0, series=series(), x="x")
    exact = measurements("one", means, spread=0.0)
    assert evaluate([test], exact, NO_PRIVACY).verdict == expected


def test_the_best_value_may_be_exceeded_by_at_most_the_tolerance():
    test = Test(kind="largest", best_at=2.0, tolerance=0.05, series=series(), x="x")
    assert verdict(test, measurements("one", [1, 2, 2.05, 2])) == HELD
    assert verdict(test, measurements("one", [1, 2, 2.2, 2])) == NOT_HELD
    with pytest.raises(InvalidInput, match=r"test\.best_at"):
        verdict(test.model_copy(update={"best_at": 3.0}), measurements("one", [1, 2, 3, 4]))


def test_a_power_law_is_not_a_steady_trend():
    """A power law 1 / t does not fall equally in both halves; linear convergence does."""
    steps = np.arange(1.0, 31.0)
    test = Test(kind="steady", tolerance=0.25, series=series(), x="x")
    linear = measurements("one", -0.3 * steps, x=steps, spread=0.001)
    power = measurements("one", -5 * np.log(steps), x=steps, spread=0.001)
    rising = measurements("one", 0.3 * steps, x=steps, spread=0.001)
    flat = measurements("one", np.full(30, -3.0), x=steps, spread=0.001)
    assert verdict(test, linear) == HELD
    assert verdict(test, power) in (NOT_HELD, IN_PART)
    assert verdict(test, rising) == NOT_HELD
    assert verdict(test, flat) != HELD


def test_the_p_value_of_a_verdict_is_that_of_students_t_test():
    """At the error level p, Student's interval touches the border."""
    test = Test(kind="level", series=series(), x="x", at_most=1.0)
    values = np.repeat([0.9, 1.0, 0.8, 0.95, 0.85, 0.75], 1)
    frame = measurements("one", [1.0], x=[1.0], spread=0).filter(pl.col("run") < 6)
    evaluation = evaluate([test], frame.with_columns(value=pl.Series(values)), NO_PRIVACY)
    [element] = evaluation.elements
    symmetric = student(values - values.mean(), 5)
    assert evaluation.verdict == HELD
    assert evaluation.p == pytest.approx(2 * t.sf((1 - values.mean()) / symmetric, 5), rel=0.05)
    assert element.high < 1.0


def student(centred, freedom):
    return np.sqrt((centred**2).sum() / freedom / len(centred))


def test_false_contradictions_are_rarer_than_the_error_level():
    """A true claim at the border is contradicted in at most 5 % of repetitions."""
    test = Test(kind="below", series=series("one"), against=series("two"), x="x")
    rng = np.random.default_rng(0)
    contradicted = 0
    for _ in range(400):
        values = rng.normal(1.0, 0.1, size=(2 * len(X), 20))
        judgement = Judgement([estimated(test, [""], values, [np.array(X)])])
        contradicted += np.any(judgement.states(0.05 / len(X)) == "contradicted")
    assert contradicted <= 23  # 10 expected, half of 5 %; 4 standard deviations


@pytest.mark.parametrize(
    ("means", "expected"),
    [
        ([8, 4, 2, 1], HELD),
        ([8, 4, 4.04, 1], IN_PART),  # a small step in the wrong direction
        ([8, 4, 4, 1], HELD),  # a plateau
        ([8, 2, 2.02, 2.04], IN_PART),  # a reversal over a part of the grid
        ([8, 8, 8, 1], HELD),
        ([8, 4, 5, 1], IN_PART),  # a step in the wrong direction
        ([1, 2, 4, 8], NOT_HELD),
        ([2, 8, 8, 1], IN_PART),  # the end is below the start, the trend is not
        ([4, 4, 4, 8], NOT_HELD),  # steps that do not rise confirm nothing
        ([8, 4, 2, 9], IN_PART),  # the trend falls, the last point is above the first
    ],
)
def test_a_monotone_claim_is_tested_by_ends_trend_and_steps(means, expected):
    test = Test(kind="decreasing", series=series(), x="x")
    assert verdict(test, measurements("one", means, spread=0.01)) == expected


def test_ends_trend_and_every_pair_of_points_have_the_margin_of_the_claim():
    frame = measurements("one", [8, 4, 4.04, 4.08], spread=0.001)
    for tolerance, expected in ((0.005, IN_PART), (0.015, IN_PART), (0.025, HELD)):
        test = Test(kind="decreasing", series=series(), x="x", tolerance=tolerance)
        assert verdict(test, frame) == expected


def test_a_step_in_the_wrong_direction_that_is_significant_alone_keeps_a_claim_from_holding():
    values = np.array([[8.0] * 10, [4.0] * 10, [4.1] * 10, [1.0] * 10])
    values[2] += np.linspace(-0.24, 0.24, 10)
    test = Test(kind="decreasing", series=series(), x="x")
    judged = Judgement([estimated(test, [""], values, [np.arange(4.0)])])
    assert judged.at(0.05) == UNDECIDED


def test_a_finer_grid_does_not_make_a_monotone_claim_undecided():
    """Adjacent points of the fine grid cannot be told apart; none rises significantly."""
    test = Test(kind="decreasing", series=series(), x="x")
    for count in (4, 64):
        x = np.linspace(1.0, 2.0, count)
        frame = measurements("one", 1.0 / x, x=x, spread=0.1)
        assert verdict(test, frame) == HELD


def test_every_group_along_other_axes_is_tested():
    groups = [measurements("one", m, delta=d) for d, m in ((0.1, FALLING), (0.2, RISING))]
    test = Test(kind="decreasing", series=series(), x="x", other_axes=["delta"])
    evaluation = evaluate([test], pl.concat(groups), NO_PRIVACY)
    assert evaluation.verdict == IN_PART
    assert len(evaluation.elements) == 14  # per group, the ends, the trend and five other pairs
    assert {e.state for e in evaluation.elements if "delta = 0.2" in e.statistic} == {
        "contradicted"
    }
    first_group = Test(kind="decreasing", series=series(delta=0.1), x="x")
    assert verdict(first_group, *groups) == HELD


def judged_row(identity, p, **changes):
    """Return a row of the table of verdicts: a mean of 0 in 20 runs with standard error 0.3."""
    statistic = {"kind": "below", "value": 0.0, "low": -0.5, "high": 0.5, "error": 0.3,
                 "skewness": 0.0}  # fmt: skip
    return dict.fromkeys(SCHEMA) | {
        "id": identity, "location": "", "is_primary": True, "addition": False, "verdict": HELD,
        **statistic,
        "opening": {**statistic, "value": -0.2}, "p": p, "level_divisor": 2, "runs": 20, **changes,
    }  # fmt: skip


def test_verdicts_are_adjusted_by_holms_method_separately_for_additions():
    rows = [judged_row("a", 1e-9), judged_row("b", 0.03), judged_row("c", 1e-9),
            judged_row("d", 0.04, addition=True), judged_row("e", 0.04, is_primary=False),
            judged_row("f", None, verdict=UNTESTABLE)]  # fmt: skip
    table = adjusted(pl.DataFrame(rows, schema=SCHEMA))
    assert table["verdict"].to_list() == [HELD, UNDECIDED, HELD, HELD, HELD, UNTESTABLE]
    assert table["verdict_unadjusted"].to_list() == [HELD] * 5 + [UNTESTABLE]
    assert table["p_holm"].to_list() == pytest.approx([4e-9, 0.06, 4e-9, 0.04, None, None])
    # The first of four p-values has level 5 % / 4, divided by two parts; 19 degrees of freedom.
    half = 0.3 * t.isf(0.05 / 4 / 2 / 2, 19)
    assert table.row(0, named=True)["high"] == pytest.approx(half)
    assert table.row(0, named=True)["low"] == pytest.approx(-half)
    assert table.row(4, named=True)["high"] == 0.5
    # Row b shows the statistic that is undecided at its level.
    assert table["value"].to_list() == [0.0, -0.2, 0.0, 0.0, 0.0, 0.0]
    assert adjusted(pl.DataFrame()).is_empty()


def test_the_part_that_is_undecided_at_levels_below_p_is_named():
    weak = measurements("one", [2.0, 2.0, 2.0, 1.86])
    strong = measurements("two", FALLING[::-1])
    tests = [Test(kind="falls", series=series(name), x="x") for name in ("one", "two")]
    result = evaluate(tests, pl.concat([weak, strong]), NO_PRIVACY)
    assert result.verdict == IN_PART and 1e-9 < result.p < 0.05
    assert result.deciding.value > 0 > result.opening.value


def test_a_theorem_has_its_own_verdict_and_does_not_count_in_holms_method():
    rows = [
        {**judged_row("a", 0.03), "location": "after Theorem 2; Theorem 31"},
        {**judged_row("b", 0.03), "theorems": "Theorem 1"},
        {**judged_row("c", 1.0), "theorems": "Theorem 1; Theorem 2"},
        {**judged_row("d", 1.0), "theorems": "Theorem 3", "verdict": UNTESTABLE},
    ]
    verdicts = [("Theorem 1", HELD), ("Theorem 2", NOT_HELD), ("Theorem 3", NOT_REFUTED)]
    theorems = pl.DataFrame(
        [(rows[0]["paper"], number, verdict) for number, verdict in verdicts],
        schema=["paper", "number", "verdict"], orient="row",
    )  # fmt: skip
    table = adjusted(pl.DataFrame(rows, schema=SCHEMA), theorems)
    assert table["verdict"].to_list() == [HELD, HELD, IN_PART, NOT_REFUTED]
    assert table["verdict_unadjusted"].to_list() == [HELD, HELD, HELD, UNTESTABLE]
    assert table["related"].to_list() == [f"Theorem 2 {NOT_HELD}", "", "", ""]


@pytest.mark.parametrize("seed", [None, 0])
def test_claims_select_the_rows_of_their_series_in_any_order(seed):
    """Rows are selected by experiment, algorithm and variant, in any order."""
    series_one, series_two = series("one"), series("two")
    tests = [Test(kind="below", series=series_one, against=series_two, x="x")]
    fields = {"claim": "", "location": "here", "figure": "f", "because": "w"}
    claim = Claim(variants={"v": {"tests": tests}}, **fields)
    level, rising = measurements("one", LEVEL), measurements("two", RISING)
    strange = [
        level.with_columns(pl.lit("other").alias(column), value=pl.lit(100.0))
        for column in ("experiment", "algorithm", "variant")
    ]
    frame = pl.concat([level[:50], *strange, rising, level[50:]])
    if seed is not None:
        frame = frame.sample(fraction=1.0, shuffle=True, seed=seed)
    [row] = judge_all({"c": claim}, frame, NO_PRIVACY, paper="p").to_dicts()
    alone = evaluate(tests, pl.concat([level, rising]), NO_PRIVACY)
    assert alone.verdict == IN_PART
    deciding = alone.deciding
    assert [row[key] for key in ("verdict", "value", "low", "high", "p", "parts")] == [
        alone.verdict, deciding.value, deciding.low, deciding.high, alone.p, len(X),
    ]  # fmt: skip
    with pytest.raises(InvalidInput, match="a series with results"):
        judge_all({"c": claim}, rising.clear(), NO_PRIVACY, paper="p")


def test_reduced_experiments_are_undecided_and_report_their_numbers():
    tests = [Test(kind="falls", series=series(), x="x")]
    claim = Claim(
        claim="falls", location="here", figure="f", because="wording",
        variants={"one": {"tests": tests}},
    )  # fmt: skip
    frame = measurements("one", FALLING)
    full, small = (
        judge_all({"c": claim}, frame, NO_PRIVACY, paper="p", reduced=reduced).row(0, named=True)
        for reduced in (False, True)
    )
    assert (full["verdict"], small["verdict"]) == (HELD, UNDECIDED)
    assert small["p"] == 1.0
    assert small["value"] == full["value"]
    assert small["confirmed"] == full["confirmed"] == 1


def test_no_variant_of_a_sentence_that_cannot_be_tested_has_a_verdict_or_a_p_value():
    tests = [Test(kind="falls", series=series(), x="x")]
    variants = {name: {"tests": tests} for name in ("one", "two")}
    claim = Claim(claim="falls", location="here", figure="f", because="wording", untestable="why",
                  variants={**variants, "other": {"tests": tests, "claim": "sinks"}})  # fmt: skip
    table = judge_all({"c": claim}, measurements("one", FALLING), NO_PRIVACY, paper="p")
    assert table["verdict"].to_list() == [UNTESTABLE, UNTESTABLE, HELD]
    assert table["untestable_because"].to_list() == ["why", "why", ""]
    assert table["p"].is_null().to_list() == [True, True, False]


@pytest.mark.parametrize(
    ("quantifier", "rule"),
    [
        ("each", lambda inside: HELD if all(inside) else IN_PART if any(inside) else NOT_HELD),
        ("universal", lambda inside: HELD if all(inside) else NOT_HELD),
        ("most", lambda inside: HELD if sum(inside) > 2 else NOT_HELD),
        ("some", lambda inside: HELD if any(inside) else NOT_HELD),
    ],
)
@pytest.mark.parametrize("inside", list(product([True, False], repeat=4)))
def test_the_verdict_follows_from_the_published_elements(quantifier, rule, inside):
    """Each line of the table has an interval and the region in which the claim is true."""
    test = Test(kind="level", series=series(), x="x", at_most=2.0, quantifier=quantifier)
    means = [1.0 if is_inside else 3.0 for is_inside in inside]
    claim = Claim(claim="low", location="here", figure="f", because="wording",
                  variants={"v": {"tests": [test]}})  # fmt: skip
    table = judge_all({"c": claim}, measurements("one", means), NO_PRIVACY, paper="p")
    [row] = table.to_dicts()
    ends = [
        map(float, re.search(r"\[(.*), (.*)\] in \[(.*), (.*)\]:", line).groups())
        for line in row["elements"].splitlines()
    ]
    is_inside = [low >= lowest and high <= highest for low, high, lowest, highest in ends]
    assert row["verdict"] == rule(is_inside)


def test_differences_and_trends_accept_negative_values():
    """Values such as logarithms of distances are negative; neither test takes their logarithm."""
    falling = measurements("one", [-1.0, -2.0, -4.0, -8.0])
    trend = Test(kind="trend", series=series(), x="x", expected=-1.0, tolerance=0.1)
    assert verdict(trend, falling) == HELD
    assert verdict(trend.model_copy(update={"expected": -0.5}), falling) == NOT_HELD
    close = Test(kind="difference", series=series(), against=series("two"), x="x", at_most=0.5)
    assert verdict(close, falling, measurements("two", [-1.3, -2.3, -4.3, -8.3])) == HELD
    assert verdict(close, falling, measurements("two", [-2.0, -4.0, -8.0, -16.0])) == NOT_HELD


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("below", lambda means: np.log(means[0] / means[1])),
        ("steadier", lambda means: np.log(means[0] / means[1])),
        ("difference", lambda means: means[0] - means[1]),
        ("level", lambda means: means[0]),
        ("falls", lambda means: means[1] - means[0]),
        ("slope", lambda means: np.polyfit(np.log(X), np.log(means), 1)[0]),
        ("trend", lambda means: np.polyfit(X, means, 1)[0]),
        ("private", lambda means: np.log(means[0] / means[1])),
    ],
)
def test_the_value_of_a_statistic_follows_from_its_published_means(kind, value):
    compares = kind in ("below", "steadier", "difference")
    test = Test(
        kind=kind, series=series(), x="x", **({"against": series("two")} if compares else {})
    )
    frames = measurements("one", FALLING), measurements("two", RISING, seed=1)
    for element in evaluate([test], pl.concat(frames), NO_PRIVACY).elements:
        assert value(element.means) == pytest.approx(element.value, rel=1e-9)


def test_two_series_may_differ_in_either_direction():
    flat = measurements("one", [5.0] * 4)
    test = Test(kind="differs", series=series(), against=series("two"), x="x", tolerance=0.1)
    assert verdict(test, flat, measurements("two", [4.0] * 4)) == HELD
    assert verdict(test, flat, measurements("two", [6.0] * 4)) == HELD
    assert verdict(test, flat, measurements("two", [5.2] * 4)) == NOT_HELD
    assert verdict(test, flat, measurements("two", [6.0, 5.1, 5.1, 5.1])) == IN_PART


@pytest.mark.parametrize(("first", "state"), [(0.5, "held"), (0.9, "did not hold")])
def test_the_series_that_decreases_faster_reaches_the_goal_earlier(first, state):
    steps = np.arange(1.0, 31.0)
    curves = [
        measurements(name, rate**steps, seed=seed, x=steps)
        for name, rate, seed in (("one", first, 0), ("two", 0.7, 1))
    ]
    test = Test(
        kind="reaches_earlier", x="x", goal=0.1, series=series("one"), against=series("two")
    )
    assert verdict(test, *curves) == state


def test_infinite_values_are_evaluated_as_very_large_values():
    is_diverged = (pl.col("x") == 2.0) & (pl.col("run") == 0)
    value = pl.when(is_diverged).then(np.inf).otherwise(pl.col("value"))
    runs = measurements("one", [1.0, 1.0], x=[1.0, 2.0]).with_columns(value=value)
    level = Test(kind="level", x="x", series=series(), at_most=10.0)
    judged = evaluate([level], runs, NO_PRIVACY)
    assert judged.elements[0].state == "confirmed"
    assert judged.deciding.value > 1e100


@pytest.mark.parametrize(
    ("quantifier", "means", "deciding"),
    [("each", [0.98, 0.9], 1), ("some", [0.98, 2.0], 0), ("some", [3.0, 0.8], 1)],
)
def test_the_deciding_element_of_a_held_claim_has_the_largest_p_value(quantifier, means, deciding):
    """The second mean has the wider interval; only the best one counts for ``some``."""
    curves = pl.concat(
        measurements("one", [mean], spread=spread, x=[x])
        for mean, spread, x in zip(means, (0.02, 0.4), X, strict=False)
    )
    test = Test(kind="level", series=series(), x="x", at_most=1.0, quantifier=quantifier)
    judged = evaluate([test], curves, NO_PRIVACY)
    assert judged.verdict == HELD
    assert judged.deciding == judged.elements[deciding]
