"""Measure all installed libraries, and store the results in benchmarks/measured/peers.jsonl.

make peers
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from collections.abc import Sequence
from importlib import import_module

SINGLE = {
    "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}  # fmt: skip
os.environ.update(SINGLE)

from .. import measuring  # noqa: E402
from .environment import found  # noqa: E402
from .table import KEPT, PARTS  # noqa: E402


def measure(parts: Sequence[str]) -> None:
    """Measure these parts and keep what is found, each part in the place of the earlier one."""
    versions = {name: version for name, version in found().items() if version}
    missing = [name for name, version in found().items() if not version]
    for part in parts:
        lines = list(import_module(f".{part}", __package__).measured())
        kept = {"part": part, "lines": lines, "versions": versions, "missing": missing}
        measuring.keep(KEPT, {**kept, **measuring.here()}, ["part"])
        for line in lines:
            print(json.dumps(line), flush=True)


def main() -> None:
    """Measure the parts that the command line names, or all."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        measure(sys.argv[1:] or PARTS)


if __name__ == "__main__":
    main()
