"""Test that a setting is calibrated once for its runs, its privacy row and its audit."""

import numpy as np
import pytest

from observed import logistic_problem, logistic_rows
from private_consensus import networks
from private_consensus.core.algorithms import load
from private_consensus.core.simulation import Environment, Setting, calibrate
from private_consensus.privacy import Budget, account
from private_consensus.reproduction.results.cells import (
    calibrated_cell,
    privacy_rows,
    run_cell,
    worst_case,
)

AGENTS, RUNS = 6, 7
GROUPS = {"data": "d", "graph": "g", "noise": "n"}


def random_graph(streams):
    return networks.build(streams, "erdos_renyi", AGENTS, probability=0.4)


def classified(streams):
    return logistic_problem(streams, AGENTS, dim=3, records=30, ridge=0.01)


PURE, BY_GRAPH = Budget(4.0, 0.0), Budget(4.0, 1e-5)
CASES = {
    "dvp": (load("dvp")(), PURE),
    "m_admm": (load("m_admm")(), PURE),
    "p_admm": (load("p_admm")(), BY_GRAPH),
    "pr_admm": (load("pr_admm")(), BY_GRAPH),
    "pp_admm": (load("pp_admm")(beta=0.01), BY_GRAPH),
}


@pytest.mark.parametrize("name", CASES)
def test_the_noise_of_a_run_is_calibrated_to_the_graph_of_the_run(name):
    """Each run meets the budget on its own graph; the noise differs if the degrees differ."""
    algorithm, budget = CASES[name]
    setting, environment = Setting(algorithm, budget, 4), Environment(classified, random_graph)
    calibration = calibrate([setting], environment, root=5, groups=GROUPS, runs=RUNS, block=4)
    graphs = calibration.graphs
    assert len(graphs) == RUNS and len({int(graph.degrees.min()) for graph in graphs}) > 1
    noises = []
    for graph, noisy in zip(graphs, calibration.algorithms[0], strict=False):
        world = calibration.problem, graph, 4
        assert noisy == algorithm.calibrate(budget, *world)
        if algorithm.calibration == "accountant":
            epsilon = account(noisy.releases(*world), budget.delta).epsilon
            assert epsilon == pytest.approx(budget.epsilon, rel=1e-4)
        noises.append((noisy.noise, getattr(noisy, "ridge", 0.0)))
    assert len(set(noises)) > 1 or name == "pp_admm"
    for first in (0, 4):
        block = calibration.of_block(0, first)
        block_noises = [noise for noise, _ in noises[first : first + 4]]
        scales = np.broadcast_to(block.noise, (4, 1, 1)).ravel()
        assert scales[: len(block_noises)] == pytest.approx(block_noises)


@pytest.mark.parametrize("name", CASES)
def test_graphs_with_equal_statistics_have_equal_privacy_losses(name):
    """Graphs with equal statistics have equal privacy statements, for all algorithms."""
    algorithm, budget = CASES[name]
    setting, environment = Setting(algorithm, budget, 4), Environment(classified, random_graph)
    calibration = calibrate([setting], environment, root=5, groups=GROUPS, runs=20)

    def stated(noisy, graph):
        world = calibration.problem, graph, 4
        losses = [np.atleast_1d(r.losses()).tolist() for r in noisy.releases(*world)]
        return losses, noisy.claimed_epsilon(1e-5, *world)

    distinct = [stated(*case) for case in calibration.cases(0)]
    assert 1 < len(distinct) < 20
    for noisy, graph in zip(calibration.algorithms[0], calibration.graphs, strict=True):
        assert stated(noisy, graph) in distinct


def cell(**changes):
    setting = {
        "columns": {}, "variant": "v", "interpretation": "resolved", "horizon": 20,
        "budget": {"epsilon": np.inf, "delta": 0.0},
        "problem": {"name": "logistic_regression", "prepared": "rows", "records": 30,
                    "ridge": 0.01, "weight": "mean", "partition": "per_run"},
        "network": {"name": "random_edges", "agents": AGENTS, "edges": 8},
        "algorithm": {"noise": 1.0, "growth": 1.02, "law": "laplace", "calibration": "given",
                      "penalty_growth": 1.02, "eta": 0.5},
    }  # fmt: skip
    return {
        "experiment": "e", "algorithm": "m_admm", "seed": 5, "runs": 12, "runs_per_batch": 5,
        "measures": [["released", "own_loss"]], "iterations": [], "groups": GROUPS,
        "settings": [setting], **changes,
    }  # fmt: skip


def test_the_privacy_row_is_that_of_the_worst_graph_over_all_runs():
    r"""The row of M-ADMM is that of the smallest degree over all runs.

    M-ADMM with fixed noise has :math:`D_t = 2\eta|N_i|1.02^t` and the scale 1.02^-t of the centre.
    The formula is :math:`\sum_t w/D_t\,(1.02^t + 2.8)`. The accountant's loss is :math:`\sum_t
    2w\sqrt d/D_t\,1.02^t + 2.8\,(w/4)/(\mu + D_t)`.
    """
    prepared = {"rows": logistic_rows(400, 3)}
    cell_spec = cell()
    calibration = calibrated_cell(cell_spec, cell_spec["settings"], prepared)
    min_degree = min(int(graph.degrees.min()) for graph in calibration.graphs)
    first_degree = int(calibration.graphs[0].degrees.min())
    # Otherwise the first run's graph would be the worst, and the test could not fail.
    assert min_degree < first_degree
    [row] = privacy_rows(calibration, 0)
    t = np.arange(1, 21)
    D, w, mu = 2 * 0.5 * min_degree * 1.02**t, 1 / 30, 0.01
    formula_epsilon = (w / D * (1.02**t + 2.8)).sum()
    accounted_epsilon = (2 * w * np.sqrt(3) / D * 1.02**t + 2.8 * (w / 4) / (mu + D)).sum()
    assert row["epsilon_formula"] == row["epsilon_claimed"] == pytest.approx(formula_epsilon)
    assert row["epsilon_accountant"] == pytest.approx(accounted_epsilon)
    worst = worst_case(calibration, 0)
    assert int(worst.network.degrees.min()) == min_degree
    stated = account(worst.algorithm.releases(calibration.problem, worst.network, 20), 0.0)
    assert stated.epsilon == row["epsilon_accountant"]
    private = run_cell(cell_spec, prepared)[1].row(0, named=True)
    assert private["epsilon_accountant"] == row["epsilon_accountant"]
