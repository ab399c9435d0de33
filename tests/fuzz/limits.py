"""How many cases there are, and how long one may take."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager

from hypothesis import HealthCheck, settings

CASES = int(os.environ.get("FUZZ_CASES", "200"))
SECONDS = 5.0


def cases(of_200: int):
    """So many of two hundred cases, the same in each run unless more are asked for."""
    return settings(
        max_examples=max(1, CASES * of_200 // 200),
        deadline=SECONDS * 1000,
        derandomize=CASES <= 200,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


@contextmanager
def soon():
    """What does not end within :data:`SECONDS` is interrupted, and fails."""

    def late(*_):
        raise AssertionError(f"no end after {SECONDS} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
