"""From results to the HTML of the pages."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from .commands import command
from .formats import code, words
from .reading import Results
from .views import algorithms, documents, figures, privacy, run, scorecard, tables, verdicts

EXTRA = {
    "comparison": "Which algorithm?",
    "privacy": "Privacy audit",
    "observers": "Who learns what about whom",
    "theorems": "Theorems of the papers",
    "errata": "Errata of the papers",
    "data": "Data",
}
"""Pages of the first level that the report has as soon as somebody provides them."""


def page(results: Results) -> str:
    """The HTML of the front page: counts, promises, scorecard, this run."""
    shown = {**navigation(results), "root": "", "home": "", **context(results)}
    return environment().get_template("index.html.j2").render(shown)


def pages(results: Results) -> dict[str, str]:
    """The other pages of the report: one a paper, an algorithm, a document."""
    shared = {"scale": results.scale, "root": "../"}
    around = {**shared, "home": "../index.html", **navigation(results)}
    made = {
        f"papers/{key}.html": _other("paper_page", around, paper=paper_view(key, results))
        for key in results.papers
    }
    made |= {
        f"algorithms/{view['name']}.html": _other("algorithm", shared, algorithm=view)
        for view in algorithms.pages(algorithms_used(results))
    }
    made |= {
        f"settings/{view['key']}.html": _other("settings", shared, paper=view)
        for view in (paper_view(key, results) for key in private_papers(results))
    }
    made |= {
        f"{name}.html": _other(
            f"{name}_page", {**shared, "root": ""}, title=title, **view(name).page(results)
        )
        for name, title in extra_pages().items()
    }
    documented = documents.titles(results.documents)
    made |= {
        f"docs/{name}.html": _other(
            "document", shared, title=documented[name], content=documents.html(text)
        )
        for name, text in results.documents.items()
    }
    return made


def navigation(results: Results) -> dict[str, Any]:
    """What the contents name, the same on every page that has them."""
    return {
        "contents": [paper_view(key, results) for key in results.papers],
        "algorithms": algorithms_used(results),
        "documents": documents.titles(results.documents),
        "extra": extra_pages(),
        "faults": results.faults,
    }


def findable(results: Results) -> list[dict[str, str]]:
    """What the search finds: its address from the front page, its words, and its name."""
    rows = []
    for paper in navigation(results)["contents"]:
        page = f"papers/{paper['key']}.html"
        rows.append({"href": page, "text": paper["title"], "more": paper["key"]})
        for shown in (*paper["figures"], *paper["tables"]):
            rows.append(_found(page, shown["name"], shown["title"]))
            rows += [_found(page, claim["id"], claim["claim"]) for claim in shown["claims"]]
    rows += [
        {"href": f"algorithms/{name}.html", "text": words(name), "more": name}
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


def _other(template: str, shared: dict[str, Any], **values: Any) -> str:
    return environment().get_template(f"{template}.html.j2").render(**shared, **values)


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
    # Jinja declares the types of its own globals only.
    made.globals["headings"] = verdicts.HEADINGS  # ty: ignore[invalid-assignment]
    made.filters["paper_of"] = lambda name: name.partition("_")[0]
    return made


def context(results: Results) -> dict[str, Any]:
    """Everything that the templates name."""
    papers = results.papers
    paper_of = {name: key for key, paper in papers.items() for name in paper["experiments"]}
    promised = privacy.promises(results.privacy, paper_of, papers)
    shown = scored(results)
    first = next((name for paper in papers.values() for name in paper["figures"]), "")
    return {
        "scale": results.scale,
        "command": command("", results.scale),
        "one_figure": command(first, results.scale),
        "counts": verdicts.counts(results.claims),
        "scorecard": shown,
        "standing": scorecard.counts(shown),
        "delivery": privacy_in_names(promised),
        "promises": promised,
        "kept": privacy.kept(promised),
        "papers": [paper_view(key, results) for key in papers],
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
            "seed": results.seed,
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
        "outcome": scorecard.in_words(claims),
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


def privacy_in_names(promised: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Algorithms by whether all their resolved variants deliver, the others by the worst of theirs.

    Literal readings are what a text says, not what an algorithm can do; one that has no other
    reading is judged by it. Audits attack what others release, and promise nothing.
    """
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in promised:
        if not row["algorithm"].endswith("audit"):
            groups.setdefault((row["algorithm"], row["paper"]), []).append(row)
    found: dict[str, list[dict[str, Any]]] = {look: [] for look in ("held", "not", "part", "open")}
    for (name, paper), rows in groups.items():
        resolved = [row for row in rows if row["reading"] == "resolved"] or rows
        looks = {row["look"] for row in resolved}
        worst = next(look for look in privacy.LOOKS.values() if look in looks)
        found[worst].append({
            "name": name, "paper": paper, "number": rows[0]["number"],
            "kept": sum(row["look"] == "held" for row in resolved), "of": len(resolved),
        })  # fmt: skip
    return found
