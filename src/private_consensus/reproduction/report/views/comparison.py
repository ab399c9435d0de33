"""Comparison of algorithms as tables, and its data for the script that shows a selected cell."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from private_consensus.common.fields import INFINITE

from ...claims import UNTESTABLE
from ..formats import NONE, interval, number
from ..reading import Results
from .verdicts import look

Answers = Mapping[str, Any]

TUNINGS = {
    "default": "default parameters",
    "tuned": "the best of the trials, which are free",
    "tuned_paid": "the best of the trials, which are paid for",
}
SEEN = {
    "eavesdropper": "who sees every message",
    "sums": "who sees sums of messages alone",
    "outsider": "who sees every message, but no secret that two neighbours share",
    "neighbour": "any single agent, which sees what its neighbours send it",
}
ENDS = {
    "local_training": "what training alone reaches",
    "secure_aggregation": "what noise added to secure sums reaches",
}
INDEX = (
    "methods", "axes", "epsilons", "titles", "observers", "place", "unproven", "costs",
)  # fmt: skip
"""What the script needs beside the cells."""


def page(results: Results) -> dict[str, Any]:
    """Collect the content of the page; without a comparison it explains how to compute one."""
    found = results.comparison
    if not found:
        return {"compared": None}
    titles = {method["name"]: method["title"] for method in found["methods"]}
    return {
        "compared": {
            **{key: found[key] for key in ("headline", "runs", "trials", "delta", "relation")},
            "advice": [_advice(row) for row in found["advice"]],
            "ranks": [_ranks(observer, found, titles) for observer in found["observers"]],
            "gap": _gap(found, titles),
            "budgets": list(_budgets(found, titles)),
            "gains": _gains(found, titles),
            "apart": _apart(found, titles),
            "absent": [
                {**row, "title": titles.get(row["method"], row["method"]), "where": _where(row)}
                for row in found["absent"]
            ],
            "remarks": [(m["title"], m["because"]) for m in found["methods"] if m["because"]],
        }
    }  # fmt: skip


def scripts(found: Answers) -> dict[str, str]:
    """Files for the script by their names: what there is to pick, and for each problem and kind of
    parameters the cells. A page loads those that a reader asks for."""
    if not found:
        return {}
    index = {**{key: found[key] for key in INDEX}, "tunings": TUNINGS, "seen": SEEN}
    return {
        "compared.js": f"comparison({_compact(index)});\n",
        **{
            f"compared-{problem}-{tuning}.js": _call(f"{problem}-{tuning}", cells, tuning)
            for problem, cells in found["problems"].items()
            for tuning in TUNINGS
        },
    }


def _call(name: str, cells: Iterable[Mapping[str, Any]], tuning: str) -> str:
    own = [{"cell": cell["cell"], **cell[tuning]} for cell in cells if tuning in cell]
    return f"compared({json.dumps(name)}, {_compact(own)});\n"


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def shown(value: float | None) -> str:
    """A number of the answers, in which a large one stands for infinity."""
    if value is None:
        return NONE
    return number(float("inf") * value if abs(value) >= INFINITE else value)


def _advice(row: Mapping[str, Any]) -> dict[str, Any]:
    unit = "" if row["low"] is None or row["high"] is None else interval(row["low"], row["high"])
    return {
        **row,
        "look": look(row["verdict"]),
        "interval": unit,
        "tested": row["verdict"] != UNTESTABLE,
    }


def _ranks(observer: str, found: Answers, titles: Mapping[str, str]) -> dict[str, Any]:
    """Mean ranks for one observer: a row a method, a column all cells and each problem."""
    columns = found["ranks"][observer]["default"]
    whole = columns["all"]
    return {
        "observer": SEEN.get(observer, observer),
        "columns": [
            {
                "title": "all cells" if key == "all" else found["titles"]["problem"][key],
                "cells": one["cells"],
                "of": one["of"],
                "p": shown(one["p"]),
                "difference": shown(one["critical_difference"]),
            }
            for key, one in columns.items()
        ],
        # Who is compared over all cells first, by rank; the others by name.
        "rows": [
            {"title": titles[name], "ranks": [_rank(name, one) for one in columns.values()]}
            for name in [*whole["methods"], *sorted(whole["left_out"])]
        ],
        "alike": [[titles[name] for name in group] for group in whole["alike"]],
    }


def _rank(name: str, ranking: Mapping[str, Any]) -> str:
    """A mean rank, or in how many cells a method ran that is not compared."""
    if name in ranking["methods"]:
        return shown(ranking["mean_ranks"][ranking["methods"].index(name)])
    return f"in {ranking['left_out'].get(name, 0)}"


def _base(problem: str, found: Answers) -> list[Mapping[str, Any]]:
    """The base cells of a problem, by budget."""
    first = [values[0] for values in found["axes"].values()]
    return [cell for cell in found["problems"][problem] if cell["cell"][1:6] == first]


def _gap(found: Answers, titles: Mapping[str, str]) -> list[dict[str, Any]]:
    """A table a problem: share of the gap that each method closes, by budget, in the base cell."""
    names = [method["name"] for method in found["methods"]]
    tables = []
    for problem, title in found["titles"]["problem"].items():
        cells = _base(problem, found)
        rows: dict[str, list[str]] = {}
        for place, cell in enumerate(cells):
            for row in cell.get("default", {}).get("eavesdropper", []):
                of = dict(zip(found["place"], row, strict=True))
                own = rows.setdefault(names[of["method"]], [NONE] * len(cells))
                own[place] = _share(of)
        if any(set(row) != {NONE} for row in rows.values()):
            tables.append({
                "title": title,
                "epsilons": [cell["cell"][-1] for cell in cells],
                "rows": [{"title": titles[name], "shares": rows[name]} for name in rows],
            })  # fmt: skip
    return tables


def _share(of: Mapping[str, Any]) -> str:
    if of["share"] is None:
        return NONE
    value, low, high = (percent(of[key]) for key in ("share", "share_low", "share_high"))
    return f"{value} [{low}, {high}]"


def percent(value: float) -> str:
    """A share of the answers as a percentage."""
    return shown(value) if abs(value) >= INFINITE else f"{round(100 * value)} %".replace("-", "−")


def _budgets(found: Answers, titles: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """A table a problem and goal: the budget that each method needs for it."""
    for problem, goals in found["budgets"].items():
        for goal in goals:
            needed = sorted(goal["needed"].items(), key=lambda pair: (pair[1][0], pair[0]))
            yield {
                "title": found["titles"]["problem"][problem],
                "goal": f"{ENDS[goal['end']]} with ε = {goal['epsilon']:g}",
                "rows": [
                    {"title": titles[name], "ends": [_budget(e, found["epsilons"]) for e in ends]}
                    for name, ends in needed
                ],
            }


def _budget(value: float, epsilons: Iterable[float]) -> str:
    """A budget; beyond what was run it is known only that it is."""
    if value == 0:
        return f"≤ {min(epsilons):g}"
    return f"> {max(epsilons):g}" if value >= INFINITE else number(value)


def _gains(found: Answers, titles: Mapping[str, str]) -> list[dict[str, Any]]:
    """Loss with tuning over that without, by method: free, and paid for."""
    rows: dict[str, dict[str, Any]] = {}
    for by_method in found["gains"].values():
        for name, kinds in by_method.items():
            cells = {
                kind: f"{shown(ratio)} {interval(low, high)}" if ratio is not None else NONE
                for kind, (ratio, low, high, _) in kinds.items()
            }
            rows.setdefault(name, {"title": titles[name], **dict.fromkeys(TUNINGS, NONE)}).update(
                cells
            )
    return list(rows.values())


def _apart(found: Answers, titles: Mapping[str, str]) -> list[dict[str, Any]]:
    """Methods without a proof in base cells: the budget that was asked for and the true bracket."""
    names = [method["name"] for method in found["methods"]]
    return [
        {
            "problem": found["titles"]["problem"][problem],
            "title": titles[names[method]],
            "epsilon": cell["cell"][-1],
            "mean": shown(mean),
            "bracket": f"[{shown(lower)}, {shown(upper)}]",
        }
        for problem in found["titles"]["problem"]
        for cell in _base(problem, found)
        for method, mean, lower, upper in cell.get("default", {}).get("unproven", [])
        if lower is None or lower < INFINITE
    ]


def _where(row: Mapping[str, Any]) -> str:
    """List the cells in which a method is not entered, with their number."""
    said = [f"{key} {value}" for key, value in row["where"].items()]
    return ", ".join([*said, f"{row['times']} times"]) if row["times"] > 1 else ", ".join(said)
