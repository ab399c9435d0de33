"""Content of the page on single observers: one table per graph, and data for its script."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any

from private_consensus.audits.views import NOT_LINEAR
from private_consensus.audits.views.causal import NO_VIEWS, WHOLE_RUN

from ..formats import grouped, number, words
from ..names import algorithm_title
from ..reading import Results

Row = Mapping[str, Any]

VIEWS = {"agent": "single messages", "secure sums": "secure sums"}
"""Kinds of observers that are single agents, each with its description."""
OTHER_OBSERVERS = ("coalition of 3", "secure sums", "last models", "mean of last models")
TITLES = {
    "descent": "Descent, fresh noise in every round",
    "clipped": "Descent, clipped gradients",
    "muffliato_gd": "Muffliato-GD, four rounds per step",
}
"""Titles of entries of ``config/observers.yaml`` that are not the name of an algorithm."""
GRAPHS = {"chords": "ring with three chords"}
TABLE_BUDGET = 4.0
"""Budget epsilon of the tables; if it was not computed, they show the largest one."""


def page(results: Results) -> dict[str, Any]:
    """Collect the content of the page: one table per graph with the worst pair by distance."""
    rows = results.audit.get("observers", [])
    budget = _budget(rows)
    at_budget = [row for row in rows if row["epsilon"] == budget]
    return {
        "budget": number(budget) if rows else "",
        "graphs": [_graph(*group) for group in grouped(at_budget, itemgetter("graph")).items()],
        "labels": LABELS,
        "two_hops": [
            sentence(*group) for group in grouped(at_budget, itemgetter("algorithm")).items()
        ],
        "without_formula": without_formula() if rows else [],
    }


LABELS = {
    "exact": "exact privacy loss of the received messages",
    "F1": "contraction bound: proven for non-expansive steps, including projections",
    "F0": "causal bound: proven for any data and loss; it counts the messages that can reach the "
    "observer",
    "refused": "no guarantee is proven",
}
"""Kind of guarantee to its meaning."""


FAR_DISTANCE = 2
"""Distance of target agent and observer in the sentences, in edges."""
EQUALITY_RATIO = 0.95
"""Ratio of two privacy losses from which on a sentence calls them equal."""


def sentence(name: str, rows: Iterable[Row]) -> dict[str, str]:
    """Describe the privacy loss of an algorithm to agents that are two edges away.

    Parameters
    ----------
    name : str
        Name of the algorithm.
    rows : iterable of rows
        Rows of the table; other algorithms are ignored.

    Returns
    -------
    dict
        Title of the algorithm and the sentence.
    """
    settings = [row for row in rows if row["algorithm"] == name]
    eavesdropper = max(
        (r["guarantee"] for r in settings if r["kind"] == "eavesdropper"), default=math.nan
    )
    worst = {d: _largest(settings, d) for d in (1, FAR_DISTANCE)}
    agents = [row for row in settings if row["kind"] == "agent"]
    labels = {row["label"] for row in agents if row["distance"] == FAR_DISTANCE}
    verb = "is" if labels == {"exact"} else "is proven to be at most"
    return {"name": title(name), "words": _distance_sentence(verb, worst, eavesdropper)}


def title(name: str) -> str:
    """Return the title of a configuration entry."""
    return TITLES.get(name) or algorithm_title(name)


def graph_title(name: str) -> str:
    """Return the title of a graph of the configuration."""
    return GRAPHS.get(name) or words(name)


def _largest(rows: list[Row], distance: int) -> float:
    agents = (r for r in rows if r["kind"] == "agent" and r["distance"] == distance)
    return max((row["guarantee"] for row in agents), default=math.nan)


def _distance_sentence(verb: str, worst: Mapping[int, float], eavesdropper: float) -> str:
    far, near = worst[FAR_DISTANCE], worst[1]
    if math.isnan(far):
        return "No graph has two agents at a distance of two edges."
    if not math.isfinite(far):
        return "No bound on the privacy loss to an agent two edges away is proven."
    total = epsilon_in_words(eavesdropper)
    if far > eavesdropper / EQUALITY_RATIO:
        compared = (
            f"{epsilon_in_words(far)}, more than the privacy loss to the eavesdropper, {total}"
        )
    elif far >= EQUALITY_RATIO * eavesdropper:
        compared = f"{epsilon_in_words(far)}, equal to the privacy loss to the eavesdropper"
    else:
        compared = f"{epsilon_in_words(far)}, against {total} to the eavesdropper"
    return f"The privacy loss {verb} ε = {compared}; to a neighbour, {epsilon_in_words(near)}."


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


def _graph(name: str, rows: list[Row]) -> dict[str, Any]:
    distances = sorted({row["distance"] for row in rows if row["kind"] == "agent"})
    return {
        "name": name,
        "title": graph_title(name),
        "columns": [
            "eavesdropper",
            *("neighbour" if d == 1 else f"{d} edges" for d in distances),
            *OTHER_OBSERVERS,
        ],
        "rows": [
            _algorithm(algorithm, group, distances)
            for algorithm, group in grouped(rows, itemgetter("algorithm")).items()
        ],
    }


def _algorithm(name: str, rows: list[Row], distances: list[int]) -> dict[str, Any]:
    agents = [row for row in rows if row["kind"] == "agent"]
    return {
        "name": title(name),
        "epsilons": [
            _worst(row for row in rows if row["kind"] == "eavesdropper"),
            *(_worst(row for row in agents if row["distance"] == d) for d in distances),
            *(_worst(row for row in rows if row["kind"] == kind) for kind in OTHER_OBSERVERS),
        ],
        "labels": ", ".join(sorted({row["label"] for row in agents})),
        "reason": rows[0]["reason"],
    }


def _worst(rows: Iterable[Row]) -> str:
    guarantees = [row["guarantee"] for row in rows]
    return epsilon_in_words(max(guarantees)) if guarantees else "–"


def epsilon_in_words(value: float) -> str:
    """Format an epsilon; values above 10^6 are shown as infinite."""
    return "∞" if value > 1e6 else number(value)


def script_data(rows: Iterable[Row]) -> dict[str, Any]:
    """Collect the data of the page's script: the edges of each graph, and privacy losses.

    For each algorithm, budget and kind of observer, there are tables of guarantees, formulas and
    labels of all pairs, [observer][target agent]. Missing formulas and the diagonal are None.
    Values above 10^6 are -1, because JSON has no infinity.
    """
    graphs: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row["kind"] not in VIEWS:
            continue
        name = row["algorithm"]
        empty = {"title": graph_title(row["graph"]), "edges": [], "names": {}, "losses": {}}
        graph = graphs.setdefault(row["graph"], empty)
        graph["names"][name] = title(name)
        v, u = int(row["members"]), row["target_agent"]
        if row["distance"] == 1 and u < v and [u, v] not in graph["edges"]:
            graph["edges"].append([u, v])
        views = graph["losses"].setdefault(name, {}).setdefault(f"{row['epsilon']:g}", {})
        cells = views.setdefault(row["kind"], {})
        for key, value in (("guarantee", row["guarantee"]), ("formula", row["formula"])):
            cells.setdefault(key, {}).setdefault(v, {})[u] = _cell(value)
        cells.setdefault("labels", {}).setdefault(v, {})[u] = row["label"]
    for graph in graphs.values():
        _convert_tables(graph)
    return graphs


def _convert_tables(graph: dict[str, Any]) -> None:
    """Convert the tables of a graph from nested dictionaries to nested lists, in place."""
    agents = 1 + max(max(edge) for edge in graph["edges"])
    graph["agents"] = agents
    for budgets in graph["losses"].values():
        for views in budgets.values():
            for cells in views.values():
                for key, table in cells.items():
                    cells[key] = [
                        [table.get(v, {}).get(u) for u in range(agents)] for v in range(agents)
                    ]


def _cell(value: float) -> float | None:
    if math.isnan(value):
        return None
    return -1 if value > 1e6 else float(f"{value:.3g}")
