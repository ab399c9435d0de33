"""Mutation tests: faulty and correct algorithms, each audited with one or several seeds.

Broken copies of the registry's algorithms have faults of this repository's authors. A package in
``outside`` has algorithms of authors who have not seen the audit. Each audit is independent of the
others and has a seed of its own, so that the table is the same on any number of processors.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.stats import beta

from private_consensus import audit
from private_consensus.audits.result import INCONCLUSIVE, AuditResult
from private_consensus.common.errors import OutsideRange
from private_consensus.common.provenance import checksums, settings_hash

from . import outsiders
from .cases import CASES, case_of
from .faults import FAULTS, HARMLESS, class_of, fault, takes_batches
from .styles import STYLES, style

CONFIDENCE, DELTA = 0.99, 1e-2
"""Of each audit; at this delta few thousand runs can contradict something."""
MUST = 1.5
"""From this ratio of the true epsilon to the claimed one a fault has to be found."""
CORRECT = "none"
"""Name of the fault that a correct algorithm has."""
BATCH_RUNS = 150
"""Runs of algorithms with sampled batches, whose runs take longest."""
AUDITS_PER_PROCESS = 40
"""A process that audits many algorithms grows to several gigabytes; it is replaced after these."""
HERE = Path(__file__).parent
PACKAGE = HERE.parents[1] / "src" / "private_consensus"
SOURCES = (
    HERE,
    *(PACKAGE / folder for folder in ("common", "privacy", "kernels", "core", "audits")),
)
"""Folders of the code that determines a row; no audit runs code of other folders."""
UNSPECIFIC = {
    "agent", "agents", "all", "every", "each", "that", "with", "from", "this", "into", "round",
    "rounds", "value", "exact", "private", "data",
}  # fmt: skip
"""Words of a fault or its location that name no item."""

ITEMS = {
    "random streams": ("noise", "draw"),
    "gradients, clipping, batches": ("gradient", "batch", "sensitivity", "noise"),
    "messages and account": ("message", "exchange", "iteration", "horizon"),
    "noise as added in a step": ("noise",),
    "branches on data": ("noise", "branch", "control flow"),
    "returned outputs": ("summary", "gradient_length", "solver_seconds"),
    "bypass of network.mix": ("received", "bypass", "network.mix"),
}
"""Words by which an inconclusive result names the item that holds a fault of a class."""


class Request(NamedTuple):
    """Request for one audit: of a fault, a correct variant or an outside algorithm."""

    algorithm: str
    fault: str
    seed: int = 0


def pairs(names: Iterable[str] = ()) -> Iterator[Request]:
    """Yield faults of algorithms, the correct copies first."""
    for name in names or CASES:
        yield Request(name, CORRECT)
        if HARMLESS.applies(case_of(name)):
            yield Request(name, HARMLESS.name)
        yield from (
            Request(name, candidate.name)
            for candidate in FAULTS
            if candidate.applies(case_of(name))
        )


def correct(seeds: int) -> Iterator[Request]:
    """Yield every style with ``seeds`` seeds."""
    return (Request(name, CORRECT, seed) for seed in range(seeds) for name in STYLES)


def outside(seeds: int = 1) -> Iterator[Request]:
    """Yield one request per outside algorithm, in the setting of its claim.

    Correct algorithms are also requested with ``seeds`` seeds and on the examples that their
    modules name.
    """
    for name, entry in outsiders.entries().items():
        yield Request(name, outsiders.LABEL)
        if entry.correct:
            yield from (Request(name, outsiders.LABEL, seed) for seed in range(1, seeds))
            yield Request(name, outsiders.BY_NAME)


class Prepared(NamedTuple):
    """Algorithm, problem, network, budget and horizon of one audit, with the known result."""

    world: tuple
    delta: float
    row: dict[str, Any]
    items: tuple[str, ...]
    batches: bool = False


def judged(request: Request, runs: int) -> dict[str, Any]:
    """Audit once and return one row of the table.

    Parameters
    ----------
    request : Request
    runs : int
        Runs of the audit on each of the two data sets.

    Returns
    -------
    dict
    """
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideRange)
        from_outside = request.fault in (outsiders.LABEL, outsiders.BY_NAME)
        prepared = _from_outside(request) if from_outside else _copy(request)
        try:
            audit_result = audit(
                *prepared.world, runs=min(runs, BATCH_RUNS) if prepared.batches else runs,
                confidence=CONFIDENCE, delta=prepared.delta, seed=request.seed, processes=1,
            )  # fmt: skip
        except Exception as error:  # one audit that fails is a row of the table
            return prepared.row | failed(request, prepared.row, error)
    row = prepared.row
    kinds = sorted({finding.kind for finding in audit_result.findings})
    untested = [str(gap) for gap in audit_result.coverage.untested if gap.decisive]
    return row | {
        "seed": request.seed, "meaningful": row["ratio"] >= MUST, "caught": audit_result.flagged,
        "inconclusive": names_item(audit_result, prepared.items), "verdict": audit_result.verdict,
        "how": "; ".join(kinds), "claimed": float(audit_result.claimed),
        "lower": float(audit_result.lower), "runs": audit_result.runs,
        "seconds": time.process_time() - began,
        "findings": "; ".join(finding.text for finding in audit_result.findings),
        "untested": "; ".join(untested),
    }  # fmt: skip


FAILED = "error"
"""Verdict of an audit that raised an error; a broken algorithm is then missed."""


def failed(request: Request, row: dict[str, Any], error: Exception) -> dict[str, Any]:
    """Return the columns of an audit that raised an error."""
    return {
        "seed": request.seed, "meaningful": row["ratio"] >= MUST, "caught": False,
        "inconclusive": False, "verdict": FAILED, "how": "", "claimed": float("nan"),
        "lower": float("nan"), "runs": 0, "seconds": 0.0,
        "findings": f"{type(error).__name__}: {error}", "untested": "",
    }  # fmt: skip


def _copy(request: Request) -> Prepared:
    """Prepare a copy of a registered algorithm, or a style."""
    case = case_of(request.algorithm) if request.algorithm in CASES else style(request.algorithm)
    broken = None if request.fault == CORRECT else fault(request.fault)
    harmless = request.fault in (CORRECT, HARMLESS.name)
    kind = CORRECT if harmless else class_of(request.fault)
    row = {
        "algorithm": request.algorithm, "fault": request.fault, "class": kind, "correct": harmless,
        "outside": False, "ratio": float(broken.ratio(case, DELTA)) if broken else 1.0,
    }  # fmt: skip
    algorithm = broken.broken(case.algorithm) if broken else case.algorithm
    world = algorithm, case.problem, case.network, case.budget, case.horizon
    return Prepared(world, DELTA, row, ITEMS.get(kind, ()), takes_batches(case))


def _from_outside(request: Request) -> Prepared:
    """Prepare an algorithm of the package, with its claimed delta."""
    entry = outsiders.entries()[request.algorithm]
    by_name = request.fault == outsiders.BY_NAME
    example = outsiders.example_of(request.algorithm, by_name=by_name)
    row = {
        "algorithm": entry.base or entry.module, "fault": entry.module,
        "class": CORRECT if entry.correct else outsiders.LABEL, "correct": entry.correct,
        "outside": True, "ratio": float(entry.ratio),
    }  # fmt: skip
    words = {word.strip(".,()`").lower() for word in f"{entry.kind} {entry.location}".split()}
    items = tuple(word for word in words if len(word) > 3 and word not in UNSPECIFIC)
    if entry.location.startswith(("all agents", "each agent")):
        items += ("agents 0 to",)
    return Prepared(example.world, example.budget.delta, row, items)


def names_item(audit_result: AuditResult, items: Iterable[str]) -> bool:
    """Return True if the result is inconclusive and names the item that holds the fault.

    Parameters
    ----------
    audit_result : AuditResult
    items : iterable of str
        Words for the item; one of them has to be in what was not tested.

    Returns
    -------
    bool
    """
    if audit_result.verdict != INCONCLUSIVE:
        return False
    untested = " ".join(str(gap) for gap in audit_result.coverage.untested if gap.decisive).lower()
    return any(word in untested for word in items)


def table(
    requests: Iterable[Request],
    *,
    runs: int,
    cores: int,
    record: Path,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> pl.DataFrame:
    """Return all rows in the requested order.

    Parameters
    ----------
    requests : iterable of Request
    runs : int
        Runs of each audit on each of the two data sets.
    cores : int
    record : Path
        File to which each row is added when it is known. Rows that the same code added before are
        not computed again, so that a stopped bench continues.
    progress : callable
        Called with the number of known rows and of all rows.

    Returns
    -------
    DataFrame
    """
    requests = list(requests)
    files = (file for folder in SOURCES for file in folder.rglob("*.py"))
    code = settings_hash(checksums(files, HERE))
    rows = recorded(record, code, runs)
    record.parent.mkdir(parents=True, exist_ok=True)
    missing = [request for request in requests if request not in rows]
    with (
        get_context("spawn").Pool(cores, maxtasksperchild=AUDITS_PER_PROCESS) as pool,
        record.open("a") as stream,
    ):
        audits = pool.imap_unordered(partial(_of, runs=runs), missing)
        for done, (request, row) in enumerate(audits, len(requests) - len(missing) + 1):
            rows[request] = row
            entry = {"code": code, "runs": runs, "request": request, "row": row}
            stream.write(json.dumps(entry, default=np.generic.item) + "\n")
            stream.flush()
            progress(done, len(requests))
    return pl.DataFrame([rows[request] for request in requests], infer_schema_length=None)


def _of(request: Request, runs: int) -> tuple[Request, dict[str, Any]]:
    return request, judged(request, runs)


def recorded(record: Path, code: str, runs: int) -> dict[Request, dict[str, Any]]:
    """Read the rows that the same code computed with the same number of runs.

    An incomplete last line, of a bench that was stopped while it wrote, is ignored.
    """
    rows = {}
    for line in record.read_text().splitlines() if record.exists() else ():
        with suppress(json.JSONDecodeError):
            entry = json.loads(line)
            if (entry["code"], entry["runs"]) == (code, runs):
                rows[Request(*entry["request"])] = entry["row"]
    return rows


def broken(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of faults."""
    return rows.filter(~pl.col("correct"))


