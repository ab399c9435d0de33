"""Test the time limit for refusing malformed input."""

from __future__ import annotations

import signal
import time

import pytest
from limits import soon


def test_an_endless_computation_fails():
    with pytest.raises(AssertionError, match=r"no end after 0.05 s of the processor"), soon(0.05):
        while True:
            pass


def test_an_endless_wait_fails():
    with pytest.raises(AssertionError, match=r"no end after 0.05 s$"), soon(on_the_clock=0.05):
        while True:  # a signal just before a pause does not end it
            time.sleep(1)


def test_waiting_does_not_count_as_cpu_time_and_timers_are_reset():
    with soon(0.05):
        time.sleep(0.1)
    timers = (signal.ITIMER_PROF, signal.ITIMER_REAL)
    assert [signal.getitimer(timer) for timer in timers] == [(0.0, 0.0)] * 2
    assert {signal.getsignal(number) for number in (signal.SIGPROF, signal.SIGALRM)} == {
        signal.SIG_DFL
    }
