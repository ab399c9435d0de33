"""Test the order of download sources, and that substitutions are always reported."""

import json
import logging
import socket

import pytest
from test_adult import TEST, TRAIN

from private_consensus.common.errors import InvalidInput
from private_consensus.reproduction.data import (
    DATA_SETS,
    Provenance,
    read_acquired,
    write_provenance,
    write_raw,
)
from private_consensus.reproduction.data.acquisition import Acquisition, acquire, summary
from private_consensus.reproduction.data.adult import from_files
from private_consensus.reproduction.data.catalogue import entry
from private_consensus.reproduction.data.raw import checksum_of

ROWS = 1000


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.parametrize("dataset", DATA_SETS)
def test_source_auto_falls_back_to_a_surrogate_with_a_reason(no_network, tmp_path, caplog, dataset):
    with caplog.at_level(logging.INFO):
        _, provenance = acquire(dataset, Acquisition(cache=str(tmp_path), surrogate_rows=ROWS))
    assert provenance.source == "surrogate"
    assert "no mirror is configured" in provenance.because
    hosts = {p.name for p in entry(dataset).publishers}
    assert all(name in provenance.because for name in hosts)
    assert "SURROGATE" in caplog.text and provenance.because in caplog.text


@pytest.mark.parametrize("dataset", DATA_SETS)
def test_source_official_never_falls_back_to_a_surrogate(no_network, tmp_path, dataset):
    with pytest.raises(InvalidInput, match=f"data.source: found 'official for {dataset}'"):
        acquire(dataset, Acquisition(cache=str(tmp_path), source="official"))


def test_source_surrogate_makes_no_network_request_and_writes_no_file(monkeypatch, tmp_path):
    def never(*_):
        raise AssertionError("a host was contacted")

    monkeypatch.setattr(socket, "getaddrinfo", never)
    acquisition = Acquisition(
        source="surrogate", mirror="/nowhere", cache=str(tmp_path), surrogate_rows=ROWS
    )
    assert acquire("us", acquisition)[1].because == "data.source is surrogate"
    assert not list(tmp_path.iterdir())


def test_a_data_set_missing_from_the_mirror_is_reported_without_an_error(no_network, tmp_path):
    (tmp_path / "mirror").mkdir()
    acquisition = Acquisition(
        mirror=str(tmp_path / "mirror"), cache=str(tmp_path), surrogate_rows=ROWS
    )
    assert "the mirror has no us" in acquire("us", acquisition)[1].because


@pytest.mark.parametrize("contents", [b"", b"1, 2, 3", None])
def test_a_damaged_or_missing_mirror_file_is_refused(tmp_path, contents):
    folder = tmp_path / "mirror" / "adult"
    folder.mkdir(parents=True)
    (folder / "adult.test").write_bytes(b"")
    if contents is not None:
        (folder / "adult.data").write_bytes(contents)
    with pytest.raises(InvalidInput, match=r"data\.mirror: .*complete files of adult"):
        acquire("adult", Acquisition(mirror=str(folder.parent), cache=str(tmp_path)))


def test_mirror_files_with_other_contents_are_refused_with_both_checksums(tmp_path):
    folder = tmp_path / "adult"
    folder.mkdir()
    (folder / "adult.data").write_bytes(TRAIN)
    (folder / "adult.test").write_bytes(TEST)
    with pytest.raises(InvalidInput, match=r"data\.mirror") as error:
        acquire("adult", Acquisition(mirror=str(tmp_path), cache=str(tmp_path)))
    for checksum in (checksum_of(from_files(TRAIN, TEST)), entry("adult").mirror.checksum):
        assert checksum in str(error.value)


def test_mirrored_data_have_the_expected_sizes_and_checksums(mirror_path, tmp_path):
    rows = {r["dataset"]: r for r in summary(Acquisition(cache=str(tmp_path), mirror=mirror_path))}
    assert {r["source"] for r in rows.values()} == {"mirror"}
    assert {r["where"] for r in rows.values()} == {"mirror folder"}
    sizes = {"adult": 48_842, "us": 23_006, "brazil": 38_000, "mnist": 70_000, "cifar10": 14_000}
    assert {name: r["rows"] for name, r in rows.items()} == sizes
    for name, row in rows.items():
        assert row["checksum"] == entry(name).mirror.checksum
        assert mirror_path not in json.dumps(row)


def test_mirrored_data_are_not_replaced_without_an_explicit_source(tmp_path, monkeypatch):
    monkeypatch.delenv("PRIVATE_CONSENSUS_MIRROR", raising=False)
    Acquisition().check_mirror(tmp_path / "nothing yet")
    fields = dict.fromkeys(("dataset", "where", "version", "checksum", "because", "licence"), "")
    for source, dataset in (("surrogate", "us"), ("mirror", "adult")):
        Acquisition().check_mirror(tmp_path)
        file = tmp_path / f"{dataset}.provenance.json"
        write_provenance(file, Provenance(**fields, source=source))
    for options in ({"source": "surrogate"}, {"source": "official"}, {"mirror": str(tmp_path)}):
        Acquisition(**options).check_mirror(tmp_path)
    with pytest.raises(InvalidInput, match=r"data\.mirror.*mirror from which adult in"):
        Acquisition().check_mirror(tmp_path)


@pytest.mark.parametrize("how", ["halved", "other rows", "gone", "metadata"])
def test_damaged_changed_or_missing_raw_data_are_named(tmp_path, how):
    raw, provenance_file = tmp_path / "adult.parquet", tmp_path / "adult.provenance.json"
    acquired, provenance = acquire("adult", Acquisition(source="surrogate", surrogate_rows=1000))
    write_raw(raw, acquired)
    write_provenance(provenance_file, provenance)
    assert read_acquired(raw, provenance_file)[1] == provenance
    if how == "gone":
        raw.unlink()
    elif how == "metadata":
        provenance_file.write_bytes(provenance_file.read_bytes()[:-9])
    elif how == "halved":
        raw.write_bytes(raw.read_bytes()[: raw.stat().st_size // 2])
    else:
        write_raw(raw, acquired.reverse())
    with pytest.raises(InvalidInput, match=r"adult\.\w+\S*: .*(delete it|run the command)"):
        read_acquired(raw, provenance_file)
