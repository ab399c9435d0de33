"""MAFALDA-SGD: noise that is correlated over rounds (Bellet et al., ICLR 2026)."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from private_consensus.common.errors import require
from private_consensus.privacy.correlated_noise import cyclic_factor, error_gram
from private_consensus.privacy.mechanisms import Temporal

from ..parameters import PositiveInt
from .base import Iterates, column, common_value
from .families.clipped_descent import ClippedDescent


@dataclass(frozen=True, kw_only=True)
class MAFALDASGD(ClippedDescent):
    r"""Gradient descent with noise that is correlated over rounds; ``noise`` is :math:`\sigma`.

    .. math::
        y_t = z_t - \eta\Bigl(\mathrm{clip}_K(g_t(z_t))
            + \sigma\sum_{r\le t} (C^{-1})_{tr} n_r\Bigr), \qquad
        z_{t+1} = W y_t, \qquad n_r \sim N(0, I)

    All agents use one lower triangular matrix C, which minimises the error that the noise causes in
    the models after mixing (:mod:`private_consensus.privacy.correlated_noise` has the objective).
    With b ``batches`` in a fixed cycle, a record affects the rounds s, s + b, ... Let sens(C) be
    the largest :math:`|C\Delta|` for changes of at most 1 in these rounds. For the eavesdropper,
    all messages together are one Gaussian mechanism with

    .. math:: \mu = \Delta\,\mathrm{sens}(C)/\sigma,

    also if gradients are evaluated at functions of earlier messages. For distant agents, the
    privacy loss may be larger than with independent noise of equal :math:`\mu`.

    Parameters
    ----------
    batches : int
        Number b of batches into which the records of each agent are divided. Round t uses batch
        t mod b. Its gradient is multiplied by b, so that the mean of a cycle is the full gradient.
    correlation : {"optimal", "independent"}
        Noise: with the optimal C, or independent.
    filter : tuple of tuple of float, optional
        Matrix :math:`C^{-1}`, which :meth:`calibrate` sets for the horizon and the graph.
    """

    batches: PositiveInt = 1
    correlation: Literal["optimal", "independent"] = "optimal"
    filter: tuple[tuple[float, ...], ...] | None = None

    source = "Bellet et al., ICLR 2026, arXiv 2510.17480, Algorithm 1"

    def calibrate(self, budget, problem, network, horizon):
        expected = "one graph for all runs, such as a ring, since the graph determines the noise"
        require(network.shared, "network", "one graph per run", expected)
        _require_batches(problem, int(self.batches))
        if not budget.private:
            return replace(self, noise=0.0)
        factor = np.eye(horizon)
        if self.correlation == "optimal":
            gram = error_gram(network.mixing, horizon)
            factor = _optimal_factor(gram.tobytes(), horizon, int(self.batches))
        # A tuple, so that settings can be compared and combined into batches.
        rows = tuple(tuple(map(float, row)) for row in np.tril(np.linalg.inv(factor)))
        return super(MAFALDASGD, replace(self, filter=rows)).calibrate(
            budget, problem, network, horizon
        )

    def change(self, problem):
        # A gradient of a batch is multiplied by b, and with it the change by one record.
        change = float(problem.record_change("l2")) * int(np.max(self.batches))
        return change if self.clip is None else np.minimum(change, 2.0 * column(self.clip))

    def mechanisms(self, problem, network, horizon):
        change, period = column(self.eta) * self.change(problem), int(np.max(self.batches))
        filter = self.filter_of(horizon)
        return {"step": Temporal(change, self.message_scale, filter=filter, period=period)}

    def step(self, state, problem, network, release, t):
        z = network.mix(state.x)
        stepped = self.descent(batch_of(problem, t, self.batches), z)
        return Iterates(release("step", stepped))

    def filter_of(self, horizon: int) -> np.ndarray:
        """Return the matrix :math:`C^{-1}` that correlates the noise of the first rounds.

        The noise of rounds beyond the filter is independent.
        """
        inverse, stored = np.eye(horizon), np.array(self.filter or [[]])
        rounds = min(horizon, stored.shape[1])
        inverse[:rounds, :rounds] = stored[:rounds, :rounds]
        return inverse


ALGORITHM = MAFALDASGD


@lru_cache(maxsize=64)
def _optimal_factor(gram: bytes, rounds: int, batches: int) -> np.ndarray:
    """Return the optimal C for an error matrix [rounds, rounds], cached for all budgets."""
    return cyclic_factor(np.frombuffer(gram).reshape(rounds, rounds), batches)


def _require_batches(problem: Any, batches: int) -> None:
    if batches == 1:
        return
    problem.part(slice(0, None, batches))  # raises an error if the problem has no batches
    divides = problem.records % batches == 0
    expected = f"a divisor of {problem.records}, the number of records of an agent"
    require(divides, "algorithm.batches", batches, expected)


def batch_of(problem: Any, t: int, batches: Any):
    """Return the problem restricted to the batch of round t.

    Its weight per record is multiplied by the number of batches, which is equal for all settings.
    """
    b = int(common_value("batches", batches))
    if b == 1:
        return problem
    batch = problem.part(slice((t - 1) % b, None, b))
    return batch.with_valid(weight=problem.weight * b)
