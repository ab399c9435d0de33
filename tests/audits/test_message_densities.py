"""Test that noise whose shape or size depends on private data is found, and other noise is not."""

from dataclasses import dataclass

import numpy as np
import pytest

from private_consensus.audits.exact_costs import exact_costs
from private_consensus.audits.examples import complete, logistic_regression
from private_consensus.audits.judging import DeclaredSetting
from private_consensus.audits.message_densities import (
    ITERATIONS,
    ComparedMessages,
    delta_lower_bound,
    random_points,
)
from private_consensus.audits.noise_response import Executed, Layout, response
from private_consensus.audits.probing import pairs_of_agents
from private_consensus.privacy import gaussian_delta
from toys import BUDGET, NoisyRounds, State

HORIZON = 4


@dataclass(frozen=True, kw_only=True)
class Rows(NoisyRounds):
    """Half of the mixture, the mean of rows with a norm of at most 1, and noise."""

    def change(self, problem):
        return 2.0 / problem.records

    def positive(self, problem):
        """Return the fraction of positive labels of each agent."""
        return (problem.labels > 0).mean(axis=-1)[..., None]

    def warped(self, draw, mixed, problem):
        return draw

    def sent(self, values):
        return values

    def step(self, state, problem, network, draw, t):
        mixed = network.mix(state.x)
        noise = self.noise(self.warped(draw, mixed, problem))
        return State(self.sent(0.5 * mixed + problem.features.mean(axis=-2) + noise))


class Shaped(Rows):
    """Fault: tails of the noise are longer for more positive labels (sinh-arcsinh)."""

    def warped(self, draw, mixed, problem):
        return np.sinh((1 + 0.5 * self.positive(problem)) * np.arcsinh(draw))


class ShapedByMajority(Rows):
    def warped(self, draw, mixed, problem):
        return np.sinh(np.where(self.positive(problem) > 0.5, 3.0, 1.0) * np.arcsinh(draw))


class ShapedLargeNoise(Shaped):
    """Correct: larger noise hides its shape, but the audit cannot prove this."""

    def noise(self, draw):
        return 5 * super().noise(draw)


class ShortTails(Rows):
    """Fault: draws beyond 1.5 are halved if most labels are positive."""

    def warped(self, draw, mixed, problem):
        factor = np.where(self.positive(problem) > 0.5, 0.5, 1.0)
        far = np.sign(draw) * (1.5 + factor * (np.abs(draw) - 1.5))
        return np.where(np.abs(draw) > 1.5, far, draw)


class Tanh(Rows):
    def sent(self, values):
        return np.tanh(values)


class ScaledTanh(Tanh):
    """Fault: noise before a nonlinear function is larger for more positive labels."""

    def warped(self, draw, mixed, problem):
        return (1 + 2 * self.positive(problem)) * draw


class Sine(ScaledTanh):
    """Correct: angles with a standard deviation of at least 5 are uniform modulo 2 pi."""

    def noise(self, draw):
        return 5 * draw

    def sent(self, values):
        return np.sin(values)


class Unit(Rows):
    """Correct: noisy messages are divided by their norm."""

    def sent(self, values):
        return values / np.linalg.norm(values, axis=-1, keepdims=True)


class ShrunkNorm(Rows):
    """Correct: noisy messages are divided by 1 plus their norm."""

    def sent(self, values):
        return values / (1 + np.linalg.norm(values, axis=-1, keepdims=True))


class ScaledByReceived(Rows):
    """Correct: the noise grows with received messages."""

    def warped(self, draw, mixed, problem):
        return (1 + np.linalg.norm(mixed, axis=-1, keepdims=True)) * draw


class Rotated(Tanh):
    """Correct: coordinates of the noise have private signs before a nonlinear function."""

    def warped(self, draw, mixed, problem):
        return np.where(self.positive(problem) > 0.5, -1.0, 1.0) * draw


def _calibrated(kind):
    problem = logistic_regression()
    network = complete(problem.n_agents)
    algorithm = kind().calibrate(BUDGET, problem, network, HORIZON)
    return algorithm, pairs_of_agents(algorithm, problem, network, HORIZON)[0]


def _exact(kind):
    algorithm, pairs = _calibrated(kind)
    problem, network = pairs[0].pair[0], pairs[0].network
    setting = DeclaredSetting(algorithm, problem, network, HORIZON, BUDGET.delta)
    return exact_costs(setting, pairs, seed=0)


def _has_untested_density(report):
    item = "density of the messages of agent 0"
    return any(gap.decisive and gap.item == item for gap in report.untested)


@pytest.mark.parametrize("kind", [Shaped, ShortTails, ScaledTanh, ShapedByMajority])
def test_noise_whose_shape_or_size_depends_on_labels_does_not_pass(kind):
    report = _exact(kind)
    assert report.findings or _has_untested_density(report)


def test_private_noise_that_may_cost_less_than_declared_is_inconclusive():
    report = _exact(ShapedLargeNoise)
    assert not report.findings and _has_untested_density(report)


def test_messages_that_repeat_values_are_not_accused():
    assert not _exact(Sine).findings


@pytest.mark.parametrize("kind", [Rows, Tanh, ShrunkNorm, ScaledByReceived, Rotated])
def test_noise_that_does_not_depend_on_data_is_tested_without_findings(kind):
    report = _exact(kind)
    assert not report.findings and not report.untested


def test_normalised_messages_are_not_accused():
    report = _exact(Unit)
    assert not report.findings and not any("density" in gap.item for gap in report.untested)


def test_the_determinant_is_that_of_the_known_map():
    """The slope of sinh(a arcsinh(x)) is a cosh(a arcsinh(x)) / sqrt(1 + x^2)."""
    algorithm, pairs = _calibrated(Shaped)
    pair = next(pair for pair in pairs if pair.name == "label")
    layout = Layout()
    first, second = (
        Executed(algorithm, problem, pair.network, HORIZON, 0, layout) for problem in pair.pair
    )
    first.messages(np.zeros((1, 1)))
    draws = random_points(layout.units)
    messages = ComparedMessages((first, second), response(first), pair.agent)
    compared = messages.densities(draws)
    shape = (-1, HORIZON, *pair.pair[0].features.shape[-3::2])
    first = draws.reshape(shape)[:, :ITERATIONS, pair.agent]
    exponents = [1 + 0.5 * algorithm.positive(problem)[pair.agent] for problem in pair.pair]
    means = [problem.features[pair.agent].mean(axis=0) for problem in pair.pair]
    noise = np.sinh(exponents[0] * np.arcsinh(first))
    noise = noise + (means[0] - means[1]) / algorithm.sigma.scale
    second = np.sinh(np.arcsinh(noise) / exponents[1])
    logs = [
        np.log(a * np.cosh(a * np.arcsinh(x)) / np.sqrt(1 + x**2)).sum((1, 2))
        for a, x in zip(exponents, (first, second), strict=True)
    ]
    loss = (second**2 - first**2).sum((1, 2)) / 2 + logs[1] - logs[0]
    assert np.abs(compared.determinants - (logs[1] - logs[0])).max() < 1e-3
    assert np.abs(compared.losses - loss).max() < 1e-2
    assert compared.differ


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_delta_of_losses_of_the_gaussian_mechanism(epsilon):
    mu = 1.0
    losses = mu**2 / 2 + mu * np.random.default_rng(0).standard_normal(4_000)
    exact = gaussian_delta(mu, epsilon)
    assert 0.5 * exact < delta_lower_bound(losses, epsilon) < exact
    assert delta_lower_bound(np.full(100, np.nan), epsilon) == 0.0
