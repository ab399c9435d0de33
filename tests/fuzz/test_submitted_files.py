"""Fuzz submissions: a changed table or manifest gives valid results or `InvalidInput`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from limits import cases, soon

from private_consensus.common.errors import InvalidInput
from private_consensus.common.provenance import file_hash
from private_consensus.comparison.schema import COLUMNS, MEASURES, SLUG
from private_consensus.comparison.submissions import (
    KEYS,
    encoded,
    manifest_of,
    sealed,
    submission,
    write_submission,
)

sys.path.insert(0, str(Path(__file__).parents[1] / "comparison"))
from synthetic import rows, smoke

DESIGN = smoke()
TABLE = rows(DESIGN).filter(pl.col("method").is_in(["one_shot_averaging", "secure_aggregation"]))
FLOATS = st.sampled_from(
    [float("nan"), float("inf"), -float("inf"), None, -1e9, -1.0, 0.0, 0.5, 7.0, 1e300]
)
TEXTS = st.sampled_from(
    ["", "x", "one_shot_averaging", "two words", "a\nb", "<b>b</b>", "\x1b[31m", "[/oops]", "É",
     "x" * 1000, "none", "default", "tuned", "messages", None]
)  # fmt: skip
WHOLE = st.sampled_from([None, -1, 0, 1, 2, 10**12])
BY_TYPE = {
    pl.Float64: FLOATS, pl.String: TEXTS, pl.Int64: WHOLE,
    pl.Boolean: st.sampled_from([None, True, False]),
}  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 1e300])
    | st.text("ab<\x1b\n", max_size=4),
    lambda children: st.lists(children, max_size=2)
    | st.dictionaries(st.sampled_from(["method", "because", "x", "epsilon"]), children, max_size=2),
    max_leaves=4,
)  # fmt: skip


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Write a valid submission and return its path and bytes."""
    path = tmp_path_factory.mktemp("submission") / "mine.parquet"
    write_submission(TABLE, DESIGN, path)
    assert submission(path, DESIGN).table.height == TABLE.height
    return path, path.read_bytes(), manifest_of(path).read_bytes()


def accepted(path) -> pl.DataFrame | None:
    """Return the table of a submission, or None if the submission is refused."""
    with soon():
        try:
            submitted = submission(path, DESIGN)
        except InvalidInput as error:
            assert all(line.isprintable() for line in str(error).splitlines())
            assert len(str(error)) < 30_000
            return None
    return submitted.table


def require_valid(table: pl.DataFrame) -> None:
    """Fail unless every value of the table is possible for a run."""
    assert table["value"].is_finite().all() and not any(table.null_count().row(0))
    for measure, (low, high) in MEASURES.items():
        assert table.filter(pl.col("measure") == measure)["value"].is_between(low, high).all()
    assert all(SLUG.fullmatch(name) for name in table["method"].unique())
    proven = table.filter("proven")
    assert (proven["epsilon_lower"] <= proven["epsilon_accountant"]).all()
    assert (proven["epsilon_accountant"] <= proven["epsilon"]).all()
    assert set(table["measure"]) <= set(MEASURES)
    assert table.height == TABLE.height


def test_changed_values_are_refused_or_give_a_valid_table(written):
    path, _, manifest = written

    @cases(60)
    @given(st.sampled_from([*COLUMNS]), st.data())
    def try_out(column, data):
        value = data.draw(BY_TYPE[COLUMNS[column]])
        row = data.draw(st.integers(0, TABLE.height - 1) | st.just(None))
        where = pl.lit(True) if row is None else pl.int_range(pl.len()) == row
        changed = pl.lit(value, COLUMNS[column])
        table = TABLE.with_columns(pl.when(where).then(changed).otherwise(column).alias(column))
        table.write_parquet(path)
        changed_manifest = {**json.loads(manifest), "sha256": {path.name: file_hash(path)}}
        manifest_of(path).write_text(encoded(sealed(changed_manifest)))
        if (accepted_table := accepted(path)) is not None:
            require_valid(accepted_table)

    try_out()


def test_missing_required_rows_and_duplicate_rows_are_refused(written):
    path, _, manifest = written

    @cases(20)
    @given(st.data())
    def try_out(data):
        column = data.draw(st.sampled_from(["run", "tuning", "epsilon", "measure", "agents"]))
        value = data.draw(st.sampled_from(TABLE[column].unique().sort().to_list()))
        remaining_rows = TABLE.filter(pl.col(column) != value)
        table = data.draw(st.sampled_from([remaining_rows, pl.concat([TABLE, TABLE.head(3)])]))
        table.write_parquet(path)
        changed_manifest = {**json.loads(manifest), "sha256": {path.name: file_hash(path)}}
        manifest_of(path).write_text(encoded(sealed(changed_manifest)))
        accepted_table = accepted(path)
        # A measure that no cell requires may be absent from all runs.
        assert accepted_table is None or (
            column == "measure" and value not in set(accepted_table["measure"])
        )

    try_out()


def test_changed_manifests_are_refused(written):
    path, table, manifest = written
    path.write_bytes(table)

    @cases(60)
    @given(st.sampled_from([*KEYS, "more", "rules.runs", "rules.more", "methods.x"]), JSON)
    def try_out(key, value):
        node = json.loads(manifest)
        *parents, last = key.split(".")
        for parent in parents:
            node = node[parent]
        before = node.get(last)
        node[last] = value
        changed_manifest = json.loads(manifest)
        if parents:
            changed_manifest[parents[0]] = node
        else:
            changed_manifest[last] = value
        manifest_of(path).write_text(encoded(sealed(changed_manifest)))
        same = key in ("made_by", "checksum") and isinstance(value, str | None)
        same = same or json.dumps(value) == json.dumps(before) or key == "checksum"
        assert accepted(path) is None or same or (key == "absent" and value == [])

    try_out()


def test_a_flipped_bit_is_refused_with_a_one_line_error(written):
    path, table, manifest = written

    @cases(60)
    @given(st.booleans(), st.data())
    def try_out(of_table, data):
        path.write_bytes(table)
        manifest_of(path).write_bytes(manifest)
        content, file = (table, path) if of_table else (manifest, manifest_of(path))
        bit = data.draw(st.integers(0, 8 * len(content) - 1))
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        file.write_bytes(changed)
        with soon(), pytest.raises(InvalidInput) as error:
            submission(path, DESIGN)
        assert str(error.value).isprintable()

    try_out()
