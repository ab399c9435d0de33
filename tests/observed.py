"""Run of an algorithm that records every observable by iteration."""

from types import SimpleNamespace

import numpy as np
from scipy.optimize import minimize

from private_consensus.core.handlers import Recording, Running
from private_consensus.core.problems import logistic_regression
from private_consensus.core.simulation import Environment, calibrate, simulate


def run(algorithm, problem, network, streams, horizon: int) -> dict[int, dict]:
    """Run one setting and return iteration to quantity to values of shape (1, runs, ...)."""
    at: dict[int, dict] = {}

    def observe(t, active, observables):  # compiled rounds overwrite their arrays
        at.setdefault(t, {}).update({name: np.array(value) for name, value in observables.items()})

    algorithm.run(problem, network, streams, np.array([horizon]), observe)
    return at


def running(algorithm, problem, network, streams, horizon: int, settings: int = 1) -> Running:
    """Return the handler of a run before its first iteration."""
    declared = algorithm.mechanisms(problem, network, horizon)
    return Running(declared, problem, streams, np.full(settings, horizon))


def executed(algorithm, problem, network, streams, horizon: int) -> tuple[list, Recording]:
    """Return the states before and after each iteration of a setting, and its releases."""
    declared = algorithm.mechanisms(problem, network, horizon)
    recording = Recording(declared, problem, streams, np.array([horizon]))
    release = recording.function()
    states = [algorithm.start(problem, network, release)]
    for t in range(1, horizon + 1):
        recording.begin(t)
        states.append(algorithm.step(states[-1], problem, network, release, t))
    return states, recording


def simulated(settings, problem, network, *, watch, simulation=None, divergence="raise", **options):
    """Return measurements of settings that are calibrated for their own runs."""
    calibration = calibrate(settings, Environment(problem, network), **options)
    return simulate(calibration, plan=watch, divergence=divergence, **(simulation or {}))


def pooled_optimum(problem, index: int) -> np.ndarray:
    """Return the minimiser of the sum of all logistic regressions of a run, computed by BFGS."""
    signed = (problem.features[index] * problem.labels[index][..., None]).reshape(-1, problem.dim)
    ridge = problem.n_agents * problem.ridge

    def total(x):
        value = problem.weight * np.logaddexp(0, -signed @ x).sum()
        slope = -problem.weight * signed.T @ (1 / (1 + np.exp(signed @ x)))
        return value + ridge / 2 * x @ x, slope + ridge * x

    options = {"gtol": 1e-12}
    return minimize(total, np.zeros(problem.dim), jac=True, method="BFGS", options=options).x


def prepared_images(train: int, test: int, inputs: int, seed: int = 0) -> SimpleNamespace:
    """Return synthetic single-precision images of ten classes, split into training and test set."""
    rng = np.random.default_rng(seed)
    return SimpleNamespace(
        features=rng.random((train + test, inputs)).astype(np.float32),
        labels=rng.integers(0, 10, train + test).astype(np.int8),
        splits={"train": np.arange(train), "test": np.arange(train, train + test)},
    )


def logistic_problem(streams, agents: int, dim: int, **changes):
    """Return logistic regressions on synthetic rows that each run distributes to the agents."""
    options = {"records": 50, "ridge": 1.0, "weight": "mean", "partition": "per_run"} | changes
    return logistic_regression.build(streams, agents, prepared=logistic_rows(1200, dim), **options)


def logistic_rows(count: int, dim: int, seed: int = 0) -> SimpleNamespace:
    """Return synthetic nonnegative rows of norm one, with labels that depend on the first one."""
    rng = np.random.default_rng(seed)
    features = np.abs(rng.normal(size=(count, dim)))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    labels = np.where(rng.random(count) < 1 / (1 + np.exp(-4 * features[:, 0] + 1)), 1, -1)
    return SimpleNamespace(features=features, labels=labels.astype(np.int8))
