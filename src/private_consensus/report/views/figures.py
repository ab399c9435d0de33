"""Content of figures and tables: caption, data, settings, and the command for each."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from private_consensus.reproduction.results.freshness import command
from private_consensus.reproduction.results.tables import formatted

from ..formats import heading, number, value_range, words
from ..reading import Results, Row
from .verdicts import of_figure

LINKS = ("csv.zip", "parquet", "svg", "png", "pdf")
"""File formats of a figure: numbers and drawings. The published reference has no PDF."""
TABLE_LINKS = ("csv", "md", "tex")
"""File formats of a table."""


def figure(name: str, paper: Row, results: Results) -> dict[str, Any]:
    """Collect the content of a figure for the page."""
    spec, facts = paper["figures"][name], results.facts[name]
    used = dict.fromkeys(panel["experiment"] for panel in spec["panels"] if panel["experiment"])
    curves = [curve for panel in spec["panels"] for curve in panel["curves"]]
    used |= dict.fromkeys(curve["experiment"] for curve in curves if curve.get("experiment"))
    return {
        **_content(name, spec, used, paper, results),
        "source": facts["source"],
        "surrogate": "surrogate" in facts["source"],
        "runs": value_range(facts["runs"]),
        "width": facts.get("width"),
        "height": facts.get("height"),
        "alt": alt_text(spec, results.labels),
        "links": LINKS[:-1] if results.is_reference else LINKS,
    }


def table(name: str, paper: Row, results: Results) -> dict[str, Any]:
    """Collect the content of a table for the page: computed next to published numbers."""
    spec, numbers = paper["tables"][name], results.tables[name]
    titles, rows = formatted(numbers, spec)
    used = dict.fromkeys(block["experiment"] for block in spec["blocks"])
    source = "; ".join(numbers["source"].unique().sort())
    return {
        **_content(name, spec, used, paper, results),
        "added": False,
        "titles": [*titles[:3], *(f"{title}#" for title in titles[3:])],
        "rows": rows,
        "source": source,
        "surrogate": "surrogate" in source,
        "runs": value_range(numbers["runs"]),
        "links": TABLE_LINKS,
    }


def _content(
    name: str, spec: Row, experiments: Iterable[str], paper: Row, results: Results
) -> dict[str, Any]:
    """Collect what figures and tables have in common."""
    scale = results.scale
    return {
        **spec,
        "name": name,
        "heading": heading(spec["title"]),
        "command": command(name, scale),
        "claims": of_figure(results, name),
        "experiments": [experiment(key, paper["experiments"][key], scale) for key in experiments],
    }


def alt_text(spec: Row, labels: Mapping[str, str]) -> str:
    """Compose the alternative text of a figure: its title, and axes and curves of its panels."""
    panels = [_panel_text(panel) for panel in spec["panels"]]
    count = f" {len(panels)} panels." if len(panels) > 1 else ""
    curves = dict.fromkeys(
        _curve_text(curve, labels)
        for panel in spec["panels"]
        for curve in panel.get("curves") or []
    )
    legend = f" Curves: {'; '.join(curves)}." if curves else ""
    return f"{spec['title']}.{count} {' '.join(panels)}{legend}"


def _panel_text(panel: Row) -> str:
    if panel.get("graph"):
        return "The communication graph: agents and edges."
    title = f"{panel['title']}: " if panel["title"] else ""
    return f"{title}{panel['y_title']} against {panel['x_title']}."


def _curve_text(curve: Row, labels: Mapping[str, str]) -> str:
    label = labels.get(f"{curve['method']}.{curve['style']}", words(curve["style"]))
    suffix = curve.get("label") or ""
    name = label if suffix in label else f"{label} {suffix}"
    return name + (f", one for each {words(curve['by'])}" if curve["by"] else "")


def experiment(key: str, spec: Row, scale: str) -> dict[str, object]:
    """Add the name of an experiment, its common settings and its reductions in words."""
    return {
        **spec,
        "name": key,
        "settings": settings(spec),
        "reduced": reductions(spec["smoke"] if scale == "smoke" else None),
    }


def settings(spec: Row) -> list[tuple[str, str]]:
    """Describe the parameters that are common to all variants of an experiment."""
    descriptions = [
        (key, "; ".join(_parameter(*item) for item in spec[key].items() if item[1] is not None))
        for key in ("problem", "network")
        if spec.get(key)
    ]
    if budget := spec.get("budget"):
        descriptions.append(("budget", _budget(budget)))
    return descriptions + [(key, _value(spec[key])) for key in ("horizon", "runs") if spec.get(key)]


def _parameter(name: str, value: object) -> str:
    if name == "name":
        return _value(value)
    if isinstance(value, bool):
        return words(name) if value else f"not {words(name)}"
    if name == "edges" and isinstance(value, list):
        return f"edges {', '.join('–'.join(map(str, edge)) for edge in value)}"
    return f"{words(name)} {_value(value)}"


def _budget(budget: Row) -> str:
    """Describe epsilon and delta of an experiment; delta can depend on the number of records."""
    if budget["epsilon"] == math.inf:
        return "none"
    delta = budget["delta"]
    is_power = isinstance(delta, Mapping)
    in_words = f"records^{number(delta['records_power'])}" if is_power else number(delta)
    return f"ε = {number(budget['epsilon'])}; δ = {in_words.replace('records^−1', '1/records')}"


def _value(value: object) -> str:
    """Format a value of a setting; a list with more than six entries by its length."""
    if isinstance(value, list) and len(value) > 6:
        return f"{len(value)} values"
    if isinstance(value, Mapping):
        return ", ".join(f"{words(str(k))} {_value(v)}" for k, v in value.items())
    if isinstance(value, list):
        return ", ".join(map(_value, value))
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return number(value) if is_number else words(str(value))


def reductions(reduced: Row | None) -> str:
    """Describe how a smaller scale differs from that of the paper; empty without difference."""
    if not reduced:
        return ""
    changes = [f"{number(n)} run{'s' * (n != 1)}"] if (n := reduced.get("runs")) else []
    changes += [f"{words(axis)} {', '.join(_value(v) for v in values)}"
              for axis, values in reduced.get("axes", {}).items()]  # fmt: skip
    changes += [f"{words(path.rpartition('.')[2])} = {_value(value)}"
              for path, value in reduced.get("set", {}).items()]  # fmt: skip
    return "; ".join(changes)


def unspecified_details(paper: Row) -> list[dict[str, object]]:
    """List the details that the paper leaves open, each with the locations of its experiments."""
    locations: dict[tuple, dict[str, None]] = {}
    for spec in paper["experiments"].values():
        for topic, detail in spec["unspecified_details"].items():
            key = ("about", topic), *detail.items()
            locations.setdefault(key, {})[spec["location"]] = None
    return [{**dict(key), "location": "; ".join(names)} for key, names in locations.items()]
