"""A result that is not current is refused."""

from __future__ import annotations

import polars as pl
import pytest

from private_consensus.errors import InvalidInput
from private_consensus.experiments.results import stamp, write
from private_consensus.report import expected_stamps, require_current, stale
from private_consensus.report.freshness import with_checksums

SETTINGS = {"epsilon": 1.0, "horizon": 10}


def test_what_is_current_passes(tmp_path):
    path = str(tmp_path / "fig.parquet")
    write(pl.DataFrame({"y": [1]}), path, stamp(SETTINGS, "code1", "drawn"))
    require_current(expected_stamps([([path], SETTINGS, "code1", [])]), scale="smoke")


@pytest.mark.parametrize(
    ("settings", "code", "part"),
    [(SETTINGS, "code2", "other code"), ({**SETTINGS, "epsilon": 2.0}, "code1", "other settings")],
)
def test_what_was_made_otherwise_is_refused_by_name(tmp_path, settings, code, part):
    path = str(tmp_path / "fig.parquet")
    write(pl.DataFrame({"y": [1]}), path, stamp(settings, code, "drawn"))
    with pytest.raises(InvalidInput) as refused:
        require_current(expected_stamps([([path], SETTINGS, "code1", [])]), scale="smoke")
    message = str(refused.value)
    assert path in message
    assert part in message
    assert f"snakemake --cores 2 --force {path} --configfile config/smoke.yaml" in message


def test_a_result_without_a_stamp_is_stale(tmp_path):
    path = str(tmp_path / "fig.parquet")
    pl.DataFrame({"y": [1]}).write_parquet(path)
    with pytest.raises(InvalidInput):
        require_current(expected_stamps([([path], SETTINGS, "code1", [])]), scale="paper")


def test_only_what_differs_is_named():
    expected = with_checksums(expected_stamps([("ab", SETTINGS, "1", [])]))
    found = {"a": expected["a"], "b": {**expected["b"], "code": "0"}, "c": {}}
    assert stale(found, expected) == {"b": ["code"]}
    parts = ["settings", "code", "data"]
    assert stale({}, expected) == {"a": parts, "b": parts}


def test_the_others_are_counted():
    expected = expected_stamps([("abc", SETTINGS, "1", [])])
    with pytest.raises(InvalidInput, match="2 more results"):
        require_current(expected, scale="paper", read=lambda path: {})


def test_a_data_card_is_asked_for_its_code_only(tmp_path):
    path = tmp_path / "card.json"
    path.write_text('{"code": "1", "rows": 5, "data": ""}')
    require_current(expected_stamps([([str(path)], None, "1", [])]), scale="paper")
    with pytest.raises(InvalidInput, match="other code"):
        require_current(expected_stamps([([str(path)], None, "2", [])]), scale="paper")


def test_other_prepared_data_make_a_result_stale(tmp_path):
    prepared, path = tmp_path / "adult.npz", str(tmp_path / "cell.parquet")
    prepared.write_bytes(b"records")
    write(pl.DataFrame({"y": [1]}), path, stamp(SETTINGS, "code1", "adult", [prepared]))
    expected = expected_stamps([([path], SETTINGS, "code1", [str(prepared)])])
    require_current(expected, scale="smoke")
    prepared.write_bytes(b"records of others")
    with pytest.raises(InvalidInput, match="other data") as refused:
        require_current(expected, scale="smoke")
    assert path in str(refused.value)
    prepared.unlink()
    with pytest.raises(InvalidInput, match="other data"):
        require_current(expected, scale="smoke")


def test_a_result_that_is_not_there_is_stale(tmp_path):
    with pytest.raises(InvalidInput, match=r"absent\.parquet"):
        absent = str(tmp_path / "absent.parquet")
        require_current(expected_stamps([([absent], SETTINGS, "code1", [])]), scale="smoke")
