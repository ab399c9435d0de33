"""Test that the stated conditions of each figure are complete and hold for every curve."""

import pytest

from private_consensus.reproduction.experiments.conditions import conditions_of


@pytest.mark.parametrize(
    ("figure", "expected"),
    [
        ("showkatbakhsh_fig1", "synthetic data; epsilon = 4, delta = 0.001, N = 10; mean of 500 "
                               "runs, band: standard error"),
        ("showkatbakhsh_fig2", "epsilon from 0.1 to 10 (x axis), delta = 1e-09, 1e-06, 0.001"),
        ("ding_fig8", "Adult; epsilon = 1, 10 (by panel), delta = 0.0001, N = 5; mean of 10 runs"),
        ("ding_fig4", "band: standard deviation of the runs"),
        ("ding_fig16", "N = 10, 20, 30 (by panel)"),
        ("scale_fig1", "N from 10 to 10000 (x axis)"),
        ("wang_fig1", "N = 5"),
    ],
)  # fmt: skip
def test_the_conditions_of_a_figure_agree_with_its_settings(plan, figure, expected):
    assert expected in conditions_of(plan, figure)


def test_every_figure_of_curves_states_agents_runs_and_band(plan):
    for name, figure in plan.figures.items():
        if not any(panel.curves for panel in figure.panels):
            continue
        text = conditions_of(plan, name)
        agents = {
            setting["network"]["agents"]
            for pair in plan.cells_of(name)
            for setting in plan.cell(*pair)["settings"]
        }
        assert ("N = " in text or "N from" in text) == (agents != {1}), name
        assert "one run" in text or (" runs" in text and "band: " in text), name
