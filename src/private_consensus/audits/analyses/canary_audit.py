r"""Audit of Q-DPSGD-1 in one run: all records of one agent are canaries.

Canary c of agent 1 has the gradient :math:`\pm K u_c` at every model. Its axis :math:`u_c` is a
coordinate axis that no other canary has, and its sign is random; replacing the record reverses the
sign. The other agents train as usual. The audit tests two observers:

``gradients``
    observes the noisy mean gradients of agent 1, for which Theorem 11 states epsilon;
``messages``
    observes quantised models, which determine the noisy mean of agent 1 up to rounding:
    :math:`(\kappa z_1(t) + e\sum_j w_{1j}z_j(t) - z_1(t+1))/(ae)`, :math:`\kappa = 1-e+ew_{11}`.

The score of a canary is the sum of the observed values along its axis. The attacker guesses the
sign + for the largest scores and - for the smallest. The bound is that of
:mod:`private_consensus.privacy.one_run`. With ``share`` below 1 the noise is deliberately
too small, as a test of the audit itself.
"""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

from private_consensus.common.errors import require
from private_consensus.core.algorithms.base import Attack
from private_consensus.core.algorithms.q_dpsgd_1 import QDPSGD1
from private_consensus.core.handlers import Running
from private_consensus.core.networks import Network
from private_consensus.core.parameters import Fraction, Positive
from private_consensus.core.quantization import Grid
from private_consensus.kernels import rounds as kernel
from private_consensus.privacy import account
from private_consensus.privacy.one_run import one_run_epsilon, one_run_pvalue

VIEWS = ("gradients", "messages")
"""Observed values of the two observers."""


class Canaries(NamedTuple):
    """Canaries of one run.

    Parameters
    ----------
    signs, axes : ndarray, shape (m,)
        Sign, -1 or 1, and coordinate of each canary.
    number : ndarray, shape (records,)
        Index of the canary in each row of the data, or -1.
    """

    signs: np.ndarray
    axes: np.ndarray
    number: np.ndarray


class Coefficients(NamedTuple):
    """Coefficients of a round of one setting and run: steps ae and e, grid, clipping norm, graph,
    and the streams of rounding and noise.
    """

    step: float
    mixing: float
    grid: Grid
    clip: float
    network: Network
    rounding: kernel.Keys
    noise: kernel.Keys


