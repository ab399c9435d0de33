"""Verdicts: each kind of test says so where a claim is true, and where it is false."""

import numpy as np
import polars as pl
import pytest

from private_consensus.claims import (
    HELD,
    IN_PART,
    NOT_HELD,
    UNTESTED,
    Claim,
    Series,
    Test,
    evaluate,
    judge_all,
    verdict_of,
)
from private_consensus.errors import InvalidInput

RUNS = 100
X = [1.0, 2.0, 4.0, 8.0]


def measurements(run: str, means, *, spread=0.1, seed=0, x=X, **columns) -> pl.DataFrame:
    """Positive measurements with the given means along ``x``; the noise is common to all curves."""
    noise = np.random.default_rng(seed).normal(1.0, spread, size=(len(x), RUNS))
    return pl.DataFrame(
        {
            "experiment": "e",
            "algorithm": "a",
            "variant": run,
            "quantity": "released",
            "metric": "error",
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
        "source": ["made"],
    }
)


def series(run="one", **where):
    return Series(
        experiment="e", algorithm="a", run=run, quantity="released", metric="error", where=where
    )


def verdict(test: Test, *frames: pl.DataFrame, privacy=NO_PRIVACY) -> str:
    return evaluate([test], pl.concat(frames), privacy, name="test").verdict


FALLING, RISING, LEVEL = [8, 4, 2, 1], [1, 2, 4, 8], [3, 3, 3, 3]


@pytest.mark.parametrize(
    ("kind", "options", "true", "false"),
    [
        ("decreasing", {}, FALLING, RISING),
        ("increasing", {}, RISING, FALLING),
        ("falls", {"expected": 0.5}, [8, 9, 2, 1], [8, 4, 2, 7]),
        ("flat", {"tolerance": 0.1}, [8, 4, 2, 2], [8, 4, 2, 1]),
        ("slope", {"expected": -1.0, "tolerance": 0.2}, FALLING, [8, 2, 0.5, 0.125]),
        ("trend", {"expected": -1.0, "tolerance": 0.2}, [8, 7, 5, 1], [8, 8, 7, 5]),
        ("slope", {"at_most": -0.9}, FALLING, [8, 6, 4, 3]),
        ("slope", {"at_least": -1.1, "at_most": -0.9}, FALLING, [8, 2, 0.5, 0.125]),
        ("level", {"at_least": 2.5, "at_most": 3.5}, LEVEL, [3, 3, 4, 3]),
    ],
)
def test_kinds_along_an_axis(kind, options, true, false):
    test = Test(kind=kind, series=series(), x="x", **options)
    assert verdict(test, measurements("one", true)) == HELD
    assert verdict(test, measurements("one", false)) in (NOT_HELD, IN_PART)
    assert verdict(test, measurements("one", false)) != HELD


@pytest.mark.parametrize(
    ("kind", "options", "true", "false"),
    [
        ("below", {}, [0.8, 0.8, 0.8, 0.8], [1.2, 1.2, 1.2, 1.2]),
        ("below", {"expected": 3.0}, [2.8, 2.8, 2.8, 2.8], [3.2, 3.2, 3.2, 3.2]),
        ("ratio", {"expected": 4.0, "tolerance": 0.1}, [4.1, 4.0, 3.9, 4.0], [5, 5, 5, 5]),
        ("difference", {"at_least": -0.4, "at_most": 0.4}, [1.2, 0.8, 1, 1], [1.6, 0.4, 1.7, 0]),
        ("difference", {"at_most": -0.5}, [0.2, 0.3, 0.1, 0.4], [0.8, 0.7, 0.6, 0.9]),
    ],
)
def test_kinds_that_compare_two_series(kind, options, true, false):
    test = Test(kind=kind, series=series("one"), against=series("two"), x="x", **options)
    other = measurements("two", [1, 1, 1, 1])
    assert verdict(test, measurements("one", true), other) == HELD
    assert verdict(test, measurements("one", false), other) == NOT_HELD


def test_pairing_decides_what_unpaired_runs_could_not():
    """A difference of 2 % under a spread of 50 % shows only since both curves share their runs."""
    test = Test(kind="below", series=series("one"), against=series("two"), x="x")
    better = measurements("one", [0.98] * 4, spread=0.2)
    assert verdict(test, better, measurements("two", [1.0] * 4, spread=0.2)) == HELD
    assert verdict(test, better, measurements("two", [1.0] * 4, spread=0.2, seed=1)) != HELD


def test_privacy_is_judged_by_the_accountant():
    test = Test(kind="private", series=Series(experiment="e", algorithm="a", run="one"))
    frame = measurements("one", LEVEL)
    assert verdict(test, frame) == HELD
    for accounted in (1.1, float("inf")):
        exceeded = NO_PRIVACY.with_columns(epsilon_accountant=pl.lit(accounted))
        assert verdict(test, frame, privacy=exceeded) == NOT_HELD


