"""Build the entries of the search: titles with addresses, and the words of each page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import unescape

from .formats import words
from .names import algorithm_title
from .page import TOPICS, algorithms_used, paper_view
from .reading import Results

MAIN = re.compile(r"<main.*?</main>", re.S)
NON_TEXT = re.compile(r"<(pre|svg|math|script)\b.*?</\1>|<[^>]+>", re.S)
WORD = re.compile(r"[^\W\d_][\w-]+")


def entries(results: Results, pages: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the entries of the search.

    Parameters
    ----------
    pages : mapping of str to str
        Address of each page relative to the front page, to the HTML of the page.

    Returns
    -------
    list of dict
        Keys ``href``, ``text`` (title), ``names`` (other names) and ``words`` (all words of the
        page).
    """
    rows = [*_papers(results), *_pages(results)]
    return [
        {**row, "words": page_words(pages[row["href"]])} if row["href"] in pages else row
        for row in rows
    ]


def page_words(html: str) -> str:
    """Return the distinct words of the main part of a page, without code and formulas."""
    match = MAIN.search(html)
    text = unescape(NON_TEXT.sub(" ", match[0] if match else ""))
    return " ".join(sorted(set(WORD.findall(text.lower()))))


def _papers(results: Results) -> Iterator[dict[str, str]]:
    """Yield the papers, with their figures, tables and claims."""
    for key, name in results.names.items():
        paper, page = paper_view(key, results), f"papers/{key}.html"
        other_names = f"{key} {paper['number']} {name}"
        yield {"href": page, "text": paper["title"], "names": other_names}
        for item in (*paper["figures"], *paper["tables"]):
            yield _item(page, item["name"], item["title"], item["caption"])
            for claim in item["claims"]:
                yield _item(page, claim["id"], claim["claim"], claim["because"])


def _item(page: str, name: str, title: str, text: str) -> dict[str, str]:
    other_names = name.replace("_", " ")
    return {"href": f"{page}#{name}", "text": title, "names": other_names, "words": text}


def _pages(results: Results) -> Iterator[dict[str, str]]:
    """Yield the pages of algorithms and topics."""
    for name in algorithms_used(results):
        yield {
            "href": f"algorithms/{name}.html",
            "text": algorithm_title(name),
            "names": words(name),
        }
    for name, title in TOPICS.items():
        yield {"href": f"{name}.html", "text": title, "names": name}
