"""Configuration of the audits: settings to audit, pairs of data sets, iterations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import Field

from private_consensus.common.errors import Refused as ConfigurationError
from private_consensus.common.fields import Strict, validate

from ..configuration.checks import unknown_variant


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
    pairs: Annotated[int, Field(ge=1)] | None = None
    """Largest number of pairs of data sets, for large data; default: that of the scale."""


class Audits(Strict):
    """Content of ``config/audits.yaml``."""

    level: float = Field(gt=0, lt=1)
    """Probability that any verdict of a statistical audit is wrong."""
    pairs: dict[str, Annotated[int, Field(ge=1)]]
    """Number of pairs of data sets of each audit of a setting, by scale."""
    horizon: int = Field(ge=1)
    """Largest number of executed iterations of a setting."""
    max_settings: dict[str, Annotated[int, Field(ge=1)]] = Field(default_factory=dict)
    """Largest number of audited settings per cell, by scale; default: all."""
    settings: list[AuditedCell]
    """Settings of experiments that are audited."""

    def entries(self) -> list[dict[str, Any]]:
        """Return the entries of the settings as plain values, without defaults."""
        return [entry.model_dump(exclude_defaults=True) for entry in self.settings]

    def options_at(self, scale: str) -> dict[str, Any]:
        """Return pairs, iterations and largest number of settings at a scale.

        A scale without an entry has the pairs of ``paper``, and all settings.
        """
        pairs = self.pairs.get(scale, self.pairs["paper"])
        return {
            "pairs": pairs, "horizon": self.horizon, "max_count": self.max_settings.get(scale)
        }  # fmt: skip


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
