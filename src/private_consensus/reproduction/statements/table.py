"""Table of the statements, with the results of their computations and their errata."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import polars as pl
from pydantic import Field, model_validator

from private_consensus.common.errors import InvalidInput
from private_consensus.common.fields import Strict, validate

from ..claims.words import UNTESTABLE
from . import COMPUTATIONS, Part, compute, description_of
from .base import verdict_of


class Erratum(Strict):
    """Slip of a statement, with its correction."""

    location: str = ""
    """Location of the slip in the paper: theorem, equation or figure; default: the statement."""
    slip: str = ""
    """The wrong sentence; default: the statement."""
    severity: Literal["breaks", "argument", "proof", "noise", "ambiguous", "misprint"]
    """Consequence: breaks (a guarantee is false), argument (the proof of a guarantee that holds is
    wrong), proof (another proof is wrong), noise (needlessly much noise), ambiguous or misprint."""
    why: str
    """Reason why the statement is wrong."""
    repair: str
    """Correction."""
    effect: str = ""
    """Effect of the correction on the paper's figures."""
    repaired: list[str] = Field(default_factory=list)
    """Variants with the correction, as algorithm.variant."""
    affects: list[str]
    """Affected algorithms, or variants as algorithm.variant."""


class Statement(Strict):
    """Statement of a paper, with its computation or the reason for having none."""

    statement: str
    """Content of the statement, in one sentence."""
    function: str = ""
    """Computation of the verdict: module.function in private_consensus.reproduction.statements."""
    because: str = ""
    """Reason why the statement cannot be tested; ``function`` then computes its errata only."""
    proven: bool = True
    """False if no proof is known: numbers that agree with the statement do not confirm it."""
    claims: dict[str, str] = Field(default_factory=dict)
    """Claims on the same subject, each with the reason if its verdict may differ."""
    same_slip_as: list[str] = Field(default_factory=list)
    """Errata of other statements that this statement repeats or uses."""
    errata: dict[str, Erratum] = Field(default_factory=dict)
    """Slips of the statement by number. A part of the computation is the counterexample."""

    @model_validator(mode="after")
    def has_computation_or_reason(self) -> Statement:
        """Raise an error unless ``function`` or ``because`` is set."""
        if not (self.function or self.because):
            raise ValueError("expected function or because")
        return self


Statements = Mapping[tuple[str, str], Statement]
"""Statements by paper and number, such as ``Theorem 1``."""


def read_statements(raw: Mapping[str, Any]) -> Statements:
    """Return the checked statements of ``config/statements.yaml`` by paper and number.

    An invalid entry, an unknown computation or erratum, and a computation without an entry raise
    ``InvalidInput``.
    """
    statements = {
        (paper, number): validate(Statement, entry, f"statements.{paper}.{number}.")
        for paper, entries in raw.items()
        for number, entry in entries.items()
    }
    used = {entry.function for entry in statements.values()} - {""}
    for name in sorted(used ^ COMPUTATIONS.keys()):
        raise InvalidInput("statements", name, "both an entry and a computation of this name")
    repeated = {number for entry in statements.values() for number in entry.same_slip_as}
    for number in sorted(repeated - errata_of(statements).keys()):
        raise InvalidInput("statements: same_slip_as", number, "an erratum of another statement")
    return statements


def errata_of(statements: Statements) -> dict[str, Erratum]:
    """Return all errata by number."""
    return {k: v for entry in statements.values() for k, v in entry.errata.items()}


def computed(statements: Statements) -> pl.DataFrame:
    """Compute all statements; return one row per statement, or per erratum of a statement.

    Columns ``quantity``, ``stated``, ``measured``, ``margin`` and ``points`` describe the
    inequality with the smallest margin, of the erratum if the row has one; ``parts`` has one line
    per inequality of the statement.
    """
    rows = [row for key, entry in statements.items() for row in _rows(*key, entry)]
    return pl.DataFrame(rows, infer_schema_length=None)


def _rows(paper: str, number: str, entry: Statement) -> Iterator[dict[str, Any]]:
    """Yield the rows of one statement."""
    inequalities = compute(entry.function) if entry.function else ()
    row = {
        "paper": paper,
        "number": number,
        "statement": entry.statement,
        "verdict": UNTESTABLE if entry.because else verdict_of(inequalities, entry.proven),
        "computation": entry.function,
        "because": entry.because,
        "same_slip_as": "; ".join(entry.same_slip_as),
        "claims": "\n".join(
            f"{claim}: {reason}" if reason else claim for claim, reason in entry.claims.items()
        ),
        "parts": "\n".join(map(str, inequalities)),
        "description": description_of(entry.function) if entry.function else "",
    }
    if not entry.errata:
        texts = dict.fromkeys(("erratum", *Erratum.model_fields), "")
        yield row | texts | _witness(inequalities)
    for erratum, slip in entry.errata.items():
        texts = slip.model_dump() | {"erratum": erratum}
        texts |= {name: "; ".join(texts[name]) for name in ("repaired", "affects")}
        texts |= {"location": slip.location or number, "slip": slip.slip or entry.statement}
        yield row | texts | _witness(p for p in inequalities if p.erratum == erratum)


def _witness(inequalities: Iterable[Part]) -> dict[str, Any]:
    """Return the columns of the inequality with the smallest margin; remarks are last."""
    by_margin = sorted(inequalities, key=lambda part: (part.role == "remark", part.margin))
    names = ("quantity", "stated", "measured", "margin", "points")
    return {name: getattr(by_margin[0], name) if by_margin else None for name in names}
