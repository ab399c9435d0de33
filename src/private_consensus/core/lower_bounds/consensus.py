"""Attacks on consensus ADMM and linearised ADMM (Gratton et al.)."""

from __future__ import annotations

from dataclasses import replace

from . import Attack


def _minimisers(algorithm, problem, network, horizon, releases):
    if not algorithm.noise:
        return releases
    attained = problem.attained_minimiser_share("l2", 2.0 * algorithm.rho)
    return [replace(releases[0], attained=attained)]


def _steps(algorithm, problem, network, horizon, releases):
    return [replace(releases[0], attained=problem.attained_gradient_share("l2"))]


def _without_noise(algorithm, problem, network, horizon, releases):
    # Messages are affine in the responses. Without a bound on responses, the messages of
    # neighbouring data sets can have any distance.
    unbounded = problem.record_change("l2") == float("inf")
    return [replace(releases[0], attained=1.0 if unbounded else None)]


def _released_minimiser(algorithm, problem, network, horizon, releases):
    attack = _without_noise if algorithm.mechanism == "d_zoa" else _minimisers
    return attack(algorithm, problem, network, horizon, releases)


ATTACKS = {
    "ReleaseAudit": Attack(
        "responses far apart move the released minimiser by the attained part at every centre",
        _released_minimiser,
    ),
    "ExactADMM": Attack(
        "records with distant responses change the minimiser by the attained fraction",
        _minimisers,
    ),
    "DPADMM": Attack(
        "opposite responses change each linearised step by the attained fraction", _steps
    ),
    "DZOA": Attack("messages are affine in responses, which have no bound", _without_noise),
}
"""Attacks by class."""
