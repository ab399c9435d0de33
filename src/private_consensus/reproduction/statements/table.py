"""Table of the theorems, with the results of their computations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl
from pydantic import Field, model_validator

from private_consensus.common.errors import InvalidInput, arguments
from private_consensus.common.fields import Strict, validate

from ..claims.words import UNTESTABLE
from . import COMPUTATIONS, compute
from .base import StatementResult


class Theorem(Strict):
    """Numbered statement of a paper, with its computation or the reason for having none."""

    statement: str
    """Content of the statement, in one sentence."""
    function: str = ""
    """Computation of the verdict: module.function in private_consensus.reproduction.statements."""
    because: str = ""
    """Reason why the statement cannot be tested."""
    errata: list[str] = Field(default_factory=list)
    """Suspected errors of the statement, by their names in errata.yaml."""
    claims: dict[str, str] = Field(default_factory=dict)
    """Claims on the same subject, each with the reason if its verdict may differ."""

    @model_validator(mode="after")
    def one_of_both(self) -> Theorem:
        """Raise an error unless exactly one of ``function`` and ``because`` is set."""
        if bool(self.function) == bool(self.because):
            raise ValueError("expected either function or because")
        return self


Theorems = Mapping[str, Mapping[str, Theorem]]
"""Statements by paper and by number, such as ``Theorem 1``."""


def read_theorems(raw: Mapping[str, Any], errata: Iterable[str]) -> Theorems:
    """Return the checked statements of ``config/theorems.yaml`` by paper and number.

    An invalid entry, an unknown computation or erratum, and a computation without an entry raise
    ``InvalidInput``.
    """
    theorems: dict[str, dict[str, Theorem]] = {}
    for paper, entries in raw.items():
        theorems[paper] = {
            number: validate(Theorem, entry, prefix=f"theorems.{paper}.{number}")
            for number, entry in entries.items()
        }
    for paper, number, entry in _each(theorems):
        key = f"theorems.{paper}.{number}"
        if entry.function and entry.function not in COMPUTATIONS:
            raise InvalidInput(f"{key}.function", entry.function, "a computation of the package")
        for name in entry.errata:
            arguments.choice(f"{key}.errata", name, sorted(errata))
    unused = COMPUTATIONS.keys() - {entry.function for _, _, entry in _each(theorems)}
    for name in sorted(unused):
        raise InvalidInput("theorems", f"no entry for {name}", "an entry for each computation")
    return theorems


def _each(theorems: Theorems) -> Iterable[tuple[str, str, Theorem]]:
    """Yield paper, number and entry of each statement."""
    for paper, entries in theorems.items():
        for number, entry in entries.items():
            yield paper, number, entry


def computed(theorems: Theorems) -> pl.DataFrame:
    """Compute all statements; return one row per statement, with sentence, verdict and numbers.

    Columns ``quantity``, ``stated``, ``measured``, ``margin`` and ``points`` describe the
    inequality with the smallest margin; ``parts`` has one line per inequality.
    """
    results: dict[str, StatementResult] = {}
    rows = []
    for paper, number, entry in _each(theorems):
        if entry.function and entry.function not in results:
            results[entry.function] = compute(entry.function)
        rows.append(_row(paper, number, entry, results.get(entry.function)))
    return pl.DataFrame(rows, infer_schema_length=None)


def _row(
    paper: str, number: str, entry: Theorem, computation: StatementResult | None
) -> dict[str, Any]:
    """Return the row of one statement, from its entry and its result."""
    row = {
        "paper": paper,
        "number": number,
        "statement": entry.statement,
        "computation": entry.function,
        "because": entry.because,
        "errata": "; ".join(entry.errata),
        "claims": "\n".join(
            f"{claim}: {reason}" if reason else claim for claim, reason in entry.claims.items()
        ),
    }
    if computation is None:
        texts = dict.fromkeys(("quantity", "parts", "description"), "")
        numbers = dict.fromkeys(("stated", "measured", "margin", "points"))
        return {**row, "verdict": UNTESTABLE, **numbers, **texts}
    worst = min(computation.parts, key=lambda inequality: inequality.margin)
    return {
        **row,
        "verdict": computation.verdict,
        "quantity": worst.quantity,
        "stated": worst.stated,
        "measured": worst.measured,
        "margin": worst.margin,
        "points": worst.points,
        "parts": "\n".join(map(str, computation.parts)),
        "description": computation.description,
    }
