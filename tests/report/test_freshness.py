"""Test that outdated, damaged and missing results are rejected."""

from __future__ import annotations

import polars as pl
import pytest

from private_consensus.common.errors import InvalidInput
from private_consensus.common.provenance import settings_hash
from private_consensus.reproduction.experiments.freshness import require_current
from private_consensus.reproduction.experiments.results import stamp, write

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
    with pytest.raises(InvalidInput) as refused:
        require_current({path: HASHES}, scale="smoke")
    message = str(refused.value)
    assert path in message
    assert f"found 'made with {reason}', expected" in message
    assert f"snakemake --cores 2 --force {path} --configfile config/smoke.yaml" in message


def test_a_missing_result_is_rejected(tmp_path):
    with pytest.raises(InvalidInput, match=r"absent\.parquet"):
        absent = str(tmp_path / "absent.parquet")
        require_current({absent: HASHES}, scale="smoke")


@pytest.fixture
def drawn(tmp_path):
    """Write the numbers and the picture of a figure; return both paths and the expected hashes."""
    numbers, picture = tmp_path / "data" / "fig.parquet", tmp_path / "figures" / "fig.svg"
    picture.parent.mkdir()
    picture.write_text("<svg>a curve</svg>" * 100)
    frame = pl.DataFrame({"y": [float(i) ** 0.5 for i in range(5000)]})
    write(frame, numbers, stamp(SETTINGS, "code1", "drawn"), [picture])
    expected = {str(numbers): HASHES}
    require_current(expected, scale="smoke")
    return numbers, picture, expected


@pytest.mark.parametrize("damaged", ["picture", "numbers"])
@pytest.mark.parametrize("how", ["halved", "zeros", "empty", "gone"])
def test_the_error_names_a_damaged_or_missing_figure_file_and_the_command(drawn, damaged, how):
    numbers, picture, expected = drawn
    file = numbers if damaged == "numbers" else picture
    content = file.read_bytes()
    damaged_contents = {
        "halved": content[: len(content) // 2],
        "zeros": content[:1000] + bytes(500) + content[1500:],
        "empty": b"",
    }
    file.write_bytes(damaged_contents.get(how, b""))
    if how == "gone":
        file.unlink()
    with pytest.raises(InvalidInput) as refused:
        require_current(expected, scale="smoke")
    description = "nothing" if (damaged, how) == ("numbers", "gone") else "a damaged file"
    assert f"{file}: found {description!r}, expected a current result; run" in str(refused.value)
    assert f"--force {numbers} " in str(refused.value)