def counts(rows: pl.DataFrame, *by: str) -> pl.DataFrame:
    """Count caught, inconclusive and missed broken copies among those that have to be found.

    Parameters
    ----------
    rows : DataFrame
    *by : str
        Columns to group by.

    Returns
    -------
    DataFrame
    """
    must, caught = pl.col("meaningful"), pl.col("caught")
    item_named = pl.col("inconclusive") & ~caught
    return (
        broken(rows)
        .group_by(*by, maintain_order=True)
        .agg(
            tried=pl.len(),
            meaningful=must.sum(),
            caught=(caught & must).sum(),
            inconclusive=(item_named & must).sum(),
            missed=(~caught & ~item_named & must).sum(),
            contradicted=(pl.col("how").str.contains("contradicted") & must).sum(),
            others=(caught & ~must).sum(),
            most_runs=pl.col("runs").filter(caught).max(),
        )
    )


def missed(rows: pl.DataFrame) -> pl.DataFrame:
    """Return faults that have to be found, and were neither caught nor named as not tested."""
    detected = pl.col("caught") | pl.col("inconclusive")
    return broken(rows).filter(pl.col("meaningful") & ~detected)


def alarms(rows: pl.DataFrame) -> dict[str, Any]:
    """Return the rate of false alarms on correct algorithms, with its 99.9 % interval."""
    right = rows.filter(pl.col("correct"))
    flagged, tried = int(right["caught"].sum()), right.height
    low = beta.ppf(5e-4, flagged, tried - flagged + 1) if flagged else 0.0
    high = beta.ppf(1 - 5e-4, flagged + 1, tried - flagged) if flagged < tried else 1.0
    inconclusive = int((right["verdict"] == INCONCLUSIVE).sum())
    failures = int((right["verdict"] == FAILED).sum())
    return {
        "flagged": flagged, "tried": tried, "low": float(low), "high": float(high),
        "inconclusive": inconclusive, "failed": failures,
    }  # fmt: skip


