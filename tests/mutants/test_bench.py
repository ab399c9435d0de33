"""Test a part of the mutation tests with fixed seeds."""

import json
from dataclasses import replace

import polars as pl
import pytest

from private_consensus import algorithms, audit
from private_consensus.audits.result import Coverage, Untested

from . import bench, outsiders
from .bench import (
    CORRECT,
    MUST,
    Request,
    alarms,
    counts,
    judged,
    missed,
    names_item,
    outside,
    sentence,
    text,
)  # fmt: skip
from .cases import case_of
from .styles import STYLES

RUNS = 800
SAMPLED = ("sdm_dsgd",)
"""Each run of these is a loop over batches; a record in a batch shows in an eighth of the runs."""
NAMED = [
    ("gradient_descent", "noise x 0.5"),
    ("gradient_descent", "none in the last round"),
    ("muffliato_gd", "none in the last round"),
    ("dp_ci", "half the coordinates"),
    ("fair_classification", "one seed"),
    ("dvp", "same in two rounds"),
    ("dp_admm", "weight not counted"),
    ("pdop", "step from data"),
    ("sdm_dsgd", "weights after clipping"),
    ("coordinate_descent", "a second message"),
    ("m_admm", "account of the first"),
    ("decor", "added x 0.5"),
    ("decor", "seeded from data"),
    ("local_training", "noise told"),
    ("local_training", "added x 0.5"),
    ("mafalda_sgd", "added x 0.5"),
    ("mafalda_sgd", "weight of 6 in a step"),
]
"""Two or more of each class of faults, those that are audited fastest; `make mutants` audits every
fault of every algorithm."""


