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
pass (:mod:`...kernels.rounds`). For 64-bit models and on networks of more than 256 agents, it
processes one setting at a time; the output is byte-identical. Threads process different runs;
linear algebra is single-threaded.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from private_consensus.common.errors import require
from private_consensus.kernels.compiling import share_out
from private_consensus.privacy.subsampling import (
    Batches,
    SampledNoise,
    fixed_batches,
    noisy_mean,
    noisy_sum,
)

from ...graphs import SMALL
from ...networks import Network
from ...problems.perceptron import INITS, Perceptron
from ...randomness import keys_of
from ..base import GRADIENT, Finite, Iterative, Range, overrides
from ..noise import GIVEN, Noise
from ..parameters import noise_field, one_of, positive
from .sgd_theorems import SIGMA_RULES, sgd_sigma, theorem11_epsilon

SLOWEST, FASTEST = 10.0, 90.0
"""Limits of the number of gradients that an agent computes per second."""

FULL_BITS = 16
"""Bits of an uncompressed number."""

NOISE_ON = ("mean", "sum")
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


class SGDDraw(NamedTuple):
    """Random numbers of a round.

    ``speeds`` [runs, agents] are in gradients per second. ``rows`` [runs, agents, largest batch
    size] are the sampled records of each agent in random order. ``keys`` [runs, 2] are those of
    the random streams, by purpose.
    """

    speeds: np.ndarray
    rows: np.ndarray
    keys: dict[str, np.ndarray]


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
    ``first`` is the row of its first agent, and ``mixing`` the mixing matrix. ``agents`` is the
    number of agents.
    """

    x: np.ndarray
    message: np.ndarray
    first: np.ndarray
    agents: int
    mixing: list[np.ndarray]

    def models_of(self, s: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the models and the messages of setting s, each [agents, p]."""
        rows = slice(self.first[s], self.first[s] + self.agents)
        return self.x[rows], self.message[rows]


