r"""What Q-DPSGD, DSGD and SDM-DSGD share (dissertation 4.4 and 4.5).

An agent samples records without replacement, clips their gradients to the norm K and averages,

.. math:: g_i = \frac{1}{|S_i|} \sum_{\theta \in S_i}
          \frac{\nabla\ell(x_i;\theta)}{\max(1, \|\nabla\ell(x_i;\theta)\|/K)},

with noise of deviation :math:`\sigma K` on this mean (as printed) or on the sum, which is then
divided by :math:`|S_i|` (``noise_on``): only then does the noise keep step with the sensitivity
:math:`2K/|S_i|` of a batch whose size is random.

Run time is simulated. An agent computes :math:`V \sim U(10, 90)` gradients a second, afresh every
round; a whole vector of 16-bit numbers takes :math:`T_c` seconds to send. A round shows its costs
as quantities with the metric ``value``: ``seconds`` since the start, ``bits`` that one agent has
broadcast, and ``saturated``, the share of coordinates of this round's messages that were cut.

From ``privacy.subsampling``: the law of batch sizes, the noised batch with its accountant, sigma by
rule and epsilon by Theorem 11.

What a round shows as ``released`` is covered by the releases that the accountant is told of. Where
noise enters the model (Q-DPSGD-1, DSGD with noise, SDM-DSGD) that is the model after the round, a
function of the noised gradients of all rounds so far. Where it enters the messages alone
(Q-DPSGD-2) it is the messages of the round: the update that follows them has a gradient without
noise in it. ``internal`` is the model after the round, in either case.

A round works on models in place: copying them would be felt. Who keeps what ``observe`` is shown
has to copy it. What follows the gradients goes through the models of all settings of a run in one
pass (:mod:`.fast.rounds`), or through one after the other where there is no compiler, where numbers
have 64 bits, and on sparse networks; the bytes are the same. Threads share out runs; linear algebra
has one.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from ...errors import require
from ...fast.compiling import share_out
from ...fast.messages import compiled_for
from ...fast.rounds import Gradients, in_factors, in_full
from ...fast.sampling import first_of
from ...fast.workspaces import workspace
from ...privacy.subsampling import (
    Batches,
    SampledNoise,
    fixed_batches,
    noisy_mean,
    noisy_sum,
)
from ...problems.perceptron import INITS, Perceptron
from ..base import GRADIENT, Finite, Iterative, Range, stack
from ..noise import Noise
from ..parameters import noise_field, one_of, positive
from .sgd_theorems import (
    SIGMA_RULES,
    sgd_sigma,
    theorem11_epsilon,
)

SLOWEST, FASTEST = 10.0, 90.0
"""Gradients that an agent computes in a second."""

FULL_BITS = 16
"""Bits of a number that is not compressed."""

NOISE_ON = ("mean", "sum")
GIVEN = "given"
KEYS = ("noise", "rounding", "discrete", "mask")


class State(NamedTuple):
    """Models [settings, runs, agents, p]; messages of the same shape where noise is on them, else
    empty; costs, the share of cut coordinates, 0 where a model is known to be finite, else NaN, and
    whether anyone asks for the messages; [settings, runs]."""

    x: np.ndarray
    message: np.ndarray
    seconds: np.ndarray
    bits: np.ndarray
    saturated: np.ndarray
    lost: np.ndarray
    asked: np.ndarray


class Draw(NamedTuple):
    """Speeds [runs, agents], rows in random order [runs, agents, widest], keys [runs, 2]."""

    speeds: np.ndarray
    rows: np.ndarray
    keys: dict[str, np.ndarray]


@dataclass(frozen=True)
class Round:
    """Round of one run: graph, random numbers and workspace arrays.

    ``counter`` is the first number of this round in every stream of counters. ``mixing`` is a
    matrix, dense or sparse, or where messages may be lost what takes the place of one.
    """

    mixing: Any
    speeds: np.ndarray
    rows: np.ndarray
    keys: dict[str, np.ndarray]
    counter: int
    gradient: np.ndarray
    mixed: np.ndarray
    message: np.ndarray

    def mix(self, weights: np.ndarray, x: np.ndarray) -> np.ndarray:
        """``weights @ x`` into its workspace."""
        if isinstance(weights, np.ndarray):
            return np.matmul(weights.astype(x.dtype), x, out=self.mixed)
        self.mixed[:] = weights.astype(x.dtype) @ x
        return self.mixed

    def mix_others(self, factor: float, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the agents' own weights, and the other agents' part of ``factor * mixing @ x``."""
        if isinstance(self.mixing, np.ndarray):
            own = np.diagonal(self.mixing)
            return own, self.mix(factor * (self.mixing - np.diag(own)), x)
        own = self.mixing.diagonal()
        return own, self.mix(factor * _without_diagonal(self.mixing), x)


