"""Test that submissions are read back unchanged, and that invalid submissions are refused."""

import json
import re

import polars as pl
import pytest
from synthetic import rows, smoke

from private_consensus.common.errors import InvalidInput
from private_consensus.common.provenance import file_hash
from private_consensus.comparison.schema import COLUMNS
from private_consensus.comparison.submissions import (
    RULES,
    encoded,
    manifest_of,
    rules,
    sealed,
    submission,
    together,
    write_submission,
)

DESIGN = smoke()
TABLE = rows(DESIGN).filter(pl.col("method").is_in(["one_shot_averaging", "secure_aggregation"]))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.parquet"
    write_submission(TABLE, DESIGN, path)
    return path


def refused(path, design=DESIGN):
    with pytest.raises(InvalidInput) as error:
        submission(path, design)
    return str(error.value)


def rewritten(path, **changes):
    manifest = json.loads(manifest_of(path).read_text())
    manifest_of(path).write_text(encoded(sealed({**manifest, **changes})))
    return refused(path)


def test_a_submission_is_read_back_with_its_rows_methods_and_rules(file):
    assert submission(file, DESIGN).table.equals(TABLE.select(list(COLUMNS)))
    stated = json.loads(manifest_of(file).read_text())
    assert stated["methods"] == {"one_shot_averaging": "eavesdropper", "secure_aggregation": "sums"}
    assert set(stated["rules"]) == set(RULES)


@pytest.mark.parametrize("key", RULES)
def test_each_rule_that_differs_is_reported_on_one_line(file, key):
    error_message = rewritten(file, rules={**rules(DESIGN), key: "else"})
    assert (
        f"rules.{key}: found 'else', expected" in error_message
        and len(error_message.splitlines()) == 1
    )


def test_all_errors_are_reported_together(file):
    error_message = rewritten(
        file, rules=dict.fromkeys(RULES, "else"), sha256={"mine.parquet": "0"}
    )
    assert (
        len(error_message.splitlines()) == len(RULES) + 1 and "sha256.mine.parquet" in error_message
    )


def test_a_submission_for_a_different_design_is_refused(file):
    moved = DESIGN.model_copy(update={"runs": DESIGN.runs + 1, "seed": 1})
    error_message = refused(file, moved)
    assert "rules.runs: found 2, expected 3" in error_message and "rules.seed" in error_message


def test_a_table_changed_after_submission_is_refused(file):
    TABLE.with_columns(pl.col("value") / 2).write_parquet(file)
    assert "sha256.mine.parquet" in refused(file)


def test_an_invalid_missing_or_outdated_manifest_is_refused(file):
    assert "version: found 1, expected 3" in rewritten(file, version=1)
    assert "methods: found 'all'" in rewritten(file, version=3, methods="all")
    manifest_of(file).write_text("[1]")
    assert "mine.json: found [1], expected a manifest" in refused(file)
    manifest_of(file).write_text("{")
    assert "damaged" in refused(file)
    manifest_of(file).unlink()
    assert "mine.json: missing" in refused(file)
    file.unlink()
    assert "mine.parquet: missing" in refused(file)


