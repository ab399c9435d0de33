"""One row a setting: what is claimed, what an accountant finds, what an audit finds, a verdict.

``holds``
    the accountant finds no more than is claimed, on a sensitivity that is proven;
``holds by slack``
    so it is, although an erratum breaks the argument as printed, or the sensitivity as printed;
``violated``
    an accountant that is exact, something let out without noise, or an audit finds more;
``no formal guarantee``
    nothing is proven: no bound, or only one above the claim that need not be attained;
``not private``
    nothing is claimed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from .errata import Erratum, concerns
from .experiments import EXPERIMENTS

NOT_AUDITED = "not audited"
SLACK = 1e-9


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
    refuted = any(audit["flagged"] for audit in audits)
    verdict = verdict_of(row, [errata[number] for number in numbers], refuted)
    if verdict == "not private" or not audits:
        return {"verdict": verdict, "errata": " ".join(numbers), "epsilon_empirical": None,
                "audit": NOT_AUDITED}  # fmt: skip
    best = max(audits, key=lambda audit: audit["bound"])
    return {
        "verdict": verdict,
        "errata": " ".join(numbers),
        "epsilon_empirical": float(best["bound"]),
        "audit": f"{best['level']}, delta {best['delta']:g}, claimed {best['claimed']:.3g}",
    }


def verdict_of(row: Mapping[str, Any], entries: Iterable[Erratum], refuted: bool) -> str:
    """The verdict on one setting."""
    claimed, accounted = row["epsilon_claimed"], row["epsilon_accountant"]
    entries = list(entries)
    if claimed == math.inf:
        return "not private"
    if refuted:
        return "violated"
    unguaranteed = any(
        concerns(entry.unguaranteed, row["algorithm"], row["variant"]) for entry in entries
    )
    if unguaranteed and not row["proven"]:
        return "no formal guarantee"
    within = accounted <= claimed * (1 + SLACK)
    if within and row["proven"]:
        broken = any(e.severity == "breaks" and e.outcome != "refuted" for e in entries)
        return "holds by slack" if broken else "holds"
    # attained by neighbours that attain the sensitivity; other accountants are bounds
    attained = row["accountant"] == "gaussian" or (
        row["accountant"] == "pure" and row["delta"] == 0
    )
    # with sampling, infinity is where the accountant's range ends
    exact = (accounted == math.inf and row["sampling"] == "none") or attained
    return "violated" if exact and row["proven"] else "no formal guarantee"