class Models(NamedTuple):
    """All settings of one run: models and messages of all runs as rows, [rows, p], the first row of
    each setting, how many agents each has, what messages of each setting are mixed with, and
    whether anyone asks for the messages."""

    x: np.ndarray
    message: np.ndarray
    first: np.ndarray
    agents: int
    mixing: list[np.ndarray]
    asked: bool

    def of(self, s: int) -> tuple[np.ndarray, np.ndarray]:
        """Model and message of a setting, [agents, p]."""
        rows = slice(self.first[s], self.first[s] + self.agents)
        return self.x[rows], self.message[rows]


Pass = Callable[[Any, Models, Any, Round], tuple[np.ndarray, np.ndarray] | None]
"""A round of all settings of a run: from the algorithm, models, problem and round to cut shares,
and 0 where a model is finite, else NaN; each [settings]; None where it cannot."""


def in_one_pass(together: Pass) -> Callable[[Callable], Callable]:
    """Marks a round of one setting as what ``together`` does for all of them, byte by byte.

    The mark is on the function: an algorithm that puts another in its place has no such pass.
    """

    def mark(advance: Callable) -> Callable:
        advance.together = together
        return advance

    return mark


@dataclass(frozen=True, kw_only=True)
class DecentralizedSGD(Iterative):
    r"""Rounds of sampled, clipped, noised gradients.

    Parameters
    ----------
    B : int
        (Expected) batch size.
    T_c : float
        Seconds to send a vector that is not compressed.
    K : float
        Clipping norm.
    init : {"random", "zero", "u05"}
        Common starting point; 0 is as printed, and there all hidden units stay equal until noise
        tells them apart.
    sigma : float
        :math:`\sigma`, noise in units of the clipping norm: its deviation is :math:`\sigma K` on
        what ``noise_on`` names; set by :meth:`calibrate`, but where it is given.
    sigma_rule : {"thm11", "proof11", "accountant", "given"}
        Theorem 11 with Remark 6, its proof's version, the numerical accountant, or ``sigma`` as it
        is, whatever the budget.
    noise_on : {"mean", "sum"}
    negative_weights : bool
        Whether W may have a negative diagonal, against Assumption 1.
    """

    B: int = positive(20)
    T_c: float = positive(3.0)
    K: float = positive(0.5)
    init: str = one_of("random", INITS)
    sigma: Noise = noise_field("gradient")
    sigma_rule: str = one_of("thm11", (*SIGMA_RULES, GIVEN), calibration=True)
    noise_on: str = one_of("mean", NOISE_ON)
    negative_weights: bool = False

    internal_outputs: ClassVar = ("internal", "saturated")
    ranges: ClassVar = {"K": Range(0.1, 3.0, 1.0, GRADIENT), "horizon": Range(10, 60, 30)}
    needs: ClassVar[tuple[str, ...]] = ("clipped_gradient", "rows_of", "initial", "records")
    noised_messages: ClassVar[bool] = False
    """Whether noise is on the messages and not in the model."""

    # --- Privacy ----------------------------------------------------------------------------------

    def batches(self) -> Batches:
        """The law of an agent's batch size."""
        return fixed_batches(self.B)

    def sampled(self, problem, horizon: int) -> SampledNoise:
        """Return the noisy batch of one agent in the form of the accountant."""
        make = noisy_mean if self.noise_on == "mean" else noisy_sum
        return make(self.batches(), problem.records)

    def calibrate(self, budget, problem, network, horizon):
        self.check(problem, network)
        if self.noise_is_given:
            return self
        sigma = self.sigma_for(budget, problem, int(horizon)) if budget.private else 0.0
        return replace(self, sigma=float(sigma))

    @property
    def noise_is_given(self) -> bool:
        return self.sigma_rule == GIVEN

    def sigma_for(self, budget, problem, horizon: int) -> float:
        """Sigma of the rule; the formulas know noise on the mean, a sum has B times as much."""
        sigma = sgd_sigma(self.sigma_rule, budget, self.sampled(problem, horizon), horizon)
        on_the_sum = self.noise_on == "sum" and self.sigma_rule != "accountant"
        return sigma * self.B if on_the_sum else sigma

    def releases(self, problem, network, horizon):
        return self.sampled(problem, int(horizon)).releases(self.sigma.scale, int(horizon))

    def epsilon_by_formula(self, delta, problem, network, horizon):
        """Theorem 11 solved for epsilon."""
        sigma = self.sigma.scale / (self.B if self.noise_on == "sum" else 1)
        proof = self.sigma_rule == "proof11"
        return theorem11_epsilon(sigma, delta, problem.records, horizon, proof=proof)

    def noise_scale(self, s: int, sizes: np.ndarray) -> np.ndarray:
        """Standard deviation of the noise on each agent's mean; none without a gradient."""
        sigma, K = at(self.sigma.scale, s), at(self.K, s)
        if sigma == 0:
            return np.zeros(np.shape(sizes))
        taken = sizes if self.noise_on == "sum" else np.ones(np.shape(sizes))
        return np.where(sizes > 0, sigma * K / np.maximum(taken, 1), 0.0)

    # --- What audits ask for ----------------------------------------------------------------------

    def noise_sites(self, problem, network, horizon):
        """Noise on each agent's mean gradient, in units of its own deviation."""
        if np.max(self.sigma.scale) == 0:
            return []
        ones = np.ones((horizon, 1, 1))
        return [self.sigma.site(ones, np.full(horizon, np.nan), "gradient")]

    def noise_weight(self) -> float:
        """Return the factor by which a step multiplies the noise of a gradient, for a batch of
        one setting.
        """
        return float(np.ravel(self.alpha)[0])

    def residuals(self, problem, network, streams, execution):
        """Repeat each round without noise from the recorded models."""
        if execution.internal is None:
            return
        horizon = execution.internal.shape[1]
        loud = self.ready(horizon)
        quiet = replace(loud, sigma=0.0 * loud.sigma.scale)
        state = quiet.start(problem, network, streams, 1)
        draws = quiet.draws(problem, streams)
        for t in range(1, horizon + 1):
            draw, reached = next(draws), execution.at(t).internal
            bare = quiet.step(state._replace(x=state.x.copy()), problem, network, draw, t)
            scale = loud.noise_scale(0, loud.sizes(0, draw.speeds))[..., None]
            unit = (reached - bare.x[0]) / (
                loud.noise_weight() * np.where(scale > 0, scale, np.nan)
            )
            yield {"gradient": loud.noised(unit, reached, state.x[0])}
            state = bare._replace(x=reached[None].copy())

    def ready(self, horizon: int):
        """A batch of one setting, as it runs for so many rounds."""
        return stack([self])

    def noised(self, unit, reached, before) -> np.ndarray:
        """NaN where no noise is added."""
        return unit

    # --- Rounds -----------------------------------------------------------------------------------

    def widest(self) -> int:
        """The largest batch there can be."""
        return int(np.max(self.B))

    def sizes(self, s: int, speeds: np.ndarray) -> np.ndarray:
        """Batch sizes of a round, from the agents' speeds."""
        return np.full(speeds.shape, int(at(self.B, s)))

    @abstractmethod
    def seconds(self, speeds: np.ndarray) -> np.ndarray:
        """Duration of a round, broadcastable to [settings, runs]; speeds are [runs, agents]."""

    @abstractmethod
    def bits(self, dim: int) -> Any:
        """Bits that an agent broadcasts in a round; a number a setting."""

    @abstractmethod
    def advance(self, s: int, x: np.ndarray, problem, round_: Round) -> float:
        """One round of setting s and one run, ``x[agents, p]`` in place; the share cut."""

    def start(self, problem, network, streams, settings):
        self.check(problem, network)
        x = problem.initial(self.init, streams)
        shape = (settings, len(x), problem.n_agents, problem.dim)
        models = np.broadcast_to(x, shape).copy()
        nothing = np.zeros(shape[:2])
        message = np.zeros_like(models if self.noised_messages else models[..., :0, :0])
        asked = np.ones(shape[:2], bool)
        return State(models, message, nothing, nothing, nothing, nothing, asked)

    def check(self, problem, network) -> None:
        """Check the requirements on problem and network."""
        smallest = float(network.own_weights.min())
        require(
            self.negative_weights or smallest >= -1e-12,
            "network.scale",
            f"a mixing matrix with {smallest:.3g} on its diagonal",
            "no negative weight (Assumption 1), or algorithm.negative_weights: true",
        )
        widest = self.widest()
        require(
            widest <= problem.records, "algorithm.B", self.B, f"batches of <= {problem.records}"
        )

    def draws(self, problem, streams):
        n, m, widest = problem.n_agents, problem.records, self.widest()
        speeds = streams.sequence("sampling", "uniform", (n,), "speeds")
        order = streams.sequence("sampling", "uniform", (n, m), "records")
        keys = {name: keys_of(streams, name) for name in KEYS}
        agent_rows = np.stack([problem.rows_of(run) for run in range(len(streams.runs))])
        for unit, uniform in zip(speeds, order, strict=True):
            rows = first_of(uniform, agent_rows, widest)
            yield Draw(SLOWEST + (FASTEST - SLOWEST) * unit, rows, keys)

    def run(self, problem, network, streams, horizon, observe):
        # With several threads the linear algebra sums in another order: other last digits.
        with threadpool_limits(1, "blas"):
            super().run(problem, network, streams, horizon, observe)

    def step(self, state, problem, network, draw, t):
        settings, runs, agents, dim = state.x.shape
        saturated, lost = np.empty((settings, runs)), np.full((settings, runs), np.nan)
        mixing_of = network.exchange()

        def part(begin, end):
            of_a_model = workspace("a model", (3, agents, dim), state.x.dtype)
            for run in range(begin, end):
                round_ = Round(
                    mixing_of(0, run),
                    draw.speeds[run],
                    draw.rows[run],
                    {name: keys[run] for name, keys in draw.keys.items()},
                    (t - 1) * agents,
                    *of_a_model,
                )
                mixing = [mixing_of(s, run) for s in range(settings)]
                found = self._in_one_pass(state, run, problem, round_, mixing)
                if found is not None:
                    saturated[:, run], lost[:, run] = found
                    continue
                for s in range(settings):
                    round_ = replace(round_, mixing=mixing[s])
                    if self.noised_messages:
                        round_ = replace(round_, message=state.message[s, run])
                    saturated[s, run] = self.advance(s, state.x[s, run], problem, round_)

        share_out(part, runs)
        seconds = state.seconds + self.seconds(draw.speeds)
        bits = state.bits + np.reshape(self.bits(dim), (-1, 1))
        return State(state.x, state.message, seconds, bits, saturated, lost, state.asked)

    def _in_one_pass(self, state: State, run: int, problem, round_: Round, mixing: list):
        """A round of all settings of a run, where there is such a pass."""
        together = getattr(type(self).advance, "together", None)
        dense = all(type(matrix) is np.ndarray for matrix in mixing)
        if together is None or not dense or not compiled_for(state.x):
            return None
        settings, runs, agents, dim = state.x.shape
        first = (np.arange(settings) * runs + run) * agents
        message = state.message.reshape(-1, dim) if self.noised_messages else state.message[0, 0]
        models = Models(state.x.reshape(-1, dim), message, first, agents, mixing, state.asked.any())
        return together(self, models, problem, round_)

    def sampled_gradients(
        self, models: Models, problem, round_: Round, at_message: bool, clips: Sequence[float]
    ) -> tuple[Gradients, np.ndarray]:
        """Sampled gradients of all settings, and batch sizes [settings, agents]."""
        sizes = np.array([self.sizes(s, round_.speeds) for s in range(len(clips))])
        if self._has_factors(problem):
            factors = problem.factors(sizes.size, round_.rows.shape[-1])
            x = models.message if at_message else models.x
            problem.backpropagate(x, models.first, round_.rows, sizes, np.array(clips), factors)
            return in_factors(factors), sizes
        places = [models.of(s)[1 if at_message else 0] for s in range(len(clips))]
        return self._in_full(places, problem, round_, clips), sizes

    def _has_factors(self, problem) -> bool:
        """Whether gradients are those of perceptrons, by nobody's way of making them but ours."""
        kinds = type(self).sampled_gradient, getattr(type(problem), "clipped_gradient", None)
        return kinds == (DecentralizedSGD.sampled_gradient, Perceptron.clipped_gradient)

    def _in_full(self, places, problem, round_: Round, clips) -> Gradients:
        gradients = workspace("gradients", (len(clips), *places[0].shape), places[0].dtype)
        for s, (where, clip) in enumerate(zip(places, clips, strict=True)):
            own = replace(round_, gradient=gradients[s])
            gradient, _ = self.sampled_gradient(s, where, problem, own, clip)
            if gradient is not own.gradient:
                own.gradient[:] = gradient
        return in_full(gradients.reshape(-1, gradients.shape[-1]))

    def asked(self, state, anyone):
        return state._replace(asked=np.full(state.asked.shape, anyone))

    def observables(self, state, problem, t):
        found = {
            "internal": state.x,
            "seconds": state.seconds,
            "bits": state.bits,
            "saturated": state.saturated,
        }
        if not self.noised_messages:
            found["released"] = state.x
        elif state.asked.all():
            found["released"] = state.message
        return Finite(found) if not state.lost.any() else found

    def sampled_gradient(self, s: int, x: np.ndarray, problem, round_: Round, clip: float):
        """Clipped means of this round's batches at ``x``, and the batches' sizes."""
        sizes = self.sizes(s, round_.speeds)
        return problem.clipped_gradient(x, round_.rows, sizes, clip, round_.gradient), sizes

    def waiting(self, speeds: np.ndarray) -> np.ndarray:
        """Seconds until the slowest agent has computed B gradients, [settings or 1, runs]."""
        return np.reshape(self.B, (-1, 1)) / speeds.min(-1)


def at(value: Any, s: int) -> Any:
    """The value of a field for setting s."""
    return value[s] if isinstance(value, np.ndarray) and value.ndim else value


def _without_diagonal(matrix):
    from scipy.sparse import diags_array, issparse

    if not issparse(matrix):
        return matrix.without_diagonal()
    return matrix - diags_array(matrix.diagonal())


def keys_of(streams, name: str) -> np.ndarray:
    """Two words of 32 bits a run, for counters of one purpose."""
    generators = streams.generators("noise", name)
    return np.stack([g.integers(0, 2**32, size=2, dtype=np.uint32) for g in generators])
