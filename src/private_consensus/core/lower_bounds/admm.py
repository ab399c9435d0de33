"""Attacks on private versions of ADMM."""

from dataclasses import replace

import numpy as np

from private_consensus.privacy import Release

from .descent import _gradient_steps, reached_gradient_fractions


def _noisy_minimisers(algorithm, problem, network, horizon, releases):
    """Return the fractions of the change of exact minimisers, at points far from the origin.

    There, the change is that of the gradient divided by the curvature.
    """
    if not algorithm.noisy:
        return releases
    times = range(1, horizon + 1)
    penalties = np.array([algorithm.penalty(network, t).min() for t in times])
    first = problem.attained_minimiser_share("l2", penalties[:1])
    return [
        replace(
            releases[0],
            attained=problem.attained_minimiser_share(algorithm.norm, penalties),
            reached=reached_gradient_fractions(problem, horizon, algorithm.norm, first),
        )
    ]


def _consensus_minimisers(algorithm, problem, network, horizon, releases):
    """Return the fraction of the minimiser's change by distant responses (Gratton et al.)."""
    if releases[0].mechanism == "exact":
        return releases
    attained = problem.attained_minimiser_share("l2", 2.0 * algorithm.rho)
    return [replace(releases[0], attained=attained)]


def _mixtures(algorithm, problem, network, horizon, releases):
    """Return the fractions for LDP-ADMM; for random weights, an attack is known at delta 0 only."""
    if algorithm.minimisation != "exact":
        return _gradient_steps(algorithm, problem, network, horizon, releases)
    (release,) = _noisy_minimisers(algorithm, problem, network, horizon, releases)
    return [replace(release, attained=None) if algorithm.weights == "random" else release]


def _perturbed_objectives(algorithm, problem, network, horizon, releases):
    r"""Return the releases with the loss that an attack on the minimisers attains.

    If only the label of a row z differs, the Hessians are equal at every point. Then
    :math:`v(x) = -(a + D(x-c) + \mu x) + w\sigma(-x^Tz)z` is a one-to-one function of the
    minimiser. It equals the noise b on one data set and :math:`b + wz` on the other one, so
    that the attack has the full loss of the noise and no Jacobian term.

    At delta 0, two nearly opposite rows attain the whole sensitivity at points far from the
    origin, where the Jacobians are equal as well. Laplace noise leads to such points with
    positive density. Noise of ``gamma_norm`` has to point along the change; in iteration 1 it
    leads to points at which half of the sensitivity is attained.
    """
    if not algorithm.noisy:
        return releases
    change, scales, _ = algorithm.losses(problem, network, horizon)
    attained, options = problem.attained_gradient_share(algorithm.norm), {}
    # The map from noise to projected minimisers is not one-to-one.
    is_projected = problem.offers("box") and np.isfinite(problem.box)
    if attained is not None and not is_projected:
        first = 1.0 if algorithm.law == "laplace" else problem.attained_gradient_share("l2")
        count = len(scales)
        at_delta_0 = reached_gradient_fractions(problem, count, algorithm.norm, first)
        options = {"attained": attained, "reached": at_delta_0}
    if algorithm.law == "gaussian":
        return [replace(releases[0], **options), *releases[1:]]
    attack = Release(algorithm.law, change, scales, dim=problem.dim)
    return [replace(releases[0], attack=replace(attack, **options))]
