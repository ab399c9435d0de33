"""Test algorithms as linear systems against their execution, and the table of observers.

Also test the guarantee that follows from distance only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from private_consensus import algorithms, networks
from private_consensus.audits.examples import example_names, examples
from private_consensus.audits.probing import REVIEWED
from private_consensus.audits.views import (
    MAPPED,
    NOT_LINEAR,
    epsilon_by_observer,
    epsilons,
    observation,
    observed_system,
)
from private_consensus.audits.views.causal import NO_VIEWS, WHOLE_RUN, distances
from private_consensus.common.errors import InvalidInput
from private_consensus.core.algorithms.base import DENSITIES, stack
from private_consensus.core.algorithms.muffliato import ACCELERATIONS
from private_consensus.core.algorithms.secure_aggregation import SecureAggregation
from private_consensus.core.problems.base import Problem
from private_consensus.core.problems.linear_observation import LinearObservation
from private_consensus.core.problems.mean_estimation import MeanEstimation
from private_consensus.core.randomness import Streams
from private_consensus.privacy import account
from private_consensus.privacy.observers import (
    Coalition,
    Eavesdropper,
    FinalModels,
    SecureSums,
    agent,
)
from private_consensus.privacy.observers.linear_view import linear_view

T, RECORDS, RUNS = 3, 4, 1200
BOUNDED_BY_DISTANCE = {*MAPPED, *NOT_LINEAR} - NO_VIEWS - WHOLE_RUN
"""Algorithms whose bound by distance assumes that later rounds change no earlier release."""


def means(values=None, agents: int = 4) -> MeanEstimation:
    """Return a one-dimensional mean estimation problem in a box that no iterate leaves."""
    values = np.zeros(agents) if values is None else values
    return MeanEstimation(np.reshape(values, (1, -1, 1)), RECORDS, 1e9)


@dataclass
class GivenGradients(Problem):
    """Problem with fixed gradients [T, N] that do not depend on the iterate, as in the formula."""

    gradients: np.ndarray
    t: int = 0
    dim: int = 1
    strong_convexity: float = 2.0
    smoothness: float = 2.0

    def __post_init__(self):
        self.n_agents = self.gradients.shape[1]

    record_gradient_change = 1.0

    def gradient(self, x):
        return np.broadcast_to(self.gradients[self.t - 1][:, None], x.shape)


def measured(matrices=((1.0, 0.5),)) -> LinearObservation:
    """Return a linear observation problem without measurement noise."""
    constant = np.array([[list(row) for row in matrices]] * 4)
    none = np.zeros_like(constant)
    return LinearObservation(np.zeros(2), constant, none, none, np.zeros((4, 2)), 0.0)


GAUSSIAN = {"law": "gaussian", "noise": 0.7, "growth": 1.1, "init_std": 0.0}
FILTER = ((1.0, 0.0, 0.0), (-0.5, 0.9, 0.0), (0.2, 0.1, 1.2))
CASES = {
    "gradient_descent": [({"noise": 0.7}, "means"), ({"noise": 0.7}, "given")],
    "pdop": [({**GAUSSIAN, "eta": 0.1}, "means"), ({**GAUSSIAN, "eta": 0.1}, "given")],
    "ldp_gradient_descent": [
        ({**GAUSSIAN, "eta": 0.1, "weights": "fixed"}, kind) for kind in ("means", "given")
    ],
    "dp_ci": [({"noise": 2.0, "initial_noise": True, "shift": 2.0}, "measured")],
    "p_admm": [(GAUSSIAN, "means")],
    "pr_admm": [({"noise": 0.7, "threshold": "none"}, "means")],
    "dvp": [({**GAUSSIAN, "Phi": 0.4}, "means"), ({**GAUSSIAN, "unit": "x"}, "means")],
    "m_admm": [({**GAUSSIAN, "penalty_growth": 1.3}, "means")],
    "ldp_admm": [
        ({**GAUSSIAN, "weights": "fixed", "minimisation": how}, "means")
        for how in ("first_order", "exact")
    ],
    "exact_admm": [({"noise": 0.7, "rho": 0.8}, "means")],
    "muffliato": [({"noise": 0.7, "acceleration": how}, "first") for how in ACCELERATIONS],
    "muffliato_gd": [
        ({"noise": 0.7, "rounds": k, "acceleration": how}, kind)
        for k in (1, 2) for how in ACCELERATIONS for kind in ("means", "given")
    ],
    "mafalda_sgd": [({"noise": 0.7, "filter": FILTER}, kind) for kind in ("means", "given")],
    "decor": [({"noise": 0.7, "ratio": 1.3}, kind) for kind in ("means", "given")],
    "zip_dl": [({"noise": 0.7}, kind) for kind in ("means", "given")],
    "secure_aggregation": [({"noise": 0.7}, kind) for kind in ("means", "given")],
    "local_training": [({"noise": 0.7}, kind) for kind in ("means", "given")],
}  # fmt: skip
ALL = [(name, *case) for name, cases in CASES.items() for case in cases]
NETWORK = networks.build(Streams(0, (0,)), "path", 4, weights="metropolis")


def problem_for(kind: str):
    problem_builders = {"means": means, "first": means, "measured": measured}
    return (
        problem_builders[kind]() if kind in problem_builders else GivenGradients(np.zeros((T, 4)))
    )


def unit_noises(draw, problem) -> int:
    """Return the number of noise coordinates of one round."""
    noise = getattr(draw, "noise", draw)
    return sum(array[0].size for array in (noise if isinstance(noise, tuple) else (noise,)))


def with_noise(draw, flat):
    """Return the draw with the noise of one run replaced by the numbers in ``flat``."""
    noise = getattr(draw, "noise", draw)
    arrays, replaced = noise if isinstance(noise, tuple) else (noise,), []
    for array in arrays:
        numbers, flat = np.split(flat, [array[0].size])
        replaced.append(numbers.reshape(1, *array.shape[1:]))
    changed = tuple(replaced) if isinstance(noise, tuple) else replaced[0]
    return draw._replace(noise=changed) if hasattr(draw, "noise") else changed


def sent(algorithm, problem, units=None) -> np.ndarray:
    """Return all messages of the algorithm for the unit noise [T, numbers]; None: no noise."""
    batch, streams = stack([algorithm]), Streams(0, (0,))
    state = batch.start(problem, NETWORK, streams, 1)
    draws = batch.draws(problem, streams)
    messages = []
    for t in range(1, T + 1):
        draw = next(draws)
        flat = np.zeros(unit_noises(draw, problem)) if units is None else units[t - 1]
        if isinstance(problem, GivenGradients):
            problem.t = t
        state = batch.step(state, problem, NETWORK, with_noise(draw, flat), t)
        messages.append(all_sent(batch, state, problem, t)[0])
    return np.array(messages).ravel()


def all_sent(algorithm, state, problem, t: int) -> np.ndarray:
    """Return the messages of a round, broadcast or per edge; shape (runs, numbers)."""
    if hasattr(state, "mean"):
        return state.sent[0][:, NETWORK.adjacency].reshape(len(state.sent[0]), -1)
    released = algorithm.observables(state, problem, t)["released"][0]
    if isinstance(algorithm, SecureAggregation):
        released = released[:, :1]  # one message to all agents
    return released.reshape(len(released), -1)


def responses(algorithm, problem, kind: str) -> np.ndarray:
    """Return the change of all messages per unit of each agent's input; [rows, agents, basis]."""
    base = sent(algorithm, problem)
    if kind in ("means", "first"):
        unit = 1.0 if kind == "first" else 1.0 / RECORDS
        moved = [means(np.eye(4)[u] * unit) for u in range(4)]
        message_changes = [[sent(algorithm, changed_problem) - base] for changed_problem in moved]
    else:
        impulses = np.zeros((4, T, T, 4))
        for u in range(4):
            for t in range(T):
                impulses[u, t, t, u] = -1.0  # a step goes against the gradient
        message_changes = [
            [sent(algorithm, GivenGradients(gradients)) - base for gradients in of_agent]
            for of_agent in impulses
        ]
    return np.moveaxis(np.array(message_changes), -1, 0)


