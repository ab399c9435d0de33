"""A named part of the bench, with fixed seeds: broken copies are caught, correct ones are not."""

import polars as pl
import pytest

from .bench import CORRECT, MUST, Asked, alarms, judged, missed, shares, text
from .styles import STYLES

RUNS = 800
SAMPLED = ("dsgd", "sdm_dsgd")
"""Each run of these is a loop over batches; a record in a batch shows in an eighth of the runs."""
NAMED = [
    ("gradient_descent", "noise x 0.5"),
    ("gradient_descent", "none in the last round"),
    ("dp_ci", "half the coordinates"),
    ("dvp", "same in two rounds"),
    ("r_admm", "none in the first round"),
    ("p_admm", "taken back"),
    ("pr_admm", "the minimiser once"),
    ("ldp_admm", "same in both worlds"),
    ("pdop", "step from data"),
    ("dp_admm", "weight not counted"),
    ("exact_admm", "seeded from data"),
    ("coordinate_descent", "a second message"),
    ("dsgd", "clipped to the own median"),
    ("sdm_dsgd", "weights after clipping"),
    ("fair_classification", "one seed"),
    ("m_admm", "account of the first"),
    ("pdop", "in another order"),
    ("pp_admm", "runs on"),
]


@pytest.mark.parametrize(("algorithm", "broken"), NAMED)
def test_a_broken_copy_is_caught(algorithm, broken):
    row = judged(Asked(algorithm, broken), RUNS // 8 if algorithm in SAMPLED else RUNS)
    assert row["caught"]
    assert row["meaningful"] == (row["ratio"] >= MUST)


@pytest.mark.parametrize("name", STYLES)
def test_a_correct_style_is_not_flagged(name):
    row = judged(Asked(name, CORRECT), RUNS // 4)
    assert not row["caught"], row["findings"]


@pytest.mark.parametrize("algorithm", ["gradient_descent", "dvp", "q_dpsgd_2", "pflr"])
def test_a_correct_copy_is_not_flagged(algorithm):
    row = judged(Asked(algorithm, CORRECT), RUNS // 4)
    assert not row["caught"], row["findings"]


def rows(*found):
    """Rows of a table: algorithm, fault, ratio, caught."""
    columns = ("algorithm", "fault", "ratio", "caught")
    return pl.DataFrame(
        [
            dict(zip(columns, one, strict=True))
            | {"meaningful": one[2] >= MUST, "how": "contradicted" if one[3] else "", "runs": 100}
            for one in found
        ]
    )


def test_the_table_counts_what_is_caught_of_what_has_to_be():
    found = rows(
        ("a", "x", 2.0, True), ("a", "y", 1.2, True), ("b", "x", 2.0, False),
        ("a", CORRECT, 1.0, False), ("b", CORRECT, 1.0, True),
    )  # fmt: skip
    of_faults = {row["fault"]: row for row in shares(found, "fault").iter_rows(named=True)}
    assert (of_faults["x"]["caught"], of_faults["x"]["meaningful"]) == (1, 2)
    assert (of_faults["y"]["caught"], of_faults["y"]["meaningful"]) == (0, 0)
    assert of_faults["y"]["caught_of_others"] == 1
    assert missed(found).select("algorithm", "fault").rows() == [("b", "x")]
    assert (alarms(found)["flagged"], alarms(found)["tried"]) == (1, 2)
    assert "| x | 1 / 2 |" in text(found) and "Missed: b, x" in text(found)


def test_the_interval_of_alarms_is_that_of_clopper_and_pearson():
    none = alarms(rows(*[("a", CORRECT, 1.0, False)] * 1000))
    # (1 - p)^1000 = 1/2000
    assert none["low"] == 0.0 and none["high"] == pytest.approx(1 - 2000 ** (-1 / 1000))
