"""Test that audits name values that reach other agents without a message."""

from dataclasses import dataclass
from itertools import repeat
from typing import NamedTuple

import numpy as np
import pytest

from private_consensus import networks
from private_consensus.audits.examples import example_names
from private_consensus.audits.received_state import audit_presence_of_noise, audit_received_state
from private_consensus.core.randomness import Streams
from toys import HORIZON, NoisyRounds, State, calibrated, mean_attack, registry_attacks

AGENT = 2


CHECKS = (audit_received_state, audit_presence_of_noise)


def _report(kind, agent=AGENT, agents=5, check=audit_received_state, seed=3):
    ring = networks.build(Streams(0, (0,)), "ring", agents, weights="metropolis")
    attack = mean_attack(agent, agents, ring)
    return check(calibrated(kind, attack), attack, HORIZON, seed=seed)


def _with_bypass(bypass, first=1):
    """Return an algorithm that adds values of other agents to messages from iteration ``first``."""

    @dataclass(frozen=True, kw_only=True)
    class Bypassing(NoisyRounds):
        def step(self, state, problem, network, draw, t):
            after = super().step(state, problem, network, draw, t)
            if t < first:
                return after
            exact = problem.means + np.zeros_like(after.x)
            return State(after.x + 0.1 * bypass(exact, after.x, network))

    return Bypassing


def _one_edge(exact, x, network):
    added = np.zeros_like(exact)
    added[..., 3, :] = exact[..., 2, :]
    return added


BYPASSES = {
    "roll": (lambda exact, x, network: np.roll(exact, 1, axis=-2), "agent 3 "),
    "index": (_one_edge, "agent 3 "),
    "own matrix": (lambda e, x, network: np.asarray(network.mixing) @ e, "agents 1, 3 "),
    "mean of all": (lambda e, x, network: e.mean(-2, keepdims=True) + 0 * e, "agents 0, 1, 3, 4 "),
}


@pytest.mark.parametrize("name", BYPASSES)
@pytest.mark.parametrize("first", [1, 3])
def test_a_value_that_bypasses_messages_is_found_with_its_receivers(name, first):
    bypass, receivers = BYPASSES[name]
    (finding,) = _report(_with_bypass(bypass, first)).findings
    expected = f"a value of agent {AGENT} reaches {receivers}in iteration {first} other than"
    assert finding.weakens_privacy and finding.text.startswith(expected)


def test_direct_use_of_released_messages_is_no_finding():
    @dataclass(frozen=True, kw_only=True)
    class Rolled(NoisyRounds):
        def exact(self, state, problem, network, t):
            return 0.5 * np.roll(state.x, 1, axis=-2) + 0.5 * problem.means

    report = _report(Rolled)
    assert not report.findings and not report.untested


def test_an_exchanged_value_without_noise_is_found():
    @dataclass(frozen=True, kw_only=True)
    class Exchanging(NoisyRounds):
        def exact(self, state, problem, network, t):
            means = problem.means + np.zeros_like(state.x)
            return 0.5 * network.mix(state.x if t < 3 else means) + 0.5 * problem.means

    report = _report(Exchanging, check=audit_presence_of_noise)
    texts = [finding.text for finding in report.findings]
    assert texts == [
        "agent 2 exchanges a value in iteration 3 that carries no noise of its own (exchange 1)"
    ]


def _with_noise(change):
    """Return an algorithm whose noise passes through ``change``."""

    @dataclass(frozen=True, kw_only=True)
    class Changed(NoisyRounds):
        def noise(self, draw):
            return change(super().noise(draw))

    return Changed


def _silent(noise):
    changed = np.array(noise)
    changed[..., AGENT, :] = 0.0
    return changed


def _silent_coordinate(noise):
    changed = np.array(noise)
    changed[..., AGENT, 1] = 0.0
    return changed


