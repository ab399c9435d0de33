"""Rendering of results to HTML pages."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from private_consensus.common.symbols import typeset

from ..experiments.commands import command
from .formats import code, words
from .names import LINKS, called, figure_name
from .reading import Results
from .views import (
    algorithms,
    answer,
    delivered,
    documents,
    figures,
    privacy,
    run,
    scorecard,
    tables,
    verdicts,
)

EXTRA = {
    "comparison": "Which algorithm?",
    "scorecard": "Scorecard: all claims",
    "privacy": "Privacy of each algorithm",
    "audits": "Audits",
    "observers": "Privacy against single observers",
    "theorems": "Theorems of the papers",
    "errata": "Errata of the papers",
    "data": "Data",
    "run": "This run",
}
"""Titles of the pages of the first level, in the order of the table of contents.

Each has a template ``<name>_page.html.j2`` and a function ``page(results)`` in ``views/<name>.py``
that returns the variables of the template.
"""


def page(results: Results) -> str:
    """Render the front page: the answer, the papers, and the delivered privacy."""
    variables = {**navigation(results), "here": "", "root": "", "home": "", **context(results)}
    return environment().get_template("index.html.j2").render(variables)


def pages(results: Results) -> dict[str, str]:
    """Render the other pages: one per paper, algorithm, topic and document."""
    around = {"scale": results.scale, "decides": results.decides, **navigation(results)}
    papers = {key: paper_view(key, results) for key in results.papers}
    rendered = {f"papers/{key}.html": _other("paper_page", around, f"papers/{key}.html", paper=view)
            for key, view in papers.items()}  # fmt: skip
    for algorithm in algorithms.pages(algorithms_used(results), results):
        name = f"algorithms/{algorithm['name']}.html"
        rendered[name] = _other("algorithm", around, name, algorithm=algorithm)
    for key in private_papers(results):
        name = f"settings/{key}.html"
        rendered[name] = _other("settings", around, name, paper=papers[key])
    for extra, title in EXTRA.items():
        name = f"{extra}.html"
        rendered[name] = _other(
            f"{extra}_page",
            around,
            name,
            title=title,
            **import_module(f"{__package__}.views.{extra}").page(results),
        )
    for document, title in documents.titles(results.documents).items():
        name = f"docs/{document}.html"
        content = documents.html(results.documents[document])
        rendered[name] = _other("document", around, name, title=title, content=content)
    return rendered


def navigation(results: Results) -> dict[str, Any]:
    """Return the entries of the table of contents, which all pages share."""
    return {
        "contents": [{"key": key, "short": short} for key, short in results.names.items()],
        "algorithms": algorithms_used(results),
        "documents": documents.titles(results.documents),
        "library": results.library,
        "extra": EXTRA,
    }


def private_papers(results: Results) -> list[str]:
    """Return the keys of papers with private settings, which have a page of settings."""
    private = {results.paper_of.get(row["experiment"]) for row in results.privacy}
    return [key for key in results.papers if key in private]


def _other(template: str, around: dict[str, Any], name: str, **values: Any) -> str:
    """Render a page of the folder, with links relative to its location."""
    root = "../" * name.count("/")
    links = {"here": name, "root": root, "home": f"{root}index.html"}
    return environment().get_template(f"{template}.html.j2").render(**around, **links, **values)


def algorithms_used(results: Results) -> list[str]:
    """Return the algorithms of the experiments that the registry contains; each has a page."""
    names = {name for spec in results.experiments.values() for name in spec["algorithms"]}
    return sorted(names & set(algorithms.known()))


def scored(results: Results) -> list[dict[str, Any]]:
    """Return the rows of the scorecard."""
    seconds = run.seconds_of_figures(results.papers, results.timings)
    return scorecard.rows(results.claims, results.papers, seconds, results.scale)


@cache
def environment() -> Environment:
    """Templates, with everything escaped and nothing silently missing."""
    environment_of_pages = Environment(
        loader=PackageLoader("private_consensus.reproduction.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment_of_pages.filters["words"] = words
    environment_of_pages.filters["code"] = code
    environment_of_pages.filters["called"] = called
    environment_of_pages.filters["typeset"] = typeset
    # Jinja declares the types of its own globals only.
    environment_of_pages.globals["headings"] = verdicts.HEADINGS  # ty: ignore[invalid-assignment]
    environment_of_pages.filters["paper_of"] = lambda name: name.partition("_")[0]
    environment_of_pages.filters["figure_name"] = figure_name
    return environment_of_pages


def _once_made(kind: str, results: Results, compute: Callable[[], Any]) -> Any:
    if kind not in results.views:
        results.views[kind] = compute()
    return results.views[kind]


def context(results: Results) -> dict[str, Any]:
    """Return the variables of the front page and of the PDF."""
    return _once_made("context", results, lambda: _context(results))


def _context(results: Results) -> dict[str, Any]:
    papers = results.papers
    promised = privacy.promises(results)
    claims = scored(results)
    first = next((name for paper in papers.values() for name in paper["figures"]), "")
    return {
        "scale": results.scale,
        "decides": results.decides,
        "answer": answer.sentences(results),
        "command": command("", results.scale),
        "one_figure": command(first, results.scale),
        "counts": verdicts.counts(results.claims),
        "scorecard": claims,
        "standing": scorecard.counts(claims),
        "promises": promised,
        "delivered": [
            {**row, "short": results.names[row["paper"]]} for row in delivered.rows(results)
        ],
        "as_claimed": delivered.AS_CLAIMED,
        "kept": privacy.kept(promised),
        "papers": [paper_view(key, results) for key in papers],
        "surrogates": surrogates(results),
        "commit": results.commit,
    }


def paper_view(key: str, results: Results) -> dict[str, Any]:
    """Collect the content of a paper's page: figures and tables with claims, choices, privacy.

    Parameters
    ----------
    key : str
        Key of the paper.
    results : Results
        Results of one scale; the view is cached in it.

    Returns
    -------
    dict
        Variables of the page template.
    """
    return _once_made(f"paper {key}", results, lambda: _paper_view(key, results))


def _paper_view(key: str, results: Results) -> dict[str, Any]:
    paper = results.papers[key]
    claims = [row for row in results.claims if row["paper"] == key]
    rows = [row for row in results.privacy if row["experiment"] in paper["experiments"]]
    figures_shown = [
        {
            **figures.figure(
                name,
                paper,
                results.facts[name],
                results.labels,
                results.scale,
                is_reference=results.is_reference,
            ),
            "seed": results.seed,
            "claims": verdicts.of_figure(claims, name),
        }
        for name in paper["figures"]
    ]
    _once(figures_shown)
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
        "short": results.names[key],
        "link": LINKS.get(key),
        "counts": verdicts.counts(claims),
        "outcome": scorecard.in_words(claims, results.papers),
        "figures": figures_shown,
        "tables": tabled,
        "choices": figures.choices(paper),
        "privacy": privacy.of_experiments(rows, paper["experiments"]),
    }


def _once(figures_of_paper: list[dict[str, Any]]) -> None:
    """Link each experiment to the first figure that shows it, where it is described."""
    first: dict[str, dict[str, str]] = {}
    for figure in figures_of_paper:
        for experiment in figure["experiments"]:
            target = {"name": figure["name"], "heading": figure["heading"]}
            experiment["told"] = first.setdefault(experiment["name"], target)


def surrogates(results: Results) -> list[str]:
    """Sources that are not the real data, each once."""
    descriptions = [fact["source"] for fact in results.facts.values()]
    origins = [
        origin for source in descriptions for origin in source.split("; ") if "surrogate" in origin
    ]
    return list(dict.fromkeys(origins))