def test_an_observer_that_differs_from_the_rows_is_refused(file):
    error_message = rewritten(
        file, methods={"one_shot_averaging": "sums", "secure_aggregation": "sums"}
    )
    assert "methods.one_shot_averaging: found 'sums', expected 'eavesdropper'" in error_message
    assert "methods.one_shot_averaging: missing" in rewritten(
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
def test_rows_outside_the_design_cannot_be_submitted(tmp_path, change, key):
    strange = TABLE.with_columns(change).with_columns(
        epsilon_accountant=pl.lit(0.1), epsilon_lower=pl.lit(0.05)
    )
    with pytest.raises(InvalidInput, match=key):
        write_submission(strange, DESIGN, tmp_path / "mine.parquet")
    assert list(tmp_path.iterdir()) == []


def test_an_accounted_epsilon_above_the_budget_cannot_be_submitted(tmp_path):
    broken = TABLE.with_columns(epsilon_accountant=pl.col("epsilon") * 1.5)
    with pytest.raises(InvalidInput, match="at most the budget"):
        write_submission(broken, DESIGN, tmp_path / "mine.parquet")


CELL_COLUMNS = ["problem", "agents", "graph", "partition", "missing", "links", "epsilon"]
LOSS = pl.col("measure") == "excess_loss_mean"
PLACE = TABLE.row(0, named=True)
FIRST_CELL = pl.all_horizontal(pl.col(column) == PLACE[column] for column in CELL_COLUMNS)


def submitted(path, table):
    """Write a submission with correct checksums for any table."""
    write_submission(TABLE, DESIGN, path)
    table.write_parquet(path)
    manifest = json.loads(manifest_of(path).read_text())
    manifest["sha256"] = {path.name: file_hash(path)}
    manifest_of(path).write_text(encoded(sealed(manifest)))


def when(condition, column, value):
    return pl.when(condition).then(value).otherwise(pl.col(column)).alias(column)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (when(LOSS, "value", float("nan")), "value of excess_loss_mean: found nan"),
        (when(LOSS, "value", None), "value: found 'an empty value'"),
        (when(LOSS, "value", float("inf")), "value: found inf, expected finite numbers"),
        (when(LOSS, "value", -float("inf")), "value of excess_loss_mean: found -inf"),
        (when(LOSS, "value", -1e9), "value of excess_loss_mean: found -1000000000.0"),
        (when(pl.col("measure") == "accuracy_mean", "value", 7.0), "between 0 and 1"),
        (when(pl.col("measure") == "messages", "value", -1.0), "value of messages: found -1.0"),
        ((pl.col("epsilon") * 10).alias("epsilon_lower"), "epsilon_lower: found"),
        (pl.lit(None, pl.Float64).alias("epsilon_accountant"), "epsilon_accountant: found 'an"),
        (pl.lit(float("nan")).alias("epsilon_accountant"), "epsilon_accountant: found nan"),
        (pl.lit(float("nan")).alias("epsilon_lower"), "epsilon_lower: found nan"),
        (pl.lit(-1.0).alias("epsilon_lower"), "epsilon_lower: found -1.0"),
        (pl.lit(None, pl.Boolean).alias("proven"), "proven: found 'an empty value'"),
        (pl.lit("").alias("method"), "method: found ''"),
        (pl.lit("two\nlines").alias("method"), r"method: found 'two\nlines'"),
        (pl.lit("<b>best</b>").alias("method"), "method: found '<b>best</b>'"),
        (pl.lit("[/oops]").alias("method"), "method: found '[/oops]'"),
        (pl.lit("a\x1b[31m").alias("method"), r"method: found 'a\x1b[31m'"),
        (pl.lit("x" * 100_000).alias("method"), "(100,002 characters)"),
        (pl.lit("<script>").alias("label"), "label: found '<script>'"),
        (pl.lit("a\x1b[2J").alias("label"), r"label: found 'a\x1b[2J'"),
        (pl.lit(1.0).alias("more"), "columns: found ['more']"),
        (pl.lit("none").alias("observer"), "observer none"),
    ],
)  # fmt: skip
def test_invalid_values_are_refused_despite_a_correct_checksum(tmp_path, change, message):
    path = tmp_path / "mine.parquet"
    submitted(path, TABLE.with_columns(change))
    error_message = refused(path)
    assert message in error_message and len(error_message) < 3000
    assert error_message.isprintable() or "\n" in error_message


@pytest.mark.parametrize(
    ("row_filter", "message"),
    [
        (FIRST_CELL, "found nothing in"),
        (pl.col("run") == 0, "run: found 0"),
        (~(FIRST_CELL & (pl.col("run") == 1)), "found 1 runs of"),
        (~(FIRST_CELL & LOSS), "found no excess_loss_mean in a cell"),
        (pl.col("tuning") == "tuned", "found nothing in"),
        (pl.col("run") > 99, "found no rows"),
    ],
)
def test_an_incomplete_submission_is_refused(tmp_path, row_filter, message):
    path = tmp_path / "mine.parquet"
    submitted(path, TABLE.filter(row_filter))
    assert message in refused(path)
    with pytest.raises(InvalidInput, match=re.escape(message)):
        write_submission(TABLE.filter(row_filter), DESIGN, tmp_path / "other.parquet")


