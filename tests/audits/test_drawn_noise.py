"""Test the comparison of drawn noise with the random numbers of its stream."""

from dataclasses import dataclass

import numpy as np
import pytest

from private_consensus.audits.checks import noise_found
from private_consensus.audits.drawn_noise import audit_drawn_noise
from private_consensus.audits.evidence import observed
from private_consensus.audits.result import DIFFERS, NOTE
from toys import HORIZON, NoisyRounds, calibrated, mean_attack

RUNS = 1000


@dataclass(frozen=True, kw_only=True)
class Combined(NoisyRounds):
    """Algorithm whose noise is a function of the declared noise and of other random numbers."""

    def draws(self, problem, streams):
        agents, dim = problem.n_agents, problem.dim
        own = streams.sequence("noise", "normal", (agents, dim))
        edges = streams.sequence("noise", "normal", (agents, agents, dim), "edges")
        public = streams.sequence("sampling", "uniform", (agents, 1), "public")
        secret = streams.sequence("noise", "normal", (agents, 1), "secret")
        previous = 0.0
        for u, e, p, s in zip(own, edges, public, secret, strict=False):
            yield self.combined(u, e, p, s, previous)
            previous = u

    def combined(self, own, edges, public, secret, previous):
        return own


class WithEdgeNoise(Combined):
    def combined(self, own, edges, public, secret, previous):
        return own + 3.0 * (edges - edges.swapaxes(-2, -3)).sum(-2)


class WithCommonNoise(Combined):
    def combined(self, own, edges, public, secret, previous):
        return own + edges[:, 0, :1]


class SometimesDoubled(Combined):
    def combined(self, own, edges, public, secret, previous):
        return own * np.where(public < 0.5, 2.0, 1.0)


class RarelySmallPublicly(Combined):
    def combined(self, own, edges, public, secret, previous):
        return own * np.where(public < 0.005, 0.1, 1.0)


class RarelySmallSecretly(Combined):
    def combined(self, own, edges, public, secret, previous):
        return own * np.where(np.abs(secret) > 2.576, 0.01, 1.0)


class Differences(Combined):
    """Fault: sums over iterations cancel, although each number has more noise than declared."""

    def combined(self, own, edges, public, secret, previous):
        return own - previous


class AwayFromZero(Combined):
    """Fault: no number is near 0, although each is larger than that of the stream."""

    def combined(self, own, edges, public, secret, previous):
        return own + np.sign(own)


def report_of(kind):
    """Return the report of the drawn noise, and the findings on its distribution."""
    attack = mean_attack()
    algorithm = calibrated(kind, attack)
    both = [observed(algorithm, attack, HORIZON, 0, RUNS, dataset, 0) for dataset in (0, 1)]
    sites = algorithm.noise_sites(attack.pair[0], attack.network, HORIZON)
    (noise,) = noise_found(sites, *both, confidence=0.9999)
    return audit_drawn_noise([evidence.drawn for evidence in both]), noise.findings


@pytest.mark.parametrize("kind", [WithEdgeNoise, WithCommonNoise, SometimesDoubled])
def test_additional_independent_noise_is_a_note(kind):
    report, of_distribution = report_of(kind)
    assert [finding.kind for finding in report.findings] == [NOTE]
    assert not of_distribution


@pytest.mark.parametrize("kind", [RarelySmallPublicly, RarelySmallSecretly])
def test_rare_small_noise_is_found(kind):
    report, _ = report_of(kind)
    assert [finding.kind for finding in report.findings] == [DIFFERS]


@pytest.mark.parametrize("kind", [Differences, AwayFromZero])
def test_larger_noise_of_another_distribution_remains_a_finding(kind):
    report, of_distribution = report_of(kind)
    assert not report.findings and of_distribution


def test_drawn_numbers_of_a_stream_are_no_finding():
    report, of_distribution = report_of(Combined)
    assert not report.findings and not of_distribution
