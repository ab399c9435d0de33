"""From results to the HTML of the page."""

from __future__ import annotations

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from .commands import command
from .formats import words
from .reading import Results
from .views import data, figures, privacy, run, tables, verdicts


def page(results: Results) -> str:
    """The HTML of the whole report."""
    return environment().get_template("index.html.j2").render(context(results))


@cache
def environment() -> Environment:
    """Templates, with everything escaped and nothing silently missing."""
    made = Environment(
        loader=PackageLoader("private_consensus.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["words"] = words
    return made


def context(results: Results) -> dict[str, Any]:
    """Everything that the templates name."""
    papers = results.papers
    paper_of = {name: key for key, paper in papers.items() for name in paper["experiments"]}
    promised = privacy.promises(results.privacy, paper_of, papers)
    return {
        "scale": results.scale,
        "command": command("", results.scale),
        "counts": verdicts.counts(results.claims),
        "scorecard": verdicts.scorecard(results.claims, papers),
        "promises": promised,
        "kept": privacy.kept(promised),
        "papers": [paper_view(key, results) for key in papers],
        "cards": [data.card(card) for card in results.cards],
        "faults": results.faults,
        "surrogates": surrogates(results),
        "commit": results.commit,
        "versions": results.versions,
        "jobs": run.jobs(results.timings),
    }


def paper_view(key: str, results: Results) -> dict[str, Any]:
    """One paper: its figures and tables with their claims, its choices, its privacy."""
    paper = results.papers[key]
    claims = [row for row in results.claims if row["paper"] == key]
    rows = [row for row in results.privacy if row["experiment"] in paper["experiments"]]
    shown = [
        {
            **figures.figure(name, paper, results.facts[name], results.labels, results.scale),
            "claims": verdicts.of_figure(claims, name),
        }
        for name in paper["figures"]
    ]
    tabled = [
        {
            **tables.table(name, paper, results.tables[name], results.scale),
            "claims": verdicts.of_figure(claims, name),
        }
        for name in paper.get("tables", {})
    ]
    return {
        "key": key,
        **paper["paper"],
        "counts": verdicts.counts(claims),
        "figures": shown,
        "tables": tabled,
        "choices": figures.choices(paper),
        "privacy": privacy.of_experiments(rows, paper["experiments"]),
    }


def surrogates(results: Results) -> list[str]:
    """Sources that are not the real data, each once."""
    found = [fact["source"] for fact in results.facts.values()]
    parts = [part for source in found for part in source.split("; ") if "surrogate" in part]
    return list(dict.fromkeys(parts))
