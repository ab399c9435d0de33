"""Test faults of machines: disks, users, locales, memory and other Python versions."""

import resource
from contextlib import contextmanager

import numpy as np
import polars as pl
import pytest

from private_consensus.common.provenance import write_json, write_text
from private_consensus.reproduction.data import prepare, write_provenance, write_raw
from private_consensus.reproduction.data.acquisition import Acquisition, acquire
from private_consensus.reproduction.results import files as results


@pytest.fixture(scope="module")
def stages():
    """Return the functions by which each stage writes its file to a path."""
    # With 1,000 rows, the limit is in a header of the file, which polars reports otherwise.
    raw, provenance = acquire("adult", Acquisition(source="surrogate", surrogate_rows=2000))
    prepared = prepare("adult-fair12", raw, provenance)
    frame = pl.DataFrame({"a": range(100)})
    return {
        "raw.parquet": lambda path: write_raw(path, raw),
        "raw.provenance.json": lambda path: write_provenance(path, provenance),
        "raw.npz": lambda path: write_raw(path, {"images": np.arange(10_000)}),
        "prepared.npz": prepared.save,
        "runs.parquet": lambda path: results.write(frame, path, results.stamp({}, "", "")),
        "plan.json": lambda path: write_json(path, {"a": 1}),
        "page.html": lambda path: write_text(path, "<p>held</p>"),
    }


STAGES = ("raw.parquet", "raw.npz", "raw.provenance.json", "prepared.npz", "runs.parquet",
          "plan.json", "page.html")  # fmt: skip


@contextmanager
def half_the_room(size: int):
    """Limit the file size so that a write fails halfway."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("name", STAGES)
def test_a_full_disk_at_any_stage_keeps_the_old_file(stages, tmp_path, name):
    stages[name](tmp_path / name)
    before = (tmp_path / name).read_bytes()
    error_types = (OSError, pl.exceptions.ComputeError)
    with pytest.raises(error_types, match="File too large"), half_the_room(len(before)):
        stages[name](tmp_path / name)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {name: before}
