"""Test the time limit within which malformed input is refused."""

from __future__ import annotations

import signal
import time

import pytest
from limits import soon


def test_what_computes_without_an_end_fails():
    with pytest.raises(AssertionError, match=r"no end after 0.05 s of the processor"), soon(0.05):
        while True:
            pass


def test_what_waits_without_an_end_fails():
    with pytest.raises(AssertionError, match=r"no end after 0.05 s$"), soon(on_the_clock=0.05):
        while True:  # a signal just before a pause does not end it
            time.sleep(1)


def test_waiting_is_not_computing_and_no_limit_outlives_its_block():
    with soon(0.05):
        time.sleep(0.1)
    timers = (signal.ITIMER_PROF, signal.ITIMER_REAL)
    assert [signal.getitimer(timer) for timer in timers] == [(0.0, 0.0)] * 2
    assert {signal.getsignal(number) for number in (signal.SIGPROF, signal.SIGALRM)} == {
        signal.SIG_DFL
    }
