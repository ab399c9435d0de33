"""Processor time of two ways to one result."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import Any

LIMIT = 30.0
"""CPU-seconds that one call of a peer may take."""


def seconds(call: Callable[[], Any], rounds: int = 3, least: float = 0.05) -> float:
    """Least CPU-seconds of a call, of all threads, in rounds that take at least so long."""
    call()
    best = float("inf")
    for _ in range(rounds):
        calls, begin = 0, time.process_time()
        while not calls or time.process_time() - begin < least:
            call()
            calls += 1
        best = min(best, (time.process_time() - begin) / calls)
    return best


class _Stopped(BaseException):
    """No ``Exception``: no handler of a peer may take it for one of its own."""


def once(call: Callable[[], Any], limit: float = LIMIT) -> tuple[Any, float]:
    """What a call gives and its CPU-seconds; None and the limit where it takes longer."""

    def stop(*_):
        raise _Stopped

    before, begin = signal.signal(signal.SIGPROF, stop), time.process_time()
    try:
        signal.setitimer(signal.ITIMER_PROF, limit)
        found = call()
        signal.setitimer(signal.ITIMER_PROF, 0)
        return found, time.process_time() - begin
    except _Stopped:
        return None, limit
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def line(
    what: str, peer: str, ours: float, theirs: float, same: str, note: str = ""
) -> dict[str, Any]:
    """A row of the table: seconds of both, what was checked of the results, what to know of it."""
    return {
        "what": what, "peer": peer, "ours": ours, "theirs": theirs, "ratio": theirs / ours,
        "same": same, "note": note,
    }  # fmt: skip


def longer(what: str, peer: str, ours: float, limit: float = LIMIT) -> dict[str, Any]:
    """A row of a peer that was stopped: its time and the ratio are at least these."""
    stopped = line(what, peer, ours, limit, "not known", "stopped at the limit")
    return {**stopped, "longer": True}
