"""Settings and time limits of the fuzz tests."""

import signal
from contextlib import contextmanager

from hypothesis import HealthCheck, settings

SECONDS = 5.0
ON_THE_CLOCK = 60.0


def cases(count: int):
    """Return hypothesis settings for ``count`` cases, which are equal in each run."""
    return settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
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
