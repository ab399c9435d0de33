"""Which settings the configuration asks to have audited."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import require


def checked(entries: Iterable[Mapping[str, Any]], known: Mapping[str, Any]) -> list[Any]:
    """Entries of the configuration whose cells exist; ``known`` maps experiments to what they run.

    An entry names ``experiment`` and ``algorithm``, and may name ``variant`` and, under ``where``,
    columns. Experiments that are not configured (a paper left out) are passed over.

    Raises
    ------
    InvalidInput
        For an algorithm or a variant that a configured experiment does not have.
    """
    kept = [entry for entry in entries if entry["experiment"] in known]
    for entry in kept:
        algorithms = known[entry["experiment"]].algorithms
        where = f"audits.{entry['experiment']}"
        name = entry["algorithm"]
        require(name in algorithms, where, name, f"one of {', '.join(algorithms)}")
        variants = algorithms[name]
        variant = entry.get("variant")
        fine = variant is None or variant in variants
        require(fine, where, variant, f"one of {', '.join(variants)}")
    return kept


def chosen(cell: Mapping[str, Any], entries: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Specifications of a cell that entries name, each once."""
    return [spec for spec in cell["settings"] if any(_named(spec, cell, e) for e in entries)]


def _named(spec, cell, entry) -> bool:
    same = (cell["experiment"], cell["algorithm"]) == (entry["experiment"], entry["algorithm"])
    variant = entry.get("variant") in (None, spec["variant"])
    where = entry.get("where", {}).items()
    return same and variant and all(spec["columns"].get(key) == value for key, value in where)
