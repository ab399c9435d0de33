"""Common base of methods with full-batch gradients and Gaussian noise."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from private_consensus.common.errors import require
from private_consensus.privacy import gaussian_mu
from private_consensus.privacy.mechanisms import Gaussian

from ...parameters import NonNegative, Positive, StepSize
from ..base import Algorithm, Iterates, column


@dataclass(frozen=True, kw_only=True)
class ClippedDescent(Algorithm):
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

    eta: StepSize = 0.1
    clip: Positive | None = None
    noise: NonNegative = 0.0

    def change(self, problem) -> Any:
        """Return the largest l2 change of an agent's gradient by a replaced record.

        The point of the gradient is fixed. Clipping does not enlarge the change, and limits it to
        2C.
        """
        change = float(problem.record_change("l2"))
        return change if self.clip is None else np.minimum(change, 2.0 * column(self.clip))

    def mechanisms(self, problem, network, horizon):
        return {"step": Gaussian(column(self.eta) * self.change(problem), self.message_scale)}

    def calibrate(self, budget, problem, network, horizon):
        """Return a copy whose Gaussian releases compose to the mu of the budget."""
        if not budget.private:
            return replace(self, noise=0.0)
        releases = replace(self, noise=1.0).releases(problem, network, horizon)
        # The mu of composed Gaussian mechanisms is the root of the sum of squares.
        total = float(np.sqrt(sum((release.losses() ** 2).sum() for release in releases)))
        expected = "a finite clipping norm, since the gradient of a record is unbounded"
        require(bool(np.isfinite(total)), "algorithm.clip", self.clip, expected)
        return replace(self, noise=total / mu_of(budget))

    def descent(self, problem, z: np.ndarray) -> np.ndarray:
        """Return points after one step without noise along the clipped gradients at z."""
        gradient = problem.gradient(z)
        if self.clip is not None:
            norms = np.linalg.norm(gradient, axis=-1, keepdims=True)
            gradient = gradient / np.maximum(1.0, norms / column(self.clip))
        return z - column(self.eta) * gradient

    @property
    def message_scale(self) -> Any:
        """Noise scale of a step, in the unit of the messages."""
        return column(self.eta) * column(self.noise)

    def step(self, state, problem, network, release, t):
        # Without communication; methods with communication override the step.
        return Iterates(release("step", self.descent(problem, state.x)))


def mu_of(budget) -> float:
    """Return the Gaussian-DP parameter mu of a finite budget with delta > 0."""
    expected = "in (0, 1), since Gaussian noise requires a positive delta"
    require(budget.delta > 0, "budget.delta", budget.delta, expected)
    return float(gaussian_mu(budget.epsilon, budget.delta))
