"""How many cases there are, and how long one may take."""

from __future__ import annotations

import os
import signal
import time
from contextlib import contextmanager
from pathlib import Path

from hypothesis import HealthCheck, settings

CASES = int(os.environ.get("FUZZ_CASES", "200"))
SECONDS = 5.0
QUEUE = Path("/proc/thread-self/schedstat")
"""Where the kernel says how long this thread was ready to run while others ran, in ns."""


def cases(of_200: int):
    """So many of two hundred cases, the same in each run unless more are asked for."""
    return settings(
        max_examples=max(1, CASES * of_200 // 200),
        deadline=None,
        derandomize=CASES <= 200,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


@contextmanager
def soon():
    """What does not end within :data:`SECONDS` is interrupted, and fails. Time in which other work
    had the processor is not counted, so that a busy machine is no failure."""
    began = _counted()

    def late(*_):
        left = began + SECONDS - _counted()
        if left <= 0:
            raise AssertionError(f"no end after {SECONDS} s")
        signal.setitimer(signal.ITIMER_REAL, max(left, 0.01))

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _counted() -> float:
    """Seconds on the clock, less those in which this thread waited for a processor."""
    queued = int(QUEUE.read_text().split()[1]) if QUEUE.exists() else 0
    return time.monotonic() - queued / 1e9
