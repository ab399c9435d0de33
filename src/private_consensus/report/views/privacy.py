"""Content of the page on privacy: claimed epsilon and bounds on the true epsilon, by setting."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from operator import itemgetter
from typing import Any

import polars as pl

from private_consensus.common.grouping import grouped
from private_consensus.core import algorithms
from private_consensus.core.algorithms.base import Attack
from private_consensus.privacy import (
    DIFFERS,
    HOLDS,
    HOLDS_BY_SLACK,
    INCONCLUSIVE,
    NO_CLAIM,
    NOT_PROVEN,
    VIOLATED,
)

from ..formats import number, value_range, words
from ..names import algorithm_title
from ..reading import Results, Row
from . import bounds

FIXED = (
    "experiment", "algorithm", "variant", "interpretation", "delta", "epsilon_claimed",
    "epsilon_formula", "epsilon_accountant", "accountant", "proven", "relation", "sampling",
    "unaccounted_data_use", "verdict", "source", "errata", "epsilon_empirical", "audit", "steps",
    "epsilon_under_assumption", "notes", "epsilon_lower", "lower_bound_method", "bound_gap_reason",
    "audit_verdict", "audit_findings",
)  # fmt: skip
"""Columns of each privacy table; all others are varied parameters."""

LEADING_COLUMNS = ("experiment", "algorithm", "variant", "interpretation")
TRAILING_COLUMNS = (
    "delta",
    "epsilon_claimed",
    "epsilon_formula",
    "epsilon_accountant",
    "proven",
    "verdict",
)
"""Columns of the CSV file with all settings, before and after the varied parameters."""
MAX_LISTED_SETTINGS = 60
"""Largest number of settings of an experiment that the page lists; the CSV file has all."""

ICONS = {
    VIOLATED: "not", DIFFERS: "part", NOT_PROVEN: "part", INCONCLUSIVE: "part",
    NO_CLAIM: "open", HOLDS_BY_SLACK: "held", HOLDS: "held",
}  # fmt: skip
"""Verdict to its icon, the worst verdict first; the worst one represents a group of settings."""

VERDICT_GROUPS = {"not": "violated", "part": "not proven", "held": "holds", "open": NO_CLAIM}
"""Icon to the name of its verdicts in the filter of settings."""

ABLATION = "ablation"
"""Interpretation of settings that no paper contains."""


@cache
def audit_algorithms() -> frozenset[str]:
    """Return the names of the registered algorithms that are audits of other algorithms."""
    return frozenset(n for n in algorithms.names() if issubclass(algorithms.load(n), Attack))


def settings_of_papers(results: Results) -> list[Row]:
    """Return the settings without ablations, audits, and grids that only tune other settings."""
    grids = {
        tuned["experiment"]
        for spec in results.experiments.values()
        for variants in spec["algorithms"].values()
        for variant in variants.values()
        if (tuned := variant.get("tuned"))
    }
    return [
        row
        for row in results.privacy
        if row["interpretation"] != ABLATION
        and row["algorithm"] not in audit_algorithms()
        and row["experiment"] not in grids
    ]


def privacy_by_variant(results: Results) -> list[dict[str, Any]]:
    """Return claimed and delivered privacy, one row per paper, algorithm and variant."""
    groups = grouped(
        results.privacy,
        lambda row: (results.paper_of[row["experiment"]], row["algorithm"], row["variant"]),
    )
    return [
        {
            **_summary(rows),
            "paper": paper,
            "ratio": (ratio := _ratio(rows)),
            "multiple": number(ratio),
        }
        for (paper, _, _), rows in groups.items()
    ]


def page(results: Results) -> dict[str, object]:
    """Collect the content of the privacy page."""
    return {
        "by_algorithm": by_algorithm(results),
        "rows": variant_rows(results),
        "papers": [(key, results.names[key]) for key in dict.fromkeys(results.paper_of.values())],
        "verdict_groups": VERDICT_GROUPS,
        "closeness": bounds.CLOSENESS,
        "is_drawn": not results.is_reference,
        "bound_ratios": bounds.table(results.privacy),
        "corrections": results.audit.get("repairs", []),
        "observed": results.audit.get("observers", []),
    }


@lru_cache(maxsize=1)
def variant_rows(results: Results) -> list[dict[str, object]]:
    """Return claimed and delivered privacy, one row per experiment and variant."""
    rows = grouped(results.privacy, itemgetter("experiment"))
    return [
        {**group, "experiment": name, "title": spec["title"], "paper": results.paper_of[name]}
        for name, spec in results.experiments.items() if name in rows
        for group in _by_variant(rows[name], spec)
    ]  # fmt: skip


def by_algorithm(results: Results) -> list[dict[str, object]]:
    """Return one row per paper and algorithm, with its variants grouped by verdict, and audits."""
    audits = [row for row in results.audit.get("audits", []) if row["copy"] == "correct"]
    table = []
    groups = grouped(privacy_by_variant(results), itemgetter("paper", "name"))
    for (paper, name), rows in groups.items():
        if name in audit_algorithms():
            continue
        verdicts = [_of_verdict(group) for group in grouped(rows, itemgetter("verdict")).values()]
        has_bound = any(item["bound"] for item in verdicts)
        table.append({
            "algorithm": algorithm_title(name),
            "paper": paper,
            "verdicts": verdicts,
            "errata": list(dict.fromkeys(number for row in rows for number in row["errata"])),
            "audit": audit_in_words(name, audits, has_bound=has_bound),
        })  # fmt: skip
    return table


def _of_verdict(rows: Sequence[Row]) -> dict[str, object]:
    """Describe variants with equal verdicts; the bound is the largest one relative to its claim."""
    most_violated = max(rows, key=itemgetter("lower_over_claimed"))
    return {
        **{key: most_violated[key] for key in ("verdict", "icon", "bound", "method")},
        "variants": [row["variant"] for row in rows],
        "multiple": _multiple(rows),
        "audited": _shortened(text for row in rows for text in row["audited"].split("; ")),
    }


def audit_in_words(name: str, audits: Iterable[Row], *, has_bound: bool) -> str:
    """Describe the audit of the small example of an algorithm, or else of one release."""
    small = next((r for r in audits if r["algorithm"] == name and not r["experiment"]), None)
    if small is not None:
        return f"small example {small['verdict']}"
    release = audit_of_release(name, audits)
    if release is None or has_bound:
        return "" if has_bound else "not audited"
    bound, claimed, delta = (number(release[key]) for key in ("bound", "claimed", "delta"))
    return (f"one iteration {release['verdict']}: at least {bound} (claimed {claimed}, "
            f"δ = {delta}); the total over all iterations is not audited")  # fmt: skip


def audit_of_release(name: str, audits: Iterable[Row]) -> Row | None:
    """Return the audit of one release of an algorithm as published, or None.

    The result has the lower bound that is largest relative to its claim. Variants of the audit with
    another name than the algorithm are ablations.
    """
    key = (f"release of {name}", name)
    of_release = (row for row in audits if (row["level"], row["variant"]) == key)
    return max(of_release, key=lambda row: row["bound"] / row["claimed"], default=None)


def _multiple(rows: Sequence[Row]) -> str:
    """Format the largest ratio of accounted to claimed epsilon, with its variant, if any."""
    claims = [row for row in rows if row["ratio"] is not None]
    if not claims:
        return ""
    worst = max(claims, key=itemgetter("ratio", "proven"))
    if worst["ratio"] == math.inf and all(row["lower_over_claimed"] < math.inf for row in rows):
        return "no finite ε is proven"
    condition = "" if worst["proven"] else " if the unproven sensitivity holds"
    return f"{number(worst['ratio'], 2)} × claimed ε ({worst['variant']}){condition}"


def _bounded(rows: list[Row]) -> dict[str, object]:
    """Return the lower bound that is largest relative to its claim, and its method."""
    claims = [row for row in rows if 0 < row["epsilon_claimed"] < math.inf]
    best = max(claims, key=_lower_over_claimed, default=None)
    if best is None or _lower_over_claimed(best) == 0:
        return {"bound": "", "method": "", "lower_over_claimed": 0.0}
    low = bounds.lower(best)
    audited = best["audit"] if best.get("epsilon_empirical") == low else ""
    return {
        "bound": f"{number(low)} (claimed {number(best['epsilon_claimed'])})",
        "method": audited or best.get("lower_bound_method") or "",
        "lower_over_claimed": _lower_over_claimed(best),
    }


def _lower_over_claimed(row: Row) -> float:
    return bounds.lower(row) / row["epsilon_claimed"]


def privacy_counts(results: Results) -> dict[str, int]:
    """Count the variants of papers by the icon of their verdict; empty without variants."""
    rows = privacy_by_variant(replace(results, privacy=settings_of_papers(results)))
    icons = Counter(row["icon"] for row in rows)
    return {"variants": len(rows)} | {icon: icons[icon] for icon in VERDICT_GROUPS} if rows else {}


def of_experiments(
    privacy: Iterable[Row], experiments: Mapping[str, Row]
) -> list[dict[str, object]]:
    """Return claimed and delivered privacy of each experiment, one row per variant.

    The single settings are included if there are at most :data:`MAX_LISTED_SETTINGS`. The order is
    that of ``experiments``.
    """
    of_experiment = grouped(privacy, itemgetter("experiment"))
    return [
        {
            "experiment": name,
            "title": experiments[name]["title"],
            "groups": _by_variant(rows, experiments[name]),
            "axes": (axes := _axes(rows)),
            "count": len(rows),
            "settings": [_setting(row, axes) for row in rows]
            if len(rows) <= MAX_LISTED_SETTINGS else [],
        }
        for name in experiments
        if (rows := of_experiment.get(name))
    ]  # fmt: skip


def _by_variant(rows: Iterable[Row], spec: Row) -> list[dict[str, object]]:
    """Return one row per variant of an experiment, with its description."""
    return [
        {
            **_summary(group),
            "because": spec["algorithms"].get(name, {}).get(variant, {}).get("because"),
        }
        for (name, variant), group in grouped(rows, itemgetter("algorithm", "variant")).items()
    ]


def settings_table(privacy: Iterable[Row], experiments: Iterable[str]) -> pl.DataFrame:
    """Build the table of all settings of some experiments for the CSV file."""
    rows = [row for row in privacy if row["experiment"] in set(experiments)]
    columns = [*LEADING_COLUMNS, *_axes(rows), *TRAILING_COLUMNS] if rows else []
    frame = pl.DataFrame(
        {key: [row.get(key) for row in rows] for key in dict.fromkeys(columns)}, strict=False
    )
    return frame.with_columns(pl.Series("lower", [bounds.lower(row) for row in rows], pl.Float64))


def _summary(rows: list[Row]) -> dict[str, object]:
    verdicts = Counter(row["verdict"] for row in rows)
    worst = next((v for v in ICONS if v in verdicts), rows[0]["verdict"])
    errata = [erratum for row in rows for erratum in (row.get("errata") or "").split()]
    is_bound = all(row["proven"] or row["epsilon_accountant"] == math.inf for row in rows)
    unproven = "" if is_bound else " (unproven)"
    return {
        "name": rows[0]["algorithm"],
        "algorithm": algorithm_title(rows[0]["algorithm"]),
        "variant": words(rows[0]["variant"]),
        "interpretation": rows[0]["interpretation"],
        "delta": value_range(row["delta"] for row in rows),
        "claimed": value_range(row["epsilon_claimed"] for row in rows),
        "formula": value_range(row["epsilon_formula"] for row in rows),
        "accounted": value_range(row["epsilon_accountant"] for row in rows) + unproven,
        "lower": value_range(map(bounds.lower, rows)),
        "assumed": _assumed(rows),
        "accountant": _joined(row["accountant"] for row in rows),
        "relation": _joined(row["relation"] for row in rows),
        "sampling": _joined(row["sampling"] for row in rows),
        "unaccounted_data_use": _joined(row.get("unaccounted_data_use") or "" for row in rows),
        "proven": all(row["proven"] for row in rows),
        "notes": _joined(row.get("notes") or "" for row in rows),
        "verdict": worst,
        "icon": ICONS.get(worst, "open"),
        **_bounded(rows),
        "audited": _findings(rows) if worst in (VIOLATED, DIFFERS, INCONCLUSIVE) else "",
        "errata": list(dict.fromkeys(errata)),
        "count": verdicts[worst],
        "settings": len(rows),
    }


def _findings(rows: list[Row]) -> str:
    """List the reasons of the verdicts of audits."""
    return _joined(row.get("audit_findings") or "" for row in rows)


def _assumed(rows: list[Row]) -> str:
    """Format the accounted epsilon under the assumption in the notes; empty without one."""
    values = (row.get("epsilon_under_assumption") for row in rows)
    epsilons = [value for value in values if value is not None]
    return "" if all(map(math.isnan, epsilons)) else value_range(epsilons)


def _setting(row: Row, axes: list[str]) -> dict[str, object]:
    return {
        **_summary([row]),
        "parameters": [_cell(row.get(axis)) for axis in axes],
    }


def _axes(rows: list[Row]) -> list[str]:
    """Return the columns of varied parameters that are not empty."""
    names = [name for name in rows[0] if name not in FIXED and not name.endswith("_right")]
    return [name for name in names if any(row[name] is not None for row in rows)]


def _cell(value: float | str | None) -> str:
    return value if isinstance(value, str) else number(value)


def _shortened(findings: Iterable[str]) -> str:
    """Return the first finding and the number of different other ones."""
    first, *further = dict.fromkeys(filter(None, findings)) or [""]
    return f"{first}; and {len(further)} more" if further else first


def _joined(values: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(value for value in values if value))


def _ratio(rows: list[Row]) -> float | None:
    """Return the largest ratio of accounted to claimed epsilon; None without a claim."""
    ratios = [
        row["epsilon_accountant"] / row["epsilon_claimed"]
        for row in rows
        if math.isfinite(row["epsilon_claimed"]) and row["epsilon_claimed"] > 0
    ]
    return max(ratios, default=None)
