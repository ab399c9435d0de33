"""Test the archive of reference results for a data repository (RO-Crate)."""

import hashlib
import json
import zipfile
from pathlib import Path

import pytest

from private_consensus.common.errors import InvalidInput
from private_consensus.publishing.crate import METADATA, write

ROOT = Path(__file__).parents[2]
BESIDE = {name: ROOT / name for name in ("CITATION.cff", "LICENSE")}
DATA = {
    "dataset": "adult", "checksum": "ab" * 32, "version": "1996", "citation": "Becker",
    "licence": "CC BY 4.0",
}  # fmt: skip


@pytest.fixture
def reference(tmp_path):
    folder = tmp_path / "reference"
    (folder / "figures").mkdir(parents=True)
    (folder / "figures/one.svg").write_text("<svg/>")
    (folder / "claims.csv").write_text("id,verdict\n")
    hashes = {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
        for name in ("figures/one.svg", "claims.csv")
    }
    manifest = {
        "scale": "paper", "seed": 7, "commit": "c0ffee", "sha256": hashes,
        "versions": {"numpy": "2.4"}, "data": [DATA, {**DATA, "preparation": "another"}],
    }  # fmt: skip
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def test_the_metadata_list_packed_files_with_size_and_checksum(reference, tmp_path):
    write(reference, tmp_path / "a.zip", BESIDE)
    with zipfile.ZipFile(tmp_path / "a.zip") as packed:
        graph = {e["@id"]: e for e in json.loads(packed.read(METADATA))["@graph"]}
        names = set(packed.namelist())
        contents = {name: packed.read(name) for name in names}
    files = {name: e for name, e in graph.items() if e["@type"] == "File"}
    assert names == {*files, METADATA, *BESIDE}
    for name, entity in files.items():
        assert entity["sha256"] == hashlib.sha256(contents[name]).hexdigest()
        assert entity["contentSize"] == str(len(contents[name]))
    assert graph[METADATA]["about"] == {"@id": "./"}
    assert graph[METADATA]["conformsTo"]["@id"].endswith("/ro/crate/1.1")


def test_every_reference_in_the_metadata_names_an_existing_entity(reference, tmp_path):
    write(reference, tmp_path / "a.zip", BESIDE)
    with zipfile.ZipFile(tmp_path / "a.zip") as packed:
        graph = json.loads(packed.read(METADATA))["@graph"]
    identifiers = {entity["@id"] for entity in graph}
    assert len(identifiers) == len(graph)
    for entity in graph:
        for key, value in entity.items():
            if key == "conformsTo":  # refers to the external specification
                continue
            references = value if isinstance(value, list) else [value]
            assert {
                target["@id"] for target in references if isinstance(target, dict)
            } <= identifiers
    root = next(entity for entity in graph if entity["@id"] == "./")
    assert {"name", "description", "datePublished", "license"} <= set(root)
    # The archive itself and the data set Adult, which the manifest lists twice.
    assert sum(entity["@type"] == "Dataset" for entity in graph) == 2


def test_two_archives_of_one_folder_are_byte_identical(reference, tmp_path):
    for name in ("a.zip", "b.zip"):
        write(reference, tmp_path / name, BESIDE)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


def test_a_file_that_differs_from_the_manifest_checksum_is_rejected(reference, tmp_path):
    (reference / "claims.csv").write_text("id,verdict\nx,held\n")
    with pytest.raises(InvalidInput, match=r"claims\.csv"):
        write(reference, tmp_path / "a.zip", BESIDE)
    assert not (tmp_path / "a.zip").exists()
