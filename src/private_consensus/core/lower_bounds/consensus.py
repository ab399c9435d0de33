"""Attacks on consensus ADMM and linearised ADMM (Gratton et al.)."""

from dataclasses import replace


def _minimisers(algorithm, problem, network, horizon, releases):
    """Return the fraction of the minimiser's change by records with distant responses."""
    if releases[0].mechanism == "exact":
        return releases
    attained = problem.attained_minimiser_share("l2", 2.0 * algorithm.rho)
    return [replace(releases[0], attained=attained)]


def _steps(algorithm, problem, network, horizon, releases):
    """Return the fraction of the change of a linearised step by opposite responses."""
    return [replace(releases[0], attained=problem.attained_gradient_share("l2"))]
