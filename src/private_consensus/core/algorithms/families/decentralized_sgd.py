r"""Common base of Q-DPSGD, DSGD and SDM-DSGD (Ding, 4.4 and 4.5).

An agent samples records without replacement, clips their gradients to the norm K and averages them:

.. math:: g_i = \frac{1}{|S_i|} \sum_{\theta \in S_i}
          \frac{\nabla\ell(x_i;\theta)}{\max(1, \|\nabla\ell(x_i;\theta)\|/K)},

with noise of standard deviation :math:`\sigma K` on this mean (as published) or on the sum, which
is then divided by :math:`|S_i|` (``noise_on``). Only noise on the sum is proportional to the
sensitivity :math:`2K/|S_i|` of a batch of random size.

Run time is simulated. An agent computes :math:`V \sim U(10, 90)` gradients per second, with V
sampled again in every round. Sending an uncompressed vector of 16-bit numbers takes :math:`T_c`
seconds. The observables of a round include its costs: ``seconds`` since the start of the run,
``bits`` that one agent has broadcast, and ``saturated``, the fraction of coordinates in the
messages of the round that were clipped to the range of the grid.

:mod:`private_consensus.privacy.subsampling` has the distribution of batch sizes and the accountant
for noisy batches. :mod:`.sgd_theorems` has the noise and the epsilon of Theorem 11.

The releases cover the quantity ``released`` of a round. If noise enters the model (Q-DPSGD-1, DSGD
with noise, SDM-DSGD), it is the model after the round, a function of the noisy gradients of all
rounds so far. If noise enters the messages only (Q-DPSGD-2), it is the messages of the round,
because the subsequent update has a gradient without noise. ``internal`` is the model after the
round in both cases.

A round updates models in place. An observer that stores the arrays passed to ``observe`` has to
copy them. The computation after the gradients processes the models of all settings of a run in one
pass (:mod:`...kernels.rounds`). For 64-bit models and on large networks, the plain step computes
the round. Threads process different runs; linear algebra is single-threaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from private_consensus.common.errors import require
from private_consensus.kernels.compiling import share_out
from private_consensus.privacy.mechanism_sampled import SampledGradient
from private_consensus.privacy.subsampling import (
    Batches,
    SampledNoise,
    fixed_batches,
    noisy_mean,
    noisy_sum,
)

from ...graphs import SMALL
from ...networks import Network
from ...problems.perceptron import Perceptron
from ..base import INTERNAL, Algorithm, Finite, Internal, iterate
from ..parameters import CALIBRATION, NonNegative, Positive, PositiveInt
from .sgd_theorems import sgd_sigma, theorem11_epsilon

SLOWEST, FASTEST = 10.0, 90.0
"""Limits of the number of gradients that an agent computes per second."""

FULL_BITS = 16
"""Bits of an uncompressed number."""

KEYS = ("noise", "rounding", "discrete", "mask")


class SGDState(NamedTuple):
    """State of decentralized SGD: models, messages and costs.

    Models are [settings, runs, agents, p]. Messages have the same shape if noise is added to
    them; otherwise they are empty. The other fields are [settings, runs]: costs, the fraction
    of saturated coordinates, and ``lost``, which is 0 if all models are known to be finite and
    NaN otherwise.
    """

    x: np.ndarray
    message: np.ndarray
    seconds: np.ndarray
    bits: np.ndarray
    saturated: np.ndarray
    lost: np.ndarray


@dataclass(frozen=True)
class SampledRound:
    """Graph, random numbers and workspace arrays of one round of one run.

    ``counter`` is the position of the round in every random stream.
    """

    network: Network
    speeds: np.ndarray
    rows: np.ndarray
    keys: dict[str, np.ndarray]
    counter: int
    gradient: np.ndarray
    message: np.ndarray


class BatchModels(NamedTuple):
    """Models and messages of all settings of one run.

    ``x`` and ``message`` have one row per setting, run and agent, [rows, p]. For each setting,
    ``first`` is the row of its first agent and ``mixing`` its mixing matrix. ``agents`` is the
    number of agents.
    """

    x: np.ndarray
    message: np.ndarray
    first: np.ndarray
    agents: int
    mixing: list[np.ndarray]


@dataclass(frozen=True, kw_only=True)
class DecentralizedSGD(Algorithm):
    r"""Decentralized SGD with rounds of sampled, clipped and noisy gradients.

    Parameters
    ----------
    B : int
        (Expected) batch size.
    T_c : float
        Seconds to send an uncompressed vector.
    K : float
        Clipping norm.
    init : {"random", "zero", "u05"}
        Common starting point of all agents, see :meth:`.Perceptron.initial`. ``zero`` is as
        published; without noise, all hidden units then remain equal.
    sigma : float
        Noise multiplier :math:`\sigma`: the standard deviation of the noise is :math:`\sigma K`.
    sigma_rule : {"thm11", "proof11", "accountant", "given"}
        Rule by which a budget sets sigma: Theorem 11 with Remark 6, the formula in the proof of
        Theorem 11, the numerical accountant, or a fixed sigma for every budget.
    noise_on : {"mean", "sum"}
        Quantity to which the noise is added: the mean or the sum of the clipped gradients.
    negative_weights : bool
        Whether W may have negative self-weights, which Assumption 1 excludes.
    """

    B: PositiveInt = 20
    T_c: Positive = 3.0
    K: Positive = 0.5
    init: Literal["random", "zero", "u05"] = "random"
    sigma: NonNegative = 0.0
    sigma_rule: Annotated[Literal["thm11", "proof11", "accountant", "given"], CALIBRATION] = "thm11"
    noise_on: Literal["mean", "sum"] = "mean"
    negative_weights: bool = False

    quantities: ClassVar = (INTERNAL, "released", "seconds", "bits", Internal("saturated"))
    needs: ClassVar[tuple[str, ...]] = ("clipped_gradient", "rows_of", "initial", "records")
    released: ClassVar[str] = "gradient"
    """Quantity to which noise is added: gradient or message."""

    # --- Privacy ----------------------------------------------------------------------------------

    @property
    def calibration(self) -> str:
        """Rule by which a budget sets sigma."""
        return self.sigma_rule

    def batches(self) -> Batches:
        """Return the distribution of an agent's batch size."""
        return fixed_batches(self.B)

    def sampled(self, problem, horizon: int) -> SampledNoise:
        """Return the noisy batch of one agent, as input of the accountant.

        Parameters
        ----------
        problem, horizon

        Returns
        -------
        SampledNoise
            Noise on the mean or on the sum.
        """
        noisy_batch = noisy_mean if self.noise_on == "mean" else noisy_sum
        return noisy_batch(self.batches(), problem.records)

    def calibrate(self, budget, problem, network, horizon):
        """Return a copy with the sigma for a budget; fixed noise remains unchanged."""
        self.check(problem, network)
        if self.noise_is_given:
            return self
        sigma = self.sigma_for(budget, problem, int(horizon)) if budget.private else 0.0
        return replace(self, sigma=float(sigma))

    def sigma_for(self, budget, problem, horizon: int) -> float:
        r"""Return the sigma for a finite budget, by the rule ``sigma_rule``.

        The formulas state noise on the mean. Noise on the sum is B times as large.

        Parameters
        ----------
        budget, problem, horizon

        Returns
        -------
        float
            :math:`\sigma`, in units of the clipping norm.
        """
        sigma = sgd_sigma(self.sigma_rule, budget, self.sampled(problem, horizon), horizon)
        on_the_sum = self.noise_on == "sum" and self.sigma_rule != "accountant"
        return sigma * self.B if on_the_sum else sigma

    def mechanisms(self, problem, network, horizon):
        return {"gradient": self.sampled_gradient(problem, horizon)}

    def sampled_gradient(self, problem, horizon: int, **options: Any) -> SampledGradient:
        """Return the mechanism of the mean of clipped gradients of a random batch."""
        is_batch = np.ndim(self.sigma) > 0
        batch = None if is_batch else self.sampled(problem, int(horizon))
        parameters: dict[str, Any] = {
            "scale": self.sigma, "batch": batch, "sizes": self.batch_sizes,
            "largest": self.max_batch_size, "clip": self.K, "on_sum": self.noise_on == "sum",
        }  # fmt: skip
        return SampledGradient(**(parameters | options))

    def batch_sizes(self, speeds: np.ndarray) -> np.ndarray:
        """Return the batch sizes [settings, runs, agents] for uniform numbers of the speeds."""
        settings = max(np.size(getattr(self, f.name)) for f in fields(self))
        return np.stack([self.sizes(s, computed_per_second(speeds)) for s in range(settings)])

    def claimed_epsilon(self, delta, problem, network, horizon):
        """Return the epsilon of Theorem 11 at the current noise."""
        sigma = self.sigma / (self.B if self.noise_on == "sum" else 1)
        proof = self.sigma_rule == "proof11"
        return theorem11_epsilon(sigma, delta, problem.records, horizon, proof=proof)

    def noise_scales(self, sizes: np.ndarray) -> np.ndarray:
        """Return the noise on mean gradients for batch sizes, [settings, agents], in a kernel."""
        mechanism = SampledGradient(scale=self.sigma, clip=self.K, on_sum=self.noise_on == "sum")
        return mechanism.deviation(np.atleast_2d(sizes)[:, None])[:, 0]

    # --- Rounds -----------------------------------------------------------------------------------

    @property
    def max_batch_size(self) -> int:
        """Largest possible batch size."""
        return int(np.max(self.B))

    def sizes(self, s: int, speeds: np.ndarray) -> np.ndarray:
        """Return the batch sizes of a round.

        Parameters
        ----------
        s
        speeds : ndarray, shape (..., agents)
            Gradients per second of each agent.

        Returns
        -------
        ndarray of int
            With the shape of ``speeds``.
        """
        return np.full(speeds.shape, int(at(self.B, s)))

    def seconds(self, speeds: np.ndarray) -> Any:
        """Return the duration of a round, broadcastable to [settings, runs]; by default 0.

        ``speeds`` are [runs, agents], in gradients per second.
        """
        return 0.0

    def bits(self, dim: int) -> Any:
        """Return the bits that an agent broadcasts in a round, per setting; by default 0."""
        return 0.0

    def advance_all(
        self, models: BatchModels, problem, round_: SampledRound
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compute one round of one run for all settings in one pass; models are overwritten.

        Parameters
        ----------
        models, problem, round_

        Returns
        -------
        tuple of ndarray, each of shape (settings,)
            Fraction of saturated coordinates, and 0 if all models are finite, else NaN.
        """
        raise NotImplementedError

    def start(self, problem, network, release):
        self.check(problem, network)
        x = problem.initial(self.init, release)
        shape = (release.settings, len(x), problem.n_agents, problem.dim)
        models = np.broadcast_to(x, shape).copy()
        zero_cost = np.zeros(shape[:2])
        message = np.zeros_like(models if self.released == "message" else models[..., :0, :0])
        return SGDState(models, message, zero_cost, zero_cost, zero_cost, zero_cost)

    def check(self, problem, network) -> None:
        """Raise an error if the batch size or the mixing matrix is not supported.

        Raises
        ------
        InvalidInput
            For negative self-weights without ``negative_weights``, and for batches that are
            larger than the number of records.
        """
        smallest = float(network.own_weights.min())
        require(
            self.negative_weights or smallest >= -1e-12,
            "network.scale",
            f"a mixing matrix with the self-weight {smallest:.3g}",
            "no negative self-weight (Assumption 1), or algorithm.negative_weights: true",
        )
        expected = f"a batch of at most {problem.records} records, those of an agent"
        fits = self.max_batch_size <= problem.records
        require(fits, "algorithm.B", self.B, expected)

    def run(self, problem, network, streams, horizon, observe):
        """Run compiled rounds where they apply, with single-threaded linear algebra.

        With several threads, sums have another order and therefore other rounding errors.
        """
        with threadpool_limits(1, "blas"):
            iterate(self, problem, network, streams, horizon, observe, step="round")

    def round(self, state, problem, network, release, t):
        """Compute a round in compiled code; :meth:`step`, its definition, if it does not apply."""
        settings, runs, agents, dim = state.x.shape
        # The step of a subclass outside of the package may differ from the compiled rounds.
        is_built_in = type(self).__module__.startswith("private_consensus.")
        is_single = state.x.dtype == np.float32 and isinstance(problem, Perceptron)
        if not (is_built_in and is_single and agents <= SMALL):
            return self.step(state, problem, network, release, t)
        batch = release.batch(self.released)
        speeds, keys = computed_per_second(batch.speeds), {n: release.key(n) for n in KEYS}
        saturated, lost = np.empty((2, settings, runs))

        def _compute_runs(begin, end):
            gradient, message = np.empty((2, agents, dim), state.x.dtype)
            for run in range(begin, end):
                round_ = SampledRound(
                    network.of_run(run),
                    speeds[run],
                    batch.rows[run],
                    {name: words[run] for name, words in keys.items()},
                    (t - 1) * agents,
                    gradient,
                    message,
                )
                saturated[:, run], lost[:, run] = self._in_one_pass(state, run, problem, round_)

        share_out(_compute_runs, runs)
        return self.after(state, speeds, state.x, state.message, saturated, lost)

    def after(self, state, speeds, x, message, saturated, lost) -> SGDState:
        """Return the state after a round with models x and a message.

        ``speeds`` are gradients per second; ``saturated`` and ``lost`` are those of
        :class:`SGDState`.
        """
        seconds = state.seconds + self.seconds(speeds)
        bits = state.bits + np.reshape(self.bits(x.shape[-1]), (-1, 1))
        return SGDState(x, message, seconds, bits, saturated, lost)

    def after_step(self, state, release, x, message, saturated) -> SGDState:
        """Return the state after a plain step with models x, a message, and ``saturated``."""
        speeds = computed_per_second(release.batch(self.released).speeds)
        models = x.astype(state.x.dtype, copy=False)
        unknown = np.full(models.shape[:2], np.nan)
        saturated = np.broadcast_to(saturated, models.shape[:2])
        return self.after(state, speeds, models, message, saturated, unknown)

    def gradient_at(self, problem, x: np.ndarray, clip: Any = None):
        """Return the query of :class:`.SampledGradient`: mean clipped gradients at models x."""
        clips = np.broadcast_to(self.K if clip is None else clip, len(x))

        def means(rows: np.ndarray, sizes: np.ndarray) -> np.ndarray:
            return np.array(
                [
                    [
                        problem.clipped_gradient(x[s, r], rows[r], sizes[s, r], float(clips[s]))
                        for r in range(x.shape[1])
                    ]
                    for s in range(len(x))
                ]
            )

        return means

    def _in_one_pass(self, state: SGDState, run: int, problem, round_: SampledRound):
        """Compute a round of one run for all settings in one pass."""
        settings, runs, agents, dim = state.x.shape
        first = (np.arange(settings) * runs + run) * agents
        message = (
            state.message.reshape(-1, dim) if self.released == "message" else state.message[0, 0]
        )
        mixing = [round_.network.mixing] * settings
        models = BatchModels(state.x.reshape(-1, dim), message, first, agents, mixing)
        return self.advance_all(models, problem, round_)

    def sampled_gradients(
        self,
        models: BatchModels,
        problem,
        round_: SampledRound,
        at_message: bool,
        clips: Sequence[float],
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradients of the sampled batches of all settings.

        Parameters
        ----------
        models : BatchModels
            Models and messages of one run.
        problem, round_
        at_message : bool
            Whether the gradients are evaluated at the messages instead of the models.
        clips : sequence of float, length settings
            Clipping norms.

        Returns
        -------
        ndarray, shape (settings * agents, p)
            Mean gradients.
        ndarray of int, shape (settings, agents)
            Batch sizes.
        """
        sizes = np.array([self.sizes(s, round_.speeds) for s in range(len(clips))])
        x = models.message if at_message else models.x
        gradients = np.empty((sizes.size, x.shape[1]), x.dtype)
        batch = models.first, round_.rows, sizes, np.array(clips)
        problem.clipped_gradients(x, *batch, gradients)
        return gradients, sizes

    def observables(self, state, problem, t):
        quantities = {
            "internal": state.x,
            "seconds": state.seconds,
            "bits": state.bits,
            "saturated": state.saturated,
            "released": state.message if self.released == "message" else state.x,
        }
        return Finite(quantities) if not state.lost.any() else quantities

    def waiting(self, speeds: np.ndarray) -> np.ndarray:
        """Return the seconds until every agent has computed B gradients, [settings or 1, runs]."""
        return np.reshape(self.B, (-1, 1)) / speeds.min(-1)


def computed_per_second(speeds: np.ndarray) -> np.ndarray:
    """Return the gradients per second of agents for uniform random numbers."""
    return SLOWEST + (FASTEST - SLOWEST) * speeds


def at(value: Any, s: int) -> Any:
    """Return the value of a field for setting s.

    Parameters
    ----------
    value : scalar or ndarray, shape (settings, ...)
        Field of the batch.
    s

    Returns
    -------
    scalar or ndarray
        The value itself if it is a scalar.
    """
    return value[s] if isinstance(value, np.ndarray) and value.ndim else value
