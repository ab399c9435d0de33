"""Test the cost of correlated noise for all combinations of the changes of single iterations."""

from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np
import pytest

from private_consensus import audit
from private_consensus.audits.examples import complete, mean_estimation
from private_consensus.audits.joint_changes import JOINT_SITE, has_declared_joint_cost
from private_consensus.audits.judging import DeclaredSetting
from private_consensus.core.algorithms.base import column
from private_consensus.privacy import Release, gaussian_mu
from toys import BUDGET, HORIZON, NoisyRounds, State, mean_attack


@dataclass(frozen=True, kw_only=True)
class Correlated(NoisyRounds):
    """Rounds whose noise depends on that of the preceding round, accounted after whitening."""

    weight: float = 0.5
    declared_weight: float = 0.5

    def losses(self, horizon):
        inverse = np.linalg.inv(
            np.eye(horizon) - float(self.declared_weight) * np.eye(horizon, k=-1)
        )
        return np.abs(inverse).sum(1)

    def calibrate(self, budget, problem, network, horizon):
        noisy = super().calibrate(budget, problem, network, horizon)
        length = np.linalg.norm(self.losses(horizon))
        mu = gaussian_mu(budget.epsilon, budget.delta)
        return type(self)(**{**vars(noisy), "sigma": self.change(problem) * length / mu})

    def releases(self, problem, network, horizon):
        sensitivities = self.change(problem) * self.losses(horizon)
        return [Release("gaussian", sensitivities, self.sigma.scale)]

    def draws(self, problem, streams):
        before = 0.0
        for unit in super().draws(problem, streams):
            yield unit - float(np.max(self.weight)) * before
            before = unit


class Repeated(Correlated):
    """Fault: all rounds have equal noise."""

    def draws(self, problem, streams):
        unit = streams.draw("noise", "normal", (problem.n_agents, problem.dim))
        while True:
            yield unit


class Thinned(Correlated):
    """Fault: a secret coin removes the noise of some rounds."""

    def draws(self, problem, streams):
        coins = streams.sequence("sampling", "uniform", (problem.n_agents, 1))
        for unit, coin in zip(super().draws(problem, streams), coins, strict=False):
            yield np.where(coin < 0.01, 0.0, unit)


class ZeroForSmall(Correlated):
    """Fault: small noise becomes 0."""

    def noise(self, draw):
        return super().noise(np.where(np.abs(draw) < 0.05, 0.0, draw))


class AcrossCoordinates(Correlated):
    """Fault: the noise of a coordinate depends on that of another one in the preceding round."""

    def draws(self, problem, streams):
        before = 0.0
        for unit in NoisyRounds.draws(self, problem, streams):
            yield unit - float(np.max(self.weight)) * before
            before = np.roll(unit, 1, axis=-1)


class MaskedDraw(NamedTuple):
    """Own noise of all agents, and noise of pairs of agents."""

    noise: np.ndarray
    masks: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Masked(Correlated):
    """Rounds with masks that cancel in the sum of all agents."""

    def losses(self, horizon):
        agents = 3
        covariance = (1 + agents) * np.eye(agents) - np.ones((agents, agents))
        return np.full(horizon, sqrt(np.linalg.inv(covariance)[0, 0]))

    def draws(self, problem, streams):
        masks = streams.sequence("noise", "normal", (3, 3, problem.dim), "masks")
        for unit, mask in zip(NoisyRounds.draws(self, problem, streams), masks, strict=False):
            yield MaskedDraw(unit, mask)

    def step(self, state, problem, network, draw, t):
        upper = np.triu(np.ones((3, 3)), 1)[..., None] * draw.masks
        noise = draw.noise + (upper - upper.swapaxes(-3, -2)).sum(-2)
        return State(self.exact(state, problem, network, t) + column(self.sigma.scale) * noise)


CORRECT = {
    "over rounds": Correlated(),
    "over rounds, positive": Correlated(weight=-0.5, declared_weight=-0.5),
    "over agents": Masked(),
}
BROKEN = {
    "signs of changes": Correlated(weight=-0.9, declared_weight=0.0),
    "repeated": Repeated(),
    "coins": Thinned(),
    "small": ZeroForSmall(),
    "coordinates": AcrossCoordinates(),
}


def is_accepted(algorithm):
    attack = mean_attack()
    setting = attack.pair[0], attack.network, HORIZON
    noisy = algorithm.calibrate(BUDGET, *setting)
    return has_declared_joint_cost(DeclaredSetting(noisy, *setting, BUDGET.delta), [attack], seed=0)


@pytest.mark.parametrize("name", CORRECT)
def test_noise_whose_correlation_is_accounted_is_accepted(name):
    assert is_accepted(CORRECT[name])


@pytest.mark.parametrize("name", BROKEN)
def test_other_noise_is_not_accepted(name):
    assert not is_accepted(BROKEN[name])


def audited(algorithm):
    problem = mean_estimation()
    options = {"runs": 1600, "confidence": 0.9999, "delta": BUDGET.delta}
    return audit(algorithm, problem, complete(problem.n_agents), BUDGET, HORIZON, **options)


@pytest.mark.parametrize("name", CORRECT)
def test_correlated_noise_of_correct_algorithms_is_no_fault(name):
    result = audited(CORRECT[name])
    assert not result.findings and JOINT_SITE in result.coverage.sites
    assert result.verdict == "not contradicted"


@pytest.mark.parametrize("name", ["signs of changes", "repeated"])
def test_dependent_noise_is_found_and_the_text_names_noise_sites(name):
    result = audited(BROKEN[name])
    assert result.flagged
    assert any("noise_sites" in finding.text for finding in result.findings)
    assert name != "repeated" or result.findings[0].text.startswith("noise of the draw: reused")
