"""Render the pages of the report as HTML."""

from __future__ import annotations

from functools import cache, lru_cache
from importlib import import_module
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from private_consensus.common.symbols import typeset
from private_consensus.core.algorithms import names as registered_names
from private_consensus.reproduction.experiments.freshness import command

from .formats import code, duration, number, words
from .names import LINKS, algorithm_title, figure_name
from .reading import Results, surrogates_in
from .views import (
    algorithms,
    answer,
    delivered,
    figures,
    privacy,
    scorecard,
    tables,
    verdicts,
)
from .views.data import data_uri

TOPICS = {
    "scorecard": "Scorecard: all claims",
    "privacy": "Privacy of each algorithm",
    "audits": "Audits",
    "statements": "Statements and errata of the papers",
    "data": "Data",
    "run": "This run",
}
"""Name to title of each topic page, in the order of the table of contents.

Each page has a template ``<name>_page.html.j2`` and a function ``page(results)`` in
``views/<name>.py`` that returns the variables of the template.
"""


def page(results: Results) -> str:
    """Render the front page: the result in words, the papers, and the delivered privacy."""
    papers = results.papers
    first = next((name for paper in papers.values() for name in paper["figures"]), "")
    variables = {
        **navigation(results),
        "here": "",
        "root": "",
        "home": "",
        "scale": results.scale,
        "decides": results.decides,
        "answer": answer.summary(results),
        "command": command("", results.scale),
        "one_figure": command(first, results.scale),
        "counts": scorecard.counts(scorecard.scored(results)),
        "delivered": delivered.rows(results),
        "as_claimed": delivered.AS_CLAIMED,
        "privacy_counts": privacy.privacy_counts(results),
        "papers": [paper_view(key, results) for key in papers],
        "surrogates": surrogates_in(fact["source"] for fact in results.facts.values()),
    }
    return environment().get_template("index.html.j2").render(variables)


def pages(results: Results) -> dict[str, str]:
    """Render the other pages, one per paper, algorithm and topic, by file name."""
    shared = {"scale": results.scale, "decides": results.decides, **navigation(results)}
    papers = {key: paper_view(key, results) for key in results.papers}
    texts = {f"papers/{key}.html": _rendered("paper_page", shared, f"papers/{key}.html", paper=view)
            for key, view in papers.items()}  # fmt: skip
    for algorithm in algorithms_used(results):
        name, content = f"algorithms/{algorithm}.html", algorithms.page(algorithm, results)
        texts[name] = _rendered("algorithm", shared, name, algorithm=content)
    for key in private_papers(results):
        name = f"settings/{key}.html"
        texts[name] = _rendered("settings", shared, name, paper=papers[key])
    for topic, title in TOPICS.items():
        name = f"{topic}.html"
        content = import_module(f"{__package__}.views.{topic}").page(results)
        texts[name] = _rendered(f"{topic}_page", shared, name, title=title, **content)
    return texts


def navigation(results: Results) -> dict[str, object]:
    """Return the entries of the table of contents, which is on every page."""
    return {
        "paper_names": results.names,
        "algorithms": algorithms_used(results),
        "is_reference": results.is_reference,
        "topics": TOPICS,
    }


def private_papers(results: Results) -> list[str]:
    """Return the keys of papers with private settings, which have a page of settings."""
    private = {results.paper_of.get(row["experiment"]) for row in results.privacy}
    return [key for key in results.papers if key in private]


def _rendered(template: str, shared: dict[str, object], name: str, **values: object) -> str:
    """Render one page; its links are relative to its location in the folder."""
    root = "../" * name.count("/")
    links = {"here": name, "root": root, "home": f"{root}index.html"}
    return environment().get_template(f"{template}.html.j2").render(**shared, **links, **values)


def algorithms_used(results: Results) -> list[str]:
    """Return the registered algorithms of the experiments; each has a page."""
    names = {name for spec in results.experiments.values() for name in spec["algorithms"]}
    return sorted(names & set(registered_names()))


@cache
def environment() -> Environment:
    """Return the templates; all values are escaped, and an undefined variable is an error."""
    templates = Environment(
        loader=PackageLoader("private_consensus.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = (words, number, duration, code, algorithm_title, figure_name, typeset, data_uri)
    templates.filters |= {function.__name__: function for function in filters}
    templates.filters["textual"] = lambda titles: [(title, "") for title in titles]
    templates.filters["numeric"] = lambda titles: [(title, "n") for title in titles]
    templates.filters["paper_of"] = lambda name: name.partition("_")[0]
    # Jinja declares the types of its own globals only.
    templates.globals["headings"] = verdicts.HEADINGS  # ty: ignore[invalid-assignment]
    return templates


@lru_cache(maxsize=16)
def paper_view(key: str, results: Results) -> dict[str, Any]:
    """Collect the content of a paper's page: figures and tables with claims, details, privacy."""
    paper = results.papers[key]
    primary = [row for row in scorecard.scored(results) if row["paper"] == key]
    paper_figures = [figures.figure(name, paper, results) for name in paper["figures"]]
    _link_descriptions(paper_figures)
    return {
        "key": key,
        **paper["paper"],
        "short": results.names[key],
        "link": LINKS.get(key),
        "counts": scorecard.counts(primary),
        "claims_by_icon": {
            icon: [row for row in primary if ("added" if row["addition"] else row["icon"]) == icon]
            for icon in verdicts.HEADINGS
        },
        "figures": paper_figures,
        "tables": [tables.table(name, paper, results) for name in paper.get("tables", {})],
        "unspecified_details": figures.unspecified_details(paper),
        "privacy": privacy.of_experiments(results.privacy, paper["experiments"]),
    }


def _link_descriptions(paper_figures: list[dict[str, Any]]) -> None:
    """Link each experiment to the first figure that shows it, which has its description."""
    first: dict[str, dict[str, str]] = {}
    for figure in paper_figures:
        for experiment in figure["experiments"]:
            target = {"name": figure["name"], "heading": figure["heading"]}
            experiment["described_at"] = first.setdefault(experiment["name"], target)
