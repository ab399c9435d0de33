"""Test that the report checks find each defect, and no defect on synthetic pages."""

from __future__ import annotations

import pytest

from private_consensus.report import write_site

from . import checking, chromium

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(chromium.find() is None, reason="no browser is installed"),
]


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    with chromium.browser(tmp_path_factory.mktemp("browser") / "profile") as opened:
        opened.look(1280, 900, "light")
        yield opened


@pytest.mark.parametrize("name", ["index.html", "papers/first.html", "privacy.html"])
def test_pages_of_two_papers_meet_accessibility_rules(tab, results, run_folder, tmp_path, name):
    write_site(results, run_folder, tmp_path / "report")
    tab.open(tmp_path / "report" / name)
    assert list(checking.accessible(tab)) == []
