"""What every problem offers to algorithms and to the driver.

Conventions
-----------
An agent's objective ``f_i`` is what the agent minimises, in the scale that the paper gives it (a
sum over records in 000, a mean in 001 and 004); the problem says which. ``record_gradient_change``
bounds the l2 distance between the gradients of two records' terms at one point, for records that
replace each other: it is what sensitivities are made of.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar

import numpy as np

from ..errors import InvalidInput, require

NORMS = ("l1", "l2", "linf")

Metric = Callable[["Problem", np.ndarray], np.ndarray]


class Problem(ABC):
    """Agents' objectives, for a batch of settings and runs.

    Attributes
    ----------
    n_agents, dim : int
    strong_convexity, smoothness : float or ndarray, broadcastable to (runs, agents, dim)
        :math:`\\mu` and :math:`L` of the local objectives.
    lipschitz : float
        :math:`G`, a bound on :math:`\\|\\nabla f_i\\|_2` over the domain.
    record_gradient_change : float
        Bound on :math:`\\|\\nabla\\ell(x;d) - \\nabla\\ell(x;d')\\|_2`, replace-one, in the scale
        of ``f_i``.
    metrics : mapping
        Name to a function of ``(problem, x[..., agents, dim])`` with values ``[...]``.
    """

    metrics: ClassVar[Mapping[str, Metric]] = {}

    n_agents: int
    dim: int

    @abstractmethod
    def gradient(self, x: np.ndarray) -> np.ndarray:
        r""":math:`\nabla f_i(x_i)` for every agent; shape of ``x``."""

    def record_change(self, norm: str) -> float:
        """Bound on the change of ``grad f_i`` at one point, in a norm, when a record is replaced.

        From the l2 bound, unless a problem knows a better one.
        """
        require(norm in NORMS, "norm", norm, f"one of {', '.join(NORMS)}")
        return float(self.record_gradient_change * (np.sqrt(self.dim) if norm == "l1" else 1.0))

    def proximal(
        self,
        linear: np.ndarray,
        penalty: np.ndarray,
        centre: np.ndarray,
        start: np.ndarray,
        tolerance: np.ndarray | float | None = None,
    ) -> np.ndarray:
        r""":math:`\arg\min_x f_i(x) + a_i^T x + \frac{D_i}{2}\|x - c_i\|_2^2` for every agent.

        Parameters
        ----------
        linear, centre : ndarray, broadcastable to (settings, runs, agents, dim)
            :math:`a` and :math:`c`.
        penalty : ndarray, broadcastable to (settings, runs, agents, 1)
            :math:`D > 0`.
        start : ndarray, shape (settings, runs, agents, dim)
            Where an iterative solver begins.
        tolerance : float or ndarray, broadcastable to (settings, runs, agents), optional
            Gradient norm at which to stop, kept strictly; none: as small as makes sense.
        """
        raise InvalidInput("problem.name", type(self).__name__, "a problem with a proximal solve")

    def project(self, x: np.ndarray) -> np.ndarray:
        """Euclidean projection to the domain; the whole space unless a problem says otherwise."""
        return x

    def measure(self, metric: str, x: np.ndarray) -> np.ndarray:
        """A metric of an iterate ``[..., agents, dim]``; shape ``[...]``."""
        return self.metrics[metric](self, x)


def consensus_error(problem: Problem, x: np.ndarray) -> np.ndarray:
    r""":math:`\frac1n\sum_i \|x_i - \bar x\|_2^2`."""
    return ((x - x.mean(-2, keepdims=True)) ** 2).sum(-1).mean(-1)
