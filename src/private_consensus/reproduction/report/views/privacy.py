"""Claimed epsilon, epsilon by formula and accounted epsilon of all settings."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import polars as pl

from private_consensus.privacy import (
    DIFFERS,
    HOLDS,
    HOLDS_BY_SLACK,
    INCONCLUSIVE,
    NOT_PRIVATE,
    NOT_PROVEN,
    VERDICTS,
    VIOLATED,
)

from ..formats import grouped, number, spread, words
from ..names import called
from ..reading import Results
from . import brackets

Row = Mapping[str, Any]

FIXED = (
    "experiment", "algorithm", "variant", "interpretation", "delta", "epsilon_claimed",
    "epsilon_formula", "epsilon_accountant", "accountant", "proven", "relation", "sampling",
    "unaccounted_data_use", "verdict", "source", "errata", "epsilon_empirical", "audit", "steps",
    "epsilon_under_assumption", "notes", "epsilon_lower", "lower_bound_method", "bound_gap_reason",
    "audit_verdict", "audit_findings",
)  # fmt: skip
"""Columns of each privacy table; all others are axes of grids."""

SAID = ("experiment", "algorithm", "variant", "interpretation")
NUMBERS = ("delta", "epsilon_claimed", "epsilon_formula", "epsilon_accountant", "proven", "verdict")
"""Columns of the file with all settings, before and after the axes."""
MOST_SETTINGS = 60
"""Largest number of settings of an experiment that the page lists; the file has all settings."""

_LOOK = {
    VIOLATED: "not", DIFFERS: "part", NOT_PROVEN: "part", INCONCLUSIVE: "part",
    NOT_PRIVATE: "open", HOLDS_BY_SLACK: "held", HOLDS: "held",
}  # fmt: skip
LOOKS = {verdict: _LOOK[verdict] for verdict in VERDICTS}
"""Verdict to the name of its shape and colour, the worst first; the worst represents a group."""

CLAIMS = {"not": "violated", "part": "not proven", "held": "holds", "open": "no claim"}
"""Names of groups of verdicts in the filter of settings."""

WORDS = {NOT_PRIVATE: "no claim"}


def promises(results: Results) -> list[dict[str, Any]]:
    """Return the claimed and delivered privacy per paper, algorithm and variant."""
    groups = grouped(
        results.privacy,
        lambda row: (results.paper_of[row["experiment"]], row["algorithm"], row["variant"]),
    )
    return [
        {**_summary(rows), "paper": paper, "number": results.papers[paper]["paper"]["number"],
         "ratio": (ratio := _ratio(rows)), "excess": number(ratio)}
        for (paper, _, _), rows in groups.items()
    ]  # fmt: skip


def page(results: Results) -> dict[str, Any]:
    """Collect the content of the privacy page."""
    return {
        "promised": [
            {**row, "paper_name": results.names[row["paper"]]}
            for row in _with_audits(algorithms(promises(results)), results.audit.get("audits", []))
        ],
        "rows": variants(results.privacy, results),
        "shown": [(key, results.names[key]) for key in dict.fromkeys(results.paper_of.values())],
        "claims": CLAIMS,
        "closeness": brackets.CLOSENESS,
        "is_drawn": not results.is_reference,
        "brackets": brackets.table(results.privacy),
        "repairs": [repair(row) for row in results.audit.get("repairs", [])],
    }


def variants(privacy: Iterable[Row], results: Results) -> list[dict[str, Any]]:
    """Return one line per experiment and variant.

    Parameters
    ----------
    privacy : iterable of rows
        One row per setting: all of the results, or some.
    results : Results
        Experiments and papers; they determine the order.

    Returns
    -------
    list of dict
    """
    rows = grouped(privacy, itemgetter("experiment"))
    return [
        {**group, "experiment": name, "title": spec["title"], "paper": results.paper_of[name]}
        for name, spec in results.experiments.items() if name in rows
        for group in _by_variant(rows[name])
    ]  # fmt: skip


def of_algorithm(name: str, results: Results) -> list[dict[str, Any]]:
    """Return the claimed and delivered privacy of one algorithm, per experiment and variant.

    Parameters
    ----------
    name : str
        Name of the algorithm.
    results : Results
        Results of one scale.

    Returns
    -------
    list of dict
    """
    return variants([row for row in results.privacy if row["algorithm"] == name], results)


def _with_audits(rows: list[dict[str, Any]], audits: Iterable[Row]) -> list[dict[str, Any]]:
    """Add the audits of each algorithm: its noise, and the bound of a small setting if no setting
    of a figure was audited.
    """
    correct = [row for row in audits if row["copy"] == "correct"]
    small = {row["algorithm"]: row for row in correct if row["level"] == "transcript"}
    for row in rows:
        name = row["name"]
        noise = _noise(name, correct) if name in small else ""
        bounded = any(item["bound"] for item in row["verdicts"])
        partial_audits = [audit for audit in correct if audit["level"].endswith(f" of {name}")]
        bound = "" if bounded else _elsewhere(small.get(name), partial_audits)
        row["audit"] = "; ".join(filter(None, (bound, noise)))
    return rows


def _elsewhere(small: Row | None, partial_audits: list[Row]) -> str:
    """Return the bound of a small setting, or of an audit of a part of the algorithm."""
    if small is None and not partial_audits:
        return "not audited"
    audit = small or max(partial_audits, key=lambda row: row["bound"] / row["claimed"])
    subject = "a small setting" if small else words(audit["level"])
    if not audit["bound"] > 0:
        return f"audited on {subject}: no privacy loss found"
    bound, claimed, delta = (number(audit[key]) for key in ("bound", "claimed", "delta"))
    return f"at least {bound} (claimed {claimed}), {subject} at δ = {delta}"


def _noise(algorithm: str, correct: list[Row]) -> str:
    """Describe the result of the test of the noise where it is added."""
    flags = [
        row["flagged"] for row in correct
        if row["algorithm"] == algorithm and row["level"].startswith("noise")
    ]  # fmt: skip
    if not flags:
        return "noise not recovered"
    return "NOISE DIFFERS FROM ITS DECLARATION" if any(flags) else "noise as declared"


def repair(row: Row) -> dict[str, str]:
    """Describe a setting as published and as corrected."""
    return {
        "algorithm": called(row["algorithm"]), "experiment": words(row["experiment"]),
        "measure": f"{words(row['quantity'])}, {words(row['metric'])}",
        "claimed": number(row["epsilon_claimed"]),
        "published": words(row["published"]), "corrected": words(row["corrected"]),
        "published_epsilon": number(row["epsilon_published"]),
        "corrected_epsilon": number(row["epsilon_corrected"]),
        "published_value": number(row["value_published"]),
        "corrected_value": number(row["value_corrected"]),
    }  # fmt: skip


def algorithms(promised: Sequence[Row]) -> list[dict[str, Any]]:
    """Return one row per paper and algorithm, with the variants that deliver the claimed
    privacy.
    """
    groups = grouped(promised, itemgetter("paper", "name"))
    return [
        {
            "name": name,
            "algorithm": called(name),
            "paper": paper,
            "number": rows[0]["number"],
            "verdicts": [
                {"verdict": verdict, "look": variants_of_verdict[0]["look"],
                 "variants": [row["variant"] for row in variants_of_verdict],
                 "excess": _times(row["ratio"] for row in variants_of_verdict),
                 "audited": _each(row["audited"] for row in variants_of_verdict),
                 **{key: _furthest(variants_of_verdict)[key] for key in ("bound", "how")}}
                for verdict in dict.fromkeys(row["verdict"] for row in rows)
                if (variants_of_verdict := [row for row in rows if row["verdict"] == verdict])
            ],
            "errata": _unique(number for row in rows for number in row["errata"]),
        }
        for (paper, name), rows in groups.items()
    ]  # fmt: skip


def _furthest(rows: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the variant with the largest ratio of lower bound to claim."""
    return max(rows, key=lambda row: row["above"])


