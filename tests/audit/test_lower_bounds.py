"""Test that executed attacks reach the fractions on which the lower bounds rely."""

from dataclasses import replace

import numpy as np
import pytest

from private_consensus.audits.examples import example_names
from private_consensus.audits.execution import execute
from private_consensus.audits.lower_bounds import lower_bound_by_replay, shifts_of
from private_consensus.audits.search import Search, streams_of
from private_consensus.core.algorithms.local_training import LocalTraining
from private_consensus.core.lower_bounds import attack_on, lower_bound_of
from private_consensus.privacy import account
from worlds import world

PAIRS = 60
SLACK = 1e-5
"""Relative tolerance for the noise that leads to equal messages."""


def outside(noisy):
    """Return an algorithm of a class outside of the package, for which no attack is proven."""
    derived = type(type(noisy).__name__, (type(noisy),), {"__module__": "outside"})
    changed = object.__new__(derived)
    vars(changed).update(vars(noisy))
    return changed


@pytest.mark.parametrize("name", ["dp_admm", "dsgd", "pp_admm"])
def test_a_class_from_outside_has_no_proven_lower_bound(name):
    noisy, problem, network, horizon = world(name)
    assert lower_bound_of(noisy, problem, network, horizon, 1e-4).epsilon > 0
    assert lower_bound_of(outside(noisy), problem, network, horizon, 1e-4).epsilon == 0


@pytest.mark.parametrize("name", ["dp_admm", "exact_admm"])
def test_the_lower_bound_by_replay_is_at_least_that_of_the_proof(name):
    noisy, problem, network, horizon = world(name)
    arguments = problem, network, horizon, 1e-4
    proven = lower_bound_of(noisy, *arguments).epsilon
    lower = lower_bound_by_replay(outside(noisy), *arguments).epsilon
    upper = account(noisy.releases(problem, network, horizon), 1e-4).epsilon
    assert 0 < lower <= upper
    assert lower >= proven * (1 - 1e-12)


@pytest.mark.parametrize("name", ["gradient_descent", "muffliato"])
def test_the_lower_bound_by_replay_of_a_noisy_mean_is_its_epsilon(name):
    noisy, problem, network, horizon = world(name)
    lower = lower_bound_by_replay(noisy, problem, network, horizon, 1e-4).epsilon
    upper = account(noisy.releases(problem, network, horizon), 1e-4).epsilon
    assert lower == pytest.approx(upper, rel=1e-8)


def test_values_without_noise_that_differ_have_an_infinite_lower_bound():
    noisy, *arguments = world("gradient_descent")
    literal = replace(noisy, stage_two="literal")
    assert lower_bound_by_replay(literal, *arguments, 1e-4).epsilon == np.inf


class SentOnce(LocalTraining):
    """Local training that sends its first message only."""

    def observables(self, state, problem, t):
        return {"released" if t == 1 else "internal": state.x}


class SentSums(LocalTraining):
    """Local training that sends sums of the messages of two agents."""

    def observables(self, state, problem, t):
        return {"released": state.x + state.x[..., ::-1, :]}


class HiddenStart(LocalTraining):
    """Local training from a hidden random point, which is an additional noise."""

    def start(self, problem, network, release):
        shape = problem.n_agents, problem.dim
        return (
            super().start(problem, network, release)._replace(x=release.once("x", "normal", shape))
        )


@pytest.mark.parametrize("kind, rounds", [(SentOnce, 1), (SentSums, 0), (HiddenStart, 0)])
def test_outputs_that_no_observer_receives_have_no_lower_bound(kind, rounds):
    noisy, problem, network, horizon = world("local_training")
    fields = {name: getattr(noisy, name) for name in ("eta", "clip", "noise")}
    lower = lower_bound_by_replay(kind(**fields), problem, network, horizon, 1e-4).epsilon
    first = lower_bound_by_replay(noisy, problem, network, rounds, 1e-4).epsilon if rounds else 0.0
    assert horizon > 1 and lower == pytest.approx(first)


def test_queries_that_depend_on_earlier_outputs_or_hidden_numbers_have_no_shift():
    noisy, problem, network, horizon = world("local_training")
    pairs = list(Search(noisy, problem, network, horizon, 3, 0).pairs())
    equal_rows, _, random_rows = (shifts_of(noisy, pair, network, horizon) for pair in pairs)
    assert equal_rows and not random_rows
    hidden, *arguments = world("ldp_admm")
    assert lower_bound_by_replay(outside(hidden), *arguments, 1e-4).epsilon == 0


def stated_losses(noisy, problem, network, horizon):
    """Return the attained losses per iteration of the only attacked release; None without."""
    attack = attack_on(noisy)
    releases = noisy.releases(problem, network, horizon)
    if attack is not None:
        releases = attack(noisy, problem, network, horizon, releases)
    attacked = [r.attack or r for r in releases if r.attained is not None or r.attack is not None]
    if len(attacked) != 1 or attacked[0].attained is None:
        return None
    (release,) = attacked
    if release.mechanism not in ("gaussian", "laplace", "gamma_norm"):
        return None
    losses = release.losses()
    return np.repeat(np.broadcast_to(release.attained * losses, losses.shape), release.count)


def executed_losses(noisy, problem, network, horizon):
    """Yield the losses that a pair reaches, per release of the first mechanism."""
    streams = streams_of(0, 0)
    for pair in Search(noisy, problem, network, horizon, PAIRS, 0).neighbours():
        recorded = execute(noisy, pair.first, network, horizon, streams)
        replay = execute(noisy, pair.second, network, horizon, streams, recorded.releases)
        yield np.array(
            [np.max(cost) for name, _, cost, _ in replay.costs if name == replay.costs[0][0]]
        )


@pytest.mark.parametrize("name", example_names())
def test_stated_attained_fractions_are_reached_by_executed_attacks(name):
    instance = world(name)
    stated = stated_losses(*instance)
    if stated is not None:
        tried = list(executed_losses(*instance))
        assert any(
            len(reached) >= len(stated) and (reached[: len(stated)] >= stated * (1 - SLACK)).all()
            for reached in tried
        ), (stated, np.max(tried, axis=0))
