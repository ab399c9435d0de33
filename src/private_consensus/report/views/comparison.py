"""Content of the page of the comparison, and data for its script, which shows one cell."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from private_consensus.common.fields import INFINITE
from private_consensus.reproduction.claims import UNTESTABLE

from ..formats import NONE, interval, number
from ..reading import Results, Row
from .verdicts import icon

Answers = Row

TUNINGS = {
    "tuned_paid": "tuned; the budget covers one run per trial",
    "tuned": "best parameters, as if they were known",
    "transferred": "parameters from other problems, without public records",
}
"""Kind of tuning to its description."""
SHORT_TUNINGS = {
    "tuned_paid": "tuning counted",
    "tuned": "parameters known",
    "transferred": "from other problems",
}
"""Kind of tuning to the title of its column."""
SMALL_BUDGETS = {
    **SHORT_TUNINGS,
    "transferred": "from other problems (compared with the model without data only)",
}
"""Kind of tuning to its description in the counts of insufficient budgets."""
OBSERVERS = {
    "eavesdropper": "an eavesdropper, who receives every message",
    "sums": "an observer of sums of messages only",
    "outsider": "an eavesdropper without the secrets that two neighbours share",
    "neighbour": "any single agent, which receives the messages of its neighbours",
}
"""Observer to its description."""
GOALS = {
    "local_training": "the loss of local training",
    "secure_aggregation": "the loss of noise under secure aggregation",
}
"""Method that defines a goal to the description of the goal."""
INDEX_KEYS = (
    "methods", "axes", "epsilons", "titles", "observers", "place", "unproven", "costs", "primary",
)  # fmt: skip
"""Keys of the answers that the script reads in addition to the cells."""
RUNS = "assets/comparison_runs.parquet"
"""Path of the table of runs in the report."""


def page(results: Results) -> dict[str, object]:
    """Collect the content of the page; ``compared`` is None without a comparison."""
    answers = results.comparison
    if not answers:
        return {"compared": None}
    titles = {method["name"]: method["title"] for method in answers["methods"]}
    return {
        "compared": {
            **answers,
            "published": answers.get("published"),
            "runs_link": RUNS if answers.get("runs_path") else None,
            "ratio": _ratio(answers),
            "largest_budget": _largest_budget(answers, titles),
            "advice": [_advice(row, answers) for row in answers["advice"]],
            "ranks": [_ranks(observer, answers, titles) for observer in answers["observers"]],
            "gap": _gap(answers, titles),
            "budgets": list(_budgets(answers, titles)),
            "gains": _gains(answers, titles),
            "borders": _borders(answers, titles),
            "check": _check(answers, titles),
            "unproven": _unproven(answers, titles),
            "absent": [
                {**row, "title": titles.get(row["method"], row["method"]),
                 "cells": _cells_in_words(row)}
                for row in answers["absent"]
            ],
            "remarks": [(m["title"], m["because"]) for m in answers["methods"] if m["because"]],
        }
    }  # fmt: skip


def _ratio(answers: Answers) -> str:
    """Format the range of the ratio of agents' records to public records."""
    if not answers["public_records"]:
        return ""
    ratios = [records / answers["public_records"] for records in answers["records"].values()]
    low, high = (f"{value:.0f}" for value in (min(ratios), max(ratios)))
    return low if low == high else f"{low} to {high}"


def _largest_budget(answers: Answers, titles: Mapping[str, str]) -> list[dict[str, object]]:
    """Return the loss of the best private method at the largest budget, per problem."""
    return [
        {
            "problem": answers["titles"]["problem"][row["problem"]],
            "tuning": SHORT_TUNINGS[row["tuning"]],
            "epsilon": f"{row['epsilon']:g}",
            "method": titles[row["method"]],
            "baseline": f"{formatted_number(row['baseline'])} ({titles[row['baseline_method']]})",
            **{key: formatted_number(row[key]) for key in ("loss", "data_free", "without_privacy")},
            "fraction": _decrease(row),
        }
        for row in answers["learned"]
    ]


def _decrease(row: Row) -> str:
    """Format a relative decrease, and whether a model without privacy cost has a lower loss."""
    if row["fraction"] is None:
        return NONE
    percentage = formatted_percentage(row["fraction"])
    if row["loss"] > row["baseline"]:
        return f"{percentage}, worse than the best model without privacy cost"
    return percentage


def _borders(answers: Answers, titles: Mapping[str, str]) -> list[dict[str, object]]:
    """Return the parameters whose search ended at an end of their range."""
    return [
        {**row, "title": titles[row["method"]], "natural": "; ".join(row["natural"]) or NONE}
        for row in answers["borders"]
        if row["low"] or row["high"]
    ]


