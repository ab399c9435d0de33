"""Test that the correct variants have the declared sensitivity and noise."""

import numpy as np
import pytest

from private_consensus.core.algorithms.base import stack
from private_consensus.core.randomness import Streams
from private_consensus.privacy import account

from .styles import STYLES, style


def released_messages(algorithm, case, problem, streams):
    """Return the messages of all iterations; shape (runs, iterations, agents, dim)."""
    messages = []

    def record(t, active, observables):
        if "released" in observables:
            messages.append(np.array(observables["released"][0]))

    stack([algorithm]).run(problem, case.network, streams, np.array([case.horizon]), record)
    return np.stack(messages, axis=1)


@pytest.mark.parametrize("name", STYLES)
def test_a_style_spends_its_budget_and_not_more(name):
    case = style(name)
    world = case.problem, case.network, case.horizon
    accounted_epsilon = account(case.calibrated.releases(*world), case.budget.delta).epsilon
    assert accounted_epsilon == pytest.approx(case.budget.epsilon, rel=1e-6)
    formula = case.calibrated.claimed_epsilon(case.budget.delta, *world)
    assert formula == pytest.approx(case.budget.epsilon, rel=1e-6)


AFTERWARDS = {
    "noise in start",
    "projected messages",
    "rounded messages",
    "two releases an iteration",
}
"""Styles in which processing, mixing or a second noise hides how far the data move the first
observed message."""


@pytest.mark.parametrize("name", sorted(set(STYLES) - AFTERWARDS))
def test_a_first_message_is_moved_as_far_as_is_said_and_noised_as_much(name):
    """Replacing an extreme record by the opposite one attains the declared sensitivity."""
    case = style(name)
    (release, *_) = case.calibrated.releases(case.problem, case.network, case.horizon)
    streams = Streams(5, tuple(range(4000)))
    worlds = [
        released_messages(case.calibrated, case, problem, streams)[:, 0, 0]
        for problem in (case.problem, case.neighbour)
    ]
    mean_change = (worlds[1] - worlds[0]).mean(0)
    order = {"l1": 1, "l2": 2}[release.norm]
    deviation = worlds[0].std(0).mean() / (np.sqrt(2.0) if release.mechanism == "laplace" else 1.0)
    moved = np.linalg.norm(mean_change, order) / deviation
    # the noise of 8,000 numbers is known to 1.6 % at two standard deviations
    assert moved == pytest.approx(float(release.losses()[0]), rel=0.05)
