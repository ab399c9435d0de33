"""Number of generated cases of the fuzz tests, and their time limits."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager

from hypothesis import HealthCheck, settings

CASES = int(os.environ.get("FUZZ_CASES", "200"))
SECONDS = 5.0
ON_THE_CLOCK = 60.0


def cases(of_200: int):
    """Return hypothesis settings for ``of_200`` cases, scaled with the requested total.

    The cases are equal in each run unless more than 200 are requested.
    """
    return settings(
        max_examples=max(1, CASES * of_200 // 200),
        deadline=None,
        derandomize=CASES <= 200,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


@contextmanager
def soon(seconds: float = SECONDS, on_the_clock: float = ON_THE_CLOCK):
    """Fail if the block exceeds a limit on processor time or on elapsed time, in seconds.

    The limit on processor time is smaller, so that a slow disk or a busy machine is no failure.
    """

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