def _check(answers: Answers, titles: Mapping[str, str]) -> list[dict[str, object]]:
    """Return the losses after tuning, next to the smallest losses on a fine grid."""
    return [
        {
            "title": titles[row["method"]],
            "problem": answers["titles"]["problem"][row["problem"]],
            "epsilon": f"{row['epsilon']:g}",
            "points": row["points"],
            "ratio": f"{row['ratio']:.2f}",
            "passed": "yes" if row["passed"] else "no",
            **{key: number(row[key]) for key in ("tuned", "grid")},
            "interval": interval(row["low"], row["high"]),
        }
        for row in answers["tuning_check"]
    ]


def scripts(answers: Answers) -> dict[str, str]:
    """Return the data files of the page's script: an index, and one per problem and tuning."""
    if not answers:
        return {}
    index = {
        **{key: answers[key] for key in INDEX_KEYS},
        "tunings": TUNINGS,
        "observer_titles": OBSERVERS,
    }
    return {
        "compared.js": f"comparison({_compact(index)});\n",
        **{
            f"compared-{problem}-{tuning}.js": _cell_script(f"{problem}-{tuning}", cells, tuning)
            for problem, cells in answers["problems"].items()
            for tuning in TUNINGS
        },
    }


def _cell_script(name: str, cells: Iterable[Row], tuning: str) -> str:
    tuned = [{"cell": cell["cell"], **cell[tuning]} for cell in cells if tuning in cell]
    return f"compared({json.dumps(name)}, {_compact(tuned)});\n"


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def formatted_number(value: float | None) -> str:
    """Format a number of the answers, in which values above 10^300 represent infinity."""
    if value is None:
        return NONE
    return number(float("inf") * value if abs(value) >= INFINITE else value)


def _advice(row: Row, answers: Answers) -> dict[str, object]:
    """Return a question with its answer, and the problems and budgets of its cells in words."""
    titles = answers["titles"]["problem"]
    budgets = {
        titles[problem]: ", ".join(f"{epsilon:g}" for epsilon in epsilons)
        for problem, epsilons in row["budgets"].items()
    }
    return {
        **row,
        "cells": "; ".join(
            f"{title}, {f'ε = {epsilons}' if epsilons else 'none'}"
            for title, epsilons in budgets.items()
        ),
        "icon": icon(row["verdict"]),
        "interval": interval(row["low"], row["high"]),
        "tested": row["verdict"] != UNTESTABLE,
    }


def _ranks(observer: str, answers: Answers, titles: Mapping[str, str]) -> dict[str, object]:
    """Return the mean ranks for one observer: one row per method, one column per set of cells."""
    by_tuning, small = answers["ranks"][observer], answers["too_small"][observer]
    titles = {
        name: title + " (baseline)" * (name in answers["baselines"])
        for name, title in titles.items()
    }
    primary = answers["primary"]
    main = by_tuning[primary]["remaining"]
    sufficient = {
        tuning: (f"{SHORT_TUNINGS[tuning]}, cells with sufficient budget", rankings["remaining"])
        for tuning, rankings in by_tuning.items()
    }
    columns = [
        sufficient.pop(primary),
        (f"{SHORT_TUNINGS[primary]}, all cells", by_tuning[primary]["all"]),
        *sufficient.values(),
        *(
            (answers["titles"]["problem"][key], ranking)
            for key, ranking in by_tuning[primary].items()
            if key not in ("remaining", "all")
        ),
    ]
    return {
        "observer": OBSERVERS.get(observer, observer),
        "columns": columns,
        # Methods with a rank in the first column by rank, then the other methods by name.
        "rows": [
            {
                "title": titles[name],
                "ranks": [
                    _rank(name, ranking, with_interval=ranking is main) for _, ranking in columns
                ],
            }
            for name in [*main["methods"], *sorted(main["left_out"])]
        ],
        "small_budget": [
            f"{SMALL_BUDGETS[tuning]}: {counts['too_small']} of {counts['judged']}"
            for tuning, counts in small.items()
        ],
        "indistinguishable": [titles[name] for name in main["indistinguishable"]],
        "best": titles[main["methods"][0]] if main["methods"] else None,
    }  # fmt: skip


def _rank(name: str, ranking: Row, *, with_interval: bool = False) -> str:
    """Format a mean rank, or the number of cells of a method without a rank."""
    if name not in ranking["methods"]:
        return f"in {ranking['left_out'].get(name, 0)}"
    position = ranking["methods"].index(name)
    low, high = ranking["low"][position], ranking["high"][position]
    mean = formatted_number(ranking["mean_ranks"][position])
    return f"{mean} {interval(low, high)}" if with_interval and low is not None else mean


