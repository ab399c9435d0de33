"""Content of figures and tables: caption, data, settings, and the command for each."""

from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from private_consensus.reproduction.results.freshness import command
from private_consensus.reproduction.results.tables import formatted, sources_of

from ..formats import heading, value_range
from ..reading import Results, Row
from .verdicts import of_figure

SHARED = ("problem", "network", "budget", "horizon", "runs")
"""Keys of an experiment that describe the settings of all variants."""
TABLE_LINKS = ("csv", "md")
"""File formats of a table."""


def figure(name: str, paper: Row, results: Results) -> dict[str, Any]:
    """Collect the content of a figure for the page."""
    spec, facts = paper["figures"][name], results.facts[name]
    used = dict.fromkeys(panel["experiment"] for panel in spec["panels"] if panel["experiment"])
    curves = [curve for panel in spec["panels"] for curve in panel["curves"]]
    used |= dict.fromkeys(curve["experiment"] for curve in curves)
    return {
        **_content(name, spec, used, paper, results),
        **_data(facts["source"], facts["runs"]),
        "links": ("csv", "parquet", *drawn(results)),
    }


def drawn(results: Results) -> tuple[str, ...]:
    """Return the file formats of drawings; the published reference has no PDF."""
    return ("svg", "png") if results.is_reference else ("svg", "png", "pdf")


def table(name: str, paper: Row, results: Results) -> dict[str, Any]:
    """Collect the content of a table for the page: computed next to published numbers."""
    spec, numbers = paper["tables"][name], results.tables[name]
    titles, rows = formatted(numbers, spec)
    used = dict.fromkeys(block["experiment"] for block in spec["blocks"])
    return {
        **_content(name, spec, used, paper, results),
        "added": False,
        "titles": [*titles[:3], *(f"{title}#" for title in titles[3:])],
        "rows": rows,
        **_data(sources_of(numbers), numbers["runs"]),
        "links": TABLE_LINKS,
    }


def _data(source: str, runs: Iterable[float]) -> dict[str, Any]:
    return {"source": source, "surrogate": "surrogate" in source, "runs": value_range(runs)}


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
        "experiments": [experiment(paper["experiments"][key], scale) for key in experiments],
    }


def experiment(spec: Row, scale: str) -> dict[str, object]:
    """Add the settings that all variants of an experiment share as YAML."""
    keys = [*SHARED, "smoke"] if scale == "smoke" else SHARED
    shared = _stated({key: spec.get(key) for key in keys})
    settings = yaml.safe_dump(shared, sort_keys=False, default_flow_style=None)
    return {**spec, "settings": settings}


def _stated(value: Any) -> Any:
    """Remove keys without a value from nested mappings."""
    if not isinstance(value, Mapping):
        return value
    return {key: _stated(item) for key, item in value.items() if item not in (None, {}, [])}


def unspecified_details(paper: Row) -> list[dict[str, object]]:
    """List the details that the paper leaves open, each with the locations of its experiments."""
    locations: dict[tuple, dict[str, None]] = {}
    for spec in paper["experiments"].values():
        for topic, detail in spec["unspecified_details"].items():
            key = ("about", topic), *detail.items()
            locations.setdefault(key, {})[spec["location"]] = None
    return [{**dict(key), "location": "; ".join(names)} for key, names in locations.items()]