def _times(ratios: Iterable[float | None]) -> str:
    """Describe the ratio of the accountant's to the claimed epsilon; empty if nothing is
    claimed.
    """
    finite = [ratio for ratio in ratios if ratio is not None]
    return f"{number(max(finite), 2)} × claimed ε" if finite else ""


def _unique(values: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(values))


def _errata(rows: list[Row]) -> list[str]:
    return _unique(number for row in rows for number in (row.get("errata") or "").split())


def _bounded(rows: list[Row]) -> dict[str, Any]:
    """Return the largest lower bound relative to its claim, and its method; may be empty."""
    claims = [row for row in rows if 0 < row["epsilon_claimed"] < math.inf]
    best = max(claims, key=_above, default=None)
    if best is None or _above(best) == 0:
        return {"bound": "", "how": "", "above": 0.0}
    low = brackets.lower(best)
    audited = best["audit"] if best.get("epsilon_empirical") == low else ""
    return {
        "bound": f"{number(low)} (claimed {number(best['epsilon_claimed'])})",
        "how": audited or best.get("lower_bound_method") or "",
        "above": _above(best),
    }


def _above(row: Row) -> float:
    return brackets.lower(row) / row["epsilon_claimed"]


def kept(promised: Sequence[Row]) -> dict[str, int]:
    """Count the variants that deliver the claimed privacy, that do not, and that claim none."""
    looks = Counter(row["look"] for row in promised)
    return {"variants": len(promised), "held": looks["held"],
            "broken": looks["not"] + looks["part"],
            "silent": looks["open"]} if promised else {}  # fmt: skip


