"""From results to the HTML of the pages."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from ..plotting.symbols import typeset
from .commands import command
from .formats import code, words
from .names import called, short_title
from .reading import Results
from .views import (
    algorithms,
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
    "privacy": "Privacy audit",
    "observers": "Who learns what about whom",
    "theorems": "Theorems of the papers",
    "errata": "Errata of the papers",
    "data": "Data",
}
"""Pages of the first level that the report has as soon as somebody provides them."""

WORST_FIRST = ("not", "part", "held", "open", "never")
"""Looks of verdicts as the front page lists claims: what a reader may not expect comes first."""


def page(results: Results) -> str:
    """The HTML of the front page: counts, promises, scorecard, this run."""
    shown = {**navigation(results), "here": "", "root": "", "home": "", **context(results)}
    return environment().get_template("index.html.j2").render(shown)


def pages(results: Results) -> dict[str, str]:
    """The other pages of the report: one a paper, an algorithm, a document."""
    around = {"scale": results.scale, **navigation(results)}
    papers = {key: paper_view(key, results) for key in results.papers}
    made = {f"papers/{key}.html": _other("paper_page", around, f"papers/{key}.html", paper=view)
            for key, view in papers.items()}  # fmt: skip
    for shown in algorithms.pages(algorithms_used(results), results):
        name = f"algorithms/{shown['name']}.html"
        made[name] = _other("algorithm", around, name, algorithm=shown)
    for key in private_papers(results):
        name = f"settings/{key}.html"
        made[name] = _other("settings", around, name, paper=papers[key])
    for extra, title in extra_pages().items():
        name = f"{extra}.html"
        made[name] = _other(f"{extra}_page", around, name, title=title, **view(extra).page(results))
    for document, title in documents.titles(results.documents).items():
        name = f"docs/{document}.html"
        content = documents.html(results.documents[document])
        made[name] = _other("document", around, name, title=title, content=content)
    return made


def navigation(results: Results) -> dict[str, Any]:
    """Return the entries of the table of contents, which all pages share."""
    return {
        "contents": [
            {"key": key, "number": paper["paper"]["number"], "short": short_title(paper["paper"])}
            for key, paper in results.papers.items()
        ],
        "algorithms": algorithms_used(results),
        "documents": documents.titles(results.documents),
        "library": results.library,
        "extra": extra_pages(),
        "faults": results.faults,
    }


def findable(results: Results) -> list[dict[str, str]]:
    """Return the entries of the search: address from the front page, words, and name."""
    rows = []
    for paper in (paper_view(key, results) for key in results.papers):
        page = f"papers/{paper['key']}.html"
        more = f"{paper['key']} {paper['number']} {short_title(paper)}"
        rows.append({"href": page, "text": paper["title"], "more": more})
        for shown in (*paper["figures"], *paper["tables"]):
            rows.append(_found(page, shown["name"], shown["title"]))
            rows += [_found(page, claim["id"], claim["claim"]) for claim in shown["claims"]]
    rows += [
        {"href": f"algorithms/{name}.html", "text": called(name), "more": words(name)}
        for name in algorithms_used(results)
    ]
    named = {f"docs/{name}": title for name, title in documents.titles(results.documents).items()}
    for name, title in {**extra_pages(), **named}.items():
        rows.append({"href": f"{name}.html", "text": title, "more": name})
    return rows


def _found(page: str, name: str, text: str) -> dict[str, str]:
    return {"href": f"{page}#{name}", "text": text, "more": name.replace("_", " ")}


def private_papers(results: Results) -> list[str]:
    """Papers with privacy statements, which fill a page of their own."""
    found = {row["experiment"] for row in results.privacy}
    return [key for key, paper in results.papers.items() if found & set(paper["experiments"])]


def extra_pages() -> dict[str, str]:
    """Pages of the first level besides the front page, each with its title.

    A page is a template ``<name>_page.html.j2`` and a function ``page(results)`` of
    ``views.<name>`` that gives what the template names.
    """
    folder = files("private_consensus.report") / "templates"
    return {
        name: title
        for name, title in EXTRA.items()
        if (folder / f"{name}_page.html.j2").is_file() and hasattr(view(name), "page")
    }


def view(name: str) -> Any:
    """The module of views that makes a page of the first level; None where there is none."""
    module = f"{__package__}.views.{name}"
    return import_module(module) if find_spec(module) else None


def _other(template: str, around: dict[str, Any], name: str, **values: Any) -> str:
    """A page besides the front page, by its place in the folder."""
    root = "../" * name.count("/")
    place = {"here": name, "root": root, "home": f"{root}index.html"}
    return environment().get_template(f"{template}.html.j2").render(**around, **place, **values)


def algorithms_used(results: Results) -> list[str]:
    """Names of algorithms that have a page: those of the registry that experiments name."""
    named = {
        name
        for paper in results.papers.values()
        for experiment in paper["experiments"].values()
        for name in experiment["algorithms"]
    }
    return sorted(named & set(algorithms.known()))


def scored(results: Results) -> list[dict[str, Any]]:
    """Rows of the scorecard."""
    seconds = run.seconds_of_figures(results.papers, results.timings)
    return scorecard.rows(results.claims, results.papers, seconds, results.scale)


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
    made.filters["code"] = code
    made.filters["called"] = called
    made.filters["typeset"] = typeset
    # Jinja declares the types of its own globals only.
    made.globals["headings"] = verdicts.HEADINGS  # ty: ignore[invalid-assignment]
    made.filters["paper_of"] = lambda name: name.partition("_")[0]
    return made


def _once_made(kind: str, results: Results, made: Callable[[], Any]) -> Any:
    if kind not in results.views:
        results.views[kind] = made()
    return results.views[kind]


def context(results: Results) -> dict[str, Any]:
    """Everything that the templates name."""
    return _once_made("context", results, lambda: _context(results))


def _context(results: Results) -> dict[str, Any]:
    papers = results.papers
    paper_of = {name: key for key, paper in papers.items() for name in paper["experiments"]}
    promised = privacy.promises(results.privacy, paper_of, papers)
    shown = scored(results)
    first = next((name for paper in papers.values() for name in paper["figures"]), "")
    return {
        "scale": results.scale,
        "command": command("", results.scale),
        "one_figure": command(first, results.scale),
        "counts": (counted := verdicts.counts(results.claims)),
        "worst_first": sorted(counted, key=lambda item: WORST_FIRST.index(item["look"])),
        "scorecard": shown,
        "standing": scorecard.counts(shown),
        "promises": promised,
        "claims": scorecard.in_words(results.claims, papers),
        "delivered": delivered.rows(results.privacy, paper_of, papers),
        "as_claimed": delivered.AS_CLAIMED,
        "kept": privacy.kept(promised),
        "papers": [paper_view(key, results) for key in papers],
        "surrogates": surrogates(results),
        "commit": results.commit,
        "versions": results.versions,
        "jobs": run.jobs(results.timings),
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
    shown = [
        {
            **figures.figure(name, paper, results.facts[name], results.labels, results.scale),
            "seed": results.seed,
            "claims": verdicts.of_figure(claims, name),
        }
        for name in paper["figures"]
    ]
    _once(shown)
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
        "short": short_title(paper["paper"]),
        "counts": verdicts.counts(claims),
        "outcome": scorecard.in_words(claims, results.papers),
        "figures": shown,
        "tables": tabled,
        "choices": figures.choices(paper),
        "privacy": privacy.of_experiments(rows, paper["experiments"]),
    }


def _once(shown: list[dict[str, Any]]) -> None:
    """An experiment that several figures show is described at the first, which the others name."""
    first: dict[str, dict[str, str]] = {}
    for figure in shown:
        for experiment in figure["experiments"]:
            place = {"name": figure["name"], "heading": figure["heading"]}
            experiment["told"] = first.setdefault(experiment["name"], place)


def surrogates(results: Results) -> list[str]:
    """Sources that are not the real data, each once."""
    found = [fact["source"] for fact in results.facts.values()]
    parts = [part for source in found for part in source.split("; ") if "surrogate" in part]
    return list(dict.fromkeys(parts))
