"""Test that outdated, damaged and missing results are rejected."""

import polars as pl
import pytest

from private_consensus.common.errors import InvalidInput
from private_consensus.common.provenance import settings_hash
from private_consensus.reproduction.results.files import stamp, write
from private_consensus.reproduction.results.freshness import require_current

SETTINGS = {"epsilon": 1.0, "horizon": 10}
HASHES = {"settings": settings_hash(SETTINGS), "code": "code1"}


def test_an_up_to_date_result_is_accepted(tmp_path):
    path = str(tmp_path / "fig.parquet")
    write(pl.DataFrame({"y": [1]}), path, stamp(SETTINGS, "code1", "drawn"))
    require_current({path: HASHES}, scale="smoke")


@pytest.mark.parametrize(
    ("settings", "code", "reason"),
    [(SETTINGS, "code2", "other code"), ({**SETTINGS, "epsilon": 2.0}, "code1", "other settings")],
)
def test_the_error_names_result_reason_and_command(tmp_path, settings, code, reason):
    path = str(tmp_path / "fig.parquet")
    write(pl.DataFrame({"y": [1]}), path, stamp(settings, code, "drawn"))
    message = f"{path}: found 'made with {reason}', expected .* --force {path} "
    with pytest.raises(InvalidInput, match=message):
        require_current({path: HASHES}, scale="smoke")


def test_a_missing_result_is_rejected(tmp_path):
    with pytest.raises(InvalidInput, match=r"absent\.parquet"):
        absent = str(tmp_path / "absent.parquet")
        require_current({absent: HASHES}, scale="smoke")
