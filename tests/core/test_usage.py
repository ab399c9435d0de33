"""Test that the resource usage of a job is counted rather than sampled."""

import time

import polars as pl
import pytest

from private_consensus.common.job_logging import TITLES, measured, used


def test_cpu_time_of_a_short_job_is_counted_without_waiting_time(tmp_path):
    before, _ = used()
    begin = time.process_time()
    with measured(tmp_path / "job.tsv"):
        time.sleep(0.4)
        end = time.process_time() + 0.1
        while time.process_time() < end:
            pass
    took = time.process_time() - begin
    usage = pl.read_csv(tmp_path / "job.tsv", separator="\t").row(0, named=True)
    assert list(usage) == list(TITLES)
    assert usage["s"] >= 0.5 - 0.01
    # The file has two decimals, and both clocks count other work of the process.
    assert 0.1 - 0.01 <= usage["cpu_time"] - before <= took + 0.01


def test_a_failed_job_writes_no_usage_file(tmp_path):
    with pytest.raises(ZeroDivisionError), measured(tmp_path / "job.tsv"):
        _ = 1 / 0
    assert not (tmp_path / "job.tsv").exists()