def of_experiments(
    privacy: Iterable[Row], experiments: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the privacy of each experiment, with one row per variant.

    All settings are listed in full if there are at most :data:`MOST_SETTINGS` of them.

    Parameters
    ----------
    privacy : iterable of rows
        One row per setting.
    experiments : mapping
        Name to experiment; determines the order.

    Returns
    -------
    list of dict
        One dictionary per experiment.
    """
    of_experiment = grouped(privacy, itemgetter("experiment"))
    return [
        {
            "experiment": name,
            "title": experiments[name]["title"],
            "groups": _by_variant(rows),
            "axes": (axes := _axes(rows)),
            "count": len(rows),
            "settings": [_setting(row, axes) for row in rows]
            if len(rows) <= MOST_SETTINGS else [],
        }
        for name in experiments
        if (rows := of_experiment.get(name))
    ]  # fmt: skip


def _by_variant(rows: Iterable[Row]) -> list[dict[str, Any]]:
    return [_summary(group) for group in grouped(rows, itemgetter("algorithm", "variant")).values()]


def settings_table(privacy: Iterable[Row], experiments: Iterable[str]) -> pl.DataFrame:
    """Return all settings of the named experiments as a table of numbers.

    Parameters
    ----------
    privacy : iterable of rows
        One row per setting.
    experiments : iterable of str
        Names of the experiments to include.

    Returns
    -------
    polars.DataFrame
        One row per setting.
    """
    rows = [row for row in privacy if row["experiment"] in set(experiments)]
    columns = [*SAID, *_axes(rows), *NUMBERS] if rows else []
    frame = pl.DataFrame(
        {key: [row.get(key) for row in rows] for key in dict.fromkeys(columns)}, strict=False
    )
    return frame.with_columns(pl.Series("lower", [brackets.lower(row) for row in rows], pl.Float64))


def _summary(rows: list[Row]) -> dict[str, Any]:
    verdicts = Counter(row["verdict"] for row in rows)
    worst = next((v for v in LOOKS if v in verdicts), rows[0]["verdict"])
    return {
        "name": rows[0]["algorithm"],
        "algorithm": called(rows[0]["algorithm"]),
        "variant": words(rows[0]["variant"]),
        "interpretation": rows[0]["interpretation"],
        "delta": spread(row["delta"] for row in rows),
        "claimed": spread(row["epsilon_claimed"] for row in rows),
        "formula": spread(row["epsilon_formula"] for row in rows),
        "accounted": spread(row["epsilon_accountant"] for row in rows),
        "lower": spread(map(brackets.lower, rows)),
        "assumed": _assumed(rows),
        "accountant": _each(row["accountant"] for row in rows),
        "relation": _each(row["relation"] for row in rows),
        "sampling": _each(row["sampling"] for row in rows),
        "unaccounted_data_use": _each(row.get("unaccounted_data_use") or "" for row in rows),
        "proven": all(row["proven"] for row in rows),
        "notes": _each(row.get("notes") or "" for row in rows),
        "verdict": WORDS.get(worst, worst),
        "look": LOOKS.get(worst, "open"),
        **_bounded(rows),
        "audited": _audited(rows) if worst in (VIOLATED, DIFFERS, INCONCLUSIVE) else "",
        "errata": _errata(rows),
        "count": verdicts[worst],
        "settings": len(rows),
    }


def _audited(rows: list[Row]) -> str:
    """Return the findings of audits, and the parts that were not tested."""
    return _each(row.get("audit_findings") or "" for row in rows)


def _assumed(rows: list[Row]) -> str:
    """Return the accountant's epsilon under the assumption in the notes; None without an
    assumption.
    """
    values = (row.get("epsilon_under_assumption") for row in rows)
    epsilons = [value for value in values if value is not None]
    return "" if all(map(math.isnan, epsilons)) else spread(epsilons)


def _setting(row: Row, axes: list[str]) -> dict[str, Any]:
    return {
        **_summary([row]),
        "point": [_cell(row.get(axis)) for axis in axes],
    }


def _axes(rows: list[Row]) -> list[str]:
    """Return the columns of the grid that are not empty."""
    names = [name for name in rows[0] if name not in FIXED and not name.endswith("_right")]
    return [name for name in names if any(row[name] is not None for row in rows)]


def _cell(value: Any) -> str:
    return value if isinstance(value, str) else number(value)


def _each(values: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(value for value in values if value))


def _ratio(rows: list[Row]) -> float | None:
    """Return the largest ratio of the accountant's to the claimed epsilon."""
    ratios = [
        row["epsilon_accountant"] / row["epsilon_claimed"]
        for row in rows
        if math.isfinite(row["epsilon_claimed"]) and row["epsilon_claimed"] > 0
    ]
    return max(ratios, default=None)
