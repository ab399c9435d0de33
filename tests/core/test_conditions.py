"""Test that the stated conditions of each figure are complete and hold for every curve."""

from private_consensus.reproduction.configuration.conditions import conditions_of


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
        random = "one run" in text or (" runs" in text and "band: " in text)
        assert random or text.endswith("; computed without random samples"), name
