"""Test that the report checks find each defect, and no defect on synthetic pages."""

from __future__ import annotations

import pytest

from private_consensus.report import write_site

from . import checking, chromium

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(chromium.find() is None, reason="no browser is installed"),
]

BROKEN = """<!doctype html><html><head><title>x</title></head><body>
<h3 style="color: #eee">pale</h3><img src="data:,"><input></body></html>"""

TEXT = '<text x="{x}" y="{y}" font-size="{size}px">{text}</text>'


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    with chromium.browser(tmp_path_factory.mktemp("browser") / "profile") as opened:
        opened.look(1280, 900, "light")
        yield opened


def drawing(*elements: str) -> str:
    inside = "".join(elements)
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="200" height="100">{inside}</svg>'


@pytest.mark.parametrize(
    ("elements", "findings"),
    [
        ([TEXT.format(x=10, y=40, size=12, text="a"), TEXT.format(x=60, y=40, size=12, text="b")],
         []),
        ([TEXT.format(x=10, y=40, size=12, text="left"),
          TEXT.format(x=20, y=42, size=12, text="right")], ["'left' lies on 'right'"]),
        ([TEXT.format(x=10, y=40, size=6, text="tiny")], ["'tiny' has 6 pixels"]),
        ([TEXT.format(x=190, y=40, size=12, text="much too long")], ["'much too long' is cut"]),
        (['<g class="mark-symbol role-mark"><path d="M199,50h6v6z"/></g>'], ["a mark is cut"]),
        (['<clipPath id="c"><rect width="9" height="9"/></clipPath><g clip-path="url(#c)">'
          '<g class="mark-symbol role-mark"><path d="M50,50h6v6z"/></g></g>'], ["a mark is cut"]),
    ],
)  # fmt: skip
def test_overlapping_tiny_or_cut_texts_and_marks_are_reported(tab, tmp_path, elements, findings):
    file = tmp_path / "drawn.svg"
    file.write_text(drawing(*elements))
    tab.open(file)
    assert list(checking.readable(tab.value(checking.IN_A_FIGURE))) == findings


def test_a_method_with_two_colours_is_reported_and_other_series_are_exempt():
    names = {
        "one": [{"name": "DVP", "look": "red "}, {"name": "T = 1", "look": "red "}],
        "two": [{"name": "DVP †", "look": "red 6,3"}, {"name": "T = 1", "look": "blue "}],
    }
    assert checking.unlike(names, ["DVP"]) == ["DVP looks otherwise in one, two"]
    assert checking.unlike({"one": names["one"]}, ["DVP"]) == []


def test_a_file_that_is_too_large_is_reported(tmp_path):
    (tmp_path / "page.html").write_bytes(b"x" * (checking.LARGEST_PAGE + 1))
    assert list(checking.sizes(tmp_path)) == ["page.html has 600 kB, at most 600"]


def test_accessibility_violations_are_reported(tab, tmp_path):
    file = tmp_path / "broken.html"
    file.write_text(BROKEN)
    tab.open(file)
    rules = {line.partition(":")[0] for line in checking.accessible(tab)}
    assert {"color-contrast", "html-has-lang", "image-alt", "label"} <= rules


@pytest.mark.parametrize("name", ["index.html", "errata.html"])
def test_pages_of_two_papers_meet_accessibility_rules(tab, results, run_folder, tmp_path, name):
    write_site(results, run_folder, tmp_path / "report")
    tab.open(tmp_path / "report" / name)
    assert list(checking.accessible(tab)) == []
