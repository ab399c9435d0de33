"""What methods with full-batch gradients and Gaussian noise share. Not an algorithm.

Gradients of an agent are clipped as a whole, or not at all, before noise is added to them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ...errors import require
from ...privacy import Release, gaussian_mu
from ..base import GRADIENT, STEP, Iterative, Range, column, origin
from ..noise import Noise
from ..parameters import noise_field, positive


class State(NamedTuple):
    """Messages [settings, runs, agents, dim]."""

    x: np.ndarray


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
    noise: Noise = noise_field("gradient")

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
        if not self.noise:
            return [Release("exact", sensitivity=self.change(problem), scale=0.0)]
        losses = self.losses(problem, network, horizon)
        scale = np.full(len(losses), float(self.noise.scale))
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
        return column(self.eta) * column(self.noise.scale)

    def start(self, problem, network, streams, settings):
        return State(origin(problem, streams, settings))

    def draws(self, problem, streams):
        return self.noise.units(problem, streams)

    def observables(self, state, problem, t) -> Mapping[str, np.ndarray]:
        return {"released": state.x}


@dataclass(frozen=True, kw_only=True)
class WithoutNeighbours(ClippedDescent):
    """Descent in which the graph has no part: each round is one Gaussian mechanism."""

    def graph_statistics(self, network):
        """Return no statistics, since privacy does not depend on the graph."""

    def losses(self, problem, network, horizon):
        return np.full(horizon, self.change(problem))


def mu_of(budget) -> float:
    """mu of Gaussian differential privacy that a budget allows."""
    require(budget.delta > 0, "budget.delta", budget.delta, "in (0, 1): Gaussian noise needs it")
    return float(gaussian_mu(budget.epsilon, budget.delta))


def normals_of_links(generators, counts: np.ndarray, dim: int, shared: bool) -> np.ndarray:
    """Unit normals [runs, links, dim], or of graphs of different size one after the other."""
    drawn = [g.standard_normal((n, dim)) for g, n in zip(generators, counts, strict=True)]
    return np.stack(drawn) if shared else np.concatenate(drawn)