@dataclass(frozen=True, kw_only=True)
class CanaryAudit(QDPSGD1, Attack):
    """Audit of Q-DPSGD-1 in a single run, with canary records of random signs.

    Parameters
    ----------
    share : float
        Noise that is used, as a fraction of the noise that the paper's rule requires.
    guesses : int
        Number of the m signs that the attacker guesses.
    confidence : float
        Confidence level of the lower bound of each observer.
    delta : float
        Delta of the lower bound, set by :meth:`calibrate` to that of the budget.
    accountant, formula : float
        Epsilon of the run by the accountant and by Theorem 11 at the noise that is used, set by
        :meth:`calibrate`.
    """

    share: Positive = 1.0
    guesses: int = 100
    confidence: Fraction
    delta: float = math.nan
    accountant: float = 0.0
    formula: float = 0.0

    quantities: ClassVar = (
        "bound_gradients", "bound_messages", "p_value_gradients", "accountant", "formula",
        "bound_delta", "bound_confidence",
    )  # fmt: skip
    source: ClassVar[str] = QDPSGD1.source

    def calibrate(self, budget, problem, network, horizon):
        expected = f"at most {problem.records}, the number of canaries"
        require(self.guesses <= problem.records, "algorithm.guesses", self.guesses, expected)
        expected = f"at least {problem.records} parameters, one per canary"
        require(problem.dim >= problem.records, "problem.hidden", problem.dim, expected)
        noisy = super().calibrate(budget, problem, network, horizon)
        calibrated = replace(noisy, sigma=self.share * noisy.sigma, delta=budget.delta)
        formula = calibrated.claimed_epsilon(budget.delta, problem, network, horizon)
        releases = calibrated.releases(problem, network, horizon)
        accountant = account(releases, budget.delta).epsilon
        return replace(calibrated, accountant=accountant, formula=formula)

    def run(self, problem, network, streams, horizon, observe):
        rounds = int(horizon[0])
        require(bool(np.all(horizon == rounds)), "horizon", horizon.tolist(), "equal numbers")
        settings = len(horizon)
        handler = Running(self.mechanisms(problem, network, rounds), problem, streams, horizon)
        release = handler.function()
        x = self.start(problem, network, release).x.astype(np.float32)
        round_, canaries = self.coefficients(horizon), self._canaries(problem, streams)
        scores = np.zeros((len(VIEWS), settings, len(canaries), problem.records))
        pending = np.full(scores.shape[1:], np.nan)
        for t in range(rounds):
            handler.begin(t + 1)
            batch, counter = release.batch("gradient"), t * problem.n_agents
            words = release.key("rounding"), release.key("noise")
            for s, run in np.ndindex(scores.shape[1:3]):
                drawn = batch.rows[run], batch.sizes[s, run], batch.deviation[s, run]
                setting = Coefficients(
                    float(round_.step[s]), float(round_.mixing[s]), round_.grids[s],
                    float(np.ravel(self.K)[s]), network.of_run(run),
                    *(kernel.keys(word[run], counter) for word in words),
                )  # fmt: skip
                observed = canaries[run], scores[:, s, run], pending[s, run]
                _advance(x[s, run], problem, setting, *drawn, *observed)
        observe(rounds, np.arange(settings), self._bounds_of(scores, canaries, problem.records))

    def _canaries(self, problem, streams) -> list[Canaries]:
        """Sample the canaries of each run: all records of agent 1."""
        canaries = []
        for run, generator in enumerate(streams.generators("data", "canaries")):
            number = np.full(len(problem.features), -1)
            number[problem.rows_of(run)[0]] = np.arange(problem.records)
            signs = generator.integers(0, 2, problem.records) * 2 - 1
            axes = generator.permutation(problem.dim)[: problem.records]
            canaries.append(Canaries(signs, axes, number))
        return canaries

    def _bounds_of(self, scores, canaries, records: int) -> dict[str, np.ndarray]:
        """Return bounds and the p-value of the first observer, each [settings, runs]."""
        quantities = {name: np.empty(scores.shape[1:3]) for name in self.quantities}
        delta, confidence, claimed, guesses = (
            np.broadcast_to(value, scores.shape[1])
            for value in (self.delta, self.confidence, self.formula, self.guesses)
        )
        for s, run in np.ndindex(scores.shape[1:3]):
            for view, observed in zip(VIEWS, scores[:, s, run], strict=True):
                counts = (*guessed(observed, canaries[run].signs, guesses[s]), records)
                bound = one_run_epsilon(*counts, delta=delta[s], confidence=confidence[s])
                quantities[f"bound_{view}"][s, run] = bound
                if view == "gradients":
                    p_value = one_run_pvalue(claimed[s], *counts, delta=delta[s])
                    quantities["p_value_gradients"][s, run] = p_value
        for name in ("accountant", "formula", "bound_delta", "bound_confidence"):
            value = getattr(self, name.removeprefix("bound_"))
            quantities[name][:] = np.broadcast_to(value, scores.shape[1])[:, None]
        return quantities


def _advance(
    x, problem, setting: Coefficients, rows, sizes, deviation, canaries: Canaries, scores, pending
) -> None:
    """Perform one round of Algorithm 4, and update the scores of both observers."""
    step, e, grid, K, network, rounding, noise = setting
    message, gradient = np.empty((2, *x.shape), x.dtype)
    points = kernel.Grid(*np.array([grid.resolution, *grid.ends], np.float32))
    kernel.round_models(x, kernel.uniforms(rounding, *x.shape), points, message)
    problem.clipped_gradient(x, rows, sizes, K, gradient)
    sampled_canaries = canaries.number[rows[0, : sizes[0]]]
    gradient[0] = 0.0
    gradient[0, canaries.axes[sampled_canaries]] = K * canaries.signs[sampled_canaries] / sizes[0]
    before, sent = x[0, canaries.axes], message[0, canaries.axes].astype(float)
    mixed = network.mix_others(message, e)
    keeps = 1.0 - e + e * network.own_weights
    steps = kernel.steps_of(np.eye(len(x)), keeps, deviation, step)
    kernel.mix_and_step(x, x, mixed, gradient, steps, kernel.normals(noise, *x.shape))
    received = mixed[0, canaries.axes].astype(float)
    scores[0] += (keeps[0] * before + received - x[0, canaries.axes]) / step
    scores[1] += np.nan_to_num(pending - sent) / step
    pending[:] = keeps[0] * sent + received


def guessed(scores: np.ndarray, signs: np.ndarray, guesses: int) -> tuple[int, int]:
    """Count the correct guesses of signs, [m], by the largest absolute ``scores``, [m]."""
    furthest = np.argsort(-np.abs(scores), kind="stable")[:guesses]
    return int(np.sum(np.sign(scores[furthest]) == signs[furthest])), len(furthest)


ALGORITHM = CanaryAudit
