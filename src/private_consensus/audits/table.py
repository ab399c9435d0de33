"""Privacy rows judged again: with what audits find of a setting, and what errata say of it.

The words are those of :mod:`private_consensus.privacy.verdicts`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from ..privacy import NOT_PRIVATE, verdict_of
from .errata import Erratum, concerns
from .experiments import EXPERIMENTS

NOT_AUDITED = "not audited"


def judged(
    privacy: pl.DataFrame, errata: Mapping[str, Erratum], audits: Iterable[Mapping[str, Any]]
) -> pl.DataFrame:
    """Privacy rows with verdict, empirical bound, what it was found by, and errata.

    Parameters
    ----------
    privacy : DataFrame
        As cells write it, see :func:`private_consensus.experiments.cells.privacy_rows`.
    audits : rows
        With ``algorithm``, ``variant`` (empty: a setting of the audit's own), ``copy``, ``bound``,
        ``claimed``, ``flagged``, ``delta``, and ``experiment`` with its axes as JSON in ``setting``
        (empty: in whichever experiment the claim is made).
    """
    # of an audit that is an experiment of its own, every copy is a setting of that experiment
    correct = [
        row for row in audits
        if (row["copy"] == "correct" or row["algorithm"] in EXPERIMENTS)
        and not row["level"].startswith("noise")
    ]  # fmt: skip
    return pl.DataFrame(
        [
            {**row, **_judgement(row, errata, _matching(row, correct))}
            for row in privacy.to_dicts()
        ],
        infer_schema_length=None,
    ) if privacy.height else privacy  # fmt: skip


def _matching(row: Mapping[str, Any], audits: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Audits of this very setting; one of a representative setting says nothing of another."""
    return [
        audit
        for audit in audits
        if (audit["algorithm"], audit["variant"]) == (row["algorithm"], row["variant"])
        and math.isclose(audit["delta"], row["delta"])
        and math.isclose(audit["claimed"], row["epsilon_claimed"], rel_tol=1e-6)
        and (not audit["experiment"] or _of_setting(audit, row))
    ]


def _of_setting(audit: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    """Whether an audit of a cell's setting is of this one: a point of that experiment's axes."""
    point = json.loads(audit["setting"])
    return audit["experiment"] == row["experiment"] and all(
        row[axis] == value for axis, value in point.items()
    )


def _judgement(row, errata: Mapping[str, Erratum], audits) -> dict[str, Any]:
    numbers = [
        number
        for number, entry in errata.items()
        if concerns(entry.affects, row["algorithm"], row["variant"])
    ]
    verdict = _verdict(row, [errata[number] for number in numbers], audits)
    if verdict == NOT_PRIVATE or not audits:
        return {"verdict": verdict, "errata": " ".join(numbers), "epsilon_empirical": None,
                "audit": NOT_AUDITED}  # fmt: skip
    best = max(audits, key=lambda audit: audit["bound"])
    return {
        "verdict": verdict,
        "errata": " ".join(numbers),
        "epsilon_empirical": float(best["bound"]),
        "audit": f"{best['level']}, delta {best['delta']:g}, claimed {best['claimed']:.3g}",
    }


def _verdict(row: Mapping[str, Any], entries: Iterable[Erratum], audits) -> str:
    """What is flagged without a bound above the claim runs otherwise than the accountant was told,
    so that nothing is proven of it."""
    differs = any(a["flagged"] and not a["bound"] > row["epsilon_claimed"] for a in audits)
    return verdict_of(
        {**row, "proven": row["proven"] and not differs},
        audited=max((audit["bound"] for audit in audits), default=None),
        argument_broken=any(e.severity == "breaks" and e.outcome != "refuted" for e in entries),
    )
