"""Run all mutation tests: ``python -m tests.mutants``.

The results are written to ``results/paper/audit/mutants.{parquet,md}``. Each row is added to
``mutants.jsonl`` when it is known; a bench that was stopped continues there.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path

import polars as pl
from rich.progress import Progress

from private_consensus.common.provenance import write_text
from private_consensus.report import described_commit
from private_consensus.reproduction.experiments import results

from .bench import correct, missed, outside, pairs, table, text

RUNS, FEW, SEEDS = 500, 100, 40
"""Runs of an audit of a broken copy, runs of the many audits of correct styles, and seeds."""
OUTSIDE_SEEDS = 3
"""Seeds of each correct algorithm of the outside package."""


def main() -> int:
    """Return 1 if a fault that has to be found is missed."""
    options = _parser().parse_args()
    parts = {
        "broken copies": (pairs(options.only), options.runs),
        "correct styles": (correct(options.seeds), FEW),
        "outside": (outside(OUTSIDE_SEEDS), options.runs),
    }
    with Progress() as bar:
        tables = [
            table(
                requests, runs=runs, cores=options.cores, record=options.out / "mutants.jsonl",
                progress=_shown(bar, name),
            )
            for name, (requests, runs) in parts.items()
        ]  # fmt: skip
    rows = pl.concat(
        [partial_table for partial_table in tables if partial_table.height], how="diagonal_relaxed"
    )
    rows = rows.with_columns(commit=pl.lit(described_commit(Path(__file__).parent)))
    provenance = results.stamp({}, code=described_commit(Path(__file__).parent), source="none")
    results.write(rows, options.out / "mutants.parquet", provenance)
    write_text(options.out / "mutants.md", text(rows))
    print(text(rows))
    return int(missed(rows).height > 0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help="of an audit, on each data set")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="of each correct style")
    parser.add_argument("--cores", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", nargs="*", default=(), help="names of algorithms")
    parser.add_argument("--out", type=Path, default=Path("results/paper/audit"))
    return parser


def _shown(bar: Progress, name: str) -> Callable[[int, int], None]:
    task = bar.add_task(name)
    return lambda done, of: bar.update(task, completed=done, total=of)


if __name__ == "__main__":
    raise SystemExit(main())
