"""Time and memory of every algorithm against its size.

    python -m benchmarks.growth one dp_ci --agents 10000      one measurement, a line of JSON
    python -m benchmarks.growth table [name ...]              of 10,000 agents
    python -m benchmarks.growth largest [name ...]            of 100,000
    python -m benchmarks.growth exponents [name ...]          against each size
    python -m benchmarks.growth all                           all of these

Measurements are stored in ``benchmarks/measured/growth.jsonl``; each replaces the earlier one.
``make docs`` writes their tables and their plot.
Those of tables are processes of their own: seconds of the processor from an empty process with its
libraries loaded to the last measured number, and the most memory that the process ever had. Against
a size, time is that of an iteration and memory what is allocated beyond the libraries.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
import tracemalloc
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from private_consensus.common.errors import OutsideRange
from private_consensus.common.spreadsheets import markdown_table
from private_consensus.core.simulation import (
    Environment,
    MeasurementPlan,
    Setting,
    calibrate,
    simulate,
)
from private_consensus.privacy import Budget

from . import measuring
from .worlds import PAIRWISE, RANDOM_REGULAR, RING, WORLDS, network, world

KEPT = measuring.ROOT / "benchmarks" / "measured" / "growth.jsonl"
NAMED_BY = ("kind", "name", "size")
SINGLE = {"OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}

SIZES = {"agents": 1000, "dim": 10, "records": 10, "runs": 1, "settings": 1, "iterations": 100}
TABLE, LARGE = 10_000, 100_000
LARGEST = ("muffliato", "gradient_descent")
"""Measured with 100,000 agents too."""
SECONDS = {"linear": 10.0, "local": 60.0}
"""What 10,000 agents may take of the processor: without and with a local solve."""
MEGABYTES = {TABLE: 1000.0, LARGE: 4000.0}

GROWN = {"agents": (1000, 3000, 10_000), "dim": (10, 80), "records": (10, 160), "runs": (1, 8),
         "settings": (1, 8)}  # fmt: skip
"""Values of each size, the others as in ``SIZES``; an exponent is the slope through them."""
ITERATIONS, FEW, LONG = 30, {"d_zoa": 1}, 0.5
"""Iterations of those measurements, and seconds after which none is repeated; D-ZOA draws 60,000
normals in each of an agent's iterations."""
EXPECTED: dict[str, tuple[Sequence[float], Sequence[float]]] = {
    "muffliato": ((1, 1, 0, 1, 1), (1, 1, 0, 1, 1)),
    "gradient_descent": ((1, 1, 0, 1, 1), (1, 1, 0, 1, 1)),
    "muffliato_gd": ((1, 1, 1, 1, 1), (1, 1, 1, 1, 1)),
    "dgd": ((1, 1, 1, 1, 1), (1, 1, 1, 1, 1)),
    "ldp_gradient_descent": ((1, 1, 1, 1, 1), (1, 1, 1, 1, 1)),
    "dsgd": ((1, 1, 1, 1, 1), (1, 1, 1, 1, 1)),
    "q_dpsgd_1": ((1, 1, 1, 1, 1), (1, 1, 1, 1, 1)),
    "p_admm": ((1, 2, 1, 1, 1), (1, 2, 1, 1, 1)),
    "ipp_admm": ((1, 2, 1, 1, 1), (1, 2, 1, 1, 1)),
}
"""Highest power of each size of ``GROWN`` in the operations of an iteration, and in its memory.

Constant parts make a slope smaller. Mean estimation stores the mean of the records only. A local
solver stores a bound on the Hessian of each agent, dim x dim. The size of a sampled batch does not
depend on the number of records, but the agent's records are permuted before sampling."""


def simulated(name: str, sizes: Mapping[str, int], graph: Mapping[str, Any]) -> dict[str, float]:
    """Measure the CPU-seconds to build the network, to calibrate the noise and to iterate."""
    agents, runs = sizes["agents"], sizes["runs"]
    marks = [time.process_time()]
    net = network(agents, graph)
    marks.append(time.process_time())
    instance = world(name, agents, dim=sizes["dim"], records=sizes["records"], runs=runs)
    budgets = [
        Budget(instance.budget.epsilon / (1 + 0.1 * s), instance.budget.delta)
        for s in range(sizes["settings"])
    ]
    settings = [Setting(instance.algorithm, budget, sizes["iterations"]) for budget in budgets]
    environment = Environment(lambda streams: instance.problem, lambda streams: net)
    calibration = calibrate(settings, environment, root=0, groups={}, runs=runs, block=runs)
    marks.append(time.process_time())
    metric = next(iter(instance.problem.metrics))
    values = simulate(
        calibration, plan=MeasurementPlan((("released", metric),)), divergence="record"
    )
    marks.append(time.process_time())
    (value, *_) = values[0].values()
    steps = np.diff(marks)
    return {"network": steps[0], "noise": steps[1], "run": steps[2], "value": float(value[0])}


def warmed(name: str) -> None:
    """Compile and load the kernels by a small run; tests before sending need three iterations."""
    warnings.simplefilter("ignore", OutsideRange)
    simulated(name, {**SIZES, "agents": 12, "iterations": 3}, RING)


def one(name: str, sizes: Mapping[str, int]) -> dict[str, float]:
    """Measure one algorithm at one size, in this process."""
    warmed(name)
    begin, clock = time.process_time(), time.perf_counter()
    seconds = simulated(name, sizes, RANDOM_REGULAR)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        **seconds,
        "cpu": time.process_time() - begin,
        "wall": time.perf_counter() - clock,
        "mb": peak,
    }


