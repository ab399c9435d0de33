"""Test that executed attacks reach the fractions on which the lower bounds rely."""

import numpy as np
import pytest

from private_consensus.audits.auditing import secret_root
from private_consensus.audits.examples import example_names
from private_consensus.audits.execution import execute
from private_consensus.audits.search import Search
from private_consensus.core.lower_bounds import attack_on, lower_bound_of
from private_consensus.core.randomness import Streams
from worlds import world

PAIRS = 60
SLACK = 1e-5
"""Relative tolerance for the noise that leads to equal messages."""


@pytest.mark.parametrize("name", ["gradient_descent", "local_training", "pp_admm", "muffliato"])
def test_a_subclass_from_outside_has_no_lower_bound(name):
    noisy, problem, network, horizon = world(name)
    derived = type(type(noisy).__name__, (type(noisy),), {"__module__": "outside"})
    changed = object.__new__(derived)
    vars(changed).update(vars(noisy))
    assert lower_bound_of(noisy, problem, network, horizon, 1e-4).epsilon > 0
    assert lower_bound_of(changed, problem, network, horizon, 1e-4).epsilon == 0


def stated_losses(noisy, problem, network, horizon):
    """Return the attained losses per iteration of the only attacked release; None without."""
    attack = attack_on(noisy)
    releases = noisy.releases(problem, network, horizon)
    if attack is not None:
        releases = attack.releases(noisy, problem, network, horizon, releases)
    attacked = [r.attack or r for r in releases if r.attained is not None or r.attack is not None]
    if len(attacked) != 1 or attacked[0].sampling or attacked[0].attained is None:
        return None
    (release,) = attacked
    if release.mechanism not in ("gaussian", "laplace", "gamma_norm"):
        return None
    losses = release.losses()
    return np.repeat(np.broadcast_to(release.attained * losses, losses.shape), release.count)


def executed_losses(noisy, problem, network, horizon):
    """Yield the losses that a pair reaches, per release of the first mechanism."""
    streams = Streams(secret_root(0), (0,))
    for pair in Search(noisy, problem, network, horizon, PAIRS, 0).pairs():
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
