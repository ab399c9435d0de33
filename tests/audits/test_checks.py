"""Test checks of recovered noise if only some iterations or agents are recovered."""

import numpy as np
import pytest

from private_consensus.audits.checks import noise_found, unrecovered_noise
from private_consensus.audits.evidence import Evidence
from private_consensus.audits.result import CheckReport, Untested
from private_consensus.core.algorithms.base import NoiseSite
from private_consensus.core.randomness import generator

RUNS, ROUNDS, AGENTS, DIM = 300, 4, 2, 5


def world(noise):
    """Return evidence that contains recovered noise only."""
    none = np.zeros((RUNS, 0))
    return Evidence(
        None, none, none, {}, {"message": noise}, None, None, ROUNDS, ROUNDS, (1,), none, none
    )


def one_coordinate_each(seed, repeat):
    """Return noise in one coordinate per vector; with ``repeat``, round 3 repeats round 1."""
    random = generator(seed, "one coordinate")
    values = random.standard_normal((RUNS, ROUNDS, AGENTS, 1))
    if repeat:
        values[:, 2] = values[:, 0]
    is_noisy = random.integers(0, DIM, (RUNS, ROUNDS, AGENTS, 1)) == np.arange(DIM)
    return np.where(is_noisy, values, np.nan)


@pytest.mark.parametrize("repeat", [False, True])
def test_noise_of_one_coordinate_per_round_is_compared_between_rounds(repeat):
    site = NoiseSite("message", "gaussian", np.ones(()), "l2", np.ones(ROUNDS))
    worlds = [world(one_coordinate_each(seed, repeat)) for seed in (1, 2)]
    (noise_report,) = noise_found([site], *worlds, confidence=0.999)
    assert bool(noise_report.findings) == repeat
    where = "reused, releases of agent 0 in iteration 1 and of agent 0 in iteration 3"
    assert any(text.startswith(where) for text in noise_report.findings) == repeat


@pytest.mark.parametrize("decisive", [False, True])
@pytest.mark.parametrize("recovered", [2, ROUNDS])
def test_iterations_without_recovered_noise_are_listed_as_untested(recovered, decisive):
    """Unrecovered noise decides the verdict unless the exact costs cover all agents."""
    site = NoiseSite("message", "gaussian", np.ones((ROUNDS, 1, 1)), "l2", np.ones(ROUNDS))
    exact = CheckReport(untested=(Untested("noise in the messages of agent 0", "", decisive),))
    noise = generator(3, "first rounds").standard_normal((RUNS, recovered, AGENTS, DIM))
    report = unrecovered_noise([site], world(noise), exact)
    assert [gap.decisive for gap in report.untested] == [decisive] * (recovered < ROUNDS)
    assert all(gap.item == "noise of the message after iteration 2" for gap in report.untested)


def test_a_distribution_that_is_not_recovered_states_the_runs_that_statistics_need():
    site = NoiseSite("draw", "gaussian", np.ones((ROUNDS, 1, 1)), "l2", np.ones(ROUNDS))
    evidence = world(np.zeros((RUNS, 0, AGENTS, DIM)))
    report = unrecovered_noise([site], evidence, CheckReport(), 0.9999, 1e-4)
    assert "probability delta = 0.0001 with 184207 runs" in report.untested[0].reason
