"""How many cases there are, and how long one may take."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager

from hypothesis import HealthCheck, settings

CASES = int(os.environ.get("FUZZ_CASES", "200"))
SECONDS = 5.0
"""Of processor time, which other work beside it does not use up."""
WAITING = 30.0
"""Seconds on the clock, for what waits."""


def cases(of_200: int):
    """So many of two hundred cases, the same in each run unless more are asked for."""
    return settings(
        max_examples=max(1, CASES * of_200 // 200),
        deadline=WAITING * 1000,
        derandomize=CASES <= 200,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


@contextmanager
def soon():
    """What does not end within :data:`SECONDS` and :data:`WAITING` is interrupted, and fails."""

    def late(*_):
        raise AssertionError(f"no end after {SECONDS} s of work or {WAITING} s")

    timers = {signal.SIGPROF: (signal.ITIMER_PROF, SECONDS),
              signal.SIGALRM: (signal.ITIMER_REAL, WAITING)}  # fmt: skip
    before = {number: signal.signal(number, late) for number in timers}
    for timer, seconds in timers.values():
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for timer, _ in timers.values():
            signal.setitimer(timer, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
