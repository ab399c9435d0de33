"""Configuration of the audits: settings to audit, runs and confidence of each audit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import Field

from private_consensus.common.errors import Refused as ConfigurationError
from private_consensus.common.fields import Strict, validate

from ..experiments.checks import unknown_variant


class AuditedCell(Strict):
    """Settings of one cell that are audited."""

    experiment: str
    """Experiment with the audited settings."""
    algorithm: str
    """Algorithm of the experiment."""
    variant: str | None = None
    """Audited variant; default: all."""
    where: dict[str, Any] = Field(default_factory=dict)
    """Value of each axis for which settings are audited; default: all."""
    because: str = ""
    """Explanation of an unexpected outcome."""


class Audits(Strict):
    """Content of ``config/audits.yaml``."""

    level: float = Field(gt=0, lt=1)
    """Probability that any result of the table of audits is wrong."""
    confidence: float = Field(gt=0, lt=1)
    """Confidence level of the bounds of each single audit."""
    runs: dict[str, int]
    """Largest number of runs on each of two neighbouring data sets, by scale."""
    max_settings: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    """Largest number of audited settings per cell, by scale; default: all."""
    settings: list[AuditedCell]
    """Settings of experiments that are audited."""

    def entries(self) -> list[dict[str, Any]]:
        """Return the entries of the settings as plain values, without defaults and reasons."""
        return [
            entry.model_dump(exclude_defaults=True, exclude={"because"}) for entry in self.settings
        ]

    def runs_at(self, scale: str) -> int:
        """Return the number of runs at a scale; an undeclared scale has that of ``paper``."""
        return self.runs.get(scale, self.runs["paper"])

    def of_settings_at(self, scale: str) -> dict[str, Any]:
        """Return number of runs, confidence and maximum number of audited settings at a scale."""
        options = {"runs": self.runs_at(scale), "confidence": self.confidence}
        return options | (
            {"max_settings": self.max_settings[scale]} if scale in self.max_settings else {}
        )


def check_level(audits: Audits, cells: Iterable[Mapping[str, Any]], scale: str) -> None:
    """Require a confidence at which all audits together stay below the error level of the table.

    The scale determines how many settings of a cell are audited. A violation raises a
    ``ConfigurationError`` with the key ``audits.confidence``.
    """
    entries, max_count = audits.entries(), audits.max_settings.get(scale)
    count = sum(len(selected_settings(cell, entries, max_count)) for cell in cells)
    if count * (1 - audits.confidence) < audits.level:
        return
    expected = f"above {1 - audits.level / count:.8g}"
    reason = f"{count} audits share the level {audits.level:g}"
    raise ConfigurationError(
        [f"audits.confidence: found {audits.confidence!r}, expected {expected}, since {reason}"]
    )


def read_audits(raw: Mapping[str, Any]) -> Audits:
    """Return the checked configuration of audits; raise an error with one line per invalid key."""
    return validate(Audits, raw)


def validate_audit_entries(
    entries: Iterable[Mapping[str, Any]], experiments: Mapping[str, Any]
) -> list[Any]:
    """Return the entries whose experiments are configured.

    An entry has ``experiment`` and ``algorithm``, and optionally ``variant`` and, under ``where``,
    columns. Entries of other experiments, such as those of an omitted paper, are ignored. An
    algorithm or a variant that a configured experiment does not have raises a
    ``ConfigurationError``.
    """
    configured = [entry for entry in entries if entry["experiment"] in experiments]
    lines = [
        line
        for entry in configured
        for line in unknown_variant(
            f"audits.{entry['experiment']}", entry["algorithm"], entry.get("variant"),
            experiments[entry["experiment"]],
        )
    ]  # fmt: skip
    if lines:
        raise ConfigurationError(lines)
    return configured


def selected_settings(
    cell: Mapping[str, Any], entries: Iterable[Mapping[str, Any]], max_count: int | None = None
) -> list[dict[str, Any]]:
    """Return the first ``max_count`` settings of a cell that at least one entry selects."""
    selected = [spec for spec in cell["settings"] if any(_matches(spec, cell, e) for e in entries)]
    return selected[:max_count]


def _matches(spec: Mapping[str, Any], cell: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    """Return True if an entry selects a setting of a cell."""
    same_cell = (cell["experiment"], cell["algorithm"]) == (entry["experiment"], entry["algorithm"])
    same_variant = entry.get("variant") in (None, spec["variant"])
    axes = entry.get("where", {}).items()
    same_point = all(spec["columns"].get(axis) == value for axis, value in axes)
    return same_cell and same_variant and same_point
