"""Content of the page on privacy: claimed epsilon and bounds on the true epsilon.

The lower bound is the larger one of a known attack and an audit; the upper bound is the
accountant's epsilon.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any

from private_consensus.common.grouping import grouped
from private_consensus.core import algorithms
from private_consensus.core.algorithms.base import Attack
from private_consensus.privacy.verdicts import DIFFERS, VERDICTS, VIOLATED

from ..formats import algorithm_title, number, value_range
from ..reading import Results, Row

ICONS = dict(zip(VERDICTS, ("not", "not", "part", "part", "open", "held", "held"), strict=True))
"""Verdict to its icon, the worst verdict first; the worst one represents a group of settings."""
LESS_THAN_CLAIMED = (VIOLATED, DIFFERS)


def claimed_settings(results: Results) -> list[Row]:
    """Return the settings with a finite claim, without ablations, audits, and tuning grids."""
    names = {row["algorithm"] for row in results.privacy} & {*algorithms.names()}
    audits = {name for name in names if issubclass(algorithms.load(name), Attack)}
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
        if 0 < row["epsilon_claimed"] < math.inf
        and row["interpretation"] != "ablation"
        and row["algorithm"] not in audits
        and row["experiment"] not in grids
    ]


def by_method(results: Results) -> dict[tuple[str, str], list[Row]]:
    """Group the claimed settings by paper and algorithm."""
    return grouped(
        claimed_settings(results),
        lambda row: (results.paper_of[row["experiment"]], row["algorithm"]),
    )


def page(results: Results) -> dict[str, object]:
    """Collect the content of the privacy page."""
    return {
        "delivered": delivered(results),
        "papers": [
            {"key": key, "short": results.names[key], "rows": rows,
             "uses": list(dict.fromkeys(use for row in rows for use in row["uses"]))}
            for key, paper in results.papers.items()
            if (rows := by_variant(results.privacy, paper["experiments"]))
        ],
        "drawn": results.audit,
    }  # fmt: skip


def variant_words(name: str, results: Results) -> str:
    """Describe a variant ``algorithm.variant`` as in the legends, or by its configured reason."""
    algorithm, _, variant = name.partition(".")
    reasons = (
        variants[variant]["because"]
        for spec in results.experiments.values()
        if variant in (variants := spec["algorithms"].get(algorithm, {}))
    )
    return results.labels.get(name) or next(reasons, "")


# --- Bounds on the true epsilon -------------------------------------------------------------------


def lower(row: Row) -> float:
    """Return the lower bound on epsilon: the larger one of the known attack and the audit."""
    return max(row.get("epsilon_lower") or 0.0, row.get("epsilon_empirical") or 0.0)


def upper(row: Row) -> float:
    """Return the upper bound on epsilon, infinite if the accountant proves none.

    It may use the claim's assumption about the data, as the lower bound does.
    """
    if row["proven"]:
        return row["epsilon_accountant"]
    conditional = row.get("epsilon_under_assumption")
    return math.inf if conditional is None or math.isnan(conditional) else conditional


# --- One row per algorithm ------------------------------------------------------------------------


def delivered(results: Results) -> list[Row]:
    """Return the delivered privacy of each algorithm of each paper, violated claims first.

    The worst resolved setting represents an algorithm; literal settings count only if there are no
    resolved ones. The text as published has a row of its own if its worst setting is worse, and so
    has one iteration whose claim an audit refutes. Audits are omitted, since they claim no privacy.
    """
    audits = results.audit.get("audits", [])
    rows: list[Row] = [
        {"paper": paper, **row, "variant": _variant_words(row["setting"], results.experiments)}
        for (paper, name), settings in by_method(results).items()
        for row in _delivered(algorithm_title(name), settings, audit_of_release(name, audits))
    ]
    icons = list(dict.fromkeys(ICONS.values()))
    return sorted(rows, key=lambda row: (icons.index(row["icon"]), -row["high"], -row["low"]))


def _delivered(title: str, settings: list[Row], release: Row | None) -> Iterator[dict[str, Any]]:
    resolved = [row for row in settings if row["interpretation"] == "resolved"] or settings
    row = worst(title, resolved)
    as_published = worst(f"{title}, as published", settings)
    yield row
    if any(as_published[key] != row[key] for key in ("verdict", "multiple")):
        yield as_published
    if release and release["verdict"] == VIOLATED:
        claimed = release["claimed"]
        low = release["bound"] / claimed
        yield {**row, **_placed(f"{title}, one iteration", VIOLATED, low, math.inf),
               "claimed": number(claimed)}  # fmt: skip


def worst_verdict(settings: Iterable[Row]) -> str:
    """Return the worst verdict of some settings."""
    return min((row["verdict"] for row in settings), key=VERDICTS.index)


def worst(title: str, settings: list[Row]) -> dict[str, Any]:
    """Return verdict and multiple of the claimed epsilon of the worst of some settings."""
    verdict = worst_verdict(settings)
    setting = max(
        (row for row in settings if row["verdict"] == verdict),
        key=lambda row: (_multiple(upper, row), _multiple(lower, row)),
    )
    return {
        **_placed(title, verdict, _multiple(lower, setting), _multiple(upper, setting)),
        "claimed": value_range(row["epsilon_claimed"] for row in settings),
        "setting": setting,
    }


def _multiple(bound: Any, row: Row) -> float:
    return bound(row) / row["epsilon_claimed"]


def _placed(title: str, verdict: str, low: float, high: float) -> dict[str, Any]:
    return {
        "title": title, "icon": ICONS[verdict], "verdict": verdict, "low": low, "high": high,
        "multiple": multiple_in_words(low, high),
    }  # fmt: skip


def audit_of_release(name: str, audits: Iterable[Row]) -> Row | None:
    """Return the audit of one release of an algorithm as published, or None.

    The result has the lower bound that is largest relative to its claim. Variants of the audit with
    another name than the algorithm are ablations.
    """
    key = (f"release of {name}", name)
    of_release = (row for row in audits if (row["level"], row["variant"]) == key)
    return max(of_release, key=lambda row: row["bound"] / row["claimed"], default=None)


def multiple_in_words(low: float, high: float) -> str:
    """Describe the bounds on the true epsilon as multiples of the claimed epsilon.

    A lower bound of 0 and an infinite upper bound are omitted.
    """
    if low == math.inf:
        return "∞"
    if high == math.inf:
        return f"at least {number(low, 2)}" if low > 0 else "not known"
    if low == 0:
        return f"at most {number(high, 2)}"
    ends = number(low, 2), number(high, 2)
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


# --- One row per variant --------------------------------------------------------------------------


def by_variant(privacy: Iterable[Row], experiments: Row) -> list[dict[str, Any]]:
    """Return one row per variant of each experiment."""
    settings = (row for row in privacy if row["experiment"] in experiments)
    groups = grouped(settings, itemgetter("experiment", "algorithm", "variant"))
    rows = [_summary(group, experiments) for group in groups.values()]
    return sorted(rows, key=lambda row: VERDICTS.index(row["verdict"]))


def _summary(rows: list[Row], experiments: Row) -> dict[str, Any]:
    verdicts = Counter(row["verdict"] for row in rows)
    verdict = worst_verdict(rows)
    columns = ("accountant", "relation", "notes", "lower_bound_method", "audit_findings")
    remarks = _distinct(row.get(column) for column in columns for row in rows)
    return {
        "algorithm": algorithm_title(rows[0]["algorithm"]),
        "variant": _variant_words(rows[0], experiments),
        "interpretation": rows[0]["interpretation"],
        "title": experiments[rows[0]["experiment"]]["title"],
        "verdict": verdict,
        "icon": ICONS[verdict],
        "count": verdicts[verdict],
        "settings": len(rows),
        "claimed": value_range(row["epsilon_claimed"] for row in rows),
        "lower": value_range(map(lower, rows)),
        "upper": value_range(map(upper, rows)),
        "delta": value_range(row["delta"] for row in rows),
        "remarks": "; ".join(remarks),
        "uses": _distinct(row.get("unaccounted_data_use") for row in rows),
        "errata": _distinct(name for row in rows for name in (row.get("errata") or "").split()),
    }


def _variant_words(row: Row, experiments: Row) -> str:
    """Return the words for the variant of a setting, its configured reason."""
    variants = experiments[row["experiment"]]["algorithms"].get(row["algorithm"], {})
    return variants.get(row["variant"], {}).get("because", "")


def _distinct(values: Iterable[str | None]) -> list[str]:
    return list(dict.fromkeys(value for value in values if value))
