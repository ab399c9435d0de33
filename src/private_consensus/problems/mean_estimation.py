r"""Distributed mean estimation in a box (paper 000, eq. (38)).

.. math:: f_i(x) = \tfrac12 \sum_{d \in D_i} \|x - d\|_2^2, \qquad x, d \in [-R, R]^p

a SUM over the agent's records, hence :math:`\mu = L = |D_i|`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from ..arrays import (
    require_array,
    require_each,
    require_finite,
    require_integer,
    require_number,
    tolerance_of,
)
from ..randomness import Streams
from .base import Problem, consensus_error


@dataclass(frozen=True)
class MeanEstimation(Problem):
    """Local means and the mean of all records.

    Parameters
    ----------
    means : ndarray, shape (runs, agents, p)
        Mean of each agent's records.
    records : int
        Records an agent, :math:`N_i`, the same for all agents.
    box : float
        :math:`R`; the domain and the records' universe are :math:`[-R, R]^p`, of side 2R.
    size_ratio : float
        Largest number of an agent's records, over ``records``. Where it is above 1, sizes are
        unequal and ``means`` holds sums of records over ``records``.
    """

    means: np.ndarray
    records: int
    box: float
    size_ratio: float = 1.0

    def __post_init__(self):
        axes = ("run", "agent", "coordinate")
        require_array("problem.means", self.means, axes)
        require_integer("problem.records", self.records, 1)
        require_number("problem.box", self.box, above=0)
        require_finite("problem.means", self.means, axes)
        require_number("problem.size_ratio", self.size_ratio, least=1)
        bound = self.box * self.size_ratio
        within = np.abs(self.means) <= bound * (1 + tolerance_of(self.means))
        expected = f"a number in [-{bound:g}, {bound:g}], the box"
        require_each(within, "problem.means", self.means, axes, expected)

    @property
    def n_runs(self) -> int:
        return len(self.means)

    @property
    def n_agents(self) -> int:
        return self.means.shape[-2]

    @property
    def dim(self) -> int:
        return self.means.shape[-1]

    @property
    def strong_convexity(self) -> float:
        return float(self.records)

    smoothness = least_convexity = strong_convexity

    @property
    def record_gradient_change(self) -> float:
        r""":math:`\sup \|d - d'\|_2 = 2R\sqrt p` (paper 000, section V-A)."""
        return 2.0 * self.box * np.sqrt(self.dim)

    def record_change(self, norm: str) -> float:
        r""":math:`2R\,p`, :math:`2R\sqrt p`, 2R: opposite corners of the box."""
        return float(2.0 * self.box * {"l1": self.dim, "l2": np.sqrt(self.dim), "linf": 1.0}[norm])

    @property
    def lipschitz(self) -> float:
        r""":math:`G = N_i\, 2R\sqrt p`, the Lipschitz constant of the SUM over the box."""
        return self.records * self.record_gradient_change

    def attained_gradient_share(self, norm: str) -> float:
        r"""Two opposite corners move it by :math:`2R\sqrt p` at every point, in l2; opposite faces
        by 2R in one coordinate."""
        return {"l2": 1.0, "l1": 1.0 / self.dim, "linf": 1.0 / np.sqrt(self.dim)}[norm]

    def attained_step_share(self, steps):
        """All: up to a step of 1/N a step ends between the point and the mean, in the box."""
        within = np.asarray(steps) <= (1 + 1e-12) / self.records
        return np.where(within, 1.0, 0.0)

    record_curvature = 0.0
    """Replacing a record does not move the Hessian."""

    def repeated(self, runs):
        shape = (runs, *self.means.shape[1:])
        return self.with_valid(means=np.broadcast_to(self.means[:1], shape))

    @property
    def target(self) -> np.ndarray:
        r""":math:`\bar d`, the mean of all records of a run; shape (runs, p)."""
        return self.means.mean(-2)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        return self.records * (x - self.means)

    def proximal(self, linear, penalty, centre, start):
        """Minimise in closed form and project; this is the minimiser because the objective is
        separable.
        """
        pull = self.records * self.means - linear + penalty * centre
        return self.project(pull / (self.records + penalty))

    def project(self, x: np.ndarray) -> np.ndarray:
        return np.clip(x, -self.box, self.box)

    def error(self, estimate: np.ndarray) -> np.ndarray:
        r""":math:`\|\hat x - \bar d\|_2^2 / \|\bar d\|_2^2` for estimates (..., runs, p)."""
        distance = ((estimate - self.target) ** 2).sum(-1)
        return distance / (self.target**2).sum(-1)

    metrics = {  # noqa: RUF012
        "normalised_error": lambda problem, x: problem.error(x.mean(-2)),
        "node_error": lambda problem, x: problem.error(x[..., 0, :]),
        "consensus_error": consensus_error,
    }


METRICS = MeanEstimation.metrics
EXAMPLE = {"records": 100, "dim": 5, "box": 5.0}


def build(
    streams: Streams,
    agents: int,
    *,
    records: int,
    dim: int,
    box: float,
    centre: float = 0.7,
    deviation: float = 1.0,
) -> MeanEstimation:
    """Draw records from a normal law truncated to the box, per coordinate (paper 000, section V-A).

    Parameters
    ----------
    records : int
        Records an agent.
    centre, deviation : float
        The normal law before truncation has mean ``centre * box``.
    """
    for key, value in {"records": records, "dim": dim}.items():
        require_integer(f"problem.{key}", value, 1)
    for key, value in {"box": box, "deviation": deviation}.items():
        require_number(f"problem.{key}", value, above=0)
    require_number("problem.centre", centre)
    mean = centre * box
    lowest, highest = ndtr((np.array([-box, box]) - mean) / deviation)
    means = np.empty((len(streams.runs), agents, dim))
    # Records come first in the shape: with more of them, the earlier ones stay what they were.
    for run, generator in enumerate(streams.generators("data")):
        uniform = generator.random((records, agents, dim))
        normal = ndtri(lowest + (highest - lowest) * uniform)
        means[run] = np.clip(mean + deviation * normal, -box, box).mean(0)
    return MeanEstimation(means, records, box)
