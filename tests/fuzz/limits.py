"""How many cases there are, and how long one may take."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager

from hypothesis import HealthCheck, settings

CASES = int(os.environ.get("FUZZ_CASES", "200"))
SECONDS = 5.0
ON_THE_CLOCK = 60.0


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
def soon(seconds: float = SECONDS, on_the_clock: float = ON_THE_CLOCK):
    """What has not ended after so many seconds of the processor is interrupted, and fails; so is
    what waits for something that does not come. A slow disk, a busy machine are no failure."""

    def late(number, _):
        took = f"{seconds} s of the processor" if number == signal.SIGPROF else f"{on_the_clock} s"
        raise AssertionError(f"no end after {took}")

    limits = {
        signal.SIGPROF: (signal.ITIMER_PROF, seconds),
        signal.SIGALRM: (signal.ITIMER_REAL, on_the_clock),
    }
    before = {number: signal.signal(number, late) for number in limits}
    for timer, limit in limits.values():
        signal.setitimer(timer, limit)
    try:
        yield
    finally:
        for timer, _ in limits.values():
            signal.setitimer(timer, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
