"""Errata of the configuration, checked against their computations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import polars as pl
from pydantic import Field

from private_consensus.common.errors import InvalidInput
from private_consensus.common.fields import Strict, validate

from ..statements.counterexamples import COMPUTATIONS, compute


class Erratum(Strict):
    """Suspected error in a statement of a paper."""

    location: str
    """Location in the paper: theorem, equation or figure."""
    statements: list[str] = Field(default_factory=list)
    """Affected statements, by their names in theorems.yaml."""
    severity: Literal["breaks", "argument", "proof", "noise", "ambiguous", "misprint", "sound"]
    """Consequence: breaks (a guarantee is false), argument (the proof of a guarantee that holds is
    wrong), proof (another proof is wrong), noise (needlessly much noise), ambiguous, misprint, or
    sound (no error)."""
    outcome: Literal["confirmed", "in part", "refuted"]
    """Expected outcome of the computation: is the suspicion confirmed?"""
    statement: str
    """Statement of the paper, or suspected error."""
    why: str
    """Reason for the suspicion."""
    repair: str
    """Correction."""
    effect: str = ""
    """Effect of the correction on the paper's figures."""
    repaired: list[str] = Field(default_factory=list)
    """Variants with the correction, as algorithm.variant."""
    affects: list[str]
    """Affected algorithms, or variants as algorithm.variant."""


def read_errata(raw: Mapping[str, Any]) -> dict[str, Erratum]:
    """Return the checked errata by number.

    An invalid entry, an erratum without computation and a computation without erratum raise
    ``InvalidInput``.
    """
    errata = {
        number: validate(Erratum, entry, prefix=f"errata.{number}") for number, entry in raw.items()
    }
    for number in errata.keys() ^ COMPUTATIONS.keys():
        raise InvalidInput("errata", number, "both an entry and a computation for it")
    return errata


def concerns(names: Iterable[str], algorithm: str, variant: str) -> bool:
    """Return True if names include a variant, as ``algorithm`` or ``algorithm.variant``."""
    return bool({algorithm, f"{algorithm}.{variant}"} & set(names))


def computed(errata: Mapping[str, Erratum]) -> pl.DataFrame:
    """Compute all errata: one row per erratum, with its text and the result of its computation."""
    rows = []
    for number, entry in errata.items():
        result = compute(number)
        rows.append(
            {
                "id": number,
                **entry.model_dump(exclude={"statements", "repaired", "affects"}),
                "statements": "; ".join(entry.statements),
                "repaired": "; ".join(entry.repaired),
                "affects": "; ".join(entry.affects),
                "quantity": result.quantity,
                "claimed": result.claimed,
                "computed": result.computed,
                "outcome_computed": result.outcome,
                "description": result.description,
            }
        )
    return pl.DataFrame(rows)
