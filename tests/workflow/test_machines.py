"""Test faults of machines: disks, users, locales, memory and other Python versions."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from private_consensus.common.provenance import write_json, write_text
from private_consensus.reproduction.datasets import (
    Acquisition,
    acquire,
    prepare,
    write_provenance,
    write_raw,
)
from private_consensus.reproduction.experiments import results

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def stages():
    """Return the functions by which each stage writes its file to a path."""
    raw, provenance = acquire("adult", Acquisition(source="surrogate", surrogate_rows=1000))
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
def no_room(_: int):
    """Simulate a full disk for all writes."""

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", full)
        yield


@contextmanager
def half_the_room(size: int):
    """Limit the file size so that a write fails halfway."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("full", [no_room, half_the_room])
@pytest.mark.parametrize("name", STAGES)
def test_a_full_disk_at_any_stage_keeps_the_old_file(stages, tmp_path, name, full):
    stages[name](tmp_path / name)
    before = (tmp_path / name).read_bytes()
    error_types = (OSError, pl.exceptions.ComputeError)
    with pytest.raises(error_types, match=r"No space left|File too large"), full(len(before)):
        stages[name](tmp_path / name)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {name: before}


def test_an_ascii_locale_gives_byte_identical_output(tmp_path):
    code = (
        "import sys; sys.path.insert(0, 'src');"
        "from pathlib import Path; from private_consensus.common import yamls;"
        "from private_consensus.common.provenance import write_text, code_hash;"
        "assert sys.flags.utf8_mode == 0;"
        "found = yamls.read('config/papers/showkatbakhsh.yaml');"
        "words = [repr(found), '\\xb1\\u03b5', code_hash('private_consensus.core.networks')];"
        "write_text(sys.argv[1], ' '.join(words))"
    )
    written = []
    for name, variables in {"ascii": {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
                        "utf8": {"PYTHONUTF8": "0", "LC_ALL": "C.UTF-8"}}.items():  # fmt: skip
        call = [sys.executable, "-c", code, str(tmp_path / name)]
        done = subprocess.run(
            call, cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        written.append((tmp_path / name).read_bytes())
    assert written[0] == written[1]
