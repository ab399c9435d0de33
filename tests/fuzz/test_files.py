"""Fuzz file readers: damaged files are read or refused with a one-line error."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from limits import cases, soon

from private_consensus.common.errors import InvalidInput
from private_consensus.reproduction.data import Prepared
from private_consensus.reproduction.results import files as results

CARD = {
    "dataset": "adult", "source": "surrogate", "where": "here", "version": "1", "checksum": "0",
    "because": "a test", "licence": "none", "preparation": "adult-x", "columns": ["a", "b", "c"],
}  # fmt: skip


@st.composite
def damage(draw, size: int):
    """Draw a corruption of bytes: cut off, overwrite, insert or clear some bytes."""
    kind = draw(st.sampled_from(["cut", "bytes", "insert", "zeros"]))
    position = draw(st.integers(0, size))
    if kind == "cut":
        return lambda content: content[:position]
    if kind == "insert":
        inserted = draw(st.binary(min_size=1, max_size=30))
        return lambda content: content[:position] + inserted + content[position:]
    new = bytes(draw(st.integers(1, 64))) if kind == "zeros" else draw(st.binary(max_size=12))
    return lambda content: content[:position] + new + content[position + len(new) :]


def refused_or_read(read, path) -> object:
    with soon():
        try:
            return read(path)
        except InvalidInput as error:
            assert "\n" not in str(error)
            return None


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Write a small valid file of each format."""
    folder = tmp_path_factory.mktemp("written")
    frame = pl.DataFrame({"a": [float(i) ** 0.5 for i in range(300)], "b": ["x", "yy", "z"] * 100})
    results.write(frame, folder / "result.parquet", results.stamp({}, "", ""))
    rng = np.random.default_rng(1)
    Prepared(
        features=rng.random((40, 3)), labels=np.ones(40, np.int8), columns=tuple(CARD["columns"]),
        protected={}, splits={"all": np.arange(40)}, card=CARD,
    ).save(folder / "prepared.npz")  # fmt: skip
    return {path.name: path.read_bytes() for path in folder.iterdir()}, frame


READERS = {
    "result.parquet": results.read,
    "prepared.npz": Prepared.load,
}


@pytest.mark.parametrize("name", READERS)
def test_a_damaged_file_is_refused_or_read(written, tmp_path_factory, name):
    contents, frame = written
    path = tmp_path_factory.mktemp("damaged") / name

    @cases(25)
    @given(damage(len(contents[name])))
    def try_out(change):
        path.write_bytes(change(contents[name]))
        loaded = refused_or_read(READERS[name], path)
        if name == "result.parquet" and loaded is not None:
            assert loaded.drop("source").equals(frame)

    path.write_bytes(contents[name])
    assert READERS[name](path) is not None
    try_out()


def test_flipped_bits_of_a_result_file_are_detected(written, tmp_path):
    contents, _ = written
    whole, path = contents["result.parquet"], tmp_path / "result.parquet"
    rng = np.random.default_rng(2)
    for position in rng.choice(len(whole), 400, replace=False):
        content = bytearray(whole)
        content[position] ^= 1 << rng.integers(8)
        path.write_bytes(content)
        assert results.damaged(path) == [str(path)]
        with pytest.raises(InvalidInput, match=r"result\.parquet"):
            results.read(path)
