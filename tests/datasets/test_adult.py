"""Test that all sources of Adult give one canonical table."""

import io
import zipfile

import polars as pl
import pytest

from private_consensus.reproduction.data import acquisition, adult
from private_consensus.reproduction.data.acquisition import Acquisition, acquire
from private_consensus.reproduction.data.catalogue import entry
from private_consensus.reproduction.data.raw import checksum_of

TRAIN = b"""\
31, Private, 1001, HS-grad, 9, Divorced, Sales, Unmarried, White, Male, 0, 0, 40, ?, <=50K
52, ?, 1002, Masters, 14, Widowed, ?, Wife, Other, Female, 7688, 0, 20, Peru, >50K

"""
TEST = b"""\
|1x3 Cross validator
23, Never-worked, 1003, 5th-6th, 3, Never-married, ?, Own-child, Black, Male, 0, 1602, 1, Cuba, <=50K.
44, Local-gov, 1004, Doctorate, 16, Separated, Tech-support, Husband, White, Male, 0, 0, 60, India, >50K.
"""  # noqa: E501


@pytest.fixture
def small():
    return adult.from_files(TRAIN, TEST)


def test_adult_files_convert_to_the_canonical_table(small):
    assert small.columns == list(adult.SCHEMA.columns)
    assert small["income"].to_list() == ["<=50K", ">50K", "<=50K", ">50K"]
    assert small["native_country"][0] is None and small["workclass"][1] is None
    assert small["capital_gain"].to_list() == [0, 7688, 0, 0]
    assert small["fnlwgt"].dtype == pl.Int64


def test_table_changes_change_the_checksum(small):
    first = checksum_of(small)
    changes = [
        small.with_columns(age=pl.col("age") + 1),
        small.reverse(),
        small.rename({"age": "years"}),
        small.with_columns(native_country=pl.col("native_country").fill_null("?")),
        small.with_columns(race=pl.Series(["White", "OtherBlack", "", "White"])),
    ]
    assert len({first, *map(checksum_of, changes)}) == len(changes) + 1


def zipped(files: dict[str, bytes | str]) -> bytes:
    """Return a ZIP archive of files, by name."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def test_the_archive_is_read_without_extracting_it(publisher, monkeypatch, tmp_path, small):
    files = {"adult.data": TRAIN, "adult.test": TEST, "../../evil": "x"}
    publisher.files["/adult.zip"] = zipped(files)
    catalogue_entry = entry("adult")
    (source,) = catalogue_entry.publishers
    source = source.model_copy(update={"url": publisher.url, "checksum": checksum_of(small)})
    changed = catalogue_entry.model_copy(update={"publishers": (source,)})
    monkeypatch.setattr(acquisition, "entry", lambda _: changed)
    raw, provenance = acquire("adult", Acquisition(cache=str(tmp_path), source="official"))
    assert raw.equals(small)
    assert (provenance.source, provenance.where) == ("publisher", "127.0.0.1")
    assert not (tmp_path.parent / "evil").exists()


def test_the_surrogate_has_the_schema_sizes_and_missing_values_of_adult(tmp_path):
    raw, provenance = acquire("adult", Acquisition(source="surrogate", cache=str(tmp_path)), seed=3)
    assert raw.columns == list(adult.SCHEMA.columns)
    assert (raw.height, raw.drop_nulls().height) == (48_842, 45_222)
    assert raw.null_count().select("workclass", "occupation", "native_country").row(0) == (
        2799,
        2809,
        857,
    )
    assert provenance.is_surrogate