def test_a_tight_claim_is_neither_exceeded_nor_generous():
    test = Test(
        kind="tight", tolerance=0.01, series=Series(experiment="e", algorithm="a", run="one")
    )
    frame = measurements("one", LEVEL)
    for accounted, expected in ((1.0, HELD), (0.9, NOT_HELD), (1.1, NOT_HELD)):
        found = NO_PRIVACY.with_columns(epsilon_accountant=pl.lit(accounted))
        assert verdict(test, frame, privacy=found) == expected


def test_an_exact_series_is_compared_with_every_run_of_the_other():
    """One run of exact values does not reduce the other series to its first run."""
    exact = measurements("two", [1.0] * 4, spread=0.0).filter(pl.col("run") == 0)
    test = Test(kind="below", series=series("one"), against=series("two"), x="x", expected=1.1)
    pair = pl.concat([measurements("one", [1.0] * 4), exact])
    found = evaluate([test], pair, NO_PRIVACY, name="t")
    assert (found.verdict, found.runs) == (HELD, RUNS)
    for element in found.elements:
        assert element.high - element.low == pytest.approx(2 * 2.5 * 0.1 / np.sqrt(RUNS), rel=0.3)
    worse = pl.concat([measurements("one", [1.3] * 4), exact])
    assert evaluate([test], worse, NO_PRIVACY, name="t").verdict == NOT_HELD


def test_a_claim_that_is_true_in_places_held_in_part():
    test = Test(kind="decreasing", series=series(), x="x")
    assert verdict(test, measurements("one", [8, 4, 5, 1])) == IN_PART


def test_too_few_runs_give_no_verdict():
    test = Test(kind="decreasing", series=series(), x="x")
    noisy = measurements("one", [1.0, 1.0, 1.0, 1.0], spread=0.3)
    assert verdict(test, noisy) == UNTESTED
    assert verdict_of([]) == UNTESTED


def test_false_alarms_stay_below_the_level():
    """At the border of the region, a true claim is contradicted in at most 5 % of repetitions."""
    test = Test(kind="below", series=series("one"), against=series("two"), x="x")
    contradicted = 0
    for seed in range(200):
        pair = [
            measurements(run, [1.0] * 4, seed=2 * seed + i) for i, run in enumerate(("one", "two"))
        ]
        found = evaluate([test], pl.concat(pair), NO_PRIVACY, name=f"repetition {seed}")
        contradicted += any(element.state == "contradicted" for element in found.elements)
    assert contradicted <= 20  # 10 expected; 3.2 standard deviations


def test_the_interval_agrees_with_the_normal_one():
    frame = measurements("one", [2.0], x=[1.0])
    test = Test(kind="level", series=series(), x="x", at_least=0, at_most=9)
    [element] = evaluate([test], frame, NO_PRIVACY, name="t").elements
    values = frame["value"].to_numpy()
    half = 1.96 * values.std(ddof=1) / np.sqrt(RUNS)
    assert element.value == pytest.approx(values.mean())
    assert element.low == pytest.approx(values.mean() - half, abs=0.15 * half)
    assert element.high == pytest.approx(values.mean() + half, abs=0.15 * half)


def test_every_group_of_each_is_put_to_the_test():
    groups = [measurements("one", m, delta=d) for d, m in ((0.1, FALLING), (0.2, RISING))]
    test = Test(kind="decreasing", series=series(), x="x", each=["delta"])
    found = evaluate([test], pl.concat(groups), NO_PRIVACY, name="t")
    assert found.verdict == IN_PART
    assert len(found.elements) == 6
    assert {e.state for e in found.elements if "delta 0.2" in e.name} == {"contradicted"}
    kept = Test(kind="decreasing", series=series(delta=0.1), x="x")
    assert verdict(kept, *groups) == HELD


def test_a_range_keeps_part_of_the_axis():
    frame = measurements("one", [1, 8, 4, 2])
    assert verdict(Test(kind="decreasing", series=series(x=[2.0, 8.0]), x="x"), frame) == HELD


def test_verdicts_are_the_same_however_often_asked():
    test = Test(kind="slope", series=series(), x="x", expected=-1.0, tolerance=0.01)
    frame = measurements("one", FALLING)
    first = evaluate([test], frame, NO_PRIVACY, name="t")
    assert first == evaluate([test], frame.reverse(), NO_PRIVACY, name="t")


