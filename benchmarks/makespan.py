"""How long a run takes on so many cores, from what its jobs took.

    python -m benchmarks.makespan results/paper --cores 2 16 32 64 --queue 25

Jobs wait for what they read, as the workflow's rules say, and are begun in the order in which they
can be, the longest chain first, as soon as cores are free and `queue` seconds have passed. A cell
has a process for each block of its runs, but at most a quarter of the cores, as in the workflow;
what it computes before its blocks (`BEFORE_BLOCKS` of it) is not shared out.
"""

from __future__ import annotations

import argparse
import heapq
import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from private_consensus.common.spreadsheets import markdown_table
from private_consensus.reproduction.configuration.plan import Plan, load
from private_consensus.reproduction.configuration.schema import read_yaml

from .jobs import jobs, seconds

BEFORE_BLOCKS = 0.025
"""Share of a cell's time for its problem, noise and privacy, which are computed once: 2.2 % of the
seventy heaviest together, up to a quarter of single ones."""


class Job(NamedTuple):
    """What a job takes alone on ``cores`` cores, and the jobs that it waits for."""

    seconds: float
    needs: Collection[str] = ()
    cores: int = 1


def makespan(work: Mapping[str, Job], cores: int, queue: float = 0.0) -> float:
    """Seconds from the first job's beginning to the last one's end, by list scheduling.

    Parameters
    ----------
    work : mapping
        Jobs by name; needs that are not among them are there already.
    queue : float
        Seconds from the moment a job is handed over to its beginning, in which it holds no core.
    """
    waiting = {name: {need for need in job.needs if need in work} for name, job in work.items()}
    chains = _chains(work, waiting)
    now, free, events = 0.0, cores, []
    ready = [(-chains[name], name) for name in work if not waiting[name]]
    heapq.heapify(ready)
    handed: list[tuple[float, str]] = []
    begun: set[str] = set()
    for _, name in ready:
        heapq.heappush(events, (queue, 1, name))
    while events:
        now, kind, name = heapq.heappop(events)
        if kind == 1:
            heapq.heappush(handed, (-chains[name], name))
        else:
            free += min(work[name].cores, cores)
            for other, needs in waiting.items():
                if name in needs:
                    needs.remove(name)
                    if not needs and other not in begun:
                        heapq.heappush(events, (now + queue, 1, other))
        # All that happens at one moment is known before anything begins.
        if events and events[0][0] == now:
            continue
        later = []
        while handed and free:
            entry = heapq.heappop(handed)
            job = work[entry[1]]
            if min(job.cores, cores) > free:
                later.append(entry)
                continue
            free -= min(job.cores, cores)
            begun.add(entry[1])
            heapq.heappush(events, (now + job.seconds, 0, entry[1]))
        for entry in later:
            heapq.heappush(handed, entry)
    return now


def _chains(work: Mapping[str, Job], waiting: Mapping[str, Collection[str]]) -> dict[str, float]:
    """Seconds from each job's beginning to the end of the longest chain that it begins."""
    followers: dict[str, list[str]] = {name: [] for name in work}
    for name, needs in waiting.items():
        for need in needs:
            followers[need].append(name)
    found: dict[str, float] = {}

    def chain(name: str) -> float:
        if name not in found:
            found[name] = work[name].seconds + max(map(chain, followers[name]), default=0.0)
        return found[name]

    return {name: chain(name) for name in work}


def planned(plan: Plan, seconds: Mapping[str, float], cores: int) -> dict[str, Job]:
    """The jobs of a plan that were measured, each with what it waits for."""
    cells = {pair: ".".join(pair) for pair in plan.cells()}
    needs: dict[str, Collection[str]] = {}
    for pair, name in cells.items():
        tuned = [cells[other] for other in plan.tunings(*pair)]
        needs[name] = [*(f"prepare.{one}" for one in plan.preparations(*pair)), *tuned]
    for name in plan.experiments:
        needs[f"audit.{name}"] = [f"prepare.{one}" for one in plan.preparations(name)]
    for kind, drawn in (("figure", plan.figures), ("table", plan.tables)):
        for name in drawn:
            own = [cells[pair] for pair in plan.cells_of(name)]
            needs[f"{kind}.{name}"] = [*own, f"summarize_partition.{name}"]
    for paper in plan.papers:
        needs[f"claims.{paper}"] = [cells[pair] for pair in plan.judged_cells(paper)]
    needs["audit"] = [name for name in seconds if name.startswith("audit.")]
    needs["gather"] = [*cells.values(), "audit", *(f"claims.{paper}" for paper in plan.papers)]
    needs["repairs"] = [*cells.values(), "gather"]
    needs["report"] = [name for name in seconds if name != "report"]
    found = {name: Job(taken, needs.get(name, ())) for name, taken in seconds.items()}
    for pair, name in cells.items():
        if name in found:
            found[name] = _split(found[name], plan.cell(*pair), cores)
    return found


def _split(job: Job, cell: Mapping, cores: int) -> Job:
    """A cell whose blocks are shared out."""
    blocks = math.ceil(cell["runs"] / cell["runs_per_batch"])
    rounds = math.ceil(blocks / max(1, cores // 4))
    processes = math.ceil(blocks / rounds)
    taken = job.seconds * (BEFORE_BLOCKS + (1 - BEFORE_BLOCKS) * rounds / blocks)
    return job._replace(seconds=taken, cores=processes)


def table(plan: Plan, times: Mapping[str, float], counts: Collection[int], queue: float) -> str:
    """Format the predicted wall times as a Markdown table.

    Parameters
    ----------
    plan : Plan
        Configuration of the run.
    times : mapping
        Measured time of each job.
    counts : collection of int
        Numbers of cores; one row for each.
    queue : float
        Seconds that each job waits in a queue, for the second prediction.

    Returns
    -------
    str
    """
    titles = ("cores", "wall s", f"wall s with {queue:g} s of queueing per job", "longest cell s")
    rows = []
    for cores in counts:
        work = planned(plan, times, cores)
        cells = [work[".".join(pair)].seconds for pair in plan.cells() if ".".join(pair) in work]
        walls = (makespan(work, cores, wait) for wait in (0.0, queue))
        shown = (f"{number:,.0f}" for number in (*walls, max(cells, default=0.0)))
        rows.append((str(cores), *shown))
    return markdown_table(titles, rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", nargs="?", default="results/paper", type=Path)
    parser.add_argument("--cores", nargs="+", type=int, default=[2, 16, 32, 64])
    parser.add_argument("--queue", type=float, default=25.0, help="seconds a job waits in a queue")
    options = parser.parse_args()
    times, config = seconds(jobs(options.run)), read_yaml(Path("config", "config.yaml"))
    plan = load({**config, "scale": options.run.name}, Path("config"))
    print(table(plan, times, options.cores, options.queue), end="")
