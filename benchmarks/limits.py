"""The least seconds that a cell of section 4 of paper 004 can take on one core of this machine.

    python -m benchmarks.limits

Counted are the products of the first layer with pixels that are not 0, forwards and backwards, and
of mixing, at the rate of a large product of float32; uniforms and normals of a run, which its
settings share; and for Q-DPSGD-2, whose steps have no noise, pairs of words in place of normals,
and rounding with a discrete draw for each setting. Nothing else: no step, no other rounding, no
evaluation.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when NumPy is imported

import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import yaml

from private_consensus import algorithms
from private_consensus.core.kernels import few_points, messages, normals
from private_consensus.core.kernels.vectors import aligned
from private_consensus.reproduction.experiments import plan as planning
from private_consensus.reproduction.experiments.sharing import identity

CELLS = (
    ("ding_fig16_ends", "q_dpsgd_2"), ("ding_fig15_ends", "q_dpsgd_2"),
    ("ding_fig16_ends", "q_dpsgd_1"), ("ding_fig15_ends", "q_dpsgd_1"),
    ("ding_fig16_ends", "sdm_dsgd"), ("ding_fig14_ends", "q_dpsgd_2"),
    ("ding_fig15_ends", "sdm_dsgd"),
)  # fmt: skip
PIXELS = {"mnist-pixels": 784, "cifar10-pixels": 3072}
NONZERO = {"mnist-pixels": 150, "cifar10-pixels": 3052}
"""Pixels that are not 0, on average."""
CLASSES, VARIANCE = 10, 10.0
RESOLUTION, LOWEST, HIGHEST = np.float32(0.1), -4, 3
KEY = (np.uint32(1), np.uint32(2), np.uint32(3))


def fastest(work: Callable[[], object], times: int) -> float:
    """Seconds of the fastest call."""
    work()
    found = []
    for _ in range(times):
        begin = time.perf_counter()
        work()
        found.append(time.perf_counter() - begin)
    return min(found)


def rates() -> dict[str, float]:
    """Seconds of a flop, a normal, a uniform, a pair of words and a number rounded with noise."""
    count = 1 << 17
    one, other = aligned(count), aligned(count)
    first, second = aligned(count, np.uint32), aligned(count, np.uint32)
    matrix = np.ones((1500, 1500), np.float32)
    _, bounds = few_points.bounds_of(messages.discrete_table(VARIANCE), HIGHEST - LOWEST)
    out, grid = aligned(count), (RESOLUTION, np.float32(LOWEST), np.float32(HIGHEST))
    start = np.uint32(0)
    calls = {
        "normal": lambda: normals.fill_normals(*KEY, start, one, other),
        "uniform": lambda: normals.fill_uniforms(*KEY, start, one, other),
        "words": lambda: normals.fill_words(*KEY, start, first, second),
        "rounding": lambda: few_points.round_to_few(one, other, first, bounds, *grid, out),
    }
    drawn = {"normal": 2, "uniform": 2, "words": 1, "rounding": 1}
    found = {name: fastest(call, 200) / (drawn[name] * count) for name, call in calls.items()}
    return found | {"flop": fastest(lambda: matrix @ matrix, 20) / (2 * 1500**3)}


def least(cell: dict, cost: dict[str, float]) -> float:
    """Seconds of all runs of a cell."""
    discrete = cell["algorithm"] == "q_dpsgd_2"
    # What is the same setting is computed once.
    apart = {identity(cell, setting): setting for setting in cell["settings"]}
    total, shared = 0.0, defaultdict(int)
    for setting in apart.values():
        built = algorithms.load(cell["algorithm"])(**setting["algorithm"])
        agents, hidden = setting["network"]["agents"], setting["problem"]["hidden"]
        images = setting["problem"]["prepared"]
        pixels, nonzero = PIXELS[images], NONZERO[images]
        numbers = agents * (pixels * hidden + hidden + hidden * CLASSES + CLASSES)
        flops = 4 * agents * int(built.B) * nonzero * hidden + 2 * agents * numbers
        own = flops * cost["flop"] + discrete * numbers * cost["rounding"]
        total += setting["horizon"] * own
        draws = agents, numbers, int(built.B)
        shared[draws] = max(setting["horizon"], shared[draws])
    drawn = cost["uniform"] + (cost["words"] if discrete else cost["normal"])
    total += sum(horizon * numbers * drawn for (_, numbers, _), horizon in shared.items())
    return cell["runs"] * total


def main() -> None:
    """A line for each rate and each cell."""
    cost = rates()
    for name, seconds in cost.items():
        print(f"{name}: {seconds * 1e9:.3f} ns")
    plan = planning.load(yaml.safe_load(Path("config/config.yaml").read_text()), Path("config"))
    for pair in CELLS:
        print(f"{'.'.join(pair)}: {least(plan.cell(*pair), cost):.0f} s")


if __name__ == "__main__":
    main()
