"""Test smooth minimisation from distant starting points, where damped Newton steps are slow."""

import numpy as np
import pytest

from private_consensus.core.solvers import TOLERANCE, minimise
from private_consensus.core.solvers.logistic import sigmoid_neg

WEIGHT, CURVATURE = 13.0, 0.03


def saturated(centres):
    r"""Return batches of saturated logistic problems with a quadratic penalty.

    The objective is :math:`w \sum_j \ln(1 + e^{-z_j^T x}) + p/2 \|x - c\|^2` with axis-parallel
    rows.
    """

    def gradient(x):
        return -WEIGHT * sigmoid_neg(x) + CURVATURE * (x - centres)

    def hessian(x, selected):
        share = sigmoid_neg(x[selected])
        diagonal = WEIGHT * share * (1 - share) + CURVATURE
        return diagonal[..., None] * np.eye(x.shape[-1])

    return gradient, hessian


@pytest.mark.parametrize("start", [0.0, -6000.0, 6000.0])
def test_distant_starts_and_minimisers_need_fewer_than_200_gradient_calls(start):
    centres = np.array([[-430.0, 5000.0, 0.0], [-1e4, -300.0, 1e5], [1.0, -2.0, 3.0]])
    calls = []

    def counted(gradient):
        return lambda x: calls.append(1) or gradient(x)

    gradient, hessian = saturated(centres)
    minimisers = minimise(counted(gradient), hessian, np.full(centres.shape, start))
    assert np.linalg.norm(gradient(minimisers), axis=-1).max() <= TOLERANCE
    assert len(calls) < 200


def test_batched_minimisation_from_distant_starts_equals_separate_minimisation():
    centres = np.array([[-430.0, 5000.0], [-1e4, -300.0], [0.5, 0.1]])
    start = np.array([[2.0, -6e3], [0.0, 0.0], [4e3, 1.0]])
    together = minimise(*saturated(centres), start)
    for index, centre in enumerate(centres):
        alone = minimise(*saturated(centre[None]), start[index : index + 1])
        assert np.array_equal(alone[0], together[index])
