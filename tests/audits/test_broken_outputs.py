"""Test the audit of outputs with exact counts, and of penalties that depend on local data."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import private_consensus
from mutants import outsiders
from private_consensus import networks
from private_consensus.core.randomness import Streams

RUNS = 60


@pytest.fixture(autouse=True, scope="module")
def package():
    """Install the outside algorithms for the tests of this module and uninstall them afterwards."""
    outsiders.install()
    yield
    outsiders.uninstall()


def audited(kind, example, **options):
    """Audit an algorithm in the setting of its correct base."""
    return private_consensus.audit(
        kind(**options), example.problem, example.network, example.budget, 2,
        runs=RUNS, confidence=0.9999, delta=example.budget.delta,
    )  # fmt: skip


def _clipping(count_outputs):
    """Return gradient descent with an additional output computed from a count of records.

    The count is the number of records with norm above 0.5.
    """
    base = type(outsiders.example_of("clipped_record_descent").algorithm)

    @dataclass(frozen=True, kw_only=True)
    class Counting(base):
        def observables(self, state, problem, t):
            lengths = np.linalg.norm(problem.features, axis=-1)
            count = np.reshape((lengths > 0.5).sum(-1), (-1, problem.n_agents))[0]
            released_values = {"released": state.x}
            return released_values | {
                name: np.broadcast_to(values, (*state.x.shape[:2], *np.shape(values)))
                for name, values in count_outputs(count).items()
            }

    return Counting


COUNTS = {
    "of all agents": lambda count: {"clipped": count.sum()},
    "of each agent": lambda count: {"clipped": count},
    "in the name": lambda count: {f"clipped_{count.sum()}": np.zeros(())},
}


@pytest.mark.parametrize("name", COUNTS)
def test_an_output_computed_from_an_exact_count_of_records_is_found(name):
    audit_result = audited(_clipping(COUNTS[name]), outsiders.example_of("clipped_record_descent"))
    assert any("output 'clipped" in finding.text for finding in audit_result.findings), (
        audit_result.lines()
    )


def _hub(agent):
    """Return ADMM in which one agent's penalty is a quarter if its first coordinate is positive."""
    base = type(outsiders.example_of("output_noise_admm").algorithm)

    @dataclass(frozen=True, kw_only=True)
    class OwnPenalty(base):
        needs: ClassVar[tuple[str, ...]] = ("proximal",)

        def minimise(self, problem, state, linear, penalty, centre, t):
            slope = problem.gradient(np.zeros_like(centre))[..., :1] < 0
            is_agent = np.arange(problem.n_agents)[:, None] == agent
            local_penalty = np.where(slope & is_agent, 0.25, 1.0) * penalty
            return super().minimise(problem, state, linear, local_penalty, centre, t)

    return OwnPenalty


@pytest.mark.parametrize("agent", [0, 3])
def test_a_penalty_that_depends_on_local_data_is_found(agent):
    """Agent 0 is the hub of a star."""
    example = outsiders.example_of("quarter_penalty_admm")
    problem = example.problem
    star = networks.build(Streams(0, (0,)), "star", problem.n_agents, weights="metropolis")
    audit_result = private_consensus.audit(
        _hub(agent)(D=40.0), problem, star, example.budget, 2,
        runs=RUNS, confidence=0.9999, delta=example.budget.delta,
    )  # fmt: skip
    assert any(f"record of agent {agent}" in finding.text for finding in audit_result.findings), (
        audit_result.lines()
    )
