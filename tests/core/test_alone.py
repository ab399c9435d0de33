"""Test that a run does not depend on the other runs and settings of its block.

The driver pads every block to one size, so that a single run is also computed in a full block.
In blocks of different sizes, a matrix product could sum the same terms in a different order.
"""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.worlds import WORLDS, world

from private_consensus import networks
from private_consensus.common.errors import OutsideRange
from private_consensus.core.algorithms.base import stack
from private_consensus.core.problems.logistic_regression import LogisticRegression
from private_consensus.core.randomness import Streams

AGENTS, DIM, RECORDS, HORIZON = 12, 5, 8, 3
BLOCK, OTHERS, POSITION = (4, 5, 6, 7), (9, 0, 6, 1), 2
FIELDS_PER_RUN = ("means", "features", "responses", "agent_rows")
"""Fields of problems whose first axis is the run, if the data differ between runs."""
GRAPHS = {
    "dense": {"name": "grid", "rows": 3},
    "sparse": {"name": "grid", "rows": 3},
    "a run": {"name": "random_regular", "degree": 4},
}


def with_runs(problem, run_indices):
    """Return the problem restricted to the data of some runs."""
    if isinstance(problem, LogisticRegression):  # one data set for all runs
        return problem
    fields = {name: getattr(problem, name) for name in FIELDS_PER_RUN if hasattr(problem, name)}
    runs = {
        name: values[run_indices] for name, values in fields.items() if len(values) == len(BLOCK)
    }
    return replace(problem, **runs)


def observables(algorithm, settings, problem, graph, runs):
    net = networks.build(Streams(3, runs), agents=AGENTS, weights="metropolis", **graph)
    observed = {}

    def observe(t, active, quantities):
        observed.update({(t, name): np.array(values) for name, values in quantities.items()})

    algorithm.run(problem, net, Streams(3, runs), np.full(settings, HORIZON), observe)
    return observed


ONE_GRAPH = {"mafalda_sgd"}
"""Algorithms that require the same graph in all runs."""
CASES = [
    (name, kind)
    for name in sorted(WORLDS)
    for kind in sorted(GRAPHS)
    if kind != "a run" or name not in ONE_GRAPH
]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_a_run_depends_on_no_other_run(name, kind, monkeypatch):
    if kind == "sparse":
        monkeypatch.setattr(networks.graphs, "SMALL", 2)
        monkeypatch.setattr(networks, "SPARSE_BELOW", 2.0)
    graph, instance = GRAPHS[kind], world(name, AGENTS, dim=DIM, records=RECORDS, runs=len(BLOCK))
    first = networks.build(Streams(3, (0,)), agents=AGENTS, weights="metropolis", **graph).of_run(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideRange)
        tight = replace(instance.budget, epsilon=instance.budget.epsilon / 1.1)
        batch = [
            instance.algorithm.calibrate(budget, instance.problem, first, HORIZON)
            for budget in (instance.budget, tight)
        ]
        block, other_block = (
            observables(stack(batch), 2, with_runs(instance.problem, run_indices), graph, runs)
            for run_indices, runs in (([0, 1, 2, 3], BLOCK), ([3, 0, 2, 1], OTHERS))
        )
        alone = observables(
            stack(batch[:1]),
            1,
            with_runs(instance.problem, [POSITION]),
            graph,
            BLOCK[POSITION : POSITION + 1],
        )
    assert block.keys() == other_block.keys() == alone.keys()
    for key, values in block.items():
        if values.ndim < 2 or (kind == "a run" and key[1] == "links"):
            continue
        ours, theirs = (
            _of_run(block_values, POSITION) for block_values in (values, other_block[key])
        )
        assert np.array_equal(ours, theirs, equal_nan=True), key
        single = _of_run(alone[key], 0)[0]
        largest = np.abs(single[np.isfinite(single)]).max(initial=1.0)
        near = np.finfo(values.dtype).eps * 1e3 * largest
        assert np.allclose(ours[0], single, rtol=0, atol=near, equal_nan=True), key


def _of_run(values, run_index):
    """Return the values of one run, [settings, ...]; a quantity may be equal in all runs."""
    return values[:, run_index if values.shape[1] > 1 else 0]
