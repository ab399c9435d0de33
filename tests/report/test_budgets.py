"""Test the size of pages, and their estimated length before unfolding."""

from __future__ import annotations

import pytest

from private_consensus.report.page import pages

from . import checking
from .conftest import paper, results_of

LINE = "<p>" + "word " * 20 + "</p>"


def page(inside: str) -> str:
    return f"<html><body><nav>{LINE * 999}</nav><main>{inside}</main></body></html>"


def test_estimated_page_length_counts_only_initially_visible_text():
    lines = checking.LINES_PER_SCREEN
    assert checking.estimated_screens(page(100 * LINE)) * lines == pytest.approx(140, rel=0.01)
    folded = f"<details><summary>title</summary>{1000 * LINE}</details>"
    assert checking.estimated_screens(page(folded)) * lines == pytest.approx(1.4)
    inner = (
        f"<details open><summary>a</summary><details><summary>b</summary>{LINE}</details></details>"
    )
    assert checking.estimated_screens(page(inner)) * lines == pytest.approx(2.8)


def test_a_page_that_is_too_long_is_reported(tmp_path):
    (tmp_path / "long.html").write_text(page(1000 * LINE))
    (tmp_path / "short.html").write_text(page(LINE))
    (finding,) = checking.estimated_lengths(tmp_path)
    assert finding.startswith("long.html: about 38.9 screens at 1280 pixels, at most 8")


def test_page_of_a_paper_with_sixty_figures_meets_size_and_length_limits(tmp_path):
    long_results = results_of({"first": paper("first", "000", 60)})
    text = pages(long_results)["papers/first.html"]
    assert len(text.encode()) < checking.LARGEST_PAGE
    assert checking.estimated_screens(text) < checking.LONGEST_PAGE[1280]


def test_pages_of_two_papers_meet_the_length_limit(results):
    screens = {name: checking.estimated_screens(text) for name, text in pages(results).items()}
    assert max(screens.values()) < checking.LONGEST_PAGE[1280]
    assert screens["papers/first.html"] > 0.2
