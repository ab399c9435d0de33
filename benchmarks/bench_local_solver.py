"""Compare solvers of the local problems of Ding, section 3: eight at once against one at a time.

    make benchmark

A run has 5 agents with 8,000 records of 104 features each, of which 14 are not zero, and T = 50
iterations. One iteration in the middle of the run is timed, for 8 settings that share the records.
All solvers start at the same points and reach the same gradient norm.
"""

import time
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from private_consensus import networks
from private_consensus.core.algorithms.base import stack
from private_consensus.core.algorithms.pr_admm import ALGORITHM as PR
from private_consensus.core.problems import logistic_regression
from private_consensus.core.problems.logistic_regression.solver import solve_in_lanes
from private_consensus.core.randomness import Streams
from private_consensus.privacy import Budget

AGENTS, RECORDS, STEPS, MIDDLE = 5, 8000, 50, 5
EPSILONS = (0.1, 0.3, 0.5, 1.0, 3.0, 5.0, 7.0, 10.0)
TOLERANCE = 1e-9


def rows(count=41_000, numeric=6, levels=(9, 16, 7, 14, 6, 5, 2, 39)):
    """Draw numeric and one-hot columns of norm 1, and labels of a linear model."""
    rng = np.random.default_rng(0)
    blocks = [rng.random((count, numeric))]
    blocks += [np.eye(k)[rng.integers(0, k, count)] for k in levels]
    features = np.hstack(blocks)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    score = features @ rng.normal(size=features.shape[1]) * 6 + rng.logistic(size=count)
    return SimpleNamespace(features=features, labels=np.where(score > 0, 1, -1))


@pytest.fixture(scope="module", params=[1.0, 100.0, 1750.0])
def scene(request):
    """Return a problem and its solver's arguments in iteration ``MIDDLE``, for eight budgets."""
    streams = Streams(1, (0,), dict.fromkeys(("data", "graph", "noise", "sampling"), "bench"))
    problem = logistic_regression.build(
        streams, AGENTS, prepared=rows(), records=RECORDS, ridge=4e-5, weight="mean",
        loss_scale=request.param, partition="per_run",
    )  # fmt: skip
    network = networks.build(streams, "ring", AGENTS)
    algorithm = PR(calibration="formula", threshold="none")
    settings = [
        algorithm.calibrate(Budget(epsilon, 1e-4), problem, network, STEPS) for epsilon in EPSILONS
    ]
    arguments = []
    batch = stack(settings)
    state = batch.start(problem, network, streams, len(settings))
    draws = batch.draws(problem, streams)
    for t in range(1, MIDDLE + 1):
        draw = next(draws)
        arguments = [state.dual, batch.penalty(network, t), batch.centre(state, network, draw)]
        arguments.append(state.minimiser)
        state = batch.step(state, problem, network, draw, t)
    return problem, arguments


def in_lanes(problem, arguments):
    return solve_in_lanes(problem, *arguments, TOLERANCE)


def one_at_a_time(method):
    def solve(problem, arguments):
        minimisers = np.empty(arguments[3].shape)
        linear, penalty, centre, start = (np.broadcast_to(a, minimisers.shape) for a in arguments)
        for at in np.ndindex(minimisers.shape[:-1]):
            signed = problem.agent_records.rows[at[1:]]
            pull, curvature = linear[at] - penalty[at] * centre[at], penalty[at] + problem.ridge

            def value(x, signed=signed, pull=pull, curvature=curvature):
                margins = signed @ x
                slope = -problem.weight * signed.T @ expit(-margins)
                loss = problem.weight * np.logaddexp(0, -margins).sum()
                return loss + (curvature / 2 * x + pull) @ x, slope + curvature * x + pull

            def bend(x, p, signed=signed, curvature=curvature):
                share = expit(-signed @ x)
                weighted = share * (1 - share) * (signed @ p)
                return problem.weight * weighted @ signed + curvature * p

            if method == "L-BFGS-B":
                options = {"gtol": TOLERANCE / 10, "ftol": 0.0, "maxcor": 30, "maxiter": 5000}
                answer = minimize(value, start[at], jac=True, method=method, options=options)
            else:
                options = {"xtol": TOLERANCE / 10, "maxiter": 100}
                answer = minimize(
                    value, start[at], jac=True, hessp=bend, method=method, options=options
                )
            minimisers[at] = answer.x
        return minimisers

    solve.__name__ = method
    return solve


SOLVERS = [in_lanes, one_at_a_time("L-BFGS-B"), one_at_a_time("Newton-CG")]


@pytest.mark.parametrize("solve", SOLVERS)
def test_an_iteration_of_eight_settings(benchmark, scene, solve):
    benchmark.pedantic(solve, args=scene, rounds=2 if solve is in_lanes else 1, warmup_rounds=1)
    if benchmark.stats:
        seconds_per_run = STEPS * benchmark.stats["min"] / len(EPSILONS)
        benchmark.extra_info["seconds per run"] = seconds_per_run


def test_lanes_are_many_times_faster_at_equal_accuracy(scene):
    problem, arguments = scene
    exact = in_lanes(*scene)
    in_lanes(*scene)
    seconds = {}
    for solve in SOLVERS:
        begin = time.process_time()
        minimisers = solve(*scene)
        seconds[solve.__name__] = time.process_time() - begin
        linear, penalty, centre, _ = arguments
        slope = problem.gradient(minimisers) + linear + penalty * (minimisers - centre)
        print(
            f"C = {problem.weight * problem.records:g}, {solve.__name__}: "
            f"{STEPS * seconds[solve.__name__] / len(EPSILONS):.3f} CPU-s per run, "
            f"largest gradient norm {np.linalg.norm(slope, axis=-1).max():.1g}"
        )
        assert np.allclose(minimisers, exact, atol=1e-4)
    assert seconds["L-BFGS-B"] > 5 * seconds["in_lanes"]
