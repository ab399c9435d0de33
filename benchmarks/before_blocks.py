"""What of a cell is computed once, whatever its processes: its problem, noise and privacy.

    python -m benchmarks.before_blocks results/paper --count 70

A row for each of the heaviest cells of a run that is there, and their sum: `BEFORE_BLOCKS` of
:mod:`.makespan`. Cells with tuned settings, which need results of others, are left out.
"""

from __future__ import annotations

import argparse
import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when NumPy is imported

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from private_consensus.reproduction.configuration.plan import load
from private_consensus.reproduction.configuration.schema import read_yaml
from private_consensus.reproduction.data.prepared import Prepared
from private_consensus.reproduction.results import cells

from .jobs import jobs


def seconds_before(cell: Mapping[str, Any], prepared: Mapping[str, Prepared]) -> float:
    """CPU-seconds until a cell's first block, and of its privacy rows."""
    begin = time.process_time()
    for alike in cells._side_by_side(cell):
        for environments in alike:
            calibrations = cells._calibrated(cell, environments, prepared)
            for calibration, distinct in zip(calibrations, environments, strict=True):
                pairs = [(index, one) for index, same in enumerate(distinct) for one in same]
                cells._private(cell, calibration, pairs)
    return time.process_time() - begin


def table(folder: Path, count: int) -> str:
    """Markdown: the heaviest cells, and all of them together."""
    plan = load({**read_yaml(Path("config", "config.yaml")), "scale": folder.name}, Path("config"))
    taken = {row["job"]: row["CPU s"] for row in jobs(folder)}
    every = {pair: plan.cell(*pair) for pair in plan.cells() if ".".join(pair) in taken}
    plain = [
        pair for pair, cell in every.items() if not any("tuned" in one for one in cell["settings"])
    ]
    heaviest = sorted(plain, key=lambda pair: -taken[".".join(pair)])[:count]
    found = {}
    for pair in heaviest:
        names = plan.preparations(*pair)
        prepared = {name: Prepared.load(folder / "prepared" / f"{name}.npz") for name in names}
        found[".".join(pair)] = seconds_before(every[pair], prepared)
    whole = sum(taken[name] for name in found)
    lines = ["| cell | CPU s | before blocks |", "|---|---|---|"]
    lines += [f"| {name} | {taken[name]:.1f} | {one / taken[name]:.3f} |"
              for name, one in found.items()]  # fmt: skip
    return "\n".join([*lines, f"| all | {whole:.0f} | {sum(found.values()) / whole:.3f} |", ""])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", nargs="?", default="results/paper", type=Path)
    parser.add_argument("--count", type=int, default=70)
    options = parser.parse_args()
    print(table(options.run, options.count), end="")
