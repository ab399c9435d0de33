"""Test that audits find grids and signs of zeros that depend on a single record."""

import numpy as np
import pytest

from private_consensus.audits.examples import complete, logistic_regression
from private_consensus.audits.supports import audit_supports
from toys import BUDGET, NoisyRounds, State

HORIZON = 2


class Rounded(NoisyRounds):
    """Correct: messages are rounded after the noise."""

    decimals = 2

    def change(self, problem):
        return 1.0 / problem.records

    def exact(self, state, problem, network, t):
        return 0.5 * network.mix(state.x) + problem.features.mean(-2)

    def sent(self, message, problem):
        return np.round(message, self.decimals)

    def step(self, state, problem, network, draw, t):
        message = self.exact(state, problem, network, t) + self.noise(draw)
        return State(self.sent(message, problem))


class Continuous(Rounded):
    """Correct: messages are not rounded."""

    def sent(self, message, problem):
        return message


class CoarseNoise(Rounded):
    """Noise of a low resolution, which is a floating-point finding of another check."""

    def step(self, state, problem, network, draw, t):
        noise = np.round(self.noise(draw), self.decimals)
        return State(self.exact(state, problem, network, t) + noise)


class RectifiedNoise(Rounded):
    """Correct: negative messages become zeros, whose sign depends on the noise alone."""

    def sent(self, message, problem):
        return np.where(message > 0, message, 0.0 * message)


class LabelMajority(Rounded):
    """Fault: the last digit is the majority of labels."""

    def sent(self, message, problem):
        majority = (problem.labels.sum(-1) > 0)[..., None]
        return np.round(message, self.decimals) + 0.5 * 10.0**-self.decimals * majority


class FineMajority(LabelMajority):
    """Fault: the seventh decimal is the majority of labels."""

    decimals = 6


class SignOfZero(Rounded):
    """Fault: zeros have the sign of the mean without noise."""

    def sent(self, message, problem):
        return np.where(message > 0, message, 0.0 * problem.features.mean(-2))


def findings_of(kind):
    problem, network = logistic_regression(), complete(3)
    algorithm = kind().calibrate(BUDGET, problem, network, HORIZON)
    return audit_supports(algorithm, problem, network, HORIZON, seed=0).findings


@pytest.mark.parametrize("kind", [Rounded, Continuous, CoarseNoise, RectifiedNoise])
def test_supports_that_do_not_depend_on_a_record_are_no_finding(kind):
    assert not findings_of(kind)


@pytest.mark.parametrize("kind", [LabelMajority, FineMajority])
def test_a_grid_that_depends_on_the_majority_of_labels_is_found(kind):
    (finding,) = findings_of(kind)
    assert "messages lie on another grid" in finding.text


def test_zeros_with_the_sign_of_private_data_are_found():
    (finding,) = findings_of(SignOfZero)
    assert "zeros in messages have another sign" in finding.text
