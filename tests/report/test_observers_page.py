"""Test the page on partial observers: numbers in tables, and the data of its script."""

import json
import re
from dataclasses import replace
from typing import get_args

import pytest

from private_consensus.audits.views import NOT_LINEAR
from private_consensus.report import write_site
from private_consensus.report.names import algorithm_title
from private_consensus.report.page import page as front
from private_consensus.report.page import pages
from private_consensus.report.views.figures import VIEWS
from private_consensus.report.views.observers import script_data
from private_consensus.reproduction.experiments.schema import Views

from . import checking, chromium


def pair(v: int, u: int, value: float, kind: str = "agent", **changes):
    """Return a row of results for a pair of agents on a path of three agents."""
    members = "" if kind in ("eavesdropper", "mean of last models") else str(v)
    distance = abs(v - u) if members else None
    return {
        "graph": "path", "algorithm": "descent", "epsilon": 4.0, "accounted": 4.0, "kind": kind,
        "members": members, "target_agent": u, "distance": distance, "lower": value,
        "formula": value, "guarantee": value, "rule": "exact", "label": "exact",
        "reason": "", **changes,
    }  # fmt: skip


@pytest.fixture
def watched(results):
    ordered = [(v, u) for v in range(3) for u in range(3) if u != v]
    rows = [pair(v, u, 3.9 if abs(v - u) == 1 else 0.61) for v, u in ordered]
    rows += [pair(v, u, 0.5, "secure sums") for v, u in ordered]
    rows += [pair(0, u, 4.0, "eavesdropper") for u in range(3)]
    rows.append(pair(0, 1, float("inf"), "mean of last models"))
    return replace(results, audit={**results.audit, "observers": rows})


def test_the_table_shows_the_loss_for_each_distance_and_kind_of_observer(watched):
    text = pages(watched)["observers.html"]
    cells = re.findall(r'<td class="n" data-label="([^"]*)">([^<]*)</td>', text)
    assert cells == [
        ("eavesdropper", "4"), ("neighbour", "3.9"), ("2 edges", "0.61"), ("coalition of 3", "–"),
        ("secure sums", "0.5"), ("final models", "–"), ("mean of final models", "∞"),
    ]  # fmt: skip
    assert "2 edges" in text and "exact" in text
    assert "Privacy against single observers" in front(watched)


def test_the_page_lists_the_algorithms_without_a_formula(watched):
    text = pages(watched)["observers.html"]
    for name, reason in NOT_LINEAR.items():
        assert reason.replace("'", "&#39;") in text and algorithm_title(name) in text


def test_the_page_states_that_results_contain_no_losses_to_observers(results):
    text = pages(results)["observers.html"]
    assert "contain no privacy losses to observers" in text and "<table" not in text
    assert script_data([]) == {}


def test_the_script_data_contain_every_pair_and_are_valid_json(watched):
    rows = watched.audit["observers"]
    rows.append(pair(0, 2, float("inf"), algorithm="zip_dl", formula=float("nan"), label="refused"))
    graph_data = json.loads(json.dumps(script_data(rows), allow_nan=False))["path"]
    assert graph_data["edges"] == [[0, 1], [1, 2]] and graph_data["agents"] == 3
    cells = graph_data["losses"]["descent"]["4"]["agent"]
    assert cells["guarantee"] == [[None, 3.9, 0.61], [3.9, None, 3.9], [0.61, 3.9, None]]
    zip_dl = graph_data["losses"]["zip_dl"]["4"]["agent"]
    assert (zip_dl["guarantee"][0][2], zip_dl["formula"][0][2]) == (-1, None)
    assert graph_data["losses"]["descent"]["4"]["secure sums"]["formula"][0] == [None, 0.5, 0.5]


def test_the_page_loads_scripts_from_files_only(watched):
    text = pages(watched)["observers.html"]
    assert "unsafe-eval" not in text
    assert re.findall(r"<script src=\"([^\"]+)\" defer></script>", text) == [
        "assets/report.js", "assets/observers.js", "assets/losses.js"
    ]  # fmt: skip
    assert len(re.findall("<script", text)) == 3
    plain = pages(watched)["data.html"]
    assert "unsafe-eval" not in plain and len(re.findall("<script", plain)) == 1
    for name in ("graph", "algorithm", "epsilon", "view", "agent"):
        assert f'<select id="pick-{name}">' in text


CUT = (
    "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth)"
    ".map(e => e.getAttribute('aria-label'))"
)
"""JavaScript expression that returns the labels of tables wider than their scroll boxes."""


@pytest.mark.browser
@pytest.mark.skipif(chromium.find() is None, reason="no browser is installed")
def test_the_graph_fits_the_window_and_selects_agents_by_keyboard(watched, run_folder, tmp_path):
    write_site(watched, run_folder, tmp_path / "report")
    says = "document.getElementById('losses-says').innerText"
    with chromium.browser(tmp_path / "profile") as tab:
        for width in (1280, 390, 375):
            tab.look(width, 812, "light")
            tab.open(tmp_path / "report" / "observers.html")
            tab.until("document.querySelectorAll('#losses-graph circle').length === 3")
            assert "2 edges away ε 0.61" in tab.value(says)
            tab.value("const s = document.getElementById('pick-agent'); s.value = '1';"
                      "s.dispatchEvent(new Event('change')); 1")  # fmt: skip
            assert "edges" not in tab.value(says)
            assert tab.value("document.documentElement.scrollWidth") <= width
            assert tab.value(CUT) == []
            tab.value("document.querySelector('[data-agent=\"2\"]').focus(); 1")
            tab.press("Enter")
            assert tab.value("document.getElementById('pick-agent').value") == "2"
            assert tab.value("document.activeElement.dataset.agent") == "2"
        tab.open(tmp_path / "report" / "observers.html")
        tab.until("document.querySelectorAll('#losses-graph circle').length === 3")
        assert list(checking.accessible(tab)) == []
        assert tab.complaints() == []


def test_every_kind_of_observer_panel_has_a_description():
    assert set(VIEWS) == set(get_args(Views.model_fields["show"].annotation))
