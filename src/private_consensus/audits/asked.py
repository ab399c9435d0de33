"""Which settings the configuration asks to have audited."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..experiments.plan import unknown_run
from ..experiments.schema import ConfigurationError


def checked(entries: Iterable[Mapping[str, Any]], known: Mapping[str, Any]) -> list[Any]:
    """Entries of the configuration whose cells exist; ``known`` maps experiments to what they run.

    An entry names ``experiment`` and ``algorithm``, and may name ``variant`` and, under ``where``,
    columns. Experiments that are not configured (a paper left out) are passed over.

    Raises
    ------
    ConfigurationError
        For an algorithm or a variant that a configured experiment does not have.
    """
    kept = [entry for entry in entries if entry["experiment"] in known]
    lines = [
        line
        for entry in kept
        for line in unknown_run(
            f"audits.{entry['experiment']}", entry["algorithm"], entry.get("variant"),
            known[entry["experiment"]],
        )
    ]  # fmt: skip
    if lines:
        raise ConfigurationError(lines)
    return kept


def chosen(cell: Mapping[str, Any], entries: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Specifications of a cell that entries name, each once."""
    return [spec for spec in cell["settings"] if any(_named(spec, cell, e) for e in entries)]


def _named(spec, cell, entry) -> bool:
    same = (cell["experiment"], cell["algorithm"]) == (entry["experiment"], entry["algorithm"])
    variant = entry.get("variant") in (None, spec["variant"])
    where = entry.get("where", {}).items()
    return same and variant and all(spec["columns"].get(key) == value for key, value in where)
