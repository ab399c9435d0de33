"""Test that outdated, damaged and missing results are rejected."""

from __future__ import annotations

import polars as pl
import pytest

from private_consensus.common.errors import InvalidInput
from private_consensus.common.provenance import checksums, write_json
from private_consensus.reproduction.experiments.freshness import expected_stamps, require_current
from private_consensus.reproduction.experiments.results import CHECKSUMS, stamp, write

SETTINGS = {"epsilon": 1.0, "horizon": 10}


def test_an_up_to_date_result_is_accepted(tmp_path):
    path = str(tmp_path / "fig.parquet")
    write(pl.DataFrame({"y": [1]}), path, stamp(SETTINGS, "code1", "drawn"))
    require_current(expected_stamps([([path], SETTINGS, "code1", [])]), scale="smoke")


@pytest.mark.parametrize(
    ("settings", "code", "reason"),
    [(SETTINGS, "code2", "other code"), ({**SETTINGS, "epsilon": 2.0}, "code1", "other settings")],
)
def test_the_error_names_result_reason_and_command(tmp_path, settings, code, reason):
    path = str(tmp_path / "fig.parquet")
    write(pl.DataFrame({"y": [1]}), path, stamp(settings, code, "drawn"))
    with pytest.raises(InvalidInput) as refused:
        require_current(expected_stamps([([path], SETTINGS, "code1", [])]), scale="smoke")
    message = str(refused.value)
    assert path in message
    assert f"found 'made with {reason}', expected" in message
    assert f"snakemake --cores 2 --force {path} --configfile config/smoke.yaml" in message


def test_a_result_is_outdated_if_its_prepared_data_changed_or_are_missing(tmp_path):
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


def test_a_missing_result_is_rejected(tmp_path):
    with pytest.raises(InvalidInput, match=r"absent\.parquet"):
        absent = str(tmp_path / "absent.parquet")
        require_current(expected_stamps([([absent], SETTINGS, "code1", [])]), scale="smoke")


@pytest.fixture
def drawn(tmp_path):
    """Write the numbers and the picture of a figure; return both paths and the expected hashes."""
    numbers, picture = tmp_path / "data" / "fig.parquet", tmp_path / "figures" / "fig.svg"
    picture.parent.mkdir()
    picture.write_text("<svg>a curve</svg>" * 100)
    frame = pl.DataFrame({"y": [float(i) ** 0.5 for i in range(5000)]})
    write(frame, numbers, stamp(SETTINGS, "code1", "drawn"), [picture])
    expected = expected_stamps([([str(numbers)], SETTINGS, "code1", [])])
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


def test_a_report_page_that_differs_from_its_checksum_is_rejected(tmp_path):
    page, listed = tmp_path / "papers" / "a.html", tmp_path / CHECKSUMS
    page.parent.mkdir()
    page.write_text("<p>held</p>")
    write_json(listed, checksums([page], tmp_path))
    expected = {str(listed): {}}
    require_current(expected, scale="paper")
    page.write_text("<p>he")
    with pytest.raises(InvalidInput, match=rf"a\.html: found 'a damaged.*--force {listed}"):
        require_current(expected, scale="paper")
    listed.write_text(listed.read_text()[:20])
    with pytest.raises(InvalidInput, match=r"checksums\.json: found 'a damaged file'"):
        require_current(expected, scale="paper")
