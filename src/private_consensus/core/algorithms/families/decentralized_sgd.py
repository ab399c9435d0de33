"""Common base of Q-DPSGD, DSGD and SDM-DSGD (Ding, 4.4 and 4.5)."""

import math
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np

from private_consensus.common.errors import require
from private_consensus.privacy import Budget
from private_consensus.privacy.mechanism_sampled import SampledGradient
from private_consensus.privacy.subsampling import (
    FASTEST,
    SLOWEST,
    Batches,
    SampledNoise,
    fixed_batches,
    noisy_mean,
    noisy_sum,
)

from ...parameters import CALIBRATION, NonNegative, Positive, PositiveInt
from ..base import INTERNAL, Algorithm, column

FULL_BITS, T_C = 16, 3.0
"""Bits of an uncompressed number; seconds :math:`T_c` to send an uncompressed vector."""


class SGDState(NamedTuple):
    """Models, messages and seconds since the start of the run.

    Models are [settings, runs, agents, p]. Messages have the same shape if noise is added to them;
    otherwise they are empty. Seconds are [settings, runs].
    """

    x: np.ndarray
    message: np.ndarray
    seconds: np.ndarray


@dataclass(frozen=True, kw_only=True)
class DecentralizedSGD(Algorithm):
    r"""Decentralized SGD with rounds of sampled, clipped and noisy gradients.

    An agent samples records without replacement, clips their gradients to the norm K and averages
    them:

    .. math:: g_i(b) = \frac{1}{|S_i|} \sum_{\theta \in S_i}
              \frac{\nabla\ell(b;\theta)}{\max(1, \|\nabla\ell(b;\theta)\|/K)},

    with noise of standard deviation :math:`\sigma K` on this mean (as published) or on the sum,
    which is then divided by :math:`|S_i|` (``noise_on``). Only noise on the sum is proportional to
    the sensitivity :math:`2K/|S_i|` of a batch of random size.

    Run time is simulated. An agent computes :math:`V \sim U(10, 90)` gradients per second, with V
    sampled again in every round. Sending an uncompressed vector of 16-bit numbers takes :math:`T_c`
    seconds. The observable ``seconds`` is the time since the start of the run.

    :mod:`private_consensus.privacy.subsampling` has the distribution of batch sizes and the
    accountant for noisy batches.

    The releases cover the quantity ``released`` of a round. If noise enters the model (Q-DPSGD-1,
    DSGD with noise, SDM-DSGD), it is the model after the round, a function of the noisy gradients
    of all rounds so far. If noise enters the messages only (Q-DPSGD-2), it is the messages of the
    round, because the subsequent update has a gradient without noise. ``internal`` is the model
    after the round in both cases.

    Parameters
    ----------
    B : int
        (Expected) batch size.
    K : float
        Clipping norm.
    init : {"random", "zero"}
        Common starting point of all agents, see :meth:`.Perceptron.initial`. ``zero`` is as
        published; without noise, all hidden units then remain equal.
    sigma : float
        Noise multiplier :math:`\sigma`: the standard deviation of the noise is :math:`\sigma K`.
    sigma_rule : {"thm11", "accountant", "given"}
        Rule by which a budget sets sigma: Theorem 11 with Remark 6, the numerical accountant, or a
        fixed sigma for every budget.
    noise_on : {"mean", "sum"}
        Quantity to which the noise is added: the mean or the sum of the clipped gradients.
    """

    B: PositiveInt = 20
    K: Positive = 0.5
    init: Literal["random", "zero"] = "random"
    sigma: NonNegative = 0.0
    sigma_rule: Annotated[Literal["thm11", "accountant", "given"], CALIBRATION] = "thm11"
    noise_on: Literal["mean", "sum"] = "mean"

    quantities = (INTERNAL, "released", "seconds")
    needs = ("clipped_gradient", "rows_of", "initial", "records")
    released = "gradient"
    """Quantity to which noise is added: gradient or message."""

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

        The formulas state noise on the mean. Noise on the sum is B times as large.
        """
        if self.sigma_rule == "accountant":
            return self.sampled(problem, horizon).sigma(budget, horizon)
        factor = self.theorem_factor(problem, horizon)
        sigma = theorem11_sigma(budget, problem.records, horizon, factor=factor)
        # The noise of a sum is divided by the batch size later.
        return sigma * self.B if self.noise_on == "sum" else sigma

    def theorem_factor(self, problem, horizon: int) -> float:
        """Return the factor c of the sigma of Theorem 11."""
        return 1.0

    @property
    def clip_norm(self) -> Any:
        """Norm to which gradients are clipped."""
        return self.K

    @property
    def gradient_noise(self) -> Any:
        """Noise multiplier of the mean gradients."""
        return self.sigma

    def mechanisms(self, problem, network, horizon):
        # Settings of a batch are only run; each was accounted on its own.
        is_batch = np.ndim(self.sigma) > 0
        gradient = SampledGradient(
            scale=column(self.gradient_noise),
            batch=None if is_batch else self.sampled(problem, int(horizon)),
            sizes=self.batch_sizes,
            largest=self.max_batch_size,
            clip=self.clip_norm,
            on_sum=self.noise_on == "sum",
        )
        return {"gradient": gradient}

    def claimed_epsilon(self, delta, problem, network, horizon):
        """Return the epsilon of Theorem 11 at the current noise."""
        sigma = self.sigma / (self.B if self.noise_on == "sum" else 1)
        factor = self.theorem_factor(problem, horizon)
        return theorem11_epsilon(sigma, delta, problem.records, horizon, factor=factor)

    @property
    def max_batch_size(self) -> int:
        """Largest possible batch size."""
        return int(np.max(self.B))

    def batch_sizes(self, speeds: np.ndarray) -> np.ndarray:
        """Return the batch sizes [settings, runs, agents] for uniform numbers of the speeds."""
        sizes = np.reshape(np.asarray(self.B, int), (-1, 1, 1))
        return np.broadcast_to(sizes, (len(sizes), *speeds.shape))

    def seconds(self, speeds: np.ndarray) -> Any:
        """Return the duration of a round, broadcastable to [settings, runs]; by default 0.

        ``speeds`` are [runs, agents], in gradients per second.
        """
        return 0.0

    def start(self, problem, network, release):
        self.check(problem, network)
        x = problem.initial(self.init, release)
        shape = (release.settings, len(x), problem.n_agents, problem.dim)
        # Compiled rounds overwrite models, so that every setting has its own copy.
        models = np.broadcast_to(x, shape).copy()
        message = np.zeros_like(models if self.released == "message" else models[..., :0, :0])
        return SGDState(models, message, np.zeros(shape[:2]))

    def check(self, problem, network) -> None:
        """Refuse negative self-weights and batches that are larger than the number of records."""
        # Laplacian weights with a small scale have negative self-weights.
        smallest = float(network.own_weights.min())
        text = f"a mixing matrix with the self-weight {smallest:.3g}"
        expected = "no negative self-weight (Assumption 1)"
        require(smallest >= -1e-12, "network.scale", text, expected)
        expected = f"a batch of at most {problem.records} records, those of an agent"
        fits = self.max_batch_size <= problem.records
        require(fits, "algorithm.B", self.B, expected)

    def after(self, state, batch, x, message: Any = None) -> SGDState:
        """Return the state after a round with models x and, if it has noise, a message."""
        return SGDState(
            x.astype(state.x.dtype, copy=False),
            state.message if message is None else message,
            state.seconds + self.seconds(computed_per_second(batch.speeds)),
        )

    def gradient_at(self, problem, x: np.ndarray):
        """Return the query of :class:`.SampledGradient`: mean clipped gradients at models x."""
        clips = np.broadcast_to(self.clip_norm, len(x))

        def means(rows: np.ndarray, sizes: np.ndarray) -> np.ndarray:
            gradients = (
                problem.clipped_gradient(x[s, r], rows[r], sizes[s, r], float(clips[s]))
                for s, r in np.ndindex(x.shape[:2])
            )
            return np.reshape([*gradients], x.shape)

        return means

    def observables(self, state, problem, t):
        return {
            "internal": state.x,
            "seconds": state.seconds,
            "released": state.message if self.released == "message" else state.x,
        }

    def waiting(self, speeds: np.ndarray) -> np.ndarray:
        """Return the seconds until every agent has computed B gradients, [settings or 1, runs]."""
        return np.reshape(self.B, (-1, 1)) / speeds.min(-1)


def computed_per_second(speeds: np.ndarray) -> np.ndarray:
    """Return the gradients per second of agents for uniform random numbers."""
    return SLOWEST + (FASTEST - SLOWEST) * speeds


def theorem11_sigma(budget: Budget, records: int, horizon: int, *, factor: float = 1.0) -> float:
    r"""Return the sigma of Theorem 11 and Remark 6 of Ding; 0 for an infinite budget.

    .. math:: \sigma^2 = \frac{16T}{m^2\epsilon}\left(\frac{2\ln(1/\delta)}{\epsilon}+1\right)c^2

    for m ``records`` of an agent and T = ``horizon`` rounds. ``factor`` is c: 1 for Q-DPSGD-1,
    :func:`theorem15_factor` for Q-DPSGD-2.
    """
    if not budget.private:
        return 0.0
    require(budget.delta > 0, "budget.delta", budget.delta, "above 0 for Theorem 11")
    order = 2 * math.log(1 / budget.delta) / budget.epsilon + 1
    return factor * math.sqrt(16 * horizon * order / (records**2 * budget.epsilon))


def theorem11_epsilon(
    sigma: float, delta: float, records: int, horizon: int, *, factor: float = 1.0
) -> float:
    r"""Return the epsilon of Theorem 11 for a sigma; the inverse of :func:`theorem11_sigma`.

    :math:`\epsilon = T\,8\rho c^2/(m^2\sigma^2) + \ln(1/\delta)/(\rho-1)` with
    :math:`\rho = 2\ln(1/\delta)/\epsilon+1`, solved for epsilon. It is infinite without noise.
    ``sigma`` is the standard deviation of the noise over the clipping norm.
    """
    if sigma == 0:
        return math.inf
    a = 16 * horizon * factor**2 / (records**2 * sigma**2)
    return (a + math.sqrt(a**2 + 8 * a * math.log(1 / delta))) / 2


def theorem15_factor(
    *, step: float, resolution: float, dim: int, clip: float, size: float
) -> float:
    r"""Return the factor :math:`c = \alpha\varepsilon + \eta\sqrt p\,|S|/K` of Theorem 15.

    ``step`` is the product of gradient step and mixing step, :math:`\alpha\varepsilon`, and
    ``resolution`` that of the grid, :math:`\eta`; 0 omits the second term. ``dim`` is the number p
    of coordinates, ``clip`` the clipping norm K, and ``size`` the batch size :math:`|S|`.
    """
    return step + resolution * math.sqrt(dim) * size / clip
