r"""Distributed mean estimation in a box (Showkatbakhsh et al., eq. (38)).

.. math:: f_i(x) = \tfrac12 \sum_{d \in D_i} \|x - d\|_2^2, \qquad x, d \in [-R, R]^p

The objective is a SUM over the agent's records, hence :math:`\mu = L = |D_i|`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Ge, Lt
from scipy.special import ndtr, ndtri

from private_consensus.common.arrays import require_each, tolerance_of
from private_consensus.common.errors import require

from ..parameters import Count, FinitePositive, validated
from ..randomness import Streams
from .base import Problem, consensus_error


@dataclass(frozen=True)
class MeanEstimation(Problem):
    """Mean estimation from local means of the agents' records.

    Parameters
    ----------
    means : ndarray, shape (runs, agents, p)
        Mean of each agent's records.
    records : int
        Number of records per agent, :math:`N_i`, equal for all agents.
    box : float
        Half the side length :math:`R` of the box :math:`[-R, R]^p`, which is the domain and which
        contains all records.
    size_ratio : float
        Largest number of records of an agent, divided by ``records``. If it exceeds 1, the numbers
        are unequal and ``means`` holds sums of records divided by ``records``.
    """

    means: np.ndarray
    records: Count
    box: FinitePositive
    size_ratio: Annotated[float, Ge(1), Lt(np.inf)] = 1.0

    axes: ClassVar[Mapping[str, str]] = {"means": "run agent coordinate"}
    run_fields: ClassVar[tuple[str, ...]] = ("means",)

    def __post_init__(self):
        super().__post_init__()
        bound = self.box * self.size_ratio
        limit = bound * (1 + tolerance_of(self.means))
        within = (self.means >= -limit) & (self.means <= limit)
        expected = f"a number in [-{bound:g}, {bound:g}], the box"
        axes = ("run", "agent", "coordinate")
        require_each(within, "problem.means", self.means, axes, expected)

    @property
    def strong_convexity(self) -> float:
        return float(self.records)

    smoothness = least_convexity = strong_convexity

    @property
    def record_gradient_change(self) -> float:
        r"""Diameter :math:`2R\sqrt p` of the box (Showkatbakhsh et al., section V-A)."""
        return 2.0 * self.box * np.sqrt(self.dim)

    @property
    def record_coordinate_change(self) -> float:
        """Side length 2R of the box."""
        return 2.0 * self.box

    @property
    def lipschitz(self) -> float:
        r"""Lipschitz constant :math:`G = N_i\, 2R\sqrt p` of the sum over the records.

        With unequal numbers of records, 2R is :math:`(1 + \text{size\_ratio})R`.
        """
        return self.records * self.record_gradient_change * (1 + self.size_ratio) / 2

    def attained_gradient_share(self, norm: str) -> float:
        r"""Return the fraction attained by two records on opposite corners or faces of the box.

        Opposite corners change the gradient by :math:`2R\sqrt p` in l2 at every point. Opposite
        faces change it by 2R in one coordinate.
        """
        return {"l2": 1.0, "l1": 1.0 / self.dim, "linf": 1.0 / np.sqrt(self.dim)}[norm]

    record_curvature = 0.0
    """Replacing a record does not change the Hessian."""

    @property
    def target(self) -> np.ndarray:
        r"""Mean :math:`\bar d` of all records of a run; shape (runs, p)."""
        return self.means.mean(-2)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        r"""Compute the local gradients :math:`N_i (x_i - \bar d_i)` from the local means."""
        return self.records * (x - self.means)

    def proximal(self, linear, penalty, centre, start, tolerance=None):
        """Minimise in closed form, then project to the box.

        This is the minimiser over the box because the objective is separable.
        """
        require(tolerance is None, "tolerance", tolerance, "None for means")
        pull = self.records * self.means - linear + penalty * centre
        return self.project(pull / (self.records + penalty))

    def project(self, x: np.ndarray) -> np.ndarray:
        return np.clip(x, -self.box, self.box)

    def error(self, estimate: np.ndarray) -> np.ndarray:
        r"""Compute the normalised error :math:`\|\hat x - \bar d\|_2^2 / \|\bar d\|_2^2`.

        Estimates have shape (..., runs, p).
        """
        distance = ((estimate - self.target) ** 2).sum(-1)
        return distance / (self.target**2).sum(-1)

    metrics = {  # noqa: RUF012
        "normalised_error": lambda problem, x: problem.error(x.mean(-2)),
        "node_error": lambda problem, x: problem.error(x[..., 0, :]),
        "consensus_error": consensus_error,
    }


EXAMPLE = {"records": 100, "dim": 5, "box": 5.0}


@validated
def build(
    streams: Streams,
    agents: int,
    *,
    records: Count,
    dim: Count,
    box: FinitePositive,
    centre: float = 0.7,
) -> MeanEstimation:
    """Sample records from a normal distribution truncated to the box.

    Coordinates are independent (Showkatbakhsh et al., section V-A).

    Parameters
    ----------
    streams : Streams
        Random streams; records come from the stream ``data``.
    agents : int
        Number of agents.
    records : int
        Number of records per agent.
    dim : int
        Dimension p of a record.
    box : float
        Half the side length R of the box.
    centre : float
        Mean before truncation, divided by ``box``; the standard deviation is 1.

    Returns
    -------
    MeanEstimation
    """
    mean = centre * box
    lowest, highest = ndtr(np.array([-box, box]) - mean)
    means = np.empty((len(streams.runs), agents, dim))
    # The first axis is the record, so that more records do not change earlier records.
    for run, generator in enumerate(streams.generators("data")):
        uniform = generator.random((records, agents, dim))
        normal = ndtri(lowest + (highest - lowest) * uniform)
        means[run] = np.clip(mean + normal, -box, box).mean(0)
    return MeanEstimation(means, records, box)