BROKEN_NOISE = {
    "missing": (_silent, "the message of agent 2 in iteration 1 carries no noise"),
    "one coordinate": (
        _silent_coordinate,
        "the message of agent 2 in iteration 1 carries no noise in coordinates 1",
    ),
    "shared": (
        lambda noise: noise[..., :1, :] + 0 * noise,
        "a combination of the messages of iteration 1 depends on the data of agent 2",
    ),
    "zero sum": (
        lambda noise: noise - noise.mean(-2, keepdims=True),
        "a combination of the messages of iteration 1 depends on the data of agent 2",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN_NOISE)
def test_missing_or_dependent_noise_is_found(name):
    change, expected = BROKEN_NOISE[name]
    (finding,) = _report(_with_noise(change), check=audit_presence_of_noise).findings
    assert finding.text.startswith(expected)


CORRECT_NOISE = {
    "independent": lambda noise: noise,
    "correlated, of full rank": lambda noise: noise + 0.5 * np.roll(noise, 1, axis=-2),
    "signs": lambda noise: -noise,
}


@pytest.mark.parametrize("name", CORRECT_NOISE)
def test_full_rank_noise_is_no_finding(name):
    for check in CHECKS:
        report = _report(_with_noise(CORRECT_NOISE[name]), check=check)
        assert not report.findings and not report.untested


class Pairs(NamedTuple):
    """Unit noise of agents and coin flips."""

    noise: np.ndarray
    coins: np.ndarray


@pytest.mark.parametrize("purpose", ["noise", "sampling"])
def test_randomised_response_is_no_finding(purpose):
    @dataclass(frozen=True, kw_only=True)
    class Bits(NoisyRounds):
        def draws(self, problem, streams):
            return streams.sequence(purpose, "uniform", (problem.n_agents, problem.dim), "coin")

        def step(self, state, problem, network, draw, t):
            bit = np.where(problem.means > 0, 1.0, -1.0)
            return State(np.where(draw < 0.02, -bit, bit) + np.zeros_like(state.x))

    for check in CHECKS:
        assert not _report(Bits, check=check).findings


def test_discrete_noise_that_is_often_zero_is_no_finding():
    """Two geometric draws cancel in many runs, and always if both are at the end of their range."""

    @dataclass(frozen=True, kw_only=True)
    class Levels(NoisyRounds):
        def start(self, problem, network, streams, settings):
            shape = problem.n_agents, problem.dim
            uniform = (streams.draw("noise", "uniform", shape, name) for name in ("up", "down"))
            up, down = (np.floor(-np.log1p(-values)) for values in uniform)
            return State((np.round(100 * problem.means) + up - down)[None])

        def draws(self, problem, streams):
            return repeat(None)

        def step(self, state, problem, network, draw, t):
            return State(network.mix(state.x))

    for seed in range(6):
        for check in CHECKS:
            assert not _report(Levels, check=check, seed=seed).findings


def _largest(noisy):
    """Return 1 for the noisy coordinate with the largest size and 0 for all others."""
    size = np.abs(noisy)
    return 1.0 * (size >= size.max(-1, keepdims=True))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("noisy_signs", [False, True])
def test_a_choice_among_noisy_coordinates_is_no_finding(noisy_signs, seed):
    """Noise and its negative choose the same coordinate, which is often that without noise."""

    @dataclass(frozen=True, kw_only=True)
    class Chosen(NoisyRounds):
        def step(self, state, problem, network, draw, t):
            noisy = problem.means + self.noise(draw)
            signs = np.sign(noisy) if noisy_signs else 1.0
            return State(network.mix(state.x) / 2 + signs * _largest(noisy))

    for agent in range(3):
        for check in CHECKS:
            assert not _report(Chosen, check=check, agent=agent, seed=seed).findings


def test_a_choice_among_noisy_coordinates_without_noise_in_some_runs_is_found():
    """The agent leaves out its noise after a positive message, in about half of the runs."""

    @dataclass(frozen=True, kw_only=True)
    class Chosen(NoisyRounds):
        def step(self, state, problem, network, draw, t):
            has_noise = state.x[..., :1] <= 0
            noisy = problem.means + self.noise(draw)
            exact = problem.means + np.zeros_like(noisy)
            first = noisy if t == 1 else np.where(has_noise, _largest(noisy), exact)
            return State(first)

    (finding,) = _report(Chosen, check=audit_presence_of_noise).findings
    assert finding.text.startswith("the message of agent 2 in iteration 2 carries no noise")


def test_quantized_messages_are_no_finding():
    @dataclass(frozen=True, kw_only=True)
    class Rounded(NoisyRounds):
        def step(self, state, problem, network, draw, t):
            exact = super().step(state, problem, network, draw, t).x
            return State(np.round(exact, 3).astype(np.float32).astype(float))

    for check in CHECKS:
        report = _report(Rounded, check=check)
        assert not report.findings and not report.untested


@pytest.mark.parametrize("name", example_names())
def test_registered_algorithms_have_no_decisive_gap_or_finding(name):
    for algorithm, attack, horizon in registry_attacks(name):
        for check in CHECKS:
            report = check(algorithm, attack, horizon, seed=0)
            assert not report.findings
            assert not any(gap.decisive for gap in report.untested)
