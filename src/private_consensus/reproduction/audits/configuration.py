"""``config/audits.yaml``: the settings to audit, the runs of each audit, and its confidence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from ..experiments.plan import unknown_run
from ..experiments.schema import ConfigurationError, validate


class Entry(BaseModel):
    """Settings of one cell."""

    model_config = ConfigDict(extra="forbid")

    experiment: str
    algorithm: str
    variant: str | None = None
    where: dict[str, Any] = {}
    because: str = Field(default="", description="reason for the outcome, if it needs one")


class Audits(BaseModel):
    """``config/audits.yaml``."""

    model_config = ConfigDict(extra="forbid")

    level: float = Field(gt=0, lt=1, description="of the whole table")
    confidence: float = Field(gt=0, lt=1, description="of the bounds of each audit")
    runs: dict[str, int] = Field(description="on each of two data sets, by scale")
    most: dict[str, Annotated[int, Field(ge=1)]] = Field(
        default_factory=dict, description="settings of a cell that are audited, by scale; else all"
    )
    settings: list[Entry]

    def entries(self) -> list[dict[str, Any]]:
        """Return the entries as plain JSON, without defaults and without reasons."""
        return [
            entry.model_dump(exclude_defaults=True, exclude={"because"}) for entry in self.settings
        ]

    def runs_at(self, scale: str) -> int:
        """Runs of a scale; of one that is not named, those of the papers' scale."""
        return self.runs.get(scale, self.runs["paper"])

    def of_settings_at(self, scale: str) -> dict[str, Any]:
        """Return runs, confidence level and maximum number of the audits of settings at a scale."""
        asked = {"runs": self.runs_at(scale), "confidence": self.confidence}
        return asked | ({"most": self.most[scale]} if scale in self.most else {})


def check_level(audits: Audits, cells: Iterable[Mapping[str, Any]], scale: str) -> None:
    """Refuse a confidence whose errors add up to the level of the whole table.

    Parameters
    ----------
    audits : Audits
    cells : iterable of mappings
        The cells that entries name.
    scale : str
        Decides how many settings of a cell are audited.

    Raises
    ------
    ConfigurationError
        With key ``audits.confidence``.
    """
    entries, most = audits.entries(), audits.most.get(scale)
    count = sum(len(selected_settings(cell, entries, most)) for cell in cells)
    if count * (1 - audits.confidence) < audits.level:
        return
    least = f"above {1 - audits.level / count:.8g}"
    reason = f"{count} audits share the level {audits.level:g}"
    raise ConfigurationError(
        [f"audits.confidence: found {audits.confidence!r}, expected {least}, since {reason}"]
    )


def read_audits(raw: Mapping[str, Any]) -> Audits:
    """The checked configuration of audits.

    Raises
    ------
    ConfigurationError
        With a line for each key that is wrong.
    """
    return validate(Audits, raw)


def validate_audit_entries(
    entries: Iterable[Mapping[str, Any]], known: Mapping[str, Any]
) -> list[Any]:
    """The entries whose experiments are configured; ``known`` maps those to what they run.

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


def selected_settings(
    cell: Mapping[str, Any], entries: Iterable[Mapping[str, Any]], most: int | None = None
) -> list[dict[str, Any]]:
    """Settings of a cell that any entry names, each once; only the first ``most`` of them."""
    named = [spec for spec in cell["settings"] if any(_named(spec, cell, e) for e in entries)]
    return named[:most]


def _named(spec: Mapping[str, Any], cell: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    same = (cell["experiment"], cell["algorithm"]) == (entry["experiment"], entry["algorithm"])
    variant = entry.get("variant") in (None, spec["variant"])
    where = entry.get("where", {}).items()
    return same and variant and all(spec["columns"].get(key) == value for key, value in where)
