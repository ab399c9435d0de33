r"""DP-CI, private consensus + innovations (Wang et al., eq. (3)).

.. math::
    \tilde x_i(t) &= x_i(t) + n_i(t), \qquad n_i(t) \sim \mathrm{Lap}(0, \sigma_t)
        \text{ in each coordinate} \\
    x_i(t+1) &= \tilde x_i(t) - \alpha(t) \sum_{j \in N_i} (\tilde x_i(t) - \tilde x_j(t))
        + \alpha(t) H_i(t)^\top \bigl(y_i(t) - H_i(t) \tilde x_i(t)\bigr)

for t = 0, 1, ... An agent continues from its own NOISY value. Given earlier messages, message t + 1
therefore depends on :math:`y_i(t)` only (E3.4). The noise has weight 1, not :math:`\alpha(t)`. The
matrices :math:`H_i(t)` are public.

In neighbouring data sets, measurements of one agent differ by at most :math:`\delta` each, in l1
norm: one measurement (Definition 3.1), or all measurements of the agent. Sensitivities are l1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar, NamedTuple

import numpy as np

from private_consensus.common.errors import require
from private_consensus.privacy import Relation, Release

from ..networks import laplacian
from .base import Iterative, column
from .noise import Noise
from .parameters import noise_field, one_of, positive

SCHEDULES = ("power", "exponential")
BOUNDS = ("constant", "time_varying")
UNITS = ("measurement", "stream")
CALIBRATIONS = ("budget", "theorem")
SPARE = 1e-3
"""Largest relative excess of dominating losses over the largest sum of the losses of an agent."""


class DPCIState(NamedTuple):
    """Estimates x(t) and messages x(t) + n(t), each [settings, runs, agents, n]."""

    x: np.ndarray
    sent: np.ndarray


class DPCIDraw(NamedTuple):
    """Unit draws of one iteration: observation noise [runs, agents, m], privacy noise."""

    observation: np.ndarray
    noise: np.ndarray


@dataclass(frozen=True, kw_only=True)
class DPCI(Iterative):
    r"""DP-CI, private consensus + innovations, with both noise schedules of Wang et al.

    Parameters
    ----------
    schedule : {"power", "exponential"}
        Schedule of step sizes and noise. ``power``: :math:`\alpha(t) = c/(t+s)^\gamma` and
        :math:`\sigma_t = \kappa\,\alpha(t-1)\,\delta H_{\max}` (Theorem 4.5, with
        :math:`\kappa = 1/\varepsilon`). ``exponential``: :math:`\alpha(t) = c\,q^{t+1}` and
        :math:`\sigma_t = \kappa\,c\,p^t\,\delta H_{\max}` (Theorem 4.16, with
        :math:`\kappa = 1`).
    c, gamma, shift, q, p : float
        Parameters :math:`c, \gamma, s, q, p` of the schedules. With s = 1, the step
        :math:`1/t^\gamma` of the paper is defined from t = 0. The simulation of the paper has
        s = 2 and c = 2.
    noise : float
        Noise :math:`\kappa` in units of its schedule; 0 for none.
    delta : float
        Largest change :math:`\delta` of a measurement, in l1 norm.
    hmax : {"constant", "time_varying"}
        Value of :math:`H_{\max}`: the supremum over all times, as in the simulation of the paper,
        or the value at time t - 1 (eq. (4)), which is never larger.
    initial_noise : bool
        Whether noise is added to the message :math:`x_i(0)`, which does not depend on data.
    unit : {"measurement", "stream"}
        Neighbouring relation: one measurement or all measurements of one agent differ.
    calibration : {"budget", "theorem"}
        Rule that sets the noise: the budget, or :math:`\kappa = 1` as in Theorem 4.16.
    """

    schedule: str = one_of("power", SCHEDULES)
    c: float = positive(1.0)
    gamma: float = 1.0
    shift: float = positive(1.0)
    q: float = 0.4
    p: float = 0.8
    noise: Noise = noise_field(law="laplace")
    delta: float = positive(0.2)
    hmax: str = one_of("constant", BOUNDS)
    initial_noise: bool = False
    unit: str = one_of("measurement", UNITS, calibration=True)
    calibration: str = one_of("budget", CALIBRATIONS, calibration=True)

    needs: ClassVar[tuple[str, ...]] = ("observation_noise", "data", "gram", "largest_row_norm")
    source: ClassVar[str] = "Wang et al., eqs. (1)-(4), Theorems 4.5, 4.11-4.17"
    lower_bound_because: ClassVar[str] = (
        "one measurement changes one message, by exactly the stated sensitivity"
    )

    def __post_init__(self):
        super().__post_init__()
        if self.schedule == "exponential":
            self._require("q", lambda v: (v > 0) & (v < 1), "a number in (0, 1)")
            self._require("p", lambda v: (v > self.q) & (v < 1), "a number in (q, 1)")
        else:
            self._require("gamma", lambda v: (v > 0) & (v <= 1), "a number in (0, 1]")
            early = self.initial_noise and not np.all(np.asarray(self.shift) > 1)
            expected = "a number > 1: the noise at t = 0 is proportional to the step at t = -1"
            require(not early, "algorithm.shift", self.shift, expected)

    def _require(self, key: str, holds, expected: str) -> None:
        value = getattr(self, key)
        require(bool(np.all(holds(np.asarray(value)))), f"algorithm.{key}", value, expected)

    @property
    def largest_change(self):
        return float(self.delta)

    @property
    def relation(self) -> Relation:
        return Relation(self.unit, "replace")

    # --- Schedules ------------------------------------------------------------------------------

    def step_size(self, t: float | np.ndarray):
        r"""Return the step size :math:`\alpha(t)`, in the shape of the fields."""
        if self.schedule == "exponential":
            return self.c * self.q ** (t + 1)
        return self.c / (t + self.shift) ** self.gamma

    def noise_scale(self, problem, t: int):
        r"""Return the Laplace scale :math:`\sigma_t` of message t, counted from 0."""
        if t == 0 and not self.initial_noise:
            return 0.0 * self.noise.scale
        return self.noise.scale * self.delta * self._row_norm(problem, t - 1) * self._noise_base(t)

    def _noise_base(self, t: int | np.ndarray):
        if self.schedule == "exponential":
            return self.c * self.p**t
        return self.step_size(t - 1)

    def _row_norm(self, problem, t: int) -> float:
        if self.hmax == "constant":
            return problem.largest_row_norm
        return float(problem.row_norm(t).max())

    # --- Privacy --------------------------------------------------------------------------------

    def calibrate(self, budget, problem, network, horizon):
        r"""Return a copy with the noise for a budget, by the theorems of the paper.

        With ``power``, the epsilon of the budget is that of each message (Theorem 4.5) or, if the
        unit is a stream, that of all ``horizon`` messages (Theorem 4.15). With ``exponential``, it
        is the total of Theorem 4.17, :math:`\tfrac1\kappa\,p/(p-q)`.
        """
        self.check_needs(problem)
        if np.isinf(budget.epsilon):
            return replace(self, noise=0.0)
        if self.calibration == "theorem":
            return replace(self, noise=1.0)
        if self.schedule == "exponential":
            return replace(self, noise=self.p / (self.p - self.q) / budget.epsilon)
        messages = horizon if self.unit == "stream" else 1
        return replace(self, noise=messages / budget.epsilon)

    def releases(self, problem, network, horizon):
        r"""Return the release of all messages if the unit is a stream, else of one message.

        Given earlier messages, message t of agent i depends only on :math:`y_i(t-1)`. It changes by
        at most :math:`\alpha(t-1)\,\delta\,S_i(t-1)` in l1, with :math:`S_i` the largest row sum of
        :math:`|H_i|`, which is public. A measurement affects one message of one agent, and its
        privacy loss is the largest loss of a message. A stream is that of one agent, and its
        privacy loss is the sum of the losses of *this* agent (E3.1), which is below the sum of the
        largest losses at all times. Message 0 does not depend on data.
        """
        times = np.arange(1, horizon + 1)
        changes = self._changes(problem, times)
        if not self.noise:
            return [Release("exact", sensitivity=float(changes.max()), scale=0.0)]
        scale = self._noise_scales(problem, times)
        losses = changes / scale[:, None]
        if self.unit == "stream":
            largest, agent_losses = _dominating(losses)
            reached = np.divide(agent_losses, largest, out=np.ones(horizon), where=largest > 0)
            return [Release("laplace", largest * scale, scale, reached=reached)]
        t, agent = np.unravel_index(losses.argmax(), losses.shape)
        note = "each measurement affects one message; this is the message with the largest loss"
        return [Release("laplace", changes[t, agent], scale[t], note=note, reached=1.0)]

    def _changes(self, problem, times: np.ndarray) -> np.ndarray:
        """Return the largest l1 change of message t of each agent, [times, agents]."""
        return self.step_size(times - 1)[:, None] * self.delta * problem.row_norms(times - 1)

    def _noise_scales(self, problem, times: np.ndarray) -> np.ndarray:
        constant = self.hmax == "constant"
        rows = problem.largest_row_norm if constant else problem.row_norms(times - 1).max(-1)
        return self.noise.scale * self.delta * rows * self._noise_base(times)

    def noise_sites(self, problem, network, horizon):
        times = np.arange(1, horizon + 1)
        scale = self._noise_scales(problem, times)
        if not scale.all():
            return []
        moved = self._changes(problem, times).max(-1) / scale
        return [self.noise.site(scale[:, None, None], moved)]

    def epsilon_by_formula(self, delta, problem, network, horizon):
        r"""Return the total epsilon of all messages, by Theorem 4.15 or 4.17.

        For :math:`\kappa = 1` it is :math:`T` or :math:`p/(p-q)`. The paper composes the losses of
        all messages, although its neighbouring data sets differ at one time only.
        """
        if not self.noise:
            return float("inf")
        if self.schedule == "exponential":
            return self.p / (self.p - self.q) / self.noise.scale
        return horizon / self.noise.scale

    def statements(self, budget, problem, network, horizon):
        """Return the claim for one measurement and, for all measurements of an agent, the total.

        For one measurement, it is the epsilon of one message (Theorem 4.5), or that of all messages
        for a schedule without such a theorem. The relation of this algorithm is the first.
        """
        total = self.epsilon_by_formula(budget.delta, problem, network, horizon)
        message_epsilon = (
            total if self.schedule == "exponential" or not self.noise else 1.0 / self.noise.scale
        )
        claimed = dict(zip(UNITS, (message_epsilon, total), strict=True))
        units = sorted(UNITS, key=self.unit.__ne__)
        return [(replace(self, unit=unit), claimed[unit]) for unit in units]

    # --- Iterations -----------------------------------------------------------------------------

    def start(self, problem, network, streams, settings):
        shape = (settings, len(streams.runs), problem.n_agents, problem.dim)
        x = np.broadcast_to(problem.initial, shape).copy()
        unit = streams.draw("noise", "laplace", shape[2:], "initial message")
        return DPCIState(x, x + column(self.noise_scale(problem, 0)) * unit)

    def draws(self, problem, streams) -> Iterator[DPCIDraw]:
        return map(DPCIDraw, problem.observation_noise(streams), self.noise.units(problem, streams))

    def step(self, state, problem, network, draw, t):
        before = t - 1
        measured = problem.data(before, draw.observation)
        innovation = np.einsum("imk,...im->...ik", problem.matrices(before), measured)
        product = coupled(problem, network, before, state.sent)
        x = state.sent + column(self.step_size(before)) * (innovation - product)
        return DPCIState(x, x + column(self.noise_scale(problem, t)) * draw.noise)

    def observables(self, state, problem, t) -> Mapping[str, np.ndarray]:
        return {"internal": state.x, "released": state.sent}


ALGORITHM = DPCI


def _dominating(losses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return losses that dominate those of all agents, and the losses of one agent.

    This agent has the largest sum of losses.

    The argument has shape [times, agents], both results [times]. The first result dominates at
    every delta. Composition does not depend on the order of the losses, and a mechanism with some
    loss also satisfies every larger loss. After sorting by size, the k-th dominating loss is the
    largest k-th loss of any agent. If these losses exceed the largest sum of an agent, the largest
    ones are merged into one: Laplace noise on several numbers protects all of them at least as well
    as noise on one number that changes by the sum of their changes (:mod:`..privacy.accounting`).
    """
    ranked = -np.sort(-losses, axis=0)
    largest_ranked, together = ranked.max(-1), ranked.cumsum(0).max(-1)
    remainder = np.append(largest_ranked[::-1].cumsum()[::-1][1:], 0.0)
    merged_count = int(np.argmax(together + remainder <= (1 + SPARE) * together[-1])) + 1
    costliest = losses.sum(0).argmax()
    order = (-losses[:, costliest]).argsort()
    largest, agent_losses = np.zeros((2, len(losses)))
    largest[order] = np.concatenate(
        [
            together[merged_count - 1 : merged_count],
            np.zeros(merged_count - 1),
            largest_ranked[merged_count:],
        ]
    )
    first = ranked[:merged_count, costliest].sum()
    agent_losses[order] = np.concatenate(
        [[first], np.zeros(merged_count - 1), ranked[merged_count:, costliest]]
    )
    return largest, np.minimum(agent_losses, largest)  # sums may differ by rounding


