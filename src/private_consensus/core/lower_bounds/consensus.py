"""Attacks on consensus ADMM and linearised ADMM (Gratton et al.)."""

from __future__ import annotations

from dataclasses import replace


def _minimisers(algorithm, problem, network, horizon, releases):
    """Return the fraction of the minimiser's change by records with distant responses."""
    if not algorithm.noise:
        return releases
    attained = problem.attained_minimiser_share("l2", 2.0 * algorithm.rho)
    return [replace(releases[0], attained=attained)]


def _steps(algorithm, problem, network, horizon, releases):
    """Return the fraction of the change of a linearised step by opposite responses."""
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
    "ReleaseAudit": _released_minimiser,
    "ExactADMM": _minimisers,
    "DPADMM": _steps,
    "DZOA": _without_noise,
}
"""Attacks by class."""
