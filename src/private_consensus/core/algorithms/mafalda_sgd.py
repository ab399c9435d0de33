r"""MAFALDA-SGD: noise that is correlated over rounds (Bellet, Cyffers, Frey, Gaudel, Lereverend,
Taiani, ICLR 2026).

.. math::
    y_t = z_t - \eta\Bigl(\mathrm{clip}_K(g_t(z_t)) + \sigma\sum_{r\le t} (C^{-1})_{tr} n_r\Bigr),
    \qquad z_{t+1} = W y_t, \qquad n_r \sim N(0, I)

with one lower triangular C for all agents, chosen for the error that the noise leaves in all models
after mixing (arXiv 2510.17480; :mod:`private_consensus.privacy.observers.temporal` has the
objective). With b ``batches`` in a fixed cycle a record takes part in rounds s, s + b, ... With
sens the largest :math:`|C\Delta|` for changes of at most 1 in these rounds, all messages together
are one Gaussian mechanism

.. math:: \mu = \Delta\,\mathrm{sens}(C)/\sigma

for the eavesdropper, also where gradients are taken at what was sent before. Single agents far away
may learn more than from independent noise of the same account.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from private_consensus.common.errors import require
from private_consensus.privacy.observers.changes import Cyclic
from private_consensus.privacy.observers.temporal import cyclic_factor, error_gram, gram_of_powers

from ..networks import SparseNetwork
from .base import DRAW, origin
from .families.clipped_descent import ClippedDescent
from .parameters import one_of, whole

CORRELATIONS = ("optimal", "independent", "anti_pgd")


class State(NamedTuple):
    """Messages y, and the unit noise of all rounds so far.

    The shapes are [settings, runs, agents, dim] and [settings, runs, agents, dim, rounds].
    """

    x: np.ndarray
    drawn: np.ndarray


@dataclass(frozen=True, kw_only=True)
class MAFALDASGD(ClippedDescent):
    r"""Gradient descent with noise that is correlated over rounds; ``noise`` is :math:`\sigma`.

    Parameters
    ----------
    batches : int
        b; an agent's records are divided into b batches in turn, and round t uses batch t mod b,
        times b so that a batch's gradient is that of all records on average.
    correlation : {"optimal", "independent", "anti_pgd"}
        C for the least error; the unit matrix; or :math:`n_t - n_{t-1}` in round t.
    filter : tuple of tuple of float, optional
        :math:`C^{-1}`; set by :meth:`calibrate` for horizon and graph.
    """

    batches: int = whole(1)
    correlation: str = one_of("optimal", CORRELATIONS)
    filter: tuple[tuple[float, ...], ...] | None = None

    source: ClassVar[str] = "Bellet et al., ICLR 2026, arXiv 2510.17480, Algorithm 1"

    def calibrate(self, budget, problem, network, horizon):
        """Return a copy with the filter for horizon and graph, whose noise meets the budget.

        Parameters
        ----------
        budget : Budget
            Privacy budget of the whole run.
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        horizon : int
            Number of iterations.

        Returns
        -------
        Algorithm
            Copy with calibrated noise.
        """
        expected = "one graph for all runs, such as a ring or a grid: the noise is computed for it"
        require(network.shared, "network", "one graph per run", expected)
        _require_batches(problem, int(self.batches))
        if not budget.private:
            return replace(self, noise=0.0)
        factor = self._factor(network, horizon)
        rows = tuple(tuple(map(float, row)) for row in np.tril(np.linalg.inv(factor)))
        return super(MAFALDASGD, replace(self, filter=rows)).calibrate(
            budget, problem, network, horizon
        )

    def _factor(self, network, horizon: int) -> np.ndarray:
        """Return the matrix C, [T, T]."""
        if self.correlation == "independent":
            return np.eye(horizon)
        if self.correlation == "anti_pgd":
            return np.tril(np.ones((horizon, horizon)))
        if isinstance(network, SparseNetwork):  # nearly optimal; the account holds for any C
            gram = gram_of_powers(network.traces_of_powers(2 * horizon), horizon)
        else:
            gram = error_gram(network.mixing, horizon)
        return _found_once(gram.tobytes(), horizon, int(self.batches))

    def change(self, problem):
        """Return the largest l2 change of a batch's gradient."""
        moved = float(problem.record_change("l2")) * int(self.batches)
        return moved if self.clip is None else min(moved, 2.0 * float(self.clip))

    def losses(self, problem, network, horizon):
        """Return the sensitivity of all rounds together.

        It uses an upper bound on sens for the filter that is set.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        horizon : int
            Number of iterations.

        Returns
        -------
        ndarray, shape (1,)
            Sensitivity over noise of scale 1.
        """
        C = np.linalg.inv(self.filter_of(horizon))
        squared = Cyclic(period=int(self.batches)).maximum(C.T @ C, 0.0)[1]
        return np.array([self.change(problem) * np.sqrt(squared) * (1 + 1e-9)])

    def filter_of(self, horizon: int) -> np.ndarray:
        """Return :math:`C^{-1}` for the first ``horizon`` rounds.

        Rounds after the last one of the filter have independent noise.
        """
        inverse, stored = np.eye(horizon), np.array(self.filter or [[]])
        stored_rounds = min(horizon, stored.shape[1])
        inverse[:stored_rounds, :stored_rounds] = stored[:stored_rounds, :stored_rounds]
        return inverse

    def attained(self, problem):
        """Return None, since the attained fraction of the change is not known in general.

        It would be the change that a record makes in a single round, over sens.
        """
        return None

    def noise_sites(self, problem, network, horizon):
        r"""Return the site of the noise: the draw of each round.

        A record changes the draws by :math:`C\Delta/\sigma`. The change of a single round is known
        if a record takes part in all rounds and no entry of C is negative. Otherwise only all
        rounds together are bounded, by :meth:`losses`.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        horizon : int
            Number of iterations.

        Returns
        -------
        list of NoiseSite
            Empty without noise.
        """
        if not self.noise:
            return []
        C = np.linalg.inv(self.filter_of(horizon))
        aligned = int(self.batches) == 1 and bool((C >= -1e-12).all())
        round_sums = C.sum(1) if aligned else np.full(horizon, np.nan)
        moved = self.change(problem) * round_sums / float(self.noise.scale)
        return [self.noise.site(np.ones((horizon, 1, 1)), moved, DRAW)]

    def start(self, problem, network, streams, settings):
        """Return messages at 0, without noise of earlier rounds.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        streams : Streams
            Random streams of all runs.
        settings : int
            Number of settings in the batch.

        Returns
        -------
        State
            State before the first iteration.
        """
        zero = origin(problem, streams, settings)
        return State(zero, np.zeros((*zero.shape, 0)))

    def step(self, state, problem, network, draw, t):
        """Return the state after mixing and one gradient step with correlated noise.

        Parameters
        ----------
        state : State
            State before the iteration.
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        draw : ndarray, shape (runs, agents, dim)
            Unit noise of the round.
        t : int
            Iteration, counted from 1.

        Returns
        -------
        State
            State after the iteration.
        """
        now = np.broadcast_to(draw, state.x.shape)[..., None]
        drawn = np.concatenate([state.drawn, now], axis=-1)
        weights = self.filter_of(t)[t - 1]
        z = network.mix(state.x)
        moved = self.descent(batch_of(problem, t, self.batches), z)
        return State(moved + self.message_scale * (drawn @ weights), drawn)


