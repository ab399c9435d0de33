"""How long a run still takes, said while it runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event, Thread

EVERY = 60.0
"""Seconds between two lines."""


def time_left(done: int, of: int, seconds: float) -> str:
    """At the pace so far; nothing before a job has ended and after the last.

    Parameters
    ----------
    seconds : float
        Since the first job began.
    """
    if not 0 < done < of:
        return ""
    left = seconds * (of - done) / done
    minutes = round(left / 60)
    told = "less than a minute" if minutes < 1 else f"about {minutes} min"
    if minutes >= 90:
        told = f"about {minutes / 60:.1f} h"
    return f"{done:,} of {of:,} jobs done; {told} left at this pace"


def tell_time_left(
    counts: Callable[[], tuple[int, int]], say: Callable[[str], None], every: float = EVERY
) -> Event:
    """Say it every so often, beside the run.

    Parameters
    ----------
    counts : callable
        Jobs that are done, and all.
    say : callable
        What a line is given to.

    Returns
    -------
    Event
        Set it to end the telling.
    """
    began, ended = time.monotonic(), Event()

    def tell():
        while not ended.wait(every):
            line = time_left(*counts(), time.monotonic() - began)
            if line:
                say(line)

    Thread(target=tell, daemon=True).start()
    return ended