def test_a_cell_may_be_absent_if_it_is_declared_with_a_reason(tmp_path):
    path, remaining_rows = tmp_path / "mine.parquet", TABLE.filter(~FIRST_CELL)
    cell_key = {column: PLACE[column] for column in CELL_COLUMNS}
    absent = [
        {"method": method, "because": "too slow", **cell_key} for method in TABLE["method"].unique()
    ]
    write_submission(remaining_rows, DESIGN, path, absent)
    read_back = submission(path, DESIGN)
    assert read_back.table.height == remaining_rows.height and read_back.absent == absent
    with pytest.raises(InvalidInput, match="expected none: declared absent"):
        write_submission(TABLE, DESIGN, path, absent)
    strange = [{"method": "one_shot_averaging", "because": "b", "problem": "nope"}]
    with pytest.raises(InvalidInput, match=r"absent: found \{'problem': 'nope'\}"):
        write_submission(TABLE, DESIGN, path, strange)


def test_a_cell_in_which_a_run_diverged_is_declared_absent(tmp_path):
    path = tmp_path / "mine.parquet"
    diverged = FIRST_CELL & LOSS & (pl.col("tuning") == "tuned")
    write_submission(TABLE.with_columns(when(diverged, "value", float("inf"))), DESIGN, path)
    read_back = submission(path, DESIGN)
    assert {row["because"] for row in read_back.absent} == {"a run left the finite numbers"}
    assert read_back.table.filter(FIRST_CELL & (pl.col("tuning") == "tuned")).is_empty()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"more": 1}, "keys: found 'more'"),
        ({"rules": {**rules(DESIGN), "judge": "me"}}, "rules: keys: found 'judge'"),
        ({"rules": None}, "rules: missing"),
        ({"methods": {"one_shot_averaging": "eavesdropper", "secure_aggregation": "sums",
                      "third": "sums"}}, "methods: found 'third'"),
        ({"absent": [{"method": "nobody", "because": "b"}]}, "method: found 'nobody'"),
        ({"absent": [{"method": "secure_aggregation", "because": ""}]}, "because: found ''"),
        ({"absent": [{"method": "secure_aggregation", "because": "b", "x": 1}]}, "found 'x'"),
        ({"absent": ["all"]}, "absent.0: found 'all'"),
        ({"made_by": 3}, "made_by: found 3"),
        ({"rules": {**rules(DESIGN), "runs": True}}, "rules.runs: found True"),
    ],
)  # fmt: skip
def test_unknown_keys_and_invalid_values_of_a_manifest_are_refused(file, changes, message):
    assert message in rewritten(file, **changes)


def test_a_duplicate_key_in_a_manifest_is_refused(file):
    text = manifest_of(file).read_text()
    manifest_of(file).write_text(text.replace('"made_by"', '"made_by": "x",\n "made_by"'))
    assert "damaged" in refused(file) and "\n" not in refused(file)


def test_every_flipped_bit_of_a_manifest_is_refused_with_one_line(file):
    path = manifest_of(file)
    content = path.read_bytes()
    for bit in range(8 * len(content)):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        assert "\n" not in refused(file), bit


def test_flipped_bits_of_a_table_are_refused_with_one_line(file):
    content = file.read_bytes()
    for bit in range(0, 8 * len(content), max(1, 8 * len(content) // 300)):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        file.write_bytes(changed)
        error_message = refused(file)
        assert "sha256.mine.parquet" in error_message and "\n" not in error_message, bit


def test_a_method_in_two_submissions_is_refused():
    first, second = (
        TABLE.filter(pl.col("method") == m) for m in ("one_shot_averaging", "secure_aggregation")
    )
    assert together([first, second]).height == TABLE.height
    with pytest.raises(InvalidInput, match="each method in one file"):
        together([first, TABLE])
