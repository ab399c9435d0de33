r"""Tests of progress by the sparse vector technique (Ding, section 3.5).

This module is not an algorithm. Let :math:`\Delta` be the largest change of a query by a replaced
record, given all messages so far. At a fixed point, a record changes the mean of clipped losses by
at most :math:`C_{loss}/|D_i|`.

* If noisy outputs are tested, :math:`\Delta = 2C_{loss}/|D_i|`: the query is the difference of the
  mean losses at two points, which are fixed because they are released.
* If minimisers are tested, :math:`\Delta = C_{loss} + C_{loss}/|D_i|`: the second point is not
  released and depends on the data, but its mean loss is in :math:`[0, C_{loss}]`. The bound holds
  for every possible minimiser, and therefore also given the message that is computed from it.
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
from .approximate_minimisers import COARSE_SOLVER, MessagePrivacyCost


class SparseVectorNoise(NamedTuple):
    r"""Laplace scales of query and threshold, and privacy loss :math:`\epsilon_1 + \epsilon_2`."""

    query_noise: float
    threshold_noise: float
    svt_epsilon: float


NO_NOISE = SparseVectorNoise(0.0, 0.0, 0.0)


SENSITIVITIES = ("printed", "per_sample")
THRESHOLD_SCALES = ("printed", "standard")
DECISIONS = ("sparse_vector", "coin")
TESTED = ("minimiser", "noised")


class ProgressTestsDraw(NamedTuple):
    """Unit draws of an iteration.

    ``noise`` has the draws of the dual and of the output, each [runs, agents, dim]. The draws of
    query and threshold (Laplace) and of the coin (uniform) are [runs, agents].
    """

    noise: tuple[np.ndarray, np.ndarray]
    query: np.ndarray
    threshold: np.ndarray
    coin: np.ndarray


class ThresholdState(NamedTuple):
    """State of the tests, each field [settings, runs, agents].

    ``threshold`` is the unit noise of the threshold; ``stale`` is True if it has to be sampled
    again. ``sent`` is the number of messages so far. ``loss`` is the clipped loss at the latest
    message, NaN if it has not been computed.
    """

    threshold: np.ndarray
    stale: np.ndarray
    sent: np.ndarray
    loss: np.ndarray


def initial_state(x: np.ndarray) -> ThresholdState:
    """Return the state of the tests before the first iteration, for iterates x."""
    zero = np.zeros(x.shape[:-1])
    return ThresholdState(zero, np.ones(zero.shape, bool), zero, np.full(zero.shape, np.nan))


def draws(messages: Iterator[Any], problem, streams) -> Iterator[ProgressTestsDraw]:
    """Yield the unit draws of the messages, with a field ``noise``, and of the tests."""
    kinds = ("noise", "laplace", "query"), ("noise", "laplace", "threshold")
    drawn = (*kinds, ("sampling", "uniform", "coin"))
    shape = (problem.n_agents,)
    units = [streams.sequence(purpose, law, shape, name) for purpose, law, name in drawn]
    for message in messages:
        yield ProgressTestsDraw(message.noise, *map(next, units))


@dataclass(frozen=True)
class ProgressTests:
    """Tests of whether the clipped loss has decreased enough to send a message.

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
        self, state: Any, minimiser: np.ndarray, noised: np.ndarray, draw: ProgressTestsDraw
    ) -> ThresholdState:
        """Decide which agents send a message, and return the new state of the tests.

        An agent sends its message if the noisy decrease of its loss is at least the noisy
        threshold. If ``decision`` is ``coin``, a fair coin decides instead. No agent sends more
        than c messages. The minimisers before and with output noise are [settings, runs, agents,
        dim].
        """
        algorithm = self.algorithm
        unit = np.where(state.stale, draw.threshold, state.threshold)
        may_send = state.sent < per_agent(algorithm.c)
        if algorithm.decision == "coin":
            passes, loss = np.broadcast_to(draw.coin < 0.5, unit.shape), state.loss
        else:
            tests_noised = algorithm.tested == "noised"
            before, after = self._losses(state, noised if tests_noised else minimiser, may_send)
            noisy_threshold = (
                per_agent(algorithm.alpha) + per_agent(algorithm.threshold_noise.scale) * unit
            )
            query = before - after + per_agent(algorithm.query_noise.scale) * draw.query
            passes = query >= noisy_threshold
            loss = np.where(passes & may_send, after if tests_noised else np.nan, before)
        sends = passes & may_send
        stale = {"each": np.ones_like(sends), "after_release": sends, "once": np.zeros_like(sends)}
        return ThresholdState(unit, stale[algorithm.threshold_drawn], state.sent + sends, loss)

    def _losses(self, state: Any, points: np.ndarray, may_send: np.ndarray) -> tuple:
        """Compute the clipped losses at the latest messages and at new points.

        Both are [settings, runs, agents], for agents that may still send. The loss at the latest
        message is computed only if ``state.loss`` is NaN.
        """
        is_new = np.isnan(state.loss) & may_send
        bound = np.broadcast_to(column(self.algorithm.C_loss), (*may_send.shape, 1))
        losses = self.problem.clipped_loss(
            np.concatenate((state.x, points)),
            np.concatenate((bound, bound)),
            np.concatenate((is_new, may_send)),
        )
        before, after = np.split(losses, 2)
        return np.where(is_new, before, state.loss), after

    def noise_for(self, rho: float) -> SparseVectorNoise:
        """Return the published noise with which all tests meet a zCDP budget rho."""
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
        change = self.problem.clipped_loss_change(self.algorithm.C_loss)
        return change + (change if self.algorithm.tested == "noised" else self.algorithm.C_loss)

    def release(self, change: float, horizon: int) -> Release:
        """Return the sparse vector mechanism of all tests with a bounded sensitivity."""
        algorithm = self.algorithm
        return sparse_vector_release(
            change,
            algorithm.threshold_noise.scale,
            algorithm.query_noise.scale,
            count=int(algorithm.c),
            tests=horizon,
            redrawn=algorithm.threshold_drawn,
        )

    def releases(
        self, messages: list[Release], charge: MessagePrivacyCost, horizon: int
    ) -> list[Release]:
        """Return the releases of the messages and of the tests that select them.

        ``charge`` is the privacy cost of one message, with its attained ratio. The release of tests
        is left out if there is no noise, or if a coin decides.
        """
        first, *remaining = (replace(release, attained=None, attack=None) for release in messages)
        if not self.algorithm.noisy:
            return [first, *remaining]
        if charge.attained_ratio is not None:
            first = replace(first, attack=self.attack(charge.attained_ratio, horizon))
        coin = self.algorithm.decision == "coin"
        return [first, *remaining, *([] if coin else [self.release(self.change, horizon)])]

    def attack(self, ratio: float, horizon: int) -> Release:
        """Return the attack of PP-ADMM on the sent messages, for lower bounds only.

        All rows of the data but one are 0. Without the clipped loss of this record, all queries of
        the tests would be 0, and the number of messages would have a known distribution. With it, a
        query changes by at most :math:`C_{loss}/|D_i|` for every minimiser. The probability of the
        messages changes by at most the factor exp(epsilon) of tests with this sensitivity.
        ``ratio`` is the ratio of shift to noise that the attack attains in one message.
        """
        algorithm, max_count = self.algorithm, int(self.algorithm.c)
        if algorithm.decision == "coin":
            probabilities, log_tolerance = capped_binomial(0.5, max_count, horizon), 0.0
        else:
            probabilities = least_answers(
                float(algorithm.alpha),
                float(algorithm.threshold_noise.scale),
                float(algorithm.query_noise.scale),
                count=max_count,
                tests=horizon,
                redrawn=algorithm.threshold_drawn,
            )
            tests = self.release(self.problem.clipped_loss_change(algorithm.C_loss), horizon)
            log_tolerance = tests.count * tests.epsilon
        count = RandomCount(ratio, tuple(probabilities.tolist()))
        return Release(
            "profile", profile=count, attained=1.0, log_tolerance=log_tolerance, note=COARSE_SOLVER
        )