def test_rows_name_headline_reading_and_source():
    claim = Claim(
        claim="falls",
        place="here",
        figure="f",
        because="wording",
        headline="one",
        variants={"one": [Test(kind="falls", series=series(), x="x")], "two": []},
        reading={"two": "literal"},
    )
    table = judge_all({"c": claim}, measurements("one", FALLING), NO_PRIVACY, paper="p")
    assert table["verdict"].to_list() == [HELD, UNTESTED]
    assert table["headline"].to_list() == [True, False]
    assert table["reading"].to_list() == ["resolved", "literal"]
    assert table["source"][0] == "made"
    assert table["runs"][0] == RUNS


@pytest.mark.parametrize(
    "test",
    [
        Test(kind="falls", series=series("missing"), x="x"),
        Test(kind="falls", series=series(nothing=1), x="x"),
        Test(kind="falls", series=series()),
        Test(kind="below", series=series(), x="x"),
    ],
)
def test_series_that_do_not_exist_are_refused(test):
    with pytest.raises(InvalidInput):
        evaluate([test], measurements("one", FALLING), NO_PRIVACY, name="t")


def test_differences_and_trends_of_negative_numbers():
    """Logarithms of distances are negative: neither kind takes a logarithm of them."""
    falling = measurements("one", [-1.0, -2.0, -4.0, -8.0])
    trend = Test(kind="trend", series=series(), x="x", expected=-1.0, tolerance=0.1)
    assert verdict(trend, falling) == HELD
    assert verdict(trend.model_copy(update={"expected": -0.5}), falling) == NOT_HELD
    close = Test(kind="difference", series=series(), against=series("two"), x="x", at_most=0.5)
    assert verdict(close, falling, measurements("two", [-1.3, -2.3, -4.3, -8.3])) == HELD
    assert verdict(close, falling, measurements("two", [-2.0, -4.0, -8.0, -16.0])) == NOT_HELD


def test_two_series_differ_in_whichever_direction():
    flat = measurements("one", [5.0] * 4)
    test = Test(kind="differs", series=series(), against=series("two"), x="x", tolerance=0.1)
    assert verdict(test, flat, measurements("two", [4.0] * 4)) == HELD
    assert verdict(test, flat, measurements("two", [6.0] * 4)) == HELD
    assert verdict(test, flat, measurements("two", [5.2] * 4)) == NOT_HELD
    assert verdict(test, flat, measurements("two", [6.0, 5.1, 5.1, 5.1])) == IN_PART


@pytest.mark.parametrize(("first", "state"), [(0.5, "held"), (0.9, "did not hold")])
def test_the_series_that_shrinks_faster_arrives_sooner(first, state):
    rng = np.random.default_rng(3)
    t = np.arange(1, 31)
    rows = [
        {"experiment": "e", "algorithm": name, "variant": "v", "quantity": "q", "metric": "m",
         "run": run, "t": int(i), "value": rate ** float(i) * rng.uniform(0.9, 1.1)}
        for name, rate in (("one", first), ("two", 0.7)) for run in range(8) for i in t
    ]  # fmt: skip
    series = {"experiment": "e", "run": "v", "quantity": "q", "metric": "m"}
    test = Test(
        kind="sooner", x="t", goal=0.1,
        series={**series, "algorithm": "one"}, against={**series, "algorithm": "two"},
    )  # fmt: skip
    privacy = pl.DataFrame(schema={"experiment": pl.String})
    assert evaluate([test], pl.DataFrame(rows), privacy, name="n").verdict == state


def test_infinite_values_count_as_huge_and_decide():
    rows = [
        {"experiment": "e", "algorithm": "a", "variant": "v", "quantity": "q", "metric": "m",
         "run": run, "x": x, "value": np.inf if x == 2.0 and run == 0 else 1.0}
        for run in range(6) for x in (1.0, 2.0)
    ]  # fmt: skip
    series = {"experiment": "e", "algorithm": "a", "run": "v", "quantity": "q", "metric": "m"}
    level = Test(kind="level", x="x", series=series, at_most=10.0)
    privacy = pl.DataFrame(schema={"experiment": pl.String})
    verdict = evaluate([level], pl.DataFrame(rows), privacy, name="n")
    assert verdict.elements[0].state == "confirmed"
    assert verdict.value > 1e100


@pytest.mark.parametrize(("last", "state"), [(True, "held"), (False, "held in part")])
def test_a_series_may_be_its_last_iteration_alone(last, state):
    rows = [
        {"experiment": "e", "algorithm": "a", "variant": "v", "quantity": "q", "metric": "m",
         "run": run, "t": t, "value": 1.0 / t}
        for run in range(4) for t in (1, 2, 10)
    ]  # fmt: skip
    series = {"experiment": "e", "algorithm": "a", "run": "v", "quantity": "q", "metric": "m"}
    test = Test(kind="level", x="t", at_most=0.2, series={**series, "last": last})
    privacy = pl.DataFrame(schema={"experiment": pl.String})
    assert evaluate([test], pl.DataFrame(rows), privacy, name="n").verdict == state
