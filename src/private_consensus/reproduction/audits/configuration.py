"""Configuration of the audits: settings to audit, runs and confidence of each audit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from ..experiments.references import unknown_variant
from ..experiments.schema import ConfigurationError, validate


class AuditedCell(BaseModel):
    """Settings of one cell."""

    model_config = ConfigDict(extra="forbid")

    experiment: str = Field(description="experiment with the audited settings")
    algorithm: str = Field(description="algorithm of the experiment")
    variant: str | None = Field(default=None, description="audited variant; default: all")
    where: dict[str, Any] = Field(
        default={}, description="value of each axis for which settings are audited; default: all"
    )
    because: str = Field(default="", description="explanation of an unexpected outcome")


class Audits(BaseModel):
    """Content of ``config/audits.yaml``."""

    model_config = ConfigDict(extra="forbid")

    level: float = Field(
        gt=0, lt=1, description="probability that any result of the table of audits is wrong"
    )
    confidence: float = Field(
        gt=0, lt=1, description="confidence level of the bounds of each single audit"
    )
    runs: dict[str, int] = Field(
        description="largest number of runs on each of two neighbouring data sets, by scale"
    )
    max_settings: dict[str, Annotated[int, Field(ge=1)]] = Field(
        default_factory=dict,
        description="largest number of audited settings per cell, by scale; default: all",
    )
    settings: list[AuditedCell] = Field(description="settings of experiments that are audited")

    def entries(self) -> list[dict[str, Any]]:
        """Return the entries as plain JSON, without defaults and without reasons."""
        return [
            entry.model_dump(exclude_defaults=True, exclude={"because"}) for entry in self.settings
        ]

    def runs_at(self, scale: str) -> int:
        """Return the number of runs at a scale; an undeclared scale has that of ``paper``."""
        return self.runs.get(scale, self.runs["paper"])

    def of_settings_at(self, scale: str) -> dict[str, Any]:
        """Return runs, confidence level and maximum number of the audits of settings at a scale."""
        options = {"runs": self.runs_at(scale), "confidence": self.confidence}
        return options | (
            {"max_settings": self.max_settings[scale]} if scale in self.max_settings else {}
        )


def check_level(audits: Audits, cells: Iterable[Mapping[str, Any]], scale: str) -> None:
    """Refuse a confidence whose errors add up to the level of the whole table.

    Parameters
    ----------
    audits : Audits
        Configuration of the audits.
    cells : iterable of mappings
        Cells that entries name.
    scale : str
        Scale, which determines how many settings of a cell are audited.

    Raises
    ------
    ConfigurationError
        With key ``audits.confidence``.
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
    """Return the checked configuration of audits.

    Raises
    ------
    ConfigurationError
        With one line per invalid key.
    """
    return validate(Audits, raw)


def validate_audit_entries(
    entries: Iterable[Mapping[str, Any]], experiments: Mapping[str, Any]
) -> list[Any]:
    """Return the entries whose experiments are configured.

    Parameters
    ----------
    entries : iterable of mappings
        ``experiment`` and ``algorithm``, and optionally ``variant`` and, under ``where``, columns.
        Entries of other experiments, such as those of an omitted paper, are ignored.
    experiments : mapping
        Configured experiments by name.

    Returns
    -------
    list of mappings

    Raises
    ------
    ConfigurationError
        For an algorithm or a variant that a configured experiment does not have.
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
    """Return the settings of a cell that any entry names.

    Parameters
    ----------
    cell : mapping
        Cell with its settings.
    entries : iterable of mappings
        Entries of the configuration.
    max_count : int, optional
        Maximum number of settings, the first ones; all by default.

    Returns
    -------
    list of dict
    """
    selected = [spec for spec in cell["settings"] if any(_named(spec, cell, e) for e in entries)]
    return selected[:max_count]


def _named(spec: Mapping[str, Any], cell: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    same = (cell["experiment"], cell["algorithm"]) == (entry["experiment"], entry["algorithm"])
    variant = entry.get("variant") in (None, spec["variant"])
    where = entry.get("where", {}).items()
    return same and variant and all(spec["columns"].get(key) == value for key, value in where)
