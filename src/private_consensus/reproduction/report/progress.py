"""Estimated remaining time of a run, printed while it runs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from pathlib import PurePath
from statistics import fmean
from threading import Event, Thread
from typing import Any, NamedTuple

INTERVAL_S = 60.0
"""Seconds between two lines."""
PRIOR_S = 60.0
"""Weight of the published seconds against the seconds of finished jobs."""


class Job(NamedTuple):
    """A running job: expected seconds, and when it began."""

    expected: float
    began: float


class RemainingTime(logging.Handler):
    """Estimate the remaining time from the events of Snakemake's log.

    A job costs the seconds that the published run of the same scale took for it. A job that has not
    begun has an unknown name: it costs the mean of its rule's published jobs that have not begun.
    Seconds are multiplied by the ratio of measured and published seconds of finished jobs. Without
    published seconds all jobs cost the same.

    Parameters
    ----------
    published : mapping
        For each rule, seconds by name of a job. The name of a job is that of its log file.
    say : callable
        Receives each line.
    interval_s : float
        Seconds between two lines.
    """

    def __init__(
        self,
        published: Mapping[str, Mapping[str, float]],
        say: Callable[[str], None],
        interval_s: float = INTERVAL_S,
    ) -> None:
        super().__init__()
        self._published = {rule: dict(seconds) for rule, seconds in published.items()}
        all_costs = [cost for costs in published.values() for cost in costs.values()]
        self._mean_s = fmean(all_costs) if all_costs else 0.0
        self._say = say
        self._interval_s = interval_s
        self._cores = 1
        self._number_of_jobs = 0
        self._waiting: dict[str, int] = {}
        self._running: dict[int, Job] = {}
        self._finished = 0
        self._expected_s = 0.0
        self._measured_s = 0.0
        self._began = 0.0
        self.ended = Event()

    def emit(self, record: logging.LogRecord) -> None:
        """Record an event of Snakemake; ignore other records."""
        try:
            self._record(vars(record))
        except Exception:  # A message about an estimate must not end a run.
            self.handleError(record)

    def _record(self, fields: Mapping[str, Any]) -> None:
        event = fields.get("event")
        if event == "resources_info" and fields.get("cores"):
            self._cores = int(fields["cores"])
        elif event == "run_info":
            self._start(fields["stats"])
        elif event == "job_info":
            self._begin(fields["jobid"], fields["rule_name"], fields["log"])
        elif event == "job_finished":
            self._finish(fields["job_id"])

    def line(self, now: float) -> str:
        """Return the line at a time, or an empty text before the first job or after the last.

        Parameters
        ----------
        now : float
            Seconds of the monotonic clock.
        """
        remaining_s = self.remaining_s(now)
        if remaining_s is None:
            return ""
        counts = f"{self._finished:,} of {self._number_of_jobs:,} jobs done"
        minutes = round(remaining_s / 60)
        if minutes < 1:
            return f"{counts}; less than a minute left"
        if minutes < 90:
            return f"{counts}; about {minutes} min left"
        return f"{counts}; about {minutes / 60:.1f} h left"

    def remaining_s(self, now: float) -> float | None:
        """Return the estimated remaining seconds, or None if there is no estimate.

        Parameters
        ----------
        now : float
            Seconds of the monotonic clock.
        """
        remaining = self._number_of_jobs - self._finished
        if remaining <= 0 or (not self._published and not self._finished):
            return None
        if not self._published:
            return (now - self._began) * remaining / self._finished
        ratio = (self._measured_s + PRIOR_S) / (self._expected_s + PRIOR_S)
        running = [
            max(job.expected * ratio - (now - job.began), 0.0) for job in self._running.values()
        ]
        waiting = sum(count * self._mean_of(rule) for rule, count in self._waiting.items())
        return max((waiting * ratio + sum(running)) / self._cores, *running, 0.0)

    def _mean_of(self, rule: str) -> float:
        costs = self._published.get(rule)
        return fmean(costs.values()) if costs else self._mean_s

    def _start(self, stats: Mapping[str, int]) -> None:
        counts = dict(stats)
        self._number_of_jobs = counts.pop("total")
        self._waiting = counts
        self._began = time.monotonic()
        Thread(target=self._repeat, daemon=True).start()

    def _begin(self, jobid: int, rule: str, log: list[str]) -> None:
        name = PurePath(log[0]).stem if log else ""
        expected = self._published.get(rule, {}).pop(name, None)
        if expected is None:
            expected = self._mean_of(rule)
        self._waiting[rule] = max(self._waiting.get(rule, 0) - 1, 0)
        self._running[jobid] = Job(expected, time.monotonic())

    def _finish(self, jobid: int) -> None:
        self._finished += 1
        if job := self._running.pop(jobid, None):
            self._expected_s += job.expected
            self._measured_s += time.monotonic() - job.began

    def _repeat(self) -> None:
        while not self.ended.wait(self._interval_s):
            self.acquire()
            try:
                text = self.line(time.monotonic())
            finally:
                self.release()
            if text:
                self._say(text)