def covariance(system) -> np.ndarray:
    """Return the covariance of all messages for unit noise."""
    return linear_view(system, Eavesdropper(), np.ones((system.horizon, 1)), [0]).covariance


@pytest.mark.parametrize(("name", "options", "kind"), ALL)
def test_the_linear_system_reproduces_the_executed_messages(name, options, kind):
    """Compare the responses to each unit noise and each unit input with the execution."""
    algorithm, problem = algorithms.load(name)(**options), problem_for(kind)
    system = observed_system(algorithm, problem, NETWORK, T).channels[0]
    size = unit_noises(next(stack([algorithm]).draws(problem, Streams(0, (0,)))), problem)
    base, units = sent(algorithm, problem), np.eye(T * size).reshape(-1, T, size)
    B = np.array([sent(algorithm, problem, unit_noise) - base for unit_noise in units]).T
    if name == "dp_ci":  # the initial message is an additional round without data
        system = replace(system, rounds=system.rounds[1:])
    assert np.allclose(covariance(system), B @ B.T, rtol=1e-11, atol=1e-12)
    if kind == "measured":
        return
    basis = np.eye(T) if kind == "given" else np.ones((T, 1))
    view_response = linear_view(system, Eavesdropper(), basis, range(4)).response
    assert np.allclose(view_response, responses(algorithm, problem, kind), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(("name", "options", "kind"), ALL)
def test_simulated_messages_have_the_covariance_of_the_linear_system(name, options, kind):
    """Covariances of the algorithm's draws agree within five standard errors."""
    if kind == "given":
        return  # these gradients need an iteration number, which a run does not set
    algorithm, problem = algorithms.load(name)(**options), problem_for(kind)
    observed = observed_system(algorithm, problem, NETWORK, T)
    names = ("data", "graph", "noise", "sampling")
    streams = Streams(11, tuple(range(RUNS)), dict.fromkeys(names, "tests"))
    batch, problem = stack([algorithm]), problem.repeated(RUNS)
    state, draws = batch.start(problem, NETWORK, streams, 1), batch.draws(problem, streams)
    views = np.zeros((RUNS, 0))
    for t in range(1, T + 1):
        state = batch.step(state, problem, NETWORK, next(draws), t)
        views = np.hstack([views, all_sent(batch, state, problem, t)])
    variance, kurtosis = (2.0, 6.0) if observed.law == "laplace" else (1.0, 3.0)
    C = variance * covariance(observed.channels[0])[-views.shape[1] :, -views.shape[1] :]
    spread = np.multiply.outer(np.diag(C), np.diag(C)) * (kurtosis - 1) / 2 + C**2
    assert (np.abs(np.cov(views.T) - C) < 5 * np.sqrt(spread / RUNS) + 1e-12).all()


def test_every_algorithm_has_a_linear_system_or_a_stated_reason():
    assert sorted([*MAPPED, *NOT_LINEAR]) == sorted(REVIEWED)
    assert sorted(CASES) == sorted(MAPPED)
    assert all(len(reason.split()) >= 4 for reason in NOT_LINEAR.values())
    for name in NO_VIEWS:
        options = {"confidence": 0.9} if name.endswith("_audit") else {}
        with pytest.raises(InvalidInput, match=NOT_LINEAR[name][:20]):
            observation(algorithms.load(name)(**options), means(), NETWORK, T)


def test_a_subclass_does_not_inherit_the_linear_system_of_its_parent():
    """A subclass may send other messages, so only the eavesdropper's guarantee applies."""
    parent = algorithms.load("p_admm")

    class Louder(parent):
        pass

    observables = observation(Louder(**GAUSSIAN), means(), NETWORK, T)
    assert observables.system is None and observables.reason == "its linear system is not derived"
    assert observables.last_round(agent(0), 3) == T
    assert observation(parent(**GAUSSIAN), means(), NETWORK, T).last_round(agent(0), 3) == 1


@pytest.mark.parametrize("name", sorted(set(example_names()) & BOUNDED_BY_DISTANCE))
def test_a_shorter_run_releases_a_prefix_of_a_longer_run(name):
    """The bound by distance requires that later rounds do not change earlier releases."""
    (example,) = examples(name)
    world = example.problem, example.network
    noisy = example.algorithm.calibrate(example.budget, *world, example.horizon)
    short, long = noisy.releases(*world, 2), noisy.releases(*world, 3)
    if not any(release.mechanism in DENSITIES for release in long):
        fewer, all_ = (account(releases, 1e-2).epsilon for releases in (short, long))
        assert 0 < fewer <= all_ * (1 + 1e-9)
    for short_release, long_release in zip(short, long, strict=True):
        if short_release.mechanism in DENSITIES and name != "mafalda_sgd":
            losses = [np.broadcast_to(r.losses(), max(r.count, np.size(r.losses())))
                      for r in (short_release, long_release)]  # fmt: skip
            assert np.allclose(losses[1][: len(losses[0])], losses[0], rtol=1e-12)


def test_last_round_counts_the_rounds_that_reach_the_observer():
    """The expected rounds are derived by hand for a path of four agents in four rounds."""
    observables = observation(algorithms.load("p_admm")(**GAUSSIAN), means(), NETWORK, 4)
    expected = {
        (Eavesdropper(), 3): 4, (agent(0), 1): 4, (agent(0), 2): 3, (agent(0), 3): 2,
        (Coalition((0, 2)), 3): 4, (SecureSums((0,)), 3): 2, (FinalModels(), 3): 4,
        (FinalModels(of=(0,)), 3): 2, (FinalModels(of=(0, 3)), 3): 4,
        (Coalition((0,), last_states=True), 3): 4,
    }  # fmt: skip
    assert {key: observables.last_round(*key) for key in expected} == expected
    assert observation(observables.algorithm, means(), NETWORK, 2).last_round(agent(0), 3) == 0
    assert distances(NETWORK.adjacency).tolist() == [
        [0, 1, 2, 3], [1, 0, 1, 2], [2, 1, 0, 1], [3, 2, 1, 0]
    ]  # fmt: skip


def test_rounds_that_cannot_reach_the_observer_are_not_accounted():
    """A change of agent 3 reaches agent 0 only from the predicted round on.

    The algorithm is ADMM with random weights. The bound is the loss of the rounds that reach
    agent 0.
    """
    algorithm = algorithms.load("ldp_admm")(noise=1.0, init_std=0.0)
    observables = observation(algorithm, means(), NETWORK, 3)
    assert observables.system is None and "random" in observables.reason
    streams = Streams(5, (0,), dict.fromkeys(("data", "graph", "noise", "sampling"), "x"))
    received = []
    for problem in (means(), means([0, 0, 0, 1.0])):
        rows = []
        stack([algorithm]).run(
            problem, NETWORK, streams, np.array([3]), lambda t, a, s, r=rows: r.append(s)
        )
        received.append(np.array([row["released"][0, 0, 1, 0] for row in rows[:3]]))
    first = np.flatnonzero(received[0] != received[1])[0] + 1  # neighbour 1 of agent 0 sends it on
    assert observables.last_round(agent(0), 3) == 3 - first + 1 == 1
    losses = epsilons(observables, agent(0), 0.0)
    one_round_epsilon = account(algorithm.releases(means(), NETWORK, 1), 0.0).epsilon
    assert losses[3].guarantee == pytest.approx(one_round_epsilon) and losses[3].label == "F0"
    assert np.isnan(losses[3].formula) and losses[3].guarantee < losses[1].guarantee


def test_losses_in_the_observer_table_are_ordered():
    """Every loss is at most that to the eavesdropper, and secure sums cost at most messages.

    The median is at most the maximum, and lower and upper bound agree.
    """
    algorithm = algorithms.load("ldp_gradient_descent")(**GAUSSIAN, eta=0.05, weights="fixed")
    problem = MeanEstimation(np.zeros((1, 4, 1)), RECORDS, 0.5)
    rows = epsilon_by_observer(observation(algorithm, problem, NETWORK, 5), 1e-3)
    by = {(row["observer"], row["distance"], row["pair"]): row for row in rows}
    eavesdropper_epsilon = by["eavesdropper", None, "worst"]["guarantee"]
    (release,) = algorithm.releases(problem, NETWORK, 5)
    assert eavesdropper_epsilon == pytest.approx(account([release], 1e-3).epsilon, rel=1e-6)
    for row in rows:
        assert row["label"] == "exact"
        assert 0 <= row["lower"] <= row["formula"] <= row["lower"] * (1 + 1e-5) + 1e-12
        assert row["guarantee"] <= eavesdropper_epsilon * (1 + 1e-6)
    far = [by["agent", d, "worst"]["guarantee"] for d in (1, 2, 3)]
    assert far == sorted(far, reverse=True)
    assert by["secure sums", None, "worst"]["guarantee"] <= far[0] * (1 + 1e-6)
    assert by["coalition of 3", None, "worst"]["guarantee"] >= far[1]
    last = [by[name, None, "worst"]["guarantee"] for name in ("mean of last models", "last models")]
    assert last == sorted(last)
    for key, row in by.items():
        assert by[(*key[:2], "median")]["guarantee"] <= by[(*key[:2], "worst")]["guarantee"], row