@dataclass(frozen=True, kw_only=True)
class DecentralizedSGD(Iterative):
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

    B: int = positive(20)
    T_c: float = positive(3.0)
    K: float = positive(0.5)
    init: str = one_of("random", INITS)
    sigma: Noise = noise_field("gradient")
    sigma_rule: str = one_of("thm11", (*SIGMA_RULES, GIVEN), calibration=True)
    noise_on: str = one_of("mean", NOISE_ON)
    negative_weights: bool = False

    quantities: ClassVar = ("internal", "released", "seconds", "bits", "saturated")
    internal_outputs: ClassVar = ("internal", "saturated")
    ranges: ClassVar = {"K": Range(0.1, 3.0, 1.0, GRADIENT), "horizon": Range(10, 60, 30)}
    needs: ClassVar[tuple[str, ...]] = ("clipped_gradient", "rows_of", "initial", "records")
    noised_messages: ClassVar[bool] = False
    """True if noise is added to the messages instead of the gradients."""

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        if "advance" in vars(cls) and "advance_all" not in vars(cls):
            # The pass of the parent computes a different round.
            cls.advance_all = DecentralizedSGD.advance_all

    # --- Privacy ----------------------------------------------------------------------------------

    @property
    def calibration(self) -> str:
        """Rule by which a budget sets sigma."""
        return self.sigma_rule

    def batches(self) -> Batches:
        """Return the distribution of an agent's batch size."""
        return fixed_batches(self.B)

    def sampled(self, problem, horizon: int) -> SampledNoise:
        """Return the noisy batch of one agent, as input of the accountant."""
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
        """Return the sigma for a finite budget, by the rule ``sigma_rule``.

        It is in units of the clipping norm. The formulas state noise on the mean. Noise on the sum
        is B times as large.
        """
        sigma = sgd_sigma(self.sigma_rule, budget, self.sampled(problem, horizon), horizon)
        on_the_sum = self.noise_on == "sum" and self.sigma_rule != "accountant"
        return sigma * self.B if on_the_sum else sigma

    def releases(self, problem, network, horizon):
        return self.sampled(problem, int(horizon)).releases(self.sigma.scale, int(horizon))

    def epsilon_by_formula(self, delta, problem, network, horizon):
        """Return the epsilon of Theorem 11 at the current noise."""
        sigma = self.sigma.scale / (self.B if self.noise_on == "sum" else 1)
        proof = self.sigma_rule == "proof11"
        return theorem11_epsilon(sigma, delta, problem.records, horizon, proof=proof)

    def noise_scale(self, s: int, sizes: np.ndarray) -> np.ndarray:
        """Return the standard deviation of the noise on the mean gradient of each agent.

        ``sizes`` are batch sizes, [..., agents]; empty batches have noise 0.
        """
        sigma, K = at(self.sigma.scale, s), at(self.K, s)
        if sigma == 0:
            return np.zeros(np.shape(sizes))
        divisor = sizes if self.noise_on == "sum" else np.ones(np.shape(sizes))
        return np.where(sizes > 0, sigma * K / np.maximum(divisor, 1), 0.0)

    # --- Methods for audits -----------------------------------------------------------------------

    def noise_sites(self, problem, network, horizon):
        """Return the noise site: the mean gradient of each agent.

        The scale of the site is 1: the noise is in units of its standard deviation.
        """
        if np.max(self.sigma.scale) == 0:
            return []
        unit_scale = np.ones((horizon, 1, 1))
        return [self.sigma.site(unit_scale, np.full(horizon, np.nan), "gradient")]

    # --- Rounds -----------------------------------------------------------------------------------

    @property
    def max_batch_size(self) -> int:
        """Largest possible batch size."""
        return int(np.max(self.B))

    def sizes(self, s: int, speeds: np.ndarray) -> np.ndarray:
        """Return the batch sizes of a round, for ``speeds`` in gradients per second."""
        return np.full(speeds.shape, int(at(self.B, s)))

    @abstractmethod
    def seconds(self, speeds: np.ndarray) -> np.ndarray:
        """Return the duration of a round, broadcastable to [settings, runs].

        ``speeds`` are [runs, agents], in gradients per second.
        """

    @abstractmethod
    def bits(self, dim: int) -> Any:
        """Return the bits that an agent broadcasts in a round, one number per setting."""

    @abstractmethod
    def advance(self, s: int, x: np.ndarray, problem, round_: SampledRound) -> float:
        """Compute one round of one setting and one run; models are overwritten.

        The models ``x`` are [agents, p]. Return the fraction of saturated coordinates.
        """

    def advance_all(
        self, models: BatchModels, problem, round_: SampledRound
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Compute one round of one run for all settings in one pass; models are overwritten.

        By default, :meth:`advance` computes one setting after the other.

        Returns
        -------
        tuple of ndarray, each of shape (settings,), or None
            Fraction of saturated coordinates, and 0 if all models are finite, else NaN. None if
            the pass does not support the arguments.
        """
        return None

    def start(self, problem, network, streams, settings):
        self.check(problem, network)
        x = problem.initial(self.init, streams)
        shape = (settings, len(x), problem.n_agents, problem.dim)
        models = np.broadcast_to(x, shape).copy()
        zero_cost = np.zeros(shape[:2])
        message = np.zeros_like(models if self.noised_messages else models[..., :0, :0])
        return SGDState(models, message, zero_cost, zero_cost, zero_cost, zero_cost)

    def check(self, problem, network) -> None:
        """Raise ``InvalidInput`` if the batch size or the mixing matrix is not supported.

        Negative self-weights require ``negative_weights``. Batches may not be larger than the
        number of records.
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

    def draws(self, problem, streams):
        n, m = problem.n_agents, problem.records
        speeds = streams.sequence("sampling", "uniform", (n,), "speeds")
        numbers = streams.sequence("sampling", "uniform", (n, m), "records")
        keys = {name: keys_of(streams, name) for name in KEYS}
        agent_rows = np.stack([problem.rows_of(run) for run in range(len(streams.runs))])
        for unit, uniform in zip(speeds, numbers, strict=True):
            # The rows with the smallest numbers are a uniform ordered sample without replacement.
            order = np.argsort(uniform, axis=-1)[..., : self.max_batch_size]
            rows = np.take_along_axis(agent_rows, order, -1)
            yield SGDDraw(SLOWEST + (FASTEST - SLOWEST) * unit, rows, keys)

    def run(self, problem, network, streams, horizon, observe):
        """Use single-threaded linear algebra.

        With several threads, sums have another order and therefore other rounding errors.
        """
        with threadpool_limits(1, "blas"):
            super().run(problem, network, streams, horizon, observe)

    def step(self, state, problem, network, draw, t):
        settings, runs, agents, dim = state.x.shape
        saturated, lost = np.empty((settings, runs)), np.full((settings, runs), np.nan)

        def _compute_runs(begin, end):
            """Compute the round for the runs from ``begin`` to ``end - 1``."""
            gradient, message = np.empty((2, agents, dim), state.x.dtype)
            for run in range(begin, end):
                round_ = SampledRound(
                    network.of_run(run),
                    draw.speeds[run],
                    draw.rows[run],
                    {name: keys[run] for name, keys in draw.keys.items()},
                    (t - 1) * agents,
                    gradient,
                    message,
                )
                pass_result = self._in_one_pass(state, run, problem, round_)
                if pass_result is not None:
                    saturated[:, run], lost[:, run] = pass_result
                    continue
                for s in range(settings):
                    if self.noised_messages:
                        round_ = replace(round_, message=state.message[s, run])
                    saturated[s, run] = self.advance(s, state.x[s, run], problem, round_)

        share_out(_compute_runs, runs)
        seconds = state.seconds + self.seconds(draw.speeds)
        bits = state.bits + np.reshape(self.bits(dim), (-1, 1))
        return SGDState(state.x, state.message, seconds, bits, saturated, lost)

    def _in_one_pass(self, state: SGDState, run: int, problem, round_: SampledRound):
        """Compute a round of one run for all settings in one pass; None if it is not supported."""
        settings, runs, agents, dim = state.x.shape
        if agents > SMALL or state.x.dtype != np.float32:
            return None
        mixing = [round_.network.mixing] * settings
        first = (np.arange(settings) * runs + run) * agents
        message = state.message.reshape(-1, dim) if self.noised_messages else state.message[0, 0]
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
        """Return mean gradients and sizes of the batches of all settings.

        The gradients, [settings * agents, p], have the clipping norms ``clips``, one per setting.
        If ``at_message``, they are evaluated at the messages instead of the models.
        """
        sizes = np.array([self.sizes(s, round_.speeds) for s in range(len(clips))])
        if self._is_compiled(problem):
            x = models.message if at_message else models.x
            gradients = np.empty((sizes.size, x.shape[1]), x.dtype)
            batch = models.first, round_.rows, sizes, np.array(clips)
            problem.clipped_gradients(x, *batch, gradients)
            return gradients, sizes
        points = [models.models_of(s)[1 if at_message else 0] for s in range(len(clips))]
        return self._separate_gradients(points, problem, round_, clips), sizes

    def _is_compiled(self, problem) -> bool:
        """Return True if the gradients are those of a perceptron, and no method is overridden."""
        return (
            isinstance(problem, Perceptron)
            and not overrides(problem, Perceptron, "clipped_gradient")
            and not overrides(self, DecentralizedSGD, "sampled_gradient")
        )

    def _separate_gradients(self, points, problem, round_: SampledRound, clips) -> np.ndarray:
        gradients = np.empty((len(clips), *points[0].shape), points[0].dtype)
        for s, (point, clip) in enumerate(zip(points, clips, strict=True)):
            round_of_setting = replace(round_, gradient=gradients[s])
            gradient, _ = self.sampled_gradient(s, point, problem, round_of_setting, clip)
            if gradient is not round_of_setting.gradient:
                round_of_setting.gradient[:] = gradient
        return gradients.reshape(-1, gradients.shape[-1])

    def observables(self, state, problem, t):
        quantities = {
            "internal": state.x,
            "seconds": state.seconds,
            "bits": state.bits,
            "saturated": state.saturated,
            "released": state.message if self.noised_messages else state.x,
        }
        return Finite(quantities) if not state.lost.any() else quantities

    def sampled_gradient(self, s: int, x: np.ndarray, problem, round_: SampledRound, clip: float):
        """Return the mean clipped gradient, [agents, p], and the size of each agent's batch.

        They are evaluated at ``x``, [agents, p], and clipped to the l2 norm ``clip``.
        """
        sizes = self.sizes(s, round_.speeds)
        return problem.clipped_gradient(x, round_.rows, sizes, clip, round_.gradient), sizes

    def waiting(self, speeds: np.ndarray) -> np.ndarray:
        """Return the seconds until every agent has computed B gradients, [settings or 1, runs]."""
        return np.reshape(self.B, (-1, 1)) / speeds.min(-1)


def at(value: Any, s: int) -> Any:
    """Return the value of a field of a batch, scalar or [settings, ...], for setting s."""
    return value[s] if isinstance(value, np.ndarray) and value.ndim else value
