"""One function audits everything: correct algorithms are spared and broken ones are not."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pytest

import private_consensus
from private_consensus import algorithms, networks
from private_consensus.algorithms.base import Iterative, NoiseSite, column
from private_consensus.audits.audit import EARLY
from private_consensus.audits.checks import noise_found
from private_consensus.audits.evidence import Evidence
from private_consensus.audits.examples import examples
from private_consensus.errors import InvalidInput
from private_consensus.privacy import Budget, Release, gaussian_mu
from private_consensus.privacy.audit.families import claim_p_value
from private_consensus.privacy.audit.sequential import planned_looks
from private_consensus.problems.mean_estimation import MeanEstimation
from private_consensus.randomness import Streams, generator

RUNS, CONFIDENCE, HORIZON = 1600, 0.99, 4


class State(NamedTuple):
    """Messages."""

    y: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Gossip(Iterative):
    """Values noised once, then averaged: the toy of the page on adding an algorithm."""

    sigma: float = 0.0

    def sensitivity(self, problem):
        return problem.record_change("l2") / problem.records

    def calibrate(self, budget, problem, network, horizon):
        return replace(self, sigma=self.sensitivity(problem) / gaussian_mu(*astuple(budget)))

    def releases(self, problem, network, horizon):
        return [Release("gaussian", sensitivity=self.sensitivity(problem), scale=self.sigma)]

    def start(self, problem, network, streams, settings):
        unit = streams.draw("noise", "normal", (problem.n_agents, problem.dim))
        return State(
            problem.means + column(self.sigma) * np.broadcast_to(unit, (settings, *unit.shape))
        )

    def step(self, state, problem, network, draw, t):
        return State(network.mix(state.y))

    def observables(self, state, problem, t):
        return {"released": state.y}


def astuple(budget):
    return budget.epsilon, budget.delta


@dataclass(frozen=True, kw_only=True)
class HalfNoise(Gossip):
    """Half of the noise that its releases declare."""

    def start(self, problem, network, streams, settings):
        return Gossip.start(
            replace(self, sigma=self.sigma / 2), problem, network, streams, settings
        )


@dataclass(frozen=True, kw_only=True)
class Whispering(Gossip):
    """The exact values are mixed beside the noised ones."""

    def step(self, state, problem, network, draw, t):
        network.mix(np.array(problem.means)[None])
        return super().step(state, problem, network, draw, t)


@dataclass(frozen=True, kw_only=True)
class Seeded(Gossip):
    """The same noise in every run and both worlds."""

    def start(self, problem, network, streams, settings):
        unit = np.random.default_rng(0).standard_normal((problem.n_agents, problem.dim))
        noise = np.broadcast_to(column(self.sigma) * unit, (settings, *problem.means.shape))
        return State(problem.means + noise)


def mean_estimation():
    return MeanEstimation(0.1 * np.random.default_rng(2).standard_normal((1, 4, 2)), 10, 1.0)


def ring():
    return networks.build(Streams(0, (0,)), "ring", 4)


def audited(algorithm, budget=None, **changes):
    given = {"runs": RUNS, "confidence": CONFIDENCE, "delta": 1e-5, **changes}
    budget = budget or Budget(3.0, 1e-5)
    return private_consensus.audit(algorithm, mean_estimation(), ring(), budget, HORIZON, **given)


def test_a_correct_algorithm_of_ones_own_is_spared():
    found = audited(Gossip())
    assert not found.flagged and found.verdict == "not contradicted"
    assert found.lower <= found.claimed == pytest.approx(found.declared)
    assert found.runs == RUNS


@pytest.mark.parametrize("broken", [HalfNoise, Whispering, Seeded])
def test_broken_copies_of_it_are_not(broken):
    found = audited(broken())
    assert found.flagged, found.lines()


def test_a_message_without_noise_decides_early_and_its_repair_does_not():
    for stage_two, flagged in (("literal", True), ("repaired", False)):
        algorithm = algorithms.load("gradient_descent")(stage_two=stage_two)
        found = audited(algorithm, Budget(2.0, 1e-3), delta=1e-3)
        assert found.contradicted == flagged
        if flagged:
            assert found.lower > 2.0 and found.runs < RUNS  # the question is decided early
        else:
            assert found.sensitivity == pytest.approx(1.0)
            assert all(not noise.findings for noise in found.noise)


def test_the_p_value_pays_for_bounds_looks_and_the_right_to_stop():
    found = audited(Whispering(), runs=400)
    share = {look.runs: look.share for look in planned_looks(400, first=400 // EARLY)}[found.runs]
    assert found.runs < 400 and share < 0.5
    stated = min(1.0, claim_p_value(found.bounds, {"epsilon": found.claimed}) / share)
    assert found.pvalue == pytest.approx(stated) and stated > 0
    assert sum(bound.share for bound in found.bounds) == pytest.approx(1.0)


def test_the_same_call_gives_the_same_numbers():
    first, second = (audited(Gossip(), runs=200, seed=3) for _ in range(2))
    assert first.lower == second.lower and first.pvalue == second.pvalue


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"runs": 3}, "runs"), ({"confidence": 1.0}, "confidence"), ({"delta": 1.0}, "delta"),
        ({"delta": 1e-6}, "delta"), ({"observer": "neighbour"}, "observer"),
        ({"budget": Budget(float("inf"), 1e-5)}, "budget.epsilon"),
    ],
)  # fmt: skip
def test_what_cannot_be_audited_is_said_before_anything_runs(changes, key):
    algorithm = algorithms.load("gradient_descent")()
    with pytest.raises(InvalidInput, match=f"^{key}: found"):
        audited(algorithm, **changes)


def choosy_messages(scale):
    """Noise at a site where messages are sent only if their noise is kind, [worlds, ...]."""
    random = generator(4, "choosy")
    noise = random.standard_normal((2, 300, 3, 3, 2))
    kind = noise.sum(-1, keepdims=True) > -0.5
    return np.where(kind, scale * noise, np.nan)


@pytest.mark.parametrize(("scale", "kind"), [(1.0, None), (0.5, "too small"), (2.0, "too large")])
def test_noise_that_decides_what_is_sent_is_not_taken_for_all_noise(scale, kind):
    """What is sent because its noise was kind has another law, and is no finding."""
    site = NoiseSite("message", "gaussian", np.ones(()), "l2", np.ones(3), selected=True)
    none = np.zeros((300, 0))
    worlds = [
        Evidence(None, none, none, {}, {"message": n}, None, None, 3, 3)
        for n in choosy_messages(scale)
    ]
    (found,) = noise_found([site], *worlds, confidence=0.999)
    assert [text.split(",")[0] for text in found.findings] == ([] if kind is None else [kind])
    (believed,) = noise_found([site._replace(selected=False)], *worlds, confidence=0.999)
    assert believed.findings  # as noise that was seen whatever it was it would be wrong


def test_of_tests_of_what_is_noised_the_noise_is_said_to_select():
    (example,) = examples("ipp_admm")
    world = example.problem, example.network, example.horizon
    noisy = example.algorithm.calibrate(example.budget, *world)
    assert [site.selected for site in noisy.noise_sites(*world)][-1]
    plain = replace(noisy, tested="minimiser")
    assert not any(site.selected for site in plain.noise_sites(*world))
