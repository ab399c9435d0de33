"""Test that audits find sampled records that affect messages of later iterations."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pytest

from private_consensus import Budget, Release, calibrate
from private_consensus.audits.audit import audit
from private_consensus.audits.examples import complete, logistic_regression
from private_consensus.audits.later_messages import later_messages
from private_consensus.audits.neighbours import attacks
from private_consensus.audits.sampled_batches import sampled_record_change, sampling_found
from private_consensus.privacy import Sampling, account
from toys import BUDGET, NoisyRounds

HORIZON, RATE = 8, 0.2


class State(NamedTuple):
    """Messages and a value that the agent keeps."""

    x: np.ndarray
    memory: np.ndarray


@dataclass(frozen=True, kw_only=True)
class FreshBatches(NoisyRounds):
    """Correct: mean of rows times labels, of a secret batch of a fifth of the records."""

    hidden_sampling = True

    def sampled(self, problem, scale, horizon):
        sensitivity = 1.0 / (RATE * problem.records)
        sampling = Sampling("fixed_size", RATE)
        return [Release("gaussian", sensitivity, scale, count=horizon, sampling=sampling)]

    def calibrate(self, budget, problem, network, horizon):
        return replace(
            self, sigma=calibrate(lambda scale: self.sampled(problem, scale, horizon), budget)
        )

    def releases(self, problem, network, horizon):
        return self.sampled(problem, self.sigma.scale, horizon)

    def claimed_epsilon(self, delta, problem, network, horizon):
        return account(self.releases(problem, network, horizon), delta=delta).epsilon

    def draws(self, problem, streams):
        noise = streams.sequence("noise", "normal", (problem.n_agents, problem.dim))
        shape = problem.n_agents, problem.records
        return zip(noise, streams.sequence("sampling", "uniform", shape, "batch"), strict=False)

    def start(self, problem, network, streams, settings):
        zeros = super().start(problem, network, streams, settings).x
        return State(zeros, zeros)

    def step(self, state, problem, network, draw, t):
        noise, uniform = draw
        size = round(RATE * problem.records)
        is_sampled = np.argsort(np.argsort(uniform, axis=-1), axis=-1) < size
        mean = np.vecmat(is_sampled * problem.labels, problem.features) / size
        return State(*self.sent(0.5 * network.mix(state.x), state.memory, mean, self.noise(noise)))

    def sent(self, mixed, memory, mean, noise):
        return mixed + mean + noise, memory


class NoisyMomentum(FreshBatches):
    """Correct: the agent keeps a momentum of noisy means."""

    def sent(self, mixed, memory, mean, noise):
        momentum = 0.9 * memory + mean + noise
        return mixed + momentum, momentum


class ErrorFeedback(FreshBatches):
    """Correct: the first coordinate of the noisy mean is sent one iteration later."""

    def sent(self, mixed, memory, mean, noise):
        is_first = np.arange(mean.shape[-1]) == 0
        noisy = mean + noise
        return mixed + np.where(is_first, memory, noisy), noisy


class PrivateMomentum(FreshBatches):
    """Fault: the agent keeps a momentum of means without noise."""

    def sent(self, mixed, memory, mean, noise):
        momentum = 0.9 * memory + mean
        return mixed + momentum + noise, momentum


class TwoIterations(FreshBatches):
    """Fault: each batch enters two messages."""

    def sent(self, mixed, memory, mean, noise):
        return mixed + mean + memory + noise, mean + 0.0 * noise


def arguments_of(kind):
    """Return a calibrated algorithm, a pair of data sets and the horizon."""
    problem, network = logistic_regression(), complete(3)
    algorithm = kind().calibrate(BUDGET, problem, network, HORIZON)
    attack, *_ = attacks(problem, network, None, nearby=False, compressed=False)
    return algorithm, attack, HORIZON


def report_of(kind, level=1e-7):
    algorithm, attack, horizon = arguments_of(kind)
    releases = algorithm.releases(attack.pair[0], attack.network, horizon)
    return later_messages(algorithm, attack, horizon, releases=releases, level=level, seed=0)


@pytest.mark.parametrize("kind", [FreshBatches, NoisyMomentum])
def test_batches_that_affect_one_release_are_no_finding(kind):
    report = report_of(kind, level=1e-3)
    assert not report.findings and not report.untested
    assert report.sites == ("memory of earlier batches",)


@pytest.mark.parametrize("kind", [PrivateMomentum, TwoIterations])
def test_a_batch_that_affects_later_messages_without_noise_is_found(kind):
    (finding,) = report_of(kind).findings
    assert "a sampled record of agent 0 also changes messages of later iterations" in finding.text


def test_noisy_values_that_are_sent_later_are_not_accused():
    report = report_of(ErrorFeedback)
    assert not report.findings
    assert [gap.decisive for gap in report.untested] == [True]


def test_a_private_momentum_differs_from_its_declaration():
    result = audit(
        PrivateMomentum(), logistic_regression(), complete(3), Budget(2.0, 1e-4), HORIZON,
        runs=40, confidence=0.9999, delta=1e-4,
    )  # fmt: skip
    assert result.verdict == "differs from its declaration"


def test_sampled_releases_without_a_test_are_listed():
    algorithm, attack, horizon = arguments_of(FreshBatches)
    (release,) = algorithm.releases(attack.pair[0], attack.network, horizon)
    other = replace(release, sampling=Sampling("fixed_size", 0.4))
    options = {"level": 1e-3, "seed": 0}
    report = sampling_found(algorithm, attack, horizon, releases=[release, other], **options)
    assert [gap.decisive for gap in report.untested] == [True]
    laplace = replace(release, mechanism="laplace", norm="l1")
    report = sampled_record_change(algorithm, attack, horizon, releases=[laplace], **options)
    assert [gap.item for gap in report.untested] == ["effect of a sampled record of agent 0"]
