"""Content of tables: computed numbers next to published numbers."""

from __future__ import annotations

from private_consensus.reproduction.experiments.freshness import command
from private_consensus.reproduction.experiments.tables import formatted

from ..formats import value_range
from ..names import heading
from ..reading import Results, Row
from .figures import experiment
from .verdicts import of_figure

LINKS = (("csv", "numbers as CSV"), ("md", "Markdown"), ("tex", "LaTeX"))


def table(name: str, paper: Row, results: Results) -> dict[str, object]:
    """Collect the content of a table for the page."""
    spec, numbers, scale = paper["tables"][name], results.tables[name], results.scale
    titles, rows = formatted(numbers, spec)
    used = dict.fromkeys(block["experiment"] for block in spec["blocks"])
    source = "; ".join(numbers["source"].unique().sort())
    return {
        **spec,
        "name": name,
        "heading": heading(spec["title"], paper["paper"]["number"]),
        "titles": titles,
        "rows": rows,
        "source": source,
        "surrogate": "surrogate" in source,
        "runs": value_range(numbers["runs"]),
        "command": command(name, scale),
        "links": LINKS,
        "claims": of_figure(results.claims, name),
        "experiments": [experiment(key, paper["experiments"][key], scale) for key in used],
    }
