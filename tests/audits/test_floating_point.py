"""Test that the audit finds noise on a coarse grid and accepts rounding after the noise."""

from dataclasses import dataclass

import numpy as np
import pytest

from private_consensus.audits.examples import example_names
from private_consensus.audits.floating_point import audit_floating_point
from private_consensus.audits.neighbours import Attack
from private_consensus.audits.result import FLOATING_POINT
from private_consensus.core.algorithms.base import column
from toys import HORIZON, NoisyRounds, State, calibrated, mean_attack, registry_attacks
from worlds import world


def _report(kind):
    attack = mean_attack(1)
    return audit_floating_point(calibrated(kind, attack), attack, HORIZON, seed=3)


def _with_noise(change):
    @dataclass(frozen=True, kw_only=True)
    class Changed(NoisyRounds):
        def noise(self, draw):
            return change(draw, column(self.sigma.scale))

    return Changed


def _of_one_agent(draw, scale):
    noise = scale * draw
    noise[..., 2, :] = noise[..., 2, :].astype(np.float32)
    return noise


COARSE = {
    "float16": lambda draw, scale: (scale * draw).astype(np.float16),
    "float32": lambda draw, scale: (scale * draw).astype(np.float32),
    "float32 before scaling": lambda draw, scale: scale * draw.astype(np.float32),
    "grid": lambda draw, scale: scale / 64 * np.round(64 * draw),
}


@pytest.mark.parametrize("name", COARSE)
def test_noise_of_low_resolution_is_found(name):
    (finding,) = _report(_with_noise(COARSE[name])).findings
    assert finding.kind == FLOATING_POINT and not finding.weakens_privacy
    assert finding.text.startswith("the noise of agents 0 to 2 in iteration 1 has a coarser")


def test_the_agent_with_coarse_noise_is_named():
    (finding,) = _report(_with_noise(_of_one_agent)).findings
    assert finding.text.startswith("the noise of agent 2 in iteration 1 has a coarser")


ROUNDED = {
    "float32": lambda x: x.astype(np.float32).astype(float),
    "decimals": lambda x: np.round(x, 6),
    "grid": lambda x: np.round(x * 300) / 300,
    "not rounded": lambda x: x,
}


@pytest.mark.parametrize("name", ROUNDED)
def test_rounding_of_complete_messages_is_no_finding(name):
    @dataclass(frozen=True, kw_only=True)
    class Rounded(NoisyRounds):
        def step(self, state, problem, network, draw, t):
            return State(ROUNDED[name](super().step(state, problem, network, draw, t).x))

    report = _report(Rounded)
    assert not report.findings and not report.untested


def test_a_message_in_which_the_noise_saturates_is_no_finding():
    @dataclass(frozen=True, kw_only=True)
    class Normalised(NoisyRounds):
        def step(self, state, problem, network, draw, t):
            noisy = super().step(state, problem, network, draw, t).x
            return State(noisy / np.sqrt(noisy**2 + 1e-12))

    report = _report(Normalised)
    assert not report.findings and not report.untested


@pytest.mark.parametrize("rounded", [True, False])
def test_discrete_noise_is_a_finding_only_for_an_unrounded_query(rounded):
    step = 2.0**-8

    @dataclass(frozen=True, kw_only=True)
    class Discrete(NoisyRounds):
        def exact(self, state, problem, network, t):
            query = super().exact(state, problem, network, t)
            return step * np.round(query / step) if rounded else query

        def noise(self, draw):
            return step * np.round(super().noise(draw) / step)

    assert bool(_report(Discrete).findings) == (not rounded)


@pytest.mark.parametrize("name", example_names())
def test_no_registered_algorithm_has_coarse_noise(name):
    for algorithm, attack, horizon in registry_attacks(name):
        assert not audit_floating_point(algorithm, attack, horizon, seed=0).findings


def test_random_directions_of_d_zoa_with_32_bits_are_no_finding():
    """Directions have 32 bits, but they multiply slopes that are computed with 32 bits as well."""
    instance = world("d_zoa")
    attack = Attack((instance.problem, instance.problem), instance.network, np.eye(2)[0])
    report = audit_floating_point(instance.algorithm, attack, instance.horizon, seed=0)
    assert not report.findings
    (gap,) = report.untested
    assert "only differences of messages were tested" in gap.reason and not gap.decisive
