"""Run all mutation tests: ``python -m tests.mutants``.

The results are written to ``results/paper/audit/mutants.{parquet,md}``.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import polars as pl
from rich.progress import Progress

from private_consensus.common.provenance import atomic_write, write_text
from private_consensus.reproduction.report import described_commit

from .bench import correct, missed, outside, pairs, table, text

RUNS, FEW, SEEDS = 500, 100, 40
"""Runs of an audit of a broken copy, runs of the many audits of correct styles, and seeds."""
OUTSIDE_SEEDS = 3
"""Seeds of each correct algorithm of the outside package."""


def main() -> int:
    """Return 1 if a fault that has to be found is missed."""
    options = _parser().parse_args()
    with Progress() as bar:
        tables = [
            _table(bar, "broken copies", pairs(options.only), options.runs, options.cores),
            _table(bar, "correct styles", correct(options.seeds), FEW, options.cores),
            _table(bar, "outside", outside(OUTSIDE_SEEDS), options.runs, options.cores),
        ]
    rows = pl.concat(
        [partial_table for partial_table in tables if partial_table.height], how="diagonal_relaxed"
    )
    rows = rows.with_columns(commit=pl.lit(described_commit(Path(__file__).parent)))
    with atomic_write(options.out / "mutants.parquet") as partial_table:
        rows.write_parquet(partial_table)
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


def _table(bar: Progress, name: str, requests, runs: int, cores: int) -> pl.DataFrame:
    task = bar.add_task(name)

    def show_progress(done: int, of: int) -> None:
        bar.update(task, completed=done, total=of)

    return table(requests, runs=runs, cores=cores, progress=show_progress)


if __name__ == "__main__":
    raise SystemExit(main())