def sentence(rows: pl.DataFrame) -> str:
    """Return the counts in words, with the authors of the faults."""
    whose = {
        False: "faults that the authors of this repository applied to its algorithms",
        True: "broken algorithms of a package written without knowledge of the audit's "
        "implementation",
    }
    sentences = []
    for row in counts(rows, "outside").iter_rows(named=True):
        sentences.append(
            f"Of {row['meaningful']} {whose[row['outside']]}, {row['caught']} were caught, "
            f"{row['inconclusive']} ended inconclusive with the faulty item named, and "
            f"{row['missed']} were missed."
        )
    return " ".join(sentences)


def text(rows: pl.DataFrame) -> str:
    """Return the tables in Markdown."""
    right = alarms(rows)
    lines = [
        "# A bench of broken and correct algorithms", "",
        f"Audits at confidence {CONFIDENCE:g}; of copies at delta {DELTA:g}, of the outside "
        f"package at the delta of each claim. A fault has to be found if its true epsilon is at "
        f"least {MUST:g} times the claimed one.", "",
        sentence(rows), "",
        f"Correct algorithms flagged: {right['flagged']} of {right['tried']} audits "
        f"(99.9 % interval of the rate {right['low']:.2g} to {right['high']:.2g}); "
        f"{right['inconclusive']} audits of them ended inconclusive, {right['failed']} failed.", "",
    ]  # fmt: skip
    for by in ("class", "fault", "algorithm"):
        lines += [
            f"| {by} | caught | inconclusive | missed | of | contradicted | other faults caught "
            "| most runs |",
            "|---|---|---|---|---|---|---|---|",
        ]
        lines += [
            f"| {row[by]} | {row['caught']} | {row['inconclusive']} | {row['missed']} "
            f"| {row['meaningful']} | {row['contradicted']} "
            f"| {row['others']} of {row['tried'] - row['meaningful']} "
            f"| {row['most_runs'] or ''} |"
            for row in counts(rows, by).iter_rows(named=True)
        ]
        lines.append("")
    lines += ["| correct algorithm | audits | flagged | inconclusive |", "|---|---|---|---|"]
    lines += [
        f"| {row['name']} | {row['tried']} | {row['flagged']} | {row['inconclusive']} |"
        for row in right_by_name(rows).iter_rows(named=True)
    ]
    lines += ["", *not_applied(), ""]
    lines += [
        f"Missed: {row['algorithm']}, {row['fault']} (true epsilon {row['ratio']:.3g} times the "
        f"claimed one; verdict {row['verdict']})."
        for row in missed(rows).iter_rows(named=True)
    ]
    return "\n".join(lines) + "\n"


def not_applied() -> list[str]:
    """Return a sentence per fault that states to which algorithms it cannot be applied, and why."""
    sentences = []
    for candidate in FAULTS:
        names = [name for name in CASES if not candidate.applies(case_of(name))]
        if candidate.needs and names:
            sentences.append(
                f"The fault `{candidate.name}` needs {candidate.needs}. It is not applied to "
                f"{', '.join(names)}."
            )
    return sentences


def right_by_name(rows: pl.DataFrame) -> pl.DataFrame:
    """Count audits of correct algorithms by name."""
    name = pl.when(pl.col("fault") == HARMLESS.name).then(
        pl.col("algorithm") + ", " + pl.col("fault")
    ).otherwise(pl.col("algorithm"))  # fmt: skip
    return (
        rows.filter(pl.col("correct"))
        .with_columns(name=name)
        .group_by("name", maintain_order=True)
        .agg(
            tried=pl.len(),
            flagged=pl.col("caught").sum(),
            inconclusive=(pl.col("verdict") == INCONCLUSIVE).sum(),
        )
    )
