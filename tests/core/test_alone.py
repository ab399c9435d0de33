"""Test that a run does not depend on the other runs and settings of its block.

The driver fills blocks up to one size, so that a run alone is one among others too. Where a block
had another size, a matrix product would add up the same terms in another order.
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
BLOCK, OTHERS, PLACE = (4, 5, 6, 7), (9, 0, 6, 1), 2
OF_RUNS = ("means", "features", "responses", "agent_rows")
"""Fields of problems whose first axis is of runs, in worlds that differ by run."""
GRAPHS = {
    "dense": {"name": "grid", "rows": 3},
    "sparse": {"name": "grid", "rows": 3},
    "a run": {"name": "random_regular", "degree": 4},
}


def with_runs(problem, places):
    """Return the problem restricted to the data of some runs."""
    if isinstance(problem, LogisticRegression):  # one data set for all
        return problem
    own = {name: getattr(problem, name) for name in OF_RUNS if hasattr(problem, name)}
    runs = {name: values[places] for name, values in own.items() if len(values) == len(BLOCK)}
    return replace(problem, **runs)


def shown(algorithm, settings, problem, graph, runs):
    net = networks.build(Streams(3, runs), agents=AGENTS, weights="metropolis", **graph)
    seen = {}

    def observe(t, active, found):
        seen.update({(t, name): np.array(values) for name, values in found.items()})

    algorithm.run(problem, net, Streams(3, runs), np.full(settings, HORIZON), observe)
    return seen


ONE_GRAPH = {"mafalda_sgd"}
"""Algorithms that refuse a graph for each run."""
PLACES = [
    (name, kind)
    for name in sorted(WORLDS)
    for kind in sorted(GRAPHS)
    if kind != "a run" or name not in ONE_GRAPH
]


@pytest.mark.parametrize(("name", "kind"), PLACES)
def test_a_run_depends_on_no_other_run(name, kind, monkeypatch):
    if kind == "sparse":
        monkeypatch.setattr(networks, "DENSE_UP_TO", 2)
        monkeypatch.setattr(networks, "SPARSE_BELOW", 2.0)
    graph, made = GRAPHS[kind], world(name, AGENTS, dim=DIM, records=RECORDS, runs=len(BLOCK))
    first = networks.build(Streams(3, (0,)), agents=AGENTS, weights="metropolis", **graph).of_run(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideRange)
        tight = replace(made.budget, epsilon=made.budget.epsilon / 1.1)
        batch = [
            made.algorithm.calibrate(budget, made.problem, first, HORIZON)
            for budget in (made.budget, tight)
        ]
        block, others = (
            shown(stack(batch), 2, with_runs(made.problem, places), graph, runs)
            for places, runs in (([0, 1, 2, 3], BLOCK), ([3, 0, 2, 1], OTHERS))
        )
        alone = shown(
            stack(batch[:1]), 1, with_runs(made.problem, [PLACE]), graph, BLOCK[PLACE : PLACE + 1]
        )
    assert block.keys() == others.keys() == alone.keys()
    for key, values in block.items():
        if values.ndim < 2 or (kind == "a run" and key[1] == "links"):
            continue
        ours, theirs = (_of_run(found, PLACE) for found in (values, others[key]))
        assert np.array_equal(ours, theirs, equal_nan=True), key
        single = _of_run(alone[key], 0)[0]
        largest = np.abs(single[np.isfinite(single)]).max(initial=1.0)
        near = np.finfo(values.dtype).eps * 1e3 * largest
        assert np.allclose(ours[0], single, rtol=0, atol=near, equal_nan=True), key


def _of_run(values, place):
    """Return the values of one run, [settings, ...]; a quantity may be equal in all runs."""
    return values[:, place if values.shape[1] > 1 else 0]
