"""Test the table of time measurements of other libraries; it names missing libraries."""

import signal

import pytest
from benchmarks.measuring import read
from benchmarks.peers.table import KEPT, PARTS, SEPARATE, spelled, table
from benchmarks.peers.timing import line, longer, once

LINE = line("a sum", "peer", 2e-6, 3e-3, "equal")
KEPT_LINES = {"part": "normals", "lines": [LINE], "versions": {"autodp": "1.0"},
              "missing": ["opacus", "decent-bench"], "day": "2026-01-01",
              "machine": "M"}  # fmt: skip


def test_a_row_has_both_times_and_their_ratio_and_missing_libraries_are_named():
    text = table([KEPT_LINES])
    assert "| a sum | peer | 2 us | 3 ms | 1,500 | equal |  |" in text
    assert "measured: decent-bench (it requires Python 3.13), opacus." in text
    assert "autodp 1.0" in text


def test_a_library_that_exceeds_the_time_limit_gives_a_lower_bound():
    def endless():
        while True:
            pass

    assert once(endless, limit=0.05) == (None, 0.05)
    stopped = {**KEPT_LINES, "lines": [longer("a sum", "peer", 2e-6, limit=0.05)]}
    assert "| 2 us | > 50 ms | > 25,000 | not known |" in table([stopped])


def test_a_call_within_its_limit_returns_result_and_time_and_clears_the_timer():
    total, took = once(lambda: sum(range(1000)), limit=1.0)
    assert total == 499_500
    assert 0 <= took < 1.0
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("seconds", "text"), [(1.5, "1.5 s"), (2e-3, "2 ms"), (4.25e-7, "425 ns"), (5e-10, "0.5 ns")]
)
def test_times_are_formatted_with_their_unit(seconds, text):
    assert spelled(seconds) == text


def test_the_stored_measurements_have_all_parts_and_the_comparison_with_jax():
    stored = read(KEPT)
    assert {measurement["part"] for measurement in stored} == {*PARTS, SEPARATE}
    text = table(stored)
    assert "| JAX, ghost norms | 220 us | 350 us | 1.6 |" in text
    assert "5 x 8,000 x 104 | JAX | 2.63 ms | 1.96 ms | 0.75 |" in text