@pytest.mark.parametrize(("algorithm", "broken"), NAMED)
def test_a_broken_copy_is_caught(algorithm, broken):
    row = judged(Request(algorithm, broken), RUNS // 8 if algorithm in SAMPLED else RUNS)
    assert row["caught"], (row["verdict"], row["findings"], row["untested"])
    assert row["meaningful"] == (row["ratio"] >= MUST)


@pytest.mark.parametrize("name", STYLES)
def test_a_correct_style_is_not_flagged(name):
    row = judged(Request(name, CORRECT), RUNS // 4)
    assert not row["caught"] and row["verdict"] != bench.FAILED, row["findings"]


@pytest.mark.parametrize("algorithm", ["gradient_descent", "dvp", "pflr"])
def test_a_correct_copy_is_not_flagged(algorithm):
    row = judged(Request(algorithm, CORRECT), RUNS // 4)
    assert not row["caught"], row["findings"]


@pytest.fixture(autouse=True, scope="module")
def registry():
    """Uninstall the outside algorithms after a test."""
    yield
    outsiders.uninstall()


OUTSIDE = ["half_noise_descent", "mixed_means_gossip", "rounded_noise_gossip", "momentum_descent"]


@pytest.mark.parametrize("module", OUTSIDE)
def test_an_algorithm_of_the_outside_package_is_audited_by_its_name(module):
    row = judged(Request(module, outsiders.LABEL), RUNS // 2)
    assert row["outside"] and row["fault"] == module
    assert row["caught"] is not row["correct"], row["findings"]


STOPS = {
    "released_stop_descent": False,
    "private_stop_descent": True,
    "censored_descent": True,
    "accepting_descent": True,
    "half_noise_descent": True,
}
"""Algorithms that stop or repeat messages, or lack noise, and whether they have a fault."""


@pytest.mark.parametrize(("module", "is_broken"), STOPS.items())
def test_a_stop_is_a_fault_only_if_it_depends_on_private_data(module, is_broken):
    row = judged(Request(module, outsiders.BY_NAME), RUNS // 2)
    assert row["correct"] is not is_broken
    assert row["caught"] is is_broken, row["findings"]


def test_the_outside_package_is_found_by_its_entry_points():
    outsiders.install()
    registered = algorithms.names()
    assert {request.algorithm for request in outside()} <= set(registered)
    bases = {entry.base for entry in outsiders.entries().values() if not entry.correct}
    correct = {entry.module for entry in outsiders.entries().values() if entry.correct}
    assert bases <= correct and len(bases) > 10


def test_a_stopped_bench_continues(tmp_path, monkeypatch):
    """Keep a row of the same code and number of runs, and ignore an incomplete line."""
    record, requests = tmp_path / "mutants.jsonl", [Request("p_admm", CORRECT)]
    first = bench.table(requests, runs=40, cores=1, record=record)
    known = record.read_text()
    record.write_text(known + known[:100])
    monkeypatch.setattr(bench, "judged", None)  # no audit is executed
    again = bench.table(requests, runs=40, cores=1, record=record)
    assert again.equals(first) and again["verdict"].to_list() == ["not contradicted"]
    entry = json.loads(known)
    assert bench.recorded(record, entry["code"], 40).keys() == set(requests)
    assert not bench.recorded(record, entry["code"], 41)
    assert not bench.recorded(record, "other code", 40)


def test_an_audit_that_fails_is_a_missed_fault(monkeypatch):
    def fails(*world, **options):
        raise ValueError("shapes differ")

    monkeypatch.setattr(bench, "audit", fails)
    row = judged(Request("p_admm", "noise x 0.5"), RUNS)
    assert (row["verdict"], row["caught"], row["meaningful"]) == ("error", False, True)
    assert row["findings"] == "ValueError: shapes differ"
    assert missed(pl.DataFrame([row])).height == 1


def rows(*outcomes):
    """Return rows of a results table from (algorithm, fault, ratio, verdict, inconclusive)."""
    columns = ("algorithm", "fault", "ratio", "verdict", "inconclusive")
    return pl.DataFrame(
        [
            dict(zip(columns, outcome, strict=True))
            | {
                "class": "of " + outcome[1], "correct": outcome[1] == CORRECT,
                "outside": outcome[0] == "b", "caught": outcome[3] == "violated",
                "meaningful": outcome[2] >= MUST, "runs": 100,
                "how": "contradicted" if outcome[3] == "violated" else "",
            }
            for outcome in outcomes
        ]
    )  # fmt: skip


def test_the_table_counts_caught_inconclusive_and_missed_of_what_has_to_be_found():
    results_table = rows(
        ("a", "x", 2.0, "violated", False), ("a", "y", 1.2, "violated", False),
        ("b", "x", 2.0, "not contradicted", False), ("b", "x", 2.0, "inconclusive", True),
        ("b", "x", 2.0, "inconclusive", False), ("a", CORRECT, 1.0, "inconclusive", False),
        ("b", CORRECT, 1.0, "violated", False),
    )  # fmt: skip
    of_faults = {row["fault"]: row for row in counts(results_table, "fault").iter_rows(named=True)}
    expected = {"meaningful": 4, "caught": 1, "inconclusive": 1, "missed": 2, "others": 0}
    assert {key: of_faults["x"][key] for key in expected} == expected
    assert (of_faults["y"]["meaningful"], of_faults["y"]["others"]) == (0, 1)
    assert missed(results_table)["verdict"].to_list() == ["not contradicted", "inconclusive"]
    right = alarms(results_table)
    assert (right["flagged"], right["tried"], right["inconclusive"]) == (1, 2, 1)
    lines = text(results_table)
    assert "| x | 1 | 1 | 2 | 4 | 1 | 0 of 0 | 100 |" in lines and "Missed: b, x" in lines
    assert "Of 1 faults that the authors of this repository" in sentence(results_table)
    assert "Of 3 broken algorithms of a package written without knowledge" in sentence(
        results_table
    )


def test_an_inconclusive_result_has_to_name_the_item():
    case = case_of("p_admm")
    audit_result = audit(
        case.algorithm, case.problem, case.network, case.budget, case.horizon,
        runs=40, confidence=0.99, delta=1e-2,
    )  # fmt: skip
    agent = Untested("messages of agent 2", "their noise was not recovered")
    coverage = Coverage(untested=(agent,))
    unsure = replace(audit_result, findings=(), coverage=coverage)
    assert names_item(unsure, ("noise",)) and not names_item(unsure, ("outcome",))
    assert not names_item(replace(unsure, coverage=Coverage()), ("noise",))


def test_the_interval_of_alarms_is_that_of_clopper_and_pearson():
    none = alarms(rows(*[("a", CORRECT, 1.0, "not contradicted", False)] * 1000))
    # (1 - p)^1000 = 1/2000
    assert none["low"] == 0.0 and none["high"] == pytest.approx(1 - 2000 ** (-1 / 1000))
