"""Compare the accounted privacy loss with the exact loss of the executed messages.

All algorithms are affine in their noise and in the inputs of the agents. Their messages are
therefore Gaussian, and an execution per unit of noise and input gives covariance and means.
"""

from dataclasses import dataclass

import numpy as np
import pytest

from private_consensus import algorithms, networks
from private_consensus.core.algorithms.base import stack
from private_consensus.core.algorithms.secure_aggregation import SecureAggregation
from private_consensus.core.handlers import Running
from private_consensus.core.problems.base import Problem
from private_consensus.core.problems.mean_estimation import MeanEstimation
from private_consensus.core.randomness import Streams
from private_consensus.privacy.correlated_noise import correlation_maximum

T, RECORDS = 3, 4
NETWORK = networks.build(Streams(0, (0,)), "path", 4, weights="metropolis")


def means(values=None) -> MeanEstimation:
    """Return a one-dimensional mean estimation problem in a box that no iterate leaves."""
    values = np.zeros(4) if values is None else values
    return MeanEstimation(np.reshape(values, (1, -1, 1)), RECORDS, 1e9)


@dataclass
class GivenGradients(Problem):
    """Problem with fixed gradients [T, N], which do not depend on the iterate."""

    gradients: np.ndarray
    t: int = 0
    dim: int = 1
    strong_convexity: float = 2.0
    smoothness: float = 2.0
    record_gradient_change = 1.0

    def __post_init__(self):
        self.n_agents = self.gradients.shape[1]

    def gradient(self, x):
        return np.broadcast_to(self.gradients[self.t - 1][:, None], x.shape)


GAUSSIAN = {"law": "gaussian", "noise": 0.7, "growth": 1.1, "init_std": 0.0}
FILTER = ((1.0, 0.0, 0.0), (-0.5, 0.9, 0.0), (0.2, 0.1, 1.2))
CASES = {
    "gradient_descent": [({"noise": 0.7}, "means"), ({"noise": 0.7}, "given")],
    "pdop": [({**GAUSSIAN, "eta": 0.1}, "means"), ({**GAUSSIAN, "eta": 0.1}, "given")],
    "ldp_gradient_descent": [
        ({**GAUSSIAN, "eta": 0.1, "weights": "fixed"}, kind) for kind in ("means", "given")
    ],
    "p_admm": [(GAUSSIAN, "means")],
    "pr_admm": [({"noise": 0.7, "threshold": "none"}, "means")],
    "ldp_admm": [
        ({**GAUSSIAN, "weights": "fixed", "minimisation": how}, "means")
        for how in ("first_order", "exact")
    ],
    "exact_admm": [({"noise": 0.7, "rho": 2.0}, "means")],
    "muffliato": [({"noise": 0.7, "acceleration": how}, "means") for how in ("none", "chebyshev")],
    "muffliato_gd": [
        ({"noise": 0.7, "rounds": k}, kind) for k in (1, 2) for kind in ("means", "given")
    ],
    "mafalda_sgd": [({"noise": 0.7, "filter": FILTER}, kind) for kind in ("means", "given")],
    "decor": [({"noise": 0.7, "ratio": 1.3}, kind) for kind in ("means", "given")],
    "zip_dl": [({"noise": 0.7, "eta": 0.1}, "means")],
    "secure_aggregation": [({"noise": 0.7}, kind) for kind in ("means", "given")],
    "local_training": [({"noise": 0.7}, kind) for kind in ("means", "given")],
}  # fmt: skip
BOUNDS = {
    # The accountant bounds the change of a minimiser, changes in all directions, and the sum of the
    # differences of states.
    ("exact_admm", "means"),
    ("mafalda_sgd", "means"),
    ("zip_dl", "means"),
}
"""Algorithms and inputs for which the accounted loss is a bound; it is exact for all others."""
ALL = [(name, *case) for name, cases in CASES.items() for case in cases]


class UnitNoise:
    """Streams of one run, whose noise is 0 except for one unit, counted over all rounds."""

    def __init__(self, unit: int | None = None):
        self.streams, self.unit, self.count = Streams(0, (0,)), unit, 0

    def __getattr__(self, name):
        return getattr(self.streams, name)

    def sequence(self, purpose, distribution, shape, name=""):
        if purpose != "noise":
            return self.streams.sequence(purpose, distribution, shape, name)
        return self.noise(shape)

    def noise(self, shape):
        size = int(np.prod(shape))
        while True:
            flat = np.zeros(size)
            if self.unit is not None and 0 <= self.unit - self.count < size:
                flat[self.unit - self.count] = 1.0
            self.count += size
            yield flat.reshape(1, *shape)


def sent(algorithm, problem, unit: int | None = None) -> tuple[np.ndarray, int]:
    """Return all messages for one unit of noise, None: no noise; and the number of units."""
    batch, streams, horizon = stack([algorithm]), UnitNoise(unit), np.array([T])
    handler = Running(batch.mechanisms(problem, NETWORK, T), problem, streams, horizon)
    release, messages = handler.function(), []
    state = batch.start(problem, NETWORK, release)
    for t in range(1, T + 1):
        handler.begin(t)
        if isinstance(problem, GivenGradients):
            problem.t = t
        state = batch.step(state, problem, NETWORK, release, t)
        messages.append(messages_of(batch, state, problem, t))
    return np.concatenate(messages), streams.count


def messages_of(algorithm, state, problem, t: int) -> np.ndarray:
    """Return the messages of a round, broadcast or per edge."""
    if hasattr(state, "mean"):
        return state.sent[0][:, NETWORK.adjacency].ravel()
    released = algorithm.observables(state, problem, t)["released"][0]
    # In secure aggregation, all agents receive one message.
    return (released[:, :1] if isinstance(algorithm, SecureAggregation) else released).ravel()


def exact_mu_squared(algorithm, kind: str, size: float) -> float:
    """Return mu^2 of all messages for a gradient change of ``size``, of the most exposed agent."""
    problem = means() if kind == "means" else GivenGradients(np.zeros((T, 4)))
    base, count = sent(algorithm, problem)
    noise = np.array([sent(algorithm, problem, unit)[0] - base for unit in range(count)])
    if kind == "means":  # the gradient of an agent changes by 1 in all rounds
        changes = [[means(row / RECORDS)] for row in np.eye(4)]
    else:
        changes = [
            [GivenGradients(np.outer(times, agent)) for times in np.eye(T)] for agent in np.eye(4)
        ]
    inverse, losses = np.linalg.pinv(noise.T @ noise, hermitian=True), []
    for of_agent in changes:
        responses = np.array([sent(algorithm, changed)[0] - base for changed in of_agent])
        assert responses @ (noise.T @ noise) @ inverse == pytest.approx(responses, abs=1e-9)
        losses.append(correlation_maximum(responses @ inverse @ responses.T))
    return size**2 * max(losses)


@pytest.mark.parametrize(("name", "options", "kind"), ALL)
def test_the_accounted_loss_equals_or_bounds_the_loss_of_the_messages(name, options, kind):
    algorithm = algorithms.load(name)(**options)
    problem = means() if kind == "means" else GivenGradients(np.zeros((T, 4)))
    releases = algorithm.releases(problem, NETWORK, T)
    assert {release.mechanism for release in releases} == {"gaussian"}
    accounted = sum(float((release.losses() ** 2).sum()) for release in releases)
    exact = exact_mu_squared(algorithm, kind, problem.record_change("l2"))
    if (name, kind) in BOUNDS:
        assert 0.5 * accounted < exact < accounted
    else:
        assert exact == pytest.approx(accounted, rel=1e-6)
