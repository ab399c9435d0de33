"""Test the closing message of a run."""

import json
from dataclasses import asdict

from private_consensus.report.reading import REAL_DATA_HINT, closing_lines
from private_consensus.reproduction.datasets.raw import Provenance


def write_provenance_file(folder, dataset, source, because):
    folder.mkdir(parents=True, exist_ok=True)
    provenance = Provenance(
        dataset=dataset, source=source, where="generated here", version="1", checksum="0" * 64,
        because=because, licence="CC0",
    )  # fmt: skip
    file = folder / f"{dataset}.provenance.json"
    file.write_text(json.dumps(asdict(provenance)))
    return file


def test_closing_message_names_the_report_and_surrogate_data_sets(tmp_path):
    assert closing_lines(tmp_path) == []
    adult = write_provenance_file(tmp_path / "raw", "adult", "mirror", "a mirror is named")
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "index.html").write_text("<html>")
    (report,) = closing_lines(tmp_path, [adult])
    assert str(tmp_path / "report" / "index.html") in report
    brazil = write_provenance_file(tmp_path / "raw", "brazil", "surrogate", "no key was given")
    assert closing_lines(tmp_path, [adult]) == [report]
    assert closing_lines(tmp_path, [adult, brazil, brazil]) == [
        report, "brazil is SURROGATE DATA: no key was given", REAL_DATA_HINT,
    ]  # fmt: skip
