"""Estimate and print the remaining time of a run."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from pathlib import PurePath
from statistics import fmean
from threading import Event, Thread
from typing import Any, NamedTuple

INTERVAL_S = 60.0
"""Seconds between two printed lines."""
PRIOR_S = 60.0
"""Weight of the published durations against the durations of finished jobs, in seconds."""


class Job(NamedTuple):
    """A running job: rule, published duration or None, start time on the monotonic clock."""

    rule: str
    published_s: float | None
    start_s: float


class RemainingTime(logging.Handler):
    """Estimate the remaining time of a run from the events of Snakemake's log.

    The expected duration of a job is its duration in the published run of the same scale, times the
    ratio of measured and published durations of finished jobs. The log does not name jobs before
    they start. Their expected duration is the mean over the published jobs of their rule that have
    not started. For a rule that was not published, it is the mean over its finished jobs. There is
    no estimate while a remaining job belongs to a rule with neither. Without a published run, all
    jobs have the same expected duration.

    Parameters
    ----------
    published : mapping
        Rule to the durations of its jobs, in seconds. Jobs are named by their log files.
    print_line : callable
        Function that prints a line.
    interval_s : float
        Seconds between two printed lines.
    """

    def __init__(
        self,
        published: Mapping[str, Mapping[str, float]],
        print_line: Callable[[str], None],
        interval_s: float = INTERVAL_S,
    ) -> None:
        super().__init__()
        self._published = {rule: dict(seconds) for rule, seconds in published.items()}
        self._print_line = print_line
        self._interval_s = interval_s
        self._cores = 1
        self._number_of_jobs = 0
        self._waiting: dict[str, int] = {}
        self._measured: dict[str, list[float]] = {}
        self._running: dict[int, Job] = {}
        self._finished = 0
        self._expected_s = 0.0
        self._measured_s = 0.0
        self._start_s = 0.0
        self.ended = Event()

    def emit(self, record: logging.LogRecord) -> None:
        """Record an event of Snakemake; ignore other records."""
        try:
            self._record(vars(record))
        except Exception:  # An error in the estimate must not end the run.
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
        """Describe finished jobs and remaining time, if it can be estimated.

        The line is empty before the first estimate or finished job, and after the last job.

        Parameters
        ----------
        now : float
            Present time on the monotonic clock, in seconds.
        """
        remaining_s = self.remaining_s(now)
        counts = f"{self._finished:,} of {self._number_of_jobs:,} jobs done"
        if remaining_s is None:
            return counts if 0 < self._finished < self._number_of_jobs else ""
        minutes = round(remaining_s / 60)
        if minutes < 1:
            return f"{counts}; less than a minute left"
        if minutes < 90:
            return f"{counts}; about {minutes} min left"
        return f"{counts}; about {minutes / 60:.1f} h left"

    def remaining_s(self, now: float) -> float | None:
        """Return the estimated remaining time in seconds, or None if no estimate is possible.

        Parameters
        ----------
        now : float
            Present time on the monotonic clock, in seconds.
        """
        remaining = self._number_of_jobs - self._finished
        if remaining <= 0 or (not self._published and not self._finished):
            return None
        if not self._published:
            return (now - self._start_s) * remaining / self._finished
        waiting = {rule: count for rule, count in self._waiting.items() if count}
        rules = {*waiting, *(job.rule for job in self._running.values())}
        if not rules <= {*self._published, *self._measured}:
            return None
        ratio = (self._measured_s + PRIOR_S) / (self._expected_s + PRIOR_S)
        running_s = [
            max(self._expected(job.rule, job.published_s, ratio) - (now - job.start_s), 0.0)
            for job in self._running.values()
        ]
        waiting_s = sum(
            count * self._expected(rule, None, ratio) for rule, count in waiting.items()
        )
        return max((waiting_s + sum(running_s)) / self._cores, *running_s, 0.0)

    def _expected(self, rule: str, published_s: float | None, ratio: float) -> float:
        """Return the expected duration of a job in seconds, or the mean of its rule."""
        if published_s is not None:
            return ratio * published_s
        if published := self._published.get(rule):
            return ratio * fmean(published.values())
        return fmean(self._measured.get(rule, [0.0]))

    def _start(self, stats: Mapping[str, int]) -> None:
        counts = dict(stats)
        self._number_of_jobs = counts.pop("total")
        self._waiting = counts
        self._start_s = time.monotonic()
        Thread(target=self._repeat, daemon=True).start()

    def _begin(self, jobid: int, rule: str, log: list[str]) -> None:
        name = PurePath(log[0]).stem if log else ""
        published_s = self._published.get(rule, {}).pop(name, None)
        self._waiting[rule] = max(self._waiting.get(rule, 0) - 1, 0)
        self._running[jobid] = Job(rule, published_s, time.monotonic())

    def _finish(self, jobid: int) -> None:
        self._finished += 1
        if job := self._running.pop(jobid, None):
            duration_s = time.monotonic() - job.start_s
            self._measured.setdefault(job.rule, []).append(duration_s)
            if job.published_s is not None:
                self._expected_s += job.published_s
                self._measured_s += duration_s

    def _repeat(self) -> None:
        while not self.ended.wait(self._interval_s):
            self.acquire()
            try:
                text = self.line(time.monotonic())
            finally:
                self.release()
            if text:
                self._print_line(text)
