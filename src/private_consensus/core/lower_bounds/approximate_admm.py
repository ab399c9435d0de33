r"""Attacks on ADMM with approximate minimisations: PP-ADMM, its proven variant and IPP-ADMM.

A pair of records changes the exact minimiser by a fraction of :math:`\Delta_2/m` for every noise in
the objective. Approximate minimisers change by at least that, minus :math:`2\beta/m`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from private_consensus.privacy import Release
from private_consensus.privacy.releases import RandomCount
from private_consensus.privacy.sparse_vector import capped_binomial, least_answers

COARSE_SOLVER = "the error of the solver, 2 beta, may exceed the change by one record"


def _shift(algorithm, problem, network) -> float | None:
    r"""Return the change of :math:`\hat x_i` in every iteration, times the curvature m.

    None if the problem states no attained fraction.
    """
    convexity = np.min(problem.strong_convexity)
    penalty = np.min(algorithm.penalty(network, 1))
    curvature = penalty + max(float(algorithm.ridge) - float(convexity), 0.0)
    fraction = problem.attained_minimiser_share("l2", curvature)
    if fraction is None:
        return None
    change = fraction * problem.record_change("l2")
    return float(max(change - 2.0 * algorithm.beta, 0.0))


def _ratio(algorithm, problem, network) -> float | None:
    r"""Return the ratio of shift to noise that a pair of records attains in a message.

    The records change the minimiser by :math:`g/m` for every noise :math:`b_{i1}`. Along the
    row, a message is :math:`1/m`-Lipschitz in :math:`b_{i1}`, and :math:`b_{i2}` is added. By
    the Gaussian isoperimetric inequality, an attack then distinguishes the messages at least as
    well as a shift by :math:`g/m` of a Gaussian with standard deviation
    :math:`\sqrt{\sigma_1^2 + (m\sigma_2)^2}/m`.
    """
    shift = _shift(algorithm, problem, network)
    if shift is None:
        return None
    return float(shift / np.hypot(algorithm.noise, algorithm.output_noise))


def _messages(algorithm, problem, network, horizon, releases):
    if not algorithm.noisy:
        return releases
    if algorithm.perturbed == "output":
        shift = _shift(algorithm, problem, network)
        attained = None if shift is None else shift / releases[0].sensitivity
        return [replace(releases[0], attained=attained)]
    ratio = _ratio(algorithm, problem, network)
    if ratio is None:
        return releases
    count = releases[0].count
    attack = Release("gaussian", ratio, 1.0, count=count, attained=1, note=COARSE_SOLVER)
    return [replace(releases[0], attack=attack), *releases[1:]]


def _tested_messages(algorithm, problem, network, horizon, releases):
    """Return the releases with the attack of PP-ADMM on the sent messages.

    All rows of the data but one are 0. Without the clipped loss of this record, all queries of
    the tests would be 0, and the number of messages would have a known distribution. With it, a
    query changes by at most :math:`C_{loss}/|D_i|` for every minimiser. The probability of the
    messages changes by at most the factor exp(epsilon) of tests with this sensitivity.
    """
    ratio = _ratio(algorithm, problem, network) if algorithm.noisy else None
    if ratio is None:
        return releases
    largest = int(algorithm.c)
    if algorithm.decision == "coin":
        probabilities, log_tolerance = capped_binomial(0.5, largest, horizon), 0.0
    else:
        tests = algorithm.mechanisms(problem, network, horizon)["test"]
        probabilities = least_answers(
            float(algorithm.alpha),
            float(algorithm.threshold_noise),
            float(algorithm.query_noise),
            count=largest,
            tests=horizon,
            redrawn=algorithm.threshold_drawn,
        )
        change = problem.clipped_loss_change(algorithm.C_loss)
        (changed,) = replace(tests, sensitivity=change).releases(horizon)
        log_tolerance = changed.count * changed.epsilon
    attack = Release(
        "profile",
        profile=RandomCount(ratio, tuple(probabilities.tolist())),
        attained=1.0,
        log_tolerance=log_tolerance,
        note=COARSE_SOLVER,
    )
    return [replace(releases[0], attack=attack), *releases[1:]]


ATTACKS = {
    "PlausiblyPrivateADMM": _messages,
    "RenyiAccountedPPADMM": _messages,
    "ImprovedPlausiblyPrivateADMM": _tested_messages,
}
"""Attacks by class."""
