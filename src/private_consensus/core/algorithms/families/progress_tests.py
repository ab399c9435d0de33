r"""Tests of progress by the sparse vector technique (Ding, section 3.5).

This module is not an algorithm. Replacing a record changes a query by at most
:math:`\Delta`, given all messages so far. A mean of clipped losses at a fixed point
changes by at most :math:`C_{loss}/|D_i|`.

* If noisy outputs are tested, :math:`\Delta = 2C_{loss}/|D_i|`. Both points are fixed once the
  privacy cost of these outputs is counted.
* If minimisers are tested, :math:`\Delta = C_{loss} + C_{loss}/|D_i|`. The second point is hidden
  and depends on the data, but its mean loss stays within :math:`[0, C_{loss}]`. The
  bounds on an answer hold for every possible minimiser, hence also jointly with the
  message made from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from private_consensus.privacy import Release, SparseVector, sparse_vector_release
from private_consensus.privacy.releases import RandomCount
from private_consensus.privacy.sparse_vector import capped_binomial, least_answers

from ..base import column, per_agent
from .approximate_minimisers import COARSE_SOLVER, Charge


class SparseVectorNoise(NamedTuple):
    r"""Laplace scales of query and threshold, and :math:`\epsilon_1 + \epsilon_2`."""

    query_noise: float
    threshold_noise: float
    svt_epsilon: float


NO_NOISE = SparseVectorNoise(0.0, 0.0, 0.0)


SENSITIVITIES = ("printed", "per_sample")
THRESHOLD_SCALES = ("printed", "standard")
DECISIONS = ("sparse_vector", "coin")
TESTED = ("minimiser", "noised")


class Draw(NamedTuple):
    """Unit draws of an iteration.

    Those of the dual and the output are [runs, agents, dim] each. Those of query, threshold
    (Laplace) and coin (uniform) are [runs, agents] each.
    """

    noise: tuple[np.ndarray, np.ndarray]
    query: np.ndarray
    threshold: np.ndarray
    coin: np.ndarray


class ThresholdState(NamedTuple):
    """State of the tests, each field [settings, runs, agents].

    The fields are the unit noise of the threshold, whether it is to be sampled again, the
    number of messages so far, and the clipped loss of the latest message. The loss is NaN if
    it has not been computed.
    """

    threshold: np.ndarray
    stale: np.ndarray
    sent: np.ndarray
    loss: np.ndarray


def untested(x: np.ndarray) -> ThresholdState:
    """Return the state of the tests before the first iteration.

    The iteration starts from x [settings, runs, agents, dim].
    """
    zero = np.zeros(x.shape[:-1])
    return ThresholdState(zero, np.ones(zero.shape, bool), zero, np.full(zero.shape, np.nan))


def draws(messages: Iterator[Any], problem, streams) -> Iterator[Draw]:
    """Combine the random numbers of messages and of tests.

    Parameters
    ----------
    messages : iterator
        Draws of the messages, with a field ``noise``.
    problem : Problem
        Objectives and data of the agents, with their sensitivities.
    streams : Streams
        Random streams of all runs.

    Yields
    ------
    Draw
        Unit draws of one iteration.
    """
    kinds = ("noise", "laplace", "query"), ("noise", "laplace", "threshold")
    drawn = (*kinds, ("sampling", "uniform", "coin"))
    shape = (problem.n_agents,)
    units = [streams.sequence(purpose, law, shape, name) for purpose, law, name in drawn]
    for message in messages:
        yield Draw(message.noise, *map(next, units))


@dataclass(frozen=True)
class ProgressTests:
    """Tests of progress and their privacy cost.

    Parameters
    ----------
    algorithm : ImprovedPlausiblyPrivateADMM
        Algorithm with the scales of query and threshold noise.
    problem : Problem
        Losses and their sensitivities.
    """

    algorithm: Any
    problem: Any

    def test(
        self, state: Any, minimiser: np.ndarray, noised: np.ndarray, draw: Draw
    ) -> ThresholdState:
        """Return which agents send a message.

        An agent sends if its loss decreased by more than the noisy threshold. If ``decision`` is
        ``coin``, a fair coin decides instead. No agent sends more than c messages.

        Parameters
        ----------
        state : State
            State before the test.
        minimiser : ndarray, shape (settings, runs, agents, dim)
            Minimisers before output noise.
        noised : ndarray, shape (settings, runs, agents, dim)
            Minimisers with output noise.
        draw : Draw
            Unit draws of the iteration.

        Returns
        -------
        ThresholdState
            State of the tests; ``sent`` has increased for agents that send.
        """
        algorithm = self.algorithm
        unit = np.where(state.stale, draw.threshold, state.threshold)
        may = state.sent < per_agent(algorithm.c)
        if algorithm.decision == "coin":
            passes, loss = np.broadcast_to(draw.coin < 0.5, unit.shape), state.loss
        else:
            noised_too = algorithm.tested == "noised"
            before, after = self._losses(state, noised if noised_too else minimiser, may)
            line = per_agent(algorithm.alpha) + per_agent(algorithm.threshold_noise.scale) * unit
            query = before - after + per_agent(algorithm.query_noise.scale) * draw.query
            passes = query >= line
            loss = np.where(passes & may, after if noised_too else np.nan, before)
        sends = passes & may
        again = {"each": np.ones_like(sends), "after_release": sends, "once": np.zeros_like(sends)}
        return ThresholdState(unit, again[algorithm.threshold_drawn], state.sent + sends, loss)

    def _losses(self, state: Any, after: np.ndarray, may: np.ndarray) -> tuple[np.ndarray, ...]:
        """Compute the clipped losses of the latest messages and of new points.

        Both are [settings, runs, agents], for agents that may still send. The former is cached
        unless the message has just been sent.
        """
        new = np.isnan(state.loss) & may
        bound = np.broadcast_to(column(self.algorithm.C_loss), (*may.shape, 1))
        points, bounds, required = (
            np.concatenate(pair) for pair in ((state.x, after), (bound, bound), (new, may))
        )
        before, now = np.split(self.problem.clipped_loss(points, bounds, required), 2)
        return np.where(new, before, state.loss), now

    def noise_for(self, rho: float) -> SparseVectorNoise:
        """Return the noise with which all tests cost rho, in zCDP, as published."""
        algorithm, sensitivity = self.algorithm, 2.0 * self.algorithm.C_loss
        if algorithm.svt_sensitivity == "per_sample":
            sensitivity = 2.0 * self.problem.clipped_loss_change(algorithm.C_loss)
        epsilon = float(np.sqrt(2.0 * rho))
        tests = SparseVector.split(epsilon, sensitivity=sensitivity, count=int(algorithm.c))
        times = algorithm.c if algorithm.threshold_scale == "printed" else 1
        return SparseVectorNoise(tests.query_scale, times * tests.threshold_scale, tests.epsilon)

    @property
    def change(self) -> Any:
        r"""Largest change :math:`\Delta` of a query by one record, given all messages so far."""
        of_loss = self.problem.clipped_loss_change(self.algorithm.C_loss)
        noised = self.algorithm.tested == "noised"
        return of_loss + (of_loss if noised else self.algorithm.C_loss)

    def release(self, change: float, horizon: int) -> Release:
        """Return the release of tests of queries with a bounded sensitivity.

        Parameters
        ----------
        change : float
            Largest change of a query by one record.
        horizon : int
            Number of iterations, each with one test.

        Returns
        -------
        Release
            Sparse vector mechanism.
        """
        algorithm = self.algorithm
        return sparse_vector_release(
            change,
            algorithm.threshold_noise.scale,
            algorithm.query_noise.scale,
            count=int(algorithm.c),
            tests=horizon,
            redrawn=algorithm.threshold_drawn,
        )

    def releases(self, messages: list[Release], charge: Charge, horizon: int) -> list[Release]:
        """Return the releases of messages and of the tests that decide which messages are sent.

        Parameters
        ----------
        messages : list of Release
            Releases of the largest possible number of messages.
        charge : Charge
            Privacy cost of one message, with its attained ratio.
        horizon : int
            Number of iterations.

        Returns
        -------
        list of Release
            Without noise, or with decisions by coin, there is no release of tests.
        """
        first, *remaining = (replace(release, attained=None, attack=None) for release in messages)
        if not self.algorithm.noisy:
            return [first, *remaining]
        if charge.attained_ratio is not None:
            first = replace(first, attack=self.attack(charge.attained_ratio, horizon))
        coin = self.algorithm.decision == "coin"
        return [first, *remaining, *([] if coin else [self.release(self.change, horizon)])]

    def attack(self, ratio: float, horizon: int) -> Release:
        """Return the attack of PP-ADMM on the sent messages, for one record next to zero rows.

        If the clipped loss of the record did not count in the tests, no query would depend on the
        data. The number of messages would then have the distribution of tests of 0. The loss
        changes a query by at most :math:`C_{loss}/|D_i|` for every minimiser. The distribution of
        all messages can differ from that one by at most the factor that tests of such queries
        cost.

        Parameters
        ----------
        ratio : float
            Attained ratio of shift to noise of one message, :attr:`.Charge.attained_ratio`.
        horizon : int
            Number of iterations, each with one test.

        Returns
        -------
        Release
            Lower bound only: a random number of Gaussian releases.
        """
        algorithm, max_count = self.algorithm, int(self.algorithm.c)
        if algorithm.decision == "coin":
            law, log_tolerance = capped_binomial(0.5, max_count, horizon), 0.0
        else:
            scales = float(algorithm.threshold_noise.scale), float(algorithm.query_noise.scale)
            test_fields = {
                "count": max_count,
                "tests": horizon,
                "redrawn": algorithm.threshold_drawn,
            }
            law = least_answers(float(algorithm.alpha), *scales, **test_fields)
            tests = self.release(self.problem.clipped_loss_change(algorithm.C_loss), horizon)
            log_tolerance = tests.count * tests.epsilon
        count = RandomCount(ratio, tuple(law.tolist()))
        return Release(
            "profile", profile=count, attained=1.0, log_tolerance=log_tolerance, note=COARSE_SOLVER
        )
