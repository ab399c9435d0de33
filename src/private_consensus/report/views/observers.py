"""Content of the page on single observers: one table per graph, and data for its script."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any

from private_consensus.audits.views import NOT_LINEAR
from private_consensus.audits.views.causal import NO_VIEWS, WHOLE_RUN
from private_consensus.common.grouping import grouped

from ..formats import number, words
from ..names import algorithm_title
from ..reading import Results, Row

VIEWS = {"agent": "single messages", "secure sums": "secure sums"}
"""Kinds of observers that are single agents, each with its description."""
OTHER_OBSERVERS = {
    "coalition of 3": "coalition of 3", "secure sums": "secure sums", "last models": "final models",
    "mean of last models": "mean of final models",
}  # fmt: skip
"""Other kinds of observers, each with the title of its column."""
TITLES = {
    "descent": "Descent, fresh noise in every round",
    "clipped": "Descent, clipped gradients",
    "muffliato_gd": "Muffliato-GD, four rounds per step",
}
"""Titles of entries of ``config/observers.yaml`` that are not the name of an algorithm."""
GRAPHS = {"chords": "ring with three chords"}
TABLE_BUDGET = 4.0
"""Budget epsilon of the tables; if it was not computed, they show the largest one."""


def page(results: Results) -> dict[str, object]:
    """Collect the content of the page: one table per graph with the worst pair by distance."""
    rows = results.audit.get("observers", [])
    budget = _budget(rows)
    at_budget = [row for row in rows if row["epsilon"] == budget]
    return {
        "budget": number(budget) if rows else "",
        "graphs": [_graph(*group) for group in grouped(at_budget, itemgetter("graph")).items()],
        "labels": LABELS,
        "without_formula": without_formula() if rows else [],
    }


NAMES = {"F1": "contraction bound", "F0": "causal bound", "refused": "no guarantee"}
"""Label of a guarantee in the results to its name on the page, if they differ."""
LABELS = {
    "exact": "exact privacy loss of the received messages",
    "bound": "upper bound on the privacy loss of the received messages",
    "contraction bound": "proven for non-expansive steps, including projections",
    "causal bound": "proven for any data and loss; it counts the messages that can reach the "
    "observer",
    "no guarantee": "no rule applies",
}
"""Kind of guarantee to its meaning."""


def title(name: str) -> str:
    """Return the title of a configuration entry."""
    return TITLES.get(name) or algorithm_title(name)


def graph_title(name: str) -> str:
    """Return the title of a graph of the configuration."""
    return GRAPHS.get(name) or words(name)


def _largest(rows: Iterable[Row], kind: str, distance: int | None = None) -> float:
    """Return the largest guaranteed privacy loss to a kind of observer; NaN without one."""
    losses = (
        row["guarantee"]
        for row in rows
        if row["kind"] == kind and distance in (None, row["distance"])
    )
    return max(losses, default=math.nan)


def without_formula() -> list[dict[str, str]]:
    """List the algorithms without a formula for single observers, with reason and guarantee."""
    return [
        {"name": name, "reason": reason, "guarantee": _remaining_guarantee(name)}
        for name, reason in sorted(NOT_LINEAR.items())
    ]


def _remaining_guarantee(name: str) -> str:
    if name in NO_VIEWS:
        return "none"
    if name in WHOLE_RUN:
        return "the privacy loss to the eavesdropper, at any distance"
    return "the causal bound by distance, if the privacy loss to the eavesdropper is proven"


def _budget(rows: Iterable[Row]) -> float:
    budgets = sorted({row["epsilon"] for row in rows})
    return TABLE_BUDGET if TABLE_BUDGET in budgets else (budgets[-1] if budgets else math.nan)


def _graph(name: str, rows: list[Row]) -> dict[str, object]:
    distances = sorted({row["distance"] for row in rows if row["kind"] == "agent"})
    observers = {
        "eavesdropper": ("eavesdropper", None),
        **{"neighbour" if d == 1 else f"{d} edges": ("agent", d) for d in distances},
        **{column: (kind, None) for kind, column in OTHER_OBSERVERS.items()},
    }
    return {
        "name": name,
        "title": graph_title(name),
        "columns": list(observers),
        "rows": [
            {
                "name": title(algorithm),
                "epsilons": [epsilon_in_words(_largest(group, *key)) for key in observers.values()],
                "labels": ", ".join(
                    sorted(
                        {NAMES.get(r["label"], r["label"]) for r in group if r["kind"] == "agent"}
                    )
                ),
                "reason": group[0]["reason"],
            }
            for algorithm, group in grouped(rows, itemgetter("algorithm")).items()
        ],
    }


def epsilon_in_words(value: float) -> str:
    """Format an epsilon; values above 10^6 are shown as infinite."""
    return "∞" if value > 1e6 else number(value)


def script_data(rows: Iterable[Row]) -> dict[str, object]:
    """Collect the data of the page's script: the edges of each graph, and privacy losses.

    For each algorithm, budget and kind of observer, there are tables of guarantees, formulas and
    labels of all pairs, [observer][target agent]. Missing formulas and the diagonal are None.
    Values above 10^6 are -1, because JSON has no infinity.
    """
    views = (row for row in rows if row["kind"] in VIEWS)
    return {
        name: _losses(name, group) for name, group in grouped(views, itemgetter("graph")).items()
    }


def _losses(graph: str, rows: Sequence[Row]) -> dict[str, object]:
    pairs = [(row["target_agent"], int(row["members"])) for row in rows if row["distance"] == 1]
    edges = list(dict.fromkeys((u, v) for u, v in pairs if u < v))
    agents = range(1 + max(map(max, edges)))
    losses: dict[str, dict[str, dict[str, Any]]] = {}
    by_view = grouped(rows, itemgetter("algorithm", "epsilon", "kind"))
    for (algorithm, epsilon, kind), group in by_view.items():
        by_pair = {(int(row["members"]), row["target_agent"]): row for row in group}
        losses.setdefault(algorithm, {}).setdefault(f"{epsilon:g}", {})[kind] = {
            key: [[value_of(by_pair.get((v, u), {})) for u in agents] for v in agents]
            for key, value_of in SCRIPT_VALUES.items()
        }
    return {
        "title": graph_title(graph),
        "edges": edges,
        "names": {name: title(name) for name in losses},
        "losses": losses,
        "agents": len(agents),
    }


def _cell(value: float) -> float | None:
    if math.isnan(value):
        return None
    return -1 if value > 1e6 else float(f"{value:.3g}")


SCRIPT_VALUES: dict[str, Callable[[Row], float | str | None]] = {
    "guarantee": lambda row: _cell(row.get("guarantee", math.nan)),
    "formula": lambda row: _cell(row.get("formula", math.nan)),
    "labels": lambda row: NAMES.get(row.get("label"), row.get("label")),
}
"""Table of the script to the function that returns its entry for a row, which may be missing."""