def _base(problem: str, answers: Answers) -> list[Row]:
    """Return the cells of a problem with the base setting, in ascending order of the budget."""
    first = [values[0] for values in answers["axes"].values()]
    return [cell for cell in answers["problems"][problem] if cell["cell"][1:6] == first]


def _gap(answers: Answers, titles: Mapping[str, str]) -> list[dict[str, object]]:
    """Return one table per problem: the fraction of the gap that each method closes, by budget."""
    names = [method["name"] for method in answers["methods"]]
    tables = []
    for problem, title in answers["titles"]["problem"].items():
        cells = _base(problem, answers)
        rows: dict[str, list[str]] = {}
        for column, cell in enumerate(cells):
            for row in cell.get(answers["primary"], {}).get("eavesdropper", []):
                entry = dict(zip(answers["place"], row, strict=True))
                fractions = rows.setdefault(names[entry["method"]], [NONE] * len(cells))
                fractions[column] = _gap_fraction(entry)
        if any(set(row) != {NONE} for row in rows.values()):
            tables.append({
                "title": title,
                "epsilons": [f"ε = {cell['cell'][-1]:g}" for cell in cells],
                "rows": [{"title": titles[name], "fractions": rows[name]} for name in rows],
            })  # fmt: skip
    return tables


def _gap_fraction(entry: Row) -> str:
    if entry["share"] is None:
        return NONE
    value, low, high = (
        formatted_percentage(entry[key]) for key in ("share", "share_low", "share_high")
    )
    return f"{value} [{low}, {high}]"


def formatted_percentage(value: float) -> str:
    """Format a fraction of the answers as a percentage."""
    if abs(value) >= INFINITE:
        return formatted_number(value)
    return f"{round(100 * value)} %".replace("-", "−")


def _budgets(answers: Answers, titles: Mapping[str, str]) -> Iterator[dict[str, object]]:
    """Yield one table per problem and goal: the budget with which each method reaches the goal."""
    for problem, goals in answers["budgets"].items():
        for goal in goals:
            needed = sorted(goal["needed"].items(), key=lambda pair: (pair[1][0], pair[0]))
            yield {
                "title": answers["titles"]["problem"][problem],
                "goal": f"{GOALS[goal['end']]} with ε = {goal['epsilon']:g}",
                "rows": [
                    {
                        "title": titles[name],
                        "budgets": [_budget(e, answers["epsilons"]) for e in ends],
                    }
                    for name, ends in needed
                    if min(ends) < INFINITE
                ],
            }


def _budget(value: float, epsilons: Iterable[float]) -> str:
    """Format a budget; a budget outside the computed range becomes a bound."""
    if value == 0:
        return f"≤ {min(epsilons):g}"
    return f"> {max(epsilons):g}" if value >= INFINITE else number(value)


def _gains(answers: Answers, titles: Mapping[str, str]) -> list[dict[str, object]]:
    """Return the ratio of the loss after tuning to that with transferred parameters, by method."""
    rows: dict[str, dict[str, Any]] = {}
    for by_method in answers["gains"].values():
        for name, kinds in by_method.items():
            row = rows.setdefault(name, {"title": titles[name], **dict.fromkeys(TUNINGS, NONE)})
            for kind, (ratio, low, high, _) in kinds.items():
                if ratio is not None:
                    row[kind] = f"{formatted_number(ratio)} {interval(low, high)}"
    return list(rows.values())


def _unproven(answers: Answers, titles: Mapping[str, str]) -> list[dict[str, object]]:
    """Return the loss and the bounds on epsilon of methods without a proof, in base cells."""
    names = [method["name"] for method in answers["methods"]]
    return [
        {
            "problem": answers["titles"]["problem"][problem],
            "title": titles[names[method]],
            "epsilon": f"{cell['cell'][-1]:g}",
            "mean": formatted_number(mean),
            "bounds": f"[{formatted_number(lower)}, {formatted_number(upper)}]",
        }
        for problem in answers["titles"]["problem"]
        for cell in _base(problem, answers)
        for method, mean, lower, upper in cell.get(answers["primary"], {}).get("unproven", [])
        if lower is None or lower < INFINITE
    ]


def _cells_in_words(row: Row) -> str:
    """Describe the cells in which a method does not run, with their number."""
    conditions = [f"{key} = {value}" for key, value in row["where"].items()]
    times = [f"{row['times']} times"] if row["times"] > 1 else []
    return ", ".join([*conditions, *times])