def against(name: str) -> Iterator[dict[str, Any]]:
    """Measure seconds per iteration and megabytes for the values of each size, in this process."""
    warmed(name)
    base = {**SIZES, "iterations": FEW.get(name, ITERATIONS)}
    for size, values in GROWN.items():
        grown = [{**base, size: value} for value in values]
        yield {
            "kind": "exponents", "name": name, "size": size, "values": values,
            "seconds": [_iteration(name, sizes) for sizes in grown],
            "mb": [_allocated(name, sizes) for sizes in grown],
        }  # fmt: skip


def _iteration(name: str, sizes: Mapping[str, int]) -> float:
    """Return the shortest of up to three times; a long measurement is not repeated."""
    runs: list[float] = []
    while len(runs) < 3 and sum(runs) < LONG:
        runs.append(simulated(name, sizes, RANDOM_REGULAR)["run"])
    return min(runs) / sizes["iterations"]


def _allocated(name: str, sizes: Mapping[str, int]) -> float:
    """Return the peak memory in megabytes; it does not depend on the number of iterations."""
    tracemalloc.start()
    try:
        simulated(name, {**sizes, "iterations": min(sizes["iterations"], 3)}, RANDOM_REGULAR)
        return tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()


def called(*arguments: str) -> list[dict[str, Any]]:
    """Lines of a call of this module in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.growth", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **SINGLE})
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)}: {done.stderr[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def measure(kind: str, names: Sequence[str]) -> None:
    """Measure and keep."""
    for name in names:
        if kind == "exponents":
            found = called("against", name)
        else:
            size = TABLE if kind == "table" else LARGE
            (line,) = called("one", name, f"--agents={size}")
            found = [{"kind": kind, "name": name, "size": "agents", "agents": size, **line}]
        for line in found:
            measuring.keep(KEPT, {**line, **measuring.here()}, NAMED_BY)
            print(json.dumps(line), flush=True)


def slope(values: Sequence[float], measured: Sequence[float]) -> float:
    """Least squares of logarithms."""
    return float(np.polyfit(np.log(values), np.log(measured), 1)[0])


def tables(lines: Sequence[Mapping[str, Any]]) -> str:
    """Return the tables of the stored measurements in Markdown."""
    of = {kind: [line for line in lines if line["kind"] == kind] for kind in CHOSEN}
    head = ["algorithm", "agents", "CPU s", "limit s", "memory MB"]
    return "\n".join(
        [
            f"CPU time and peak memory of one run ({_measured(of['table'])}):\n",
            markdown_table(head, _sizes([*of["table"], *of["largest"]])),
            f"Exponents of the time per iteration ({_measured(of['exponents'])}), with the "
            "expected exponents in brackets:\n",
            markdown_table(*_exponents(of["exponents"], "seconds", 0)),
            "Exponents of the memory in addition to that of the libraries:\n",
            markdown_table(*_exponents(of["exponents"], "mb", 1)),
            "![Time and memory of an iteration against agents](/_generated/growth.svg)\n",
        ]
    )


def _measured(lines: Sequence[Mapping[str, Any]]) -> str:
    """Return the days and the machines of measurements."""
    days = sorted({line["day"] for line in lines})
    machines = " and ".join(sorted({line["machine"] for line in lines}))
    return f"{' to '.join(dict.fromkeys((days[0], days[-1])))}, one core of {machines}"


def _sizes(lines: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    order = list(WORLDS)
    for line in sorted(lines, key=lambda line: (line["agents"], order.index(line["name"]))):
        limit = f"{SECONDS[WORLDS[line['name']][2]]:g}" if line["agents"] == TABLE else ""
        numbers = (f"{line['agents']:,}", f"{line['cpu']:.1f}", limit, f"{line['mb']:.0f}")
        yield [line["name"], *numbers]


def _exponents(
    lines: Sequence[Mapping[str, Any]], key: str, index: int
) -> tuple[list[str], list[list[str]]]:
    """Return titles and rows of the table of measured and expected exponents."""
    titles = [f"{size} {values[0]} to {values[-1]}" for size, values in GROWN.items()]
    measured = {(line["name"], line["size"]): line for line in lines}
    rows = []
    for name, expected in EXPECTED.items():
        slopes = [
            slope(measured[name, size]["values"], measured[name, size][key]) for size in GROWN
        ]
        cells = zip(slopes, expected[index], strict=True)
        rows.append([name, *(f"{actual + 0.0:.2f} ({bound:g})" for actual, bound in cells)])
    return ["algorithm", *titles], rows


CHOSEN = {
    "table": [name for name in WORLDS if name not in PAIRWISE],
    "largest": LARGEST,
    "exponents": EXPECTED,
}
"""Whom each kind of measurement is made of."""


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    single = commands.add_parser("one")
    single.add_argument("name", choices=sorted(WORLDS))
    for key, value in SIZES.items():
        single.add_argument(f"--{key}", type=int, default=value)
    commands.add_parser("against").add_argument("name", choices=sorted(EXPECTED))
    for kind, names in CHOSEN.items():
        commands.add_parser(kind).add_argument("names", nargs="*", default=list(names))
    commands.add_parser("all")
    given = parser.parse_args()
    if given.command == "one":
        print(json.dumps(one(given.name, {key: getattr(given, key) for key in SIZES})))
    elif given.command == "against":
        for line in against(given.name):
            print(json.dumps(line), flush=True)
    elif given.command in CHOSEN:
        measure(given.command, given.names)
    else:
        for kind, names in CHOSEN.items():
            measure(kind, list(names))


if __name__ == "__main__":
    main()
