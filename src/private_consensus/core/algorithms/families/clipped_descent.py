"""Common base of methods with full-batch gradients and Gaussian noise.

This module is not an algorithm. Noise is added to the gradient of an agent, which may be clipped
to a norm before.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from private_consensus.common.errors import require
from private_consensus.privacy import Release, gaussian_mu

from ..base import GRADIENT, NOTHING, STEP, Iterative, Range, column, origin
from ..noise import Noise
from ..parameters import noise_field, positive


class ClippedDescentState(NamedTuple):
    """Messages of all agents, [settings, runs, agents, dim]."""

    x: np.ndarray


@dataclass(frozen=True, kw_only=True)
class ClippedDescent(Iterative):
    r"""Descent along full-batch gradients, clipped or not, with Gaussian noise.

    Parameters
    ----------
    eta : float
        Step size :math:`\eta`.
    clip : float, optional
        Clipping norm C: the l2 norm to which the gradient of an agent is clipped; None for no
        clipping.
    noise : float
        Standard deviation :math:`\sigma` of the noise, in the unit of the gradient.
    """

    eta: float = positive(0.1)
    clip: float | None = positive(None)
    noise: Noise = noise_field("gradient")

    quantities: ClassVar = ("released",)
    ranges: ClassVar = {
        "eta": Range(0.05, 4.0, 1.0, STEP),
        "clip": Range(0.1, 3.0, 1.0, GRADIENT),
        "horizon": Range(3, 40, 20),
    }

    def change(self, problem) -> float:
        """Return the largest l2 change of an agent's gradient by a replaced record.

        The point of the gradient is fixed. Clipping does not enlarge the change, and limits it to
        2C.
        """
        change = float(problem.record_change("l2"))
        return change if self.clip is None else min(change, 2.0 * float(self.clip))

    def attained(self, problem) -> float | None:
        """Return the fraction of :meth:`change` that a pair of records attains at every point.

        It is unknown, and None, if gradients are clipped.
        """
        return problem.attained_gradient_share("l2") if self.clip is None else None

    @abstractmethod
    def losses(self, problem, network, horizon: int) -> np.ndarray:
        """Return the l2 sensitivity of each noisy step, [horizon], relative to noise of scale 1.

        The observer receives all messages.
        """

    def calibrate(self, budget, problem, network, horizon):
        if not budget.private:
            return replace(self, noise=0.0)
        total = float(np.sqrt((self.losses(problem, network, horizon) ** 2).sum()))
        expected = "a finite clipping norm, since the gradient of a record is unbounded"
        require(bool(np.isfinite(total)), "algorithm.clip", self.clip, expected)
        return replace(self, noise=total / mu_of(budget))

    def releases(self, problem, network, horizon):
        if not self.noise:
            return [Release("exact", sensitivity=self.change(problem), scale=0.0)]
        losses = self.losses(problem, network, horizon)
        scale = np.full(len(losses), float(self.noise.scale))
        return [Release("gaussian", losses, scale, attained=self.attained(problem))]

    def descent(self, problem, z: np.ndarray) -> np.ndarray:
        r"""Return the result of a gradient step, :math:`z - \eta\,\mathrm{clip}_C(\nabla f(z))`."""
        gradient = problem.gradient(z)
        if self.clip is not None:
            norms = np.linalg.norm(gradient, axis=-1, keepdims=True)
            gradient = gradient / np.maximum(1.0, norms / column(self.clip))
        return z - column(self.eta) * gradient

    @property
    def message_scale(self) -> Any:
        """Standard deviation of the noise of a message, broadcastable to iterates."""
        return column(self.eta) * column(self.noise.scale)

    def start(self, problem, network, streams, settings):
        return ClippedDescentState(origin(problem, streams, settings))

    def observables(self, state, problem, t) -> Mapping[str, np.ndarray]:
        return {"released": state.x}


@dataclass(frozen=True, kw_only=True)
class WithoutNeighbours(ClippedDescent):
    """Descent whose privacy does not depend on the graph: each round is one Gaussian mechanism."""

    privacy_depends_on: ClassVar[str] = NOTHING

    def losses(self, problem, network, horizon):
        return np.full(horizon, self.change(problem))


def mu_of(budget) -> float:
    """Return the largest mu of Gaussian differential privacy that meets a budget."""
    expected = "in (0, 1), since Gaussian noise requires a positive delta"
    require(budget.delta > 0, "budget.delta", budget.delta, expected)
    return float(gaussian_mu(budget.epsilon, budget.delta))
