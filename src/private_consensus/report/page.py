"""Render the pages of the report as HTML."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from private_consensus.common.symbols import typeset
from private_consensus.reproduction.claims.words import may_decide
from private_consensus.reproduction.results.freshness import command

from .formats import LINKS, algorithm_title, code, figure_name, number, words
from .reading import Results, surrogates_in
from .views import answer, audits, comparison, data, figures, privacy, scorecard, statements
from .views.verdicts import counts

TOPICS = {
    "scorecard": ("Claims", scorecard),
    "comparison": ("Methods", comparison),
    "privacy": ("Privacy", privacy),
    "audits": ("Audits", audits),
    "statements": ("Theorems and errata", statements),
    "data": ("Data", data),
}
"""Name to title and view of each topic page, in the order of the navigation.

Each page has a template ``<name>_page.html.j2``. The function ``page(results)`` of its view returns
the variables of the template.
"""


def front_page(results: Results) -> dict[str, Any]:
    """Collect the answer, the papers, and the mechanisms with too little privacy."""
    less = [r for r in privacy.delivered(results) if r["verdict"] in privacy.LESS_THAN_CLAIMED]
    return {
        "answer": answer.summary(results),
        "command": command("", results.scale),
        "commit": results.commit,
        "seed": results.seed,
        "versions": results.versions,
        "delivered": less,
        "methods": comparison.page(results)["answer"],
        "papers": [_head(key, results) for key in results.papers],
        "surrogates": surrogates_in(fact["source"] for fact in results.facts.values()),
    }


def pages(results: Results) -> dict[str, str]:
    """Render all pages by file name: the front page, and one per paper and topic."""
    contents: dict[str, tuple[str, Mapping[str, Any]]]
    contents = {"index.html": ("index", front_page(results))}
    for key in results.papers:
        contents[f"papers/{key}.html"] = "paper_page", {"paper": paper_view(key, results)}
    for topic, (_, view) in TOPICS.items():
        contents[f"{topic}.html"] = f"{topic}_page", view.page(results)
    return {
        name: _rendered(template, results, name, **content)
        for name, (template, content) in contents.items()
    }


def _rendered(template: str, results: Results, name: str, **content: object) -> str:
    """Render one page; its links are relative to its location in the folder."""
    shared = {
        "scale": results.scale,
        "decides": may_decide(results.scale),
        "paper_names": results.names,
        "is_reference": results.is_reference,
        "topics": {name: title for name, (title, _) in TOPICS.items()},
        "here": name,
        "root": "../" * name.count("/"),
    }
    return environment().get_template(f"{template}.html.j2").render(**shared, **content)


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
    filters = (words, number, code, algorithm_title, figure_name, typeset)
    templates.filters |= {function.__name__: function for function in filters}
    templates.filters["paper_of"] = lambda name: name.partition("_")[0]
    return templates


def _head(key: str, results: Results) -> dict[str, Any]:
    """Return the description of a paper and the counts of the verdicts on its claims."""
    claims = [row for row in scorecard.scored(results) if row["paper"] == key]
    return {
        "key": key,
        **results.papers[key]["paper"],
        "short": results.names[key],
        "link": LINKS.get(key),
        "counts": counts(claims),
    }


def paper_view(key: str, results: Results) -> dict[str, Any]:
    """Collect the content of a paper's page: claims, figures, tables, unspecified details."""
    paper = results.papers[key]
    content = [figures.figure(name, paper, results) for name in paper["figures"]]
    content += [figures.table(name, paper, results) for name in paper.get("tables", {})]
    claims = [
        {**claim, "has_picture": item["name"] in paper["figures"]}
        for item in content
        for claim in item["claims"]
    ]
    return {
        **_head(key, results),
        "claims": sorted(claims, key=lambda claim: (claim["addition"], claim["id"])),
        "content": content,
        "unspecified_details": figures.unspecified_details(paper),
        "has_privacy": any(row["experiment"] in paper["experiments"] for row in results.privacy),
    }
