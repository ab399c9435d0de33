"""Run of an algorithm that records every observable by iteration."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from private_consensus.core.handlers import Recording, Running
from private_consensus.core.simulation import Environment, calibrate, simulate


def run(algorithm, problem, network, streams, horizon: int) -> dict[int, dict]:
    """Run one setting and return iteration to quantity to values of shape (1, runs, ...)."""
    at: dict[int, dict] = {}
    algorithm.run(
        problem,
        network,
        streams,
        np.array([horizon]),
        lambda t, active, observables: at.setdefault(t, {}).update(observables),
    )
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
    return simulate(calibration, plan=watch, divergence=divergence, **(simulation or {})).values


def logistic_rows(count: int, dim: int, seed: int = 0) -> SimpleNamespace:
    """Return synthetic nonnegative rows of norm one, with labels that depend on the first one."""
    rng = np.random.default_rng(seed)
    features = np.abs(rng.normal(size=(count, dim)))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    labels = np.where(rng.random(count) < 1 / (1 + np.exp(-4 * features[:, 0] + 1)), 1, -1)
    return SimpleNamespace(features=features, labels=labels.astype(np.int8))