def coupled(problem, network, t: float, x: np.ndarray) -> np.ndarray:
    """Return the product of :func:`coupling` at time t and ``x``, [settings, runs, agents, n]."""
    flat = x.reshape(*x.shape[:2], -1)
    return _rows_times(flat, coupling(problem, network, t)).reshape(x.shape)


def coupling(problem, network, t: float) -> np.ndarray:
    r"""Return the matrix of consensus and innovation, :math:`L \otimes I_n + H(t) H(t)^\top`.

    L is the Laplacian of the graph, and t the time of the matrices :math:`H_i(t)`. The result is
    [agents n, agents n], with an axis of runs if graphs differ.
    """
    adjacency = network.adjacency
    return _spread_laplacian(adjacency.tobytes(), adjacency.shape, problem.dim) + problem.gram(t)


@lru_cache(maxsize=4)
def _spread_laplacian(adjacency: bytes, shape: tuple[int, ...], dim: int) -> np.ndarray:
    r"""Return the Laplacian of all coordinates, :math:`L \otimes I_n`, of one or several graphs."""
    graph_laplacian = laplacian(np.frombuffer(adjacency, dtype=bool).reshape(shape))
    size = shape[-1] * dim
    blocks = graph_laplacian[..., :, None, :, None] * np.eye(dim)[:, None, :]
    return blocks.reshape(*shape[:-2], size, size)


def _rows_times(x: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Multiply each row of x [settings, runs, k] by one symmetric matrix, or by one per run."""
    if matrix.ndim == 2:
        return x @ matrix
    return (x[..., None, :] @ matrix)[..., 0, :]
