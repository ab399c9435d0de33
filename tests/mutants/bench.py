"""The bench: every fault in every algorithm where it makes sense, and every correct style.

Each audit is independent of the others and has a seed of its own, so that the table is the same on
any number of processors.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Any, NamedTuple

import polars as pl
from scipy.stats import beta

from private_consensus import audit
from private_consensus.errors import OutsideRange

from .cases import CASES, case_of
from .faults import FAULTS, fault
from .styles import STYLES, style

CONFIDENCE, DELTA = 0.99, 1e-2
"""Of each audit; at this delta few thousand runs can contradict something."""
MUST = 1.5
"""From this ratio of the true epsilon to the claimed one a fault has to be found."""
CORRECT = "none"
"""Name of the fault that a correct algorithm has."""


class Asked(NamedTuple):
    """One audit of the bench: of an algorithm with a fault, or of a style."""

    algorithm: str
    fault: str
    seed: int = 0


def pairs(names: Iterable[str] = ()) -> Iterator[Asked]:
    """Faults of algorithms, the correct one first."""
    for name in names or CASES:
        yield Asked(name, CORRECT)
        yield from (Asked(name, one.name) for one in FAULTS if one.applies(case_of(name)))


def correct(seeds: int) -> Iterator[Asked]:
    """Every style with so many seeds."""
    return (Asked(name, CORRECT, seed) for seed in range(seeds) for name in STYLES)


def judged(asked: Asked, runs: int) -> dict[str, Any]:
    """A row of the table: what an audit of so many runs says."""
    case = case_of(asked.algorithm) if asked.algorithm in CASES else style(asked.algorithm)
    one = None if asked.fault == CORRECT else fault(asked.fault)
    algorithm = one.broken(case.algorithm) if one else case.algorithm
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideRange)
        row = {
            "algorithm": asked.algorithm, "fault": asked.fault, "seed": asked.seed,
            "ratio": float(one.ratio(case, DELTA)) if one else 1.0,
        }  # fmt: skip
        result = audit(
            algorithm, case.problem, case.network, case.budget, case.horizon,
            runs=runs, confidence=CONFIDENCE, delta=DELTA, seed=asked.seed,
        )  # fmt: skip
    kinds = sorted({finding.kind for finding in result.findings})
    return row | {
        "meaningful": row["ratio"] >= MUST, "caught": result.flagged, "how": "; ".join(kinds),
        "claimed": float(result.claimed), "lower": float(result.lower), "runs": result.runs,
        "findings": "; ".join(finding.text for finding in result.findings),
    }  # fmt: skip


def table(
    asked: Iterable[Asked],
    *,
    runs: int,
    cores: int,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> pl.DataFrame:
    """All rows, in the order asked."""
    asked = list(asked)
    rows = []
    with ProcessPoolExecutor(cores, mp_context=get_context("spawn")) as pool:
        for row in pool.map(partial(judged, runs=runs), asked, chunksize=4):
            rows.append(row)
            progress(len(rows), len(asked))
    return pl.DataFrame(rows, infer_schema_length=None)


def broken(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of faults."""
    return rows.filter(pl.col("fault") != CORRECT)


def shares(rows: pl.DataFrame, by: str) -> pl.DataFrame:
    """Caught of meaningful, by fault or by algorithm; beside it the most runs that were needed and
    how many were contradicted by outcomes alone."""
    return (
        broken(rows)
        .group_by(by, maintain_order=True)
        .agg(
            tried=pl.len(),
            meaningful=pl.col("meaningful").sum(),
            caught=(pl.col("caught") & pl.col("meaningful")).sum(),
            contradicted=pl.col("how").str.contains("contradicted").sum(),
            caught_of_others=(pl.col("caught") & ~pl.col("meaningful")).sum(),
            most_runs=pl.col("runs").filter(pl.col("caught")).max(),
        )
    )


def missed(rows: pl.DataFrame) -> pl.DataFrame:
    """Faults that have to be found and were not."""
    return broken(rows).filter(pl.col("meaningful") & ~pl.col("caught"))


def alarms(rows: pl.DataFrame) -> dict[str, Any]:
    """How often something correct was flagged, with the 99.9 % interval of that rate."""
    right = rows.filter(pl.col("fault") == CORRECT)
    flagged, tried = int(right["caught"].sum()), right.height
    low = beta.ppf(5e-4, flagged, tried - flagged + 1) if flagged else 0.0
    high = beta.ppf(1 - 5e-4, flagged + 1, tried - flagged) if flagged < tried else 1.0
    return {"flagged": flagged, "tried": tried, "low": float(low), "high": float(high)}


def text(rows: pl.DataFrame) -> str:
    """The tables in Markdown."""
    right = alarms(rows)
    lines = [
        "# A bench of broken copies", "",
        f"Audits at confidence {CONFIDENCE:g} and delta {DELTA:g}. A fault has to be found where "
        f"its true epsilon is at least {MUST:g} times the claimed one.", "",
        f"Correct algorithms flagged: {right['flagged']} of {right['tried']} "
        f"(99.9 % interval of the rate {right['low']:.2g} to {right['high']:.2g}).", "",
    ]  # fmt: skip
    for by in ("fault", "algorithm"):
        lines += [
            f"| {by} | caught / meaningful | contradicted by outcomes | of others | most runs |",
            "|---|---|---|---|---|",
        ]
        lines += [
            f"| {row[by]} | {row['caught']} / {row['meaningful']} | {row['contradicted']} "
            f"| {row['caught_of_others']} / {row['tried'] - row['meaningful']} "
            f"| {row['most_runs'] or ''} |"
            for row in shares(rows, by).iter_rows(named=True)
        ]
        lines.append("")
    lines += [
        f"Missed: {row['algorithm']}, {row['fault']} (true epsilon {row['ratio']:.3g} times the "
        "claimed one)."
        for row in missed(rows).iter_rows(named=True)
    ]
    return "\n".join(lines) + "\n"
