"""Test that captions are complete and that panels have few curves."""

import json
import re
from pathlib import Path

import pytest

from private_consensus.report.views.figures import complete_caption
from private_consensus.reproduction import plotting
from private_consensus.reproduction.experiments import plan as planning
from private_consensus.reproduction.experiments.numbers import figure_numbers
from private_consensus.reproduction.experiments.schema import read_yaml

CONFIG = Path(__file__).parents[2] / "config"
MAX_CURVES = 6
"""Maximum number of curves per panel, without reference lines."""
REFERENCES = {"majority", "non_private", "no_privacy", "origin", "claimed"}
"""Variants that are drawn as reference lines."""
BY_REFERENCE = re.compile(r"^(As|Like|Same as)\b|\b[Aa]s in the previous|\[\d+\]|Paper 00\d")
"""References to another figure, to a bibliography entry or to an internal paper number."""


@pytest.fixture(scope="module")
def plan():
    return planning.load(read_yaml(CONFIG / "config.yaml"), CONFIG)


@pytest.fixture(scope="module")
def captions(plan):
    papers = [plan.described(key) for key in plan.papers]
    return {n: complete_caption(f) for paper in papers for n, f in paper["figures"].items()}


def test_captions_and_titles_do_not_refer_to_other_figures_or_references(plan, captions):
    texts = {**captions, **{f"title of {n}": f.title for n, f in plan.figures.items()}}
    assert {name for name, text in texts.items() if BY_REFERENCE.search(text)} == set()
    assert BY_REFERENCE.search("As Figure 8.") and not BY_REFERENCE.search("Asymptotic error.")


def test_every_caption_has_at_least_70_characters_before_its_conditions(captions):
    short = {name for name, text in captions.items() if len(text.split("Conditions:")[0]) < 70}
    assert short == set()


def test_every_caption_of_curves_states_data_agents_runs_and_bands(plan, captions):
    for name, figure in plan.figures.items():
        if not any(panel.curves for panel in figure.panels):
            continue
        settings = [s for pair in plan.cells_of(name) for s in plan.cell(*pair)["settings"]]
        conditions = captions[name].partition("Conditions: ")[2]
        assert re.match(r"[A-Z]|synthetic data", conditions), name
        several = {setting["network"]["agents"] for setting in settings} != {1}
        assert bool(re.search(r"\bN (=|from)", conditions)) == several, name
        assert re.search(r"\bone run\b|of [\d,]+ (to [\d,]+ )?runs, band: \w", conditions), name


def test_panels_of_paper_figures_except_wang_have_at_most_six_curves(plan):
    crowded = {
        (name, panel.title): len(curves)
        for name, figure in plan.figures.items()
        for panel in figure.panels
        if not figure.added and plan.paper_of(name) != "wang"
        for curves in [[c for c in panel.curves if c.style not in REFERENCES]]
        if len(curves) > MAX_CURVES
    }
    assert crowded == {}


def test_titles_of_drawings_with_undescribed_details_state_the_assumption(plan):
    for name in ("ding_fig1", "gratton_fig1", "xiao_figA"):
        figure = plan.figures[name]
        assert all("assumed" in text for text in (figure.title, *(p.title for p in figure.panels)))


@pytest.mark.parametrize("name", ["ding_fig1", "gratton_fig1"])
def test_panels_of_assumed_graphs_state_the_assumption(plan, name):
    """The heading alone would not state the assumption of a single panel."""
    drawing = plan.drawing(name)
    numbers = figure_numbers(drawing["panels"], {}, source="sampled")
    chart = plotting.draw(name, plan.paper_of(name), numbers, drawing, {})
    del chart["title"]
    assert "assumed" in json.dumps(chart)


def test_figures_17_and_18_show_the_majority_class_in_each_panel(plan):
    for name in ("ding_fig17", "ding_fig18"):
        for panel in plan.figures[name].panels:
            assert [c.measure[1] for c in panel.curves].count("majority_accuracy") == 1
