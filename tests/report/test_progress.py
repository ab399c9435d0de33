"""Test the estimated remaining time of a run."""

import json
import logging
from pathlib import Path

import pytest

from private_consensus.report import progress
from private_consensus.report.progress import RemainingTime

ROOT = Path(__file__).parents[2]


class Clock:
    def __init__(self, monkeypatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(progress.time, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch) -> Clock:
    return Clock(monkeypatch)


def event(estimate: RemainingTime, name: str, **fields) -> None:
    record = logging.makeLogRecord({"msg": None, "event": name, **fields})
    estimate.handle(record)


def begin(estimate: RemainingTime, jobid: int, rule: str, name: str) -> None:
    log = [f"results/paper/logs/{name}.log"]
    event(estimate, "job_info", jobid=jobid, rule_name=rule, log=log)


def simulate(estimate: RemainingTime, clock: Clock, jobs: list, cores: int) -> dict[float, float]:
    """Run jobs (rule, name, seconds) in their order; return the estimate once per minute."""
    stats = {"total": len(jobs)}
    for rule, _, _ in jobs:
        stats[rule] = stats.get(rule, 0) + 1
    event(estimate, "resources_info", cores=str(cores))
    event(estimate, "run_info", stats=stats)
    waiting = list(enumerate(jobs))
    running: list[tuple[float, int]] = []
    estimates = {}
    while waiting or running:
        while waiting and len(running) < cores:
            jobid, (rule, name, seconds) = waiting.pop(0)
            begin(estimate, jobid, rule, name)
            running.append((clock.now + seconds, jobid))
        end, jobid = min(running)
        minute = (clock.now // 60 + 1) * 60
        if minute < end:
            clock.now = minute
            estimates[minute] = estimate.remaining_s(minute)
            continue
        clock.now = end
        running.remove((end, jobid))
        event(estimate, "job_finished", job_id=jobid)
    return estimates


@pytest.mark.parametrize("slowness", [0.7, 1.0, 1.8])
def test_estimates_of_a_run_like_the_published_one_are_within_a_factor_of_two(clock, slowness):
    manifest = json.loads((ROOT / "results/reference/manifest.json").read_text())
    published = manifest["wall seconds"]
    order = sorted(published, key=published.get, reverse=True)
    jobs = [("run_cell", name, published[name] * slowness) for name in order]
    estimate = RemainingTime({"run_cell": published}, print)
    estimates = simulate(estimate, clock, jobs, cores=2)
    duration = clock.now
    assert len(estimates) > 5
    first_end = min(seconds for _, _, seconds in jobs[:2])  # until then the slowness is unknown
    for now, remaining in estimates.items():
        if now >= first_end and duration - now > 60:
            assert 0.5 < remaining / (duration - now) < 2, now
    # The number of completed jobs gives a different estimate: 2 of 323 after two minutes.
    assert duration - 120 < 2 * estimates[120] < 4 * (duration - 120)


def test_waiting_jobs_are_assumed_to_take_the_mean_time_of_their_rule(clock):
    published = {
        "run_cell": {"long": 300.0, "short": 10.0, "middle": 50.0},
        "draw_figure": {"f": 2.0},
    }
    estimate = RemainingTime(published, print)
    event(estimate, "resources_info", cores="2")
    event(estimate, "run_info", stats={"run_cell": 3, "draw_figure": 1, "total": 4})
    begin(estimate, 1, "run_cell", "long")
    # 300 s, two jobs of 30 s on average and 2 s, on two cores; the longest job takes 300 s.
    assert estimate.remaining_s(0.0) == pytest.approx(300.0)
    clock.now = 290.0
    assert estimate.remaining_s(290.0) == pytest.approx((10 + 60 + 2) / 2)


def test_a_rule_without_published_times_has_no_estimate_before_a_job_ends(clock):
    estimate = RemainingTime({"write_plan": {"plan": 1.0}}, print)
    event(estimate, "run_info", stats={"write_plan": 1, "run_cell": 5, "total": 6})
    begin(estimate, 1, "write_plan", "plan")
    assert estimate.line(0.0) == ""
    event(estimate, "job_finished", job_id=1)
    begin(estimate, 2, "run_cell", "first")
    begin(estimate, 3, "run_cell", "second")
    assert estimate.line(0.0) == "1 of 6 jobs done"
    clock.now = 200.0
    event(estimate, "job_finished", job_id=2)
    # The second job has already run for the mean duration; three jobs wait.
    assert estimate.remaining_s(200.0) == pytest.approx(3 * 200.0)


def test_without_published_times_all_jobs_are_assumed_equally_long(clock):
    estimate = RemainingTime({}, print)
    event(estimate, "run_info", stats={"run_cell": 4, "total": 4})
    assert estimate.line(60.0) == ""
    begin(estimate, 1, "run_cell", "first")
    clock.now = 100.0
    event(estimate, "job_finished", job_id=1)
    assert estimate.remaining_s(100.0) == pytest.approx(300.0)
    assert estimate.line(100.0) == "1 of 4 jobs done; about 5 min left"


@pytest.mark.parametrize(
    ("published_s", "text"),
    [
        (20.0, "0 of 1 jobs done; less than a minute left"),
        (720.0, "0 of 1 jobs done; about 12 min left"),
        (11_880.0, "0 of 1 jobs done; about 3.3 h left"),
    ],
)
def test_the_remaining_time_is_shown_in_a_suitable_unit(clock, published_s, text):
    estimate = RemainingTime({"run_cell": {"a": published_s}}, print)
    event(estimate, "run_info", stats={"run_cell": 1, "total": 1})
    begin(estimate, 1, "run_cell", "a")
    assert estimate.line(0.0) == text
    event(estimate, "job_finished", job_id=1)
    assert estimate.line(0.0) == ""


def test_a_progress_line_is_printed_after_the_interval():
    lines = []

    def say(line):
        lines.append(line)
        estimate.ended.set()

    estimate = RemainingTime({"run_cell": {"a": 100.0}}, say, interval_s=0.01)
    event(estimate, "run_info", stats={"run_cell": 1, "total": 1})
    assert estimate.ended.wait(5.0)
    assert lines[0].startswith("0 of 1 jobs done")


def test_an_event_with_unknown_fields_raises_no_error(monkeypatch):
    monkeypatch.setattr(logging, "raiseExceptions", False)
    event(RemainingTime({}, print), "job_info", other=1)
