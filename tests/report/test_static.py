"""Test the static site: links, search and reports without chart specifications."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from private_consensus.report import static, write_site
from private_consensus.report.page import pages

from .html_tree import Tree


def write(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.html").write_text(text)
    return folder


@pytest.mark.parametrize(
    ("link", "is_dead"),
    [
        ("b.html", False), ("b.html#x", False), ("b.html?q=1#x", False), ("#top", False),
        ("https://example.org/none", False), ("mailto:a@example.org", False), ("sub", False),
        ("b.html#y", True), ("c.html", True), ("#bottom", True), ("sub/none.png", True),
    ],
)  # fmt: skip
def test_links_to_missing_files_and_anchors_are_detected(tmp_path, link, is_dead):
    write(tmp_path / "sub", index="<p>")
    write(tmp_path, a=f'<p id="top"><a href="{link}">', b='<p id="x">')
    assert list(static.dead_links(tmp_path)) == ([f"a.html: {link}"] if is_dead else [])


def test_documentation_pages_are_search_entries_with_links_from_the_report(tmp_path):
    text = "<title>How to audit &#8212; name</title><main>Calibrate noise</main>"
    write(tmp_path / static.DOCS / "how-to", audit=text)
    (row,) = static.documentation_entries(tmp_path)
    assert (row["text"], row["words"]) == ("How to audit", "calibrate noise")
    assert (tmp_path / static.REPORT / row["href"]).resolve() == (
        tmp_path / static.DOCS / "how-to" / "audit.html"
    )


def test_a_published_report_has_no_dead_links_and_no_chart_specifications(
    results, run_folder, tmp_path
):
    for file in [*(run_folder / "figures").glob("*.json"), *(run_folder / "figures").glob("*.pdf")]:
        file.unlink()
    published = replace(results, is_reference=True)
    entry = {"href": "../../docs/a.html", "text": "A", "names": "", "words": "b"}
    report = tmp_path / static.REPORT
    write(tmp_path / static.DOCS, index="<p>")
    write_site(published, run_folder, report, documentation=[entry])
    assert list(static.dead_links(tmp_path)) == []
    assert 'class="chart"' not in pages(published)["papers/first.html"]
    sources = Tree(pages(published)["papers/first.html"]).attributes("img", "src")
    assert len(sources) == 4 and all(source.endswith(".svg") for source in sources)
    text = (report / "assets" / "search.js").read_text()
    assert json.loads(text.removeprefix("searchable(").removesuffix(");\n"))[-1] == entry
