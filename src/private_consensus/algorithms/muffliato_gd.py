r"""Muffliato-GD: noised gradient steps, each followed by gossip without noise (Cyffers, Even,
Bellet, Massoulie, NeurIPS 2022, Algorithm 3).

With K ``rounds`` of gossip a step, one message a round,

.. math::
    y_i^{t,0} = z_i^t - \eta\bigl(\mathrm{clip}_C(\nabla f_i(z_i^t)) + N(0, \sigma^2 I)\bigr),
    \qquad y^{t,k+1} = W y^{t,k}, \qquad z^{t+1} = W y^{t,K-1}

or accelerated as in :mod:`.muffliato`. The gradient is clipped *before* the noise is added. K = 1
is decentralized gradient descent with independent noise. :math:`z` is a function of messages: for
the eavesdropper each step is one Gaussian mechanism and the rest is post-processing. Rounds without
noise tell single agents what distance would hide (``docs/observers.md``).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ..errors import require
from ..privacy import Release
from .base import GRADIENT, STEP, Iterative, NoiseSite, Range, column
from .muffliato import ACCELERATIONS, State, gossip, mu_of
from .parameters import nonnegative, one_of, positive, whole


@dataclass(frozen=True, kw_only=True)
class ClippedDescent(Iterative):
    r"""What methods with full-batch gradients, clipped or not, and Gaussian noise share.

    Parameters
    ----------
    eta : float
        :math:`\eta`.
    clip : float, optional
        C, l2 norm to which an agent's whole gradient is clipped; none, it is used as it is.
    noise : float
        :math:`\sigma`, in the unit of the gradient.
    """

    eta: float = positive(0.1)
    clip: float | None = positive(None)
    noise: float = nonnegative(0.0)

    ranges: ClassVar = {
        "eta": Range(0.05, 4.0, 1.0, STEP),
        "clip": Range(0.1, 3.0, 1.0, GRADIENT),
        "horizon": Range(3, 40, 20),
    }

    def change(self, problem) -> float:
        r"""Largest l2 change of an agent's gradient at one point: by what a replaced record moves
        it, which clipping does not enlarge, and 2C at most."""
        moved = float(problem.record_change("l2"))
        return moved if self.clip is None else min(moved, 2.0 * float(self.clip))

    def attained(self, problem) -> float | None:
        """Share of the change that a pair of records attains everywhere; not known if clipped."""
        return problem.attained_gradient_share("l2") if self.clip is None else None

    @abstractmethod
    def losses(self, problem, network, horizon: int) -> np.ndarray:
        """Sensitivity of each noised step over noise of scale 1, for the eavesdropper."""

    def calibrate(self, budget, problem, network, horizon):
        require(horizon >= 1, "horizon", horizon, "a whole number >= 1")
        if not budget.private:
            return replace(self, noise=0.0)
        total = float(np.sqrt((self.losses(problem, network, horizon) ** 2).sum()))
        bounded = "a clip: a record's gradient has no bound here"
        require(bool(np.isfinite(total)), "algorithm.clip", self.clip, bounded)
        return replace(self, noise=total / mu_of(budget))

    def releases(self, problem, network, horizon):
        if self.noise == 0:
            return [Release("exact", sensitivity=self.change(problem), scale=0.0)]
        losses = self.losses(problem, network, horizon)
        scale = np.full(len(losses), float(self.noise))
        return [Release("gaussian", losses, scale, attained=self.attained(problem))]

    def descent(self, problem, z: np.ndarray) -> np.ndarray:
        r""":math:`z - \eta\,\mathrm{clip}_C(\nabla f(z))`."""
        gradient = problem.gradient(z)
        if self.clip is not None:
            norms = np.linalg.norm(gradient, axis=-1, keepdims=True)
            gradient = gradient / np.maximum(1.0, norms / column(self.clip))
        return z - column(self.eta) * gradient

    @property
    def message_scale(self) -> Any:
        """Standard deviation of the noise of a message, as it broadcasts."""
        return column(self.eta) * column(self.noise)

    def draws(self, problem, streams):
        return streams.sequence("noise", "normal", (problem.n_agents, problem.dim))

    def seen(self, state, problem, t) -> Mapping[str, np.ndarray]:
        return {"released": state.x}


@dataclass(frozen=True, kw_only=True)
class MuffliatoGD(ClippedDescent):
    """Noised steps and K messages each.

    Parameters
    ----------
    rounds : int
        K; the horizon counts messages.
    acceleration : {"none", "chebyshev"}
    """

    rounds: int = whole(1)
    acceleration: str = one_of("none", ACCELERATIONS)

    source: ClassVar[str] = "Cyffers, Even, Bellet, Massoulie, NeurIPS 2022, Algorithm 3"

    def graph_statistics(self, network):
        """Nothing."""

    def noised(self, horizon: int) -> np.ndarray:
        """Whether a message is the first of a step, [horizon]."""
        return np.arange(horizon) % int(self.rounds) == 0

    def losses(self, problem, network, horizon):
        return np.full(int(self.noised(horizon).sum()), self.change(problem))

    def noise_sites(self, problem, network, horizon):
        if self.noise == 0:
            return []
        first = self.noised(horizon)
        scale = np.where(first, float(self.eta * self.noise), np.nan)[:, None, None]
        moved = first * self.change(problem) / self.noise
        return [NoiseSite("message", "gaussian", scale, "l2", moved)]

    def start(self, problem, network, streams, settings):
        zero = np.zeros((settings, len(streams.runs), problem.n_agents, problem.dim))
        return State(zero, zero)

    def step(self, state, problem, network, draw, t):
        position = (t - 1) % column(self.rounds)
        second = (t - 2) % column(self.rounds) == 0
        mixed = gossip(network, state, second, self.acceleration)
        if not np.any(position == 0):
            return State(mixed, state.x)
        stepped = self.descent(problem, mixed) + self.message_scale * draw
        return State(np.where(position == 0, stepped, mixed), state.x)


ALGORITHM = MuffliatoGD


def normals_of_links(generators, counts: np.ndarray, dim: int, shared: bool) -> np.ndarray:
    """Unit normals [runs, links, dim], or of graphs of different size one after the other."""
    drawn = [g.standard_normal((n, dim)) for g, n in zip(generators, counts, strict=True)]
    return np.stack(drawn) if shared else np.concatenate(drawn)
