"""Time and memory of every algorithm against its size.

    python -m benchmarks.growth one dp_ci --agents 10000      one measurement, a line of JSON
    python -m benchmarks.growth table 10000                   a line an algorithm, at one size
    python -m benchmarks.growth exponents                     by what each size enters
    python -m benchmarks.growth all docs/performance.md       all of these, between the file's marks

Each measurement is a process of its own: seconds of the processor from an empty process with its
libraries loaded to the last measured number, and the most memory that the process ever had.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from private_consensus.errors import OutsideRange
from private_consensus.privacy import Budget
from private_consensus.simulation import Environment, Setting, Watch, calibrate, simulate

from .worlds import INAPPLICABLE, RANDOM_REGULAR, RING, WORLDS, network, world

SIZES = {"agents": 1000, "dim": 10, "records": 10, "runs": 1, "settings": 1, "iterations": 100}
GROWN = {"agents": (1000, 4000), "dim": (10, 40), "records": (10, 160), "runs": (1, 8),
         "settings": (1, 8)}  # fmt: skip
"""Two values of each size, the others as in ``SIZES``; an exponent is the slope between them."""


def simulated(name: str, sizes: dict[str, int], graph: dict[str, Any]) -> dict[str, float]:
    """CPU-seconds of building the network, of setting the noise and of all iterations."""
    agents, runs = sizes["agents"], sizes["runs"]
    marks = [time.process_time()]
    net = network(agents, graph)
    marks.append(time.process_time())
    made = world(name, agents, dim=sizes["dim"], records=sizes["records"], runs=runs)
    budgets = [
        Budget(made.budget.epsilon / (1 + 0.1 * s), made.budget.delta)
        for s in range(sizes["settings"])
    ]
    settings = [Setting(made.algorithm, budget, sizes["iterations"]) for budget in budgets]
    environment = Environment(lambda streams: made.problem, lambda streams: net)
    calibration = calibrate(settings, environment, root=0, groups={}, runs=runs, block=runs)
    marks.append(time.process_time())
    metric = next(iter(made.problem.metrics))
    found = simulate(calibration, watch=Watch((("released", metric),)), divergence="record")
    marks.append(time.process_time())
    (value, *_) = found.values[0].values()
    steps = np.diff(marks)
    return {"network": steps[0], "noise": steps[1], "run": steps[2], "value": float(value[0])}


def one(name: str, sizes: dict[str, int]) -> dict[str, float]:
    """One measurement, in this process; machine code is loaded by a small run before."""
    warnings.simplefilter("ignore", OutsideRange)
    simulated(name, {**SIZES, "agents": 12, "iterations": 2}, RING)
    begin, clock = time.process_time(), time.perf_counter()
    found = simulated(name, sizes, RANDOM_REGULAR)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        **found,
        "cpu": time.process_time() - begin,
        "wall": time.perf_counter() - clock,
        "mb": peak,
    }


def measured(name: str, **sizes: int) -> dict[str, float]:
    """The same in a process of its own."""
    given = [f"--{key}={value}" for key, value in {**SIZES, **sizes}.items()]
    command = [sys.executable, "-m", "benchmarks.growth", "one", name, *given]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **SINGLE})
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


LARGEST = ("muffliato", "gradient_descent", "dp_ci")
"""Measured with 100,000 agents too."""
MARKS = "<!-- growth -->\n", "<!-- end of growth -->\n"

SINGLE = {"OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}


def table(agents: int, names: list[str]) -> Iterator[str]:
    """A line of Markdown an algorithm, at one number of agents."""
    yield "| algorithm | network s | noise s | run s | CPU s in all | memory MB |"
    yield "|---|---|---|---|---|---|"
    for name in names:
        try:
            f = measured(name, agents=agents)
        except RuntimeError as error:
            yield f"| {name} | {str(error).splitlines()[-1][:120]} | | | | |"
            continue
        parts = " | ".join(f"{f[key]:.1f}" for key in ("network", "noise", "run", "cpu"))
        yield f"| {name} | {parts} | {f['mb']:.0f} |"


def exponents(names: list[str]) -> Iterator[str]:
    """By what power of a size time and memory grow."""
    yield (
        "| algorithm | " + " | ".join(f"{size} {a} to {b}" for size, (a, b) in GROWN.items()) + " |"
    )
    yield "|---|" + "---|" * len(GROWN)
    for name in names:
        cells = []
        for size, (low, high) in GROWN.items():
            few, many = (measured(name, **{size: value}) for value in (low, high))
            slopes = [np.log(many[key] / few[key]) / np.log(high / low) for key in ("run", "mb")]
            cells.append(f"{slopes[0]:.1f}, {slopes[1]:.1f}")
        yield f"| {name} | " + " | ".join(cells) + " |"


def pages() -> Iterator[str]:
    """All tables, with the machine and the day."""
    yield f"{datetime.date.today()}, {_processor()}, one core."
    yield "\nWith 10,000 agents:\n"
    yield from table(10_000, list(WORLDS))
    for name, why in INAPPLICABLE.items():
        yield f"| {name} | does not apply: {why} | | | | |"
    yield "\nWith 100,000:\n"
    yield from table(100_000, list(LARGEST))
    yield "\nExponents of time and of memory:\n"
    yield from exponents(list(WORLDS))


def _processor() -> str:
    lines = (
        Path("/proc/cpuinfo").read_text().splitlines() if os.path.exists("/proc/cpuinfo") else []
    )
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "a processor without a name"


def replaced(text: str, page: str) -> str:
    """A text with another page between its marks."""
    before, _, rest = text.partition(MARKS[0])
    _, mark, after = rest.partition(MARKS[1])
    if not mark:
        raise SystemExit(f"no {MARKS[0].strip()} ... {MARKS[1].strip()} in the file")
    return before + MARKS[0] + page + MARKS[1] + after


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    single = commands.add_parser("one")
    single.add_argument("name", choices=sorted(WORLDS))
    for key, value in SIZES.items():
        single.add_argument(f"--{key}", type=int, default=value)
    at_one_size = commands.add_parser("table")
    at_one_size.add_argument("agents", type=int)
    for command in (at_one_size, commands.add_parser("exponents")):
        command.add_argument("names", nargs="*", default=[])
    commands.add_parser("all").add_argument("file", type=Path)
    given = parser.parse_args()
    if given.command == "all":
        page = "\n".join(pages()) + "\n"
        given.file.write_text(replaced(given.file.read_text(encoding="utf-8"), page), "utf-8")
        return
    if given.command == "one":
        sizes = {key: getattr(given, key) for key in SIZES}
        print(json.dumps(one(given.name, sizes)))
        return
    names = given.names or list(WORLDS)
    lines = table(given.agents, names) if given.command == "table" else exponents(names)
    for line in lines:
        print(line, flush=True)
    if given.command == "table" and not given.names:
        for name, why in INAPPLICABLE.items():
            print(f"| {name} | does not apply: {why} | | | | |")


if __name__ == "__main__":
    main()