ALGORITHM = MAFALDASGD


@lru_cache(maxsize=64)
def _found_once(gram: bytes, rounds: int, batches: int) -> np.ndarray:
    """Return C for a matrix of errors [rounds, rounds], cached because all budgets share it."""
    return cyclic_factor(np.frombuffer(gram).reshape(rounds, rounds), batches)


def _require_batches(problem: Any, batches: int) -> None:
    if batches == 1:
        return
    problem.part(slice(0, None, batches))
    fine = problem.records % batches == 0
    require(fine, "algorithm.batches", batches, f"a divisor of {problem.records}, the records")


def batch_of(problem: Any, t: int, batches: Any):
    """Return the problem restricted to the records that take part in round t.

    Parameters
    ----------
    problem : Problem
        Objectives and data of the agents, with their sensitivities.
    t : int
        Iteration, counted from 1.
    batches : int or ndarray of int
        Number of batches, equal for all settings.

    Returns
    -------
    Problem
        Weights are multiplied by the number of batches.
    """
    counts = np.unique(batches)
    require(len(counts) == 1, "algorithm.batches", counts, "one number for all settings")
    b = int(counts[0])
    if b == 1:
        return problem
    batch = problem.part(slice((t - 1) % b, None, b))
    return batch.with_valid(weight=problem.weight * b)
