"""Run of an algorithm that records every observable by iteration."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

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
