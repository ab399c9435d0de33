"""Test why MAFALDA-SGD is worse than independent noise of equal privacy loss in the base cells.

Its matrix C minimises the total error over the models of all rounds, for gradients that do not
contract. If every record takes part in every round, C is diagonal: the noise is uncorrelated, and
larger in late rounds, since fewer models contain it. The comparison measures the model of the last
round, after steps of 1/L that forget earlier iterates.
"""

import numpy as np
import pytest

from private_consensus import networks
from private_consensus.core.algorithms.mafalda_sgd import MAFALDASGD
from private_consensus.core.randomness import Streams
from private_consensus.privacy.observers.changes import Cyclic

HORIZON = 20
"""Default number of rounds."""


@pytest.fixture(scope="module")
def network():
    """Return the network of the base cells."""
    streams = Streams(2026, (0,), {"graph": "comparison erdos_renyi 10"})
    graph_options = {"weights": "metropolis", "probability": 0.46}
    return networks.build(streams, "erdos_renyi", 10, **graph_options).of_run(0)


@pytest.fixture(scope="module")
def factor(network):
    return MAFALDASGD()._factor(network, HORIZON)


def variances(network, filtered, contraction):
    r"""Return the variance of the noise in the models after each round, averaged over agents.

    On quadratics of curvature h, a step is :math:`y_t = (1-a)Wy_{t-1} - a\sum_r F_{tr}n_r`, where a
    is the step size times h.
    """
    variance_by_round = np.zeros(HORIZON)
    for eigenvalue in np.linalg.eigvalsh(network.mixing):
        row = np.zeros(HORIZON)
        for t in range(HORIZON):
            row = (1 - contraction) * eigenvalue * row + contraction * filtered[t]
            variance_by_round[t] += (row**2).sum() / network.n_agents
    return variance_by_round


def ratios(network, factor, contraction):
    """Return ratios of variances to those of independent noise with equal mu.

    The ratios are those of the last round and of the sum over all rounds.
    """
    squared = Cyclic(period=1).maximum(factor.T @ factor, 0.0)[1]
    scheduled = squared * variances(network, np.linalg.inv(factor), contraction)
    independent = HORIZON * variances(network, np.eye(HORIZON), contraction)
    return scheduled[-1] / independent[-1], scheduled.sum() / independent.sum()


def test_full_participation_gives_uncorrelated_noise_with_increasing_scale(factor):
    assert np.array_equal(factor, np.diag(np.diag(factor)))
    deviations = 1 / np.diag(factor)
    assert (np.diff(deviations) > 0).all()


def test_steps_of_one_over_curvature_more_than_double_the_last_variance(network, factor):
    """The ratio is 2.21, as the base cells of mean estimation measure: 0.681 over 0.309."""
    last, all_rounds = ratios(network, factor, 1.0)
    assert last == pytest.approx(2.21, abs=0.01)
    assert 1.0 < all_rounds < 1.1


def test_without_curvature_the_noise_is_better_only_over_all_rounds(network, factor):
    last, all_rounds = ratios(network, factor, 1e-6)
    assert all_rounds < 1.0 < last
