"""Results that are handed in come back as they were, and whatever breaks a rule is refused."""

import json

import polars as pl
import pytest
from synthetic import rows, smoke

from private_consensus.comparison.submissions import (
    RULES,
    hand_in,
    handed_in,
    manifest_of,
    rules,
    together,
)
from private_consensus.errors import InvalidInput

DESIGN = smoke()
TABLE = rows(DESIGN).filter(pl.col("method").is_in(["one_shot_averaging", "secure_aggregation"]))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.parquet"
    hand_in(TABLE, DESIGN, path)
    return path


def refused(path, design=DESIGN):
    with pytest.raises(InvalidInput) as error:
        handed_in(path, design)
    return str(error.value)


def rewritten(path, **changes):
    manifest = json.loads(manifest_of(path).read_text())
    manifest_of(path).write_text(json.dumps({**manifest, **changes}))
    return refused(path)


def test_what_is_handed_in_is_what_is_ranked(file):
    assert handed_in(file, DESIGN).equals(TABLE.select(handed_in(file, DESIGN).columns))
    stated = json.loads(manifest_of(file).read_text())
    assert stated["methods"] == {"one_shot_averaging": "eavesdropper", "secure_aggregation": "sums"}
    assert set(stated["rules"]) == set(RULES)


@pytest.mark.parametrize("key", RULES)
def test_each_rule_that_is_another_has_a_line_of_its_own(file, key):
    said = rewritten(file, rules={**rules(DESIGN), key: "else"})
    assert f"rules.{key}: found 'else', expected" in said and len(said.splitlines()) == 1


def test_all_that_is_wrong_is_said_at_once(file):
    said = rewritten(file, rules={}, sha256={})
    assert len(said.splitlines()) == len(RULES) + 1 and "sha256.mine.parquet" in said


def test_another_design_is_another_rule(file):
    moved = DESIGN.model_copy(update={"runs": DESIGN.runs + 1, "seed": 1})
    said = refused(file, moved)
    assert "rules.runs: found 2, expected 3" in said and "rules.seed" in said


def test_a_table_that_was_changed_afterwards_is_noticed(file):
    TABLE.with_columns(pl.col("value") / 2).write_parquet(file)
    assert "sha256.mine.parquet" in refused(file)


def test_a_manifest_that_is_none_missing_or_of_another_time_is_refused(file):
    assert "version: found 2, expected 1" in rewritten(file, version=2)
    assert "methods: found 'all'" in rewritten(file, version=1, methods="all")
    manifest_of(file).write_text("[1]")
    assert "version: found [1]" in refused(file)
    manifest_of(file).write_text("{")
    assert "damaged" in refused(file)
    manifest_of(file).unlink()
    assert "mine.json: found 'nothing'" in refused(file)


def test_an_observer_that_the_rows_do_not_name_is_refused(file):
    said = rewritten(file, methods={"one_shot_averaging": "sums", "secure_aggregation": "sums"})
    assert "methods.one_shot_averaging: found 'sums', expected 'eavesdropper'" in said
    assert "methods.one_shot_averaging: found None" in rewritten(
        file, methods={"secure_aggregation": "sums"}
    )


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (pl.lit(1e-3).alias("delta"), "delta"),
        ((pl.col("agents") + 100).alias("agents"), "expected cells of the design"),
        ((pl.col("epsilon") * 0.7).alias("epsilon"), "expected cells of the design"),
        ((pl.col("run") + 5).alias("run"), "run: found 5, 6"),
    ],
)
def test_rows_that_the_design_does_not_have_cannot_be_handed_in(tmp_path, change, key):
    strange = TABLE.with_columns(change).with_columns(epsilon_accountant=pl.lit(0.1))
    with pytest.raises(InvalidInput, match=key):
        hand_in(strange, DESIGN, tmp_path / "mine.parquet")
    assert list(tmp_path.iterdir()) == []


def test_a_guarantee_beyond_the_budget_cannot_be_handed_in(tmp_path):
    broken = TABLE.with_columns(epsilon_accountant=pl.col("epsilon") * 1.5)
    with pytest.raises(InvalidInput, match="at most the budget"):
        hand_in(broken, DESIGN, tmp_path / "mine.parquet")


def test_a_method_is_in_one_file():
    first, second = (
        TABLE.filter(pl.col("method") == m) for m in ("one_shot_averaging", "secure_aggregation")
    )
    assert together([first, second]).height == TABLE.height
    with pytest.raises(InvalidInput, match="each method in one file"):
        together([first, TABLE])
