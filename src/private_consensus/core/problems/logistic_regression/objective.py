"""Objective of regularised logistic regression and its sensitivities."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy.special import expit

from private_consensus.common.arrays import (
    require_array,
    require_each,
    require_finite,
    require_rows_within,
    require_shape,
)
from private_consensus.common.errors import arguments, require
from private_consensus.kernels import logistic as kernel
from private_consensus.kernels.compiling import share_out

from ...parameters import FiniteNonNegative, FinitePositive, Positive, validate
from ..base import Problem
from . import metrics, optimum, solver
from .solver import losses_of, per_agent, sigmoid_neg

INITS = ("zero", "random")
Coding = Literal["signed", "zero_one"]
CODINGS = {"signed": (-1, 1), "zero_one": (0, 1)}
"""Negative and positive label of each coding."""
BLOCK_ENTRIES = 2**17
"""Number of record entries per block of points whose Hessians are computed."""
SMALL_ENTRIES = 20_000
"""Number of record entries per agent up to which array operations on all agents are faster than
compiled code."""


def _require_padding(features: np.ndarray, labels: np.ndarray, sizes: Any, negative: float) -> None:
    """Raise an error for invalid numbers of records, and for padding that is not empty."""
    require_array("problem.sizes", sizes, ("agent",), kinds="iu")
    require_shape("problem.sizes", sizes, features.shape[-3:-2], "the agents")
    largest = features.shape[-2]
    expected = f"a whole number between 1 and {largest}, the rows of an agent"
    require_each((sizes >= 1) & (sizes <= largest), "problem.sizes", sizes, ("agent",), expected)
    axes = ("run", "agent", "record")
    is_record = np.arange(largest) < sizes[:, None]
    empty = (features == 0).all(-1) & (labels == negative)
    expected = f"padding after the agent's records: zeros with the label {negative}"
    require_each(empty | is_record, "problem.labels", labels, axes, expected)


@dataclass(frozen=True)
class LogisticRegression(Problem):
    r"""Logistic regression on the agents' records, with a separate test set.

    Parameters
    ----------
    features : ndarray, shape ([runs,] agents, records, dim)
        Features of the records, with l2 norms of at most 1.
    labels : ndarray, shape ([runs,] agents, records)
        Labels in {-1, +1}, or in {0, 1} with ``coding="zero_one"``.
    test_features, test_labels : ndarray, shapes ([runs,] rows, dim) and ([runs,] rows)
        Test records.
    weight : float
        Weight ``w`` of one record's loss.
    ridge : float
        Coefficient :math:`\lambda` of the regulariser.
    box : float
        Bound R of the domain :math:`[-R, R]^d`; infinite for no domain.
    coding : {"signed", "zero_one"}
        Labels -1 and 1, or 0 and 1 as published in Xiao et al.
    sizes : ndarray of int, shape (agents,), optional
        Numbers of records of the agents, if they differ. Further rows are padding: zeros with the
        negative label, which have no gradient and which metrics ignore. Padded data belong to the
        universe of data sets, so that all sensitivities hold. None: every agent has ``records``
        records.
    nonnegative : bool
        Whether the universe of data sets has no negative features. With labels in {0, 1}, the
        sensitivities are then smaller.
    """

    features: np.ndarray
    labels: np.ndarray
    test_features: np.ndarray
    test_labels: np.ndarray
    weight: FinitePositive
    ridge: FiniteNonNegative
    box: Positive = np.inf
    coding: Coding = "signed"
    sizes: np.ndarray | None = None
    nonnegative: bool = False

    def __post_init__(self):
        validate(self, "problem")
        axes = ("run", "agent", "record", "coordinate")
        features, labels = self._convert("features", axes, optional=1), self.labels
        require_array("problem.labels", labels, axes[:-1], optional=1)
        require_shape("problem.labels", labels, features.shape[:-1], "features")
        require_rows_within("problem.features", features, 1.0, axes)
        if self.nonnegative:
            expected = "a number >= 0, since the problem is nonnegative"
            require_each(features >= 0, "problem.features", features, axes, expected)
        negative, positive = CODINGS[self.coding]
        hint = "" if self.coding == "zero_one" else "; labels 0 and 1 need coding='zero_one'"
        coded = (labels == negative) | (labels == positive)
        expected = f"{negative} or {positive}{hint}"
        require_each(coded, "problem.labels", labels, axes[:-1], expected)
        axes = ("run", "test record", "coordinate")
        test = self._convert("test_features", axes, optional=1, empty=True)
        require_shape("problem.test_features", test, (*test.shape[:-1], self.dim), "features")
        require_shape("problem.test_labels", self.test_labels, test.shape[:-1], "test_features")
        require_finite("problem.test_features", test, axes)
        if self.sizes is not None:
            _require_padding(features, labels, self.sizes, negative)
        super().__post_init__()

    @property
    def n_runs(self) -> int | None:
        return len(self.features) if self.features.ndim == 4 else None

    @property
    def n_agents(self) -> int:
        return self.features.shape[-3]

    @property
    def records(self) -> int:
        return self.features.shape[-2]

    @property
    def record_counts(self) -> np.ndarray:
        """Number of records of each agent, without padding; shape (agents,)."""
        return np.full(self.n_agents, self.records) if self.sizes is None else self.sizes

    @property
    def dim(self) -> int:
        return self.features.shape[-1]

    @property
    def strong_convexity(self) -> float:
        return self.ridge

    least_convexity = strong_convexity

    @property
    def smoothness(self) -> float:
        r"""Upper bound :math:`wN_i/4 + \lambda` on the eigenvalues of the Hessian.

        The second derivative of the logistic loss is at most 1/4, and rows have norm at most 1.
        """
        return self.weight * self.records / 4 + self.ridge

    @property
    def record_gradient_change(self) -> float:
        r"""Bound on the change of the gradient if one record is replaced: 2w in general.

        The norm of a record's gradient is at most ``w``. For labels in {0, 1} and a nonnegative
        problem, the bound is :math:`\sup \|\sigma z - \sigma' z'\|_2 w = \sqrt2\, w`,
        which two orthogonal rows approach.
        """
        return self.weight * (np.sqrt(2.0) if self._one_sided else 2.0)

    @property
    def record_coordinate_change(self) -> float:
        r"""Bound w if every coordinate of a record's gradient has one sign, otherwise 2w.

        The signs are equal for labels in {0, 1} and a nonnegative problem (in Xiao et al.,
        :math:`\mathcal B_\infty = 1/b_i`), and for no other coding (errata E1.3).
        """
        return self.weight * (1.0 if self._one_sided else 2.0)

    @property
    def _one_sided(self) -> bool:
        return self.coding == "zero_one" and self.nonnegative

    @property
    def _both_labels(self) -> bool:
        """True if labels are in {-1, +1}."""
        return self.coding == "signed"

    def attained_gradient_share(self, norm: str) -> float | None:
        r"""Return 1/2, which two records with one row of norm 1 and opposite labels attain.

        They change the gradient by :math:`w(\sigma(-m)+\sigma(m)) = w` at every point. In l1, with
        the row along one axis, the change is :math:`w` and the bound is :math:`2w\sqrt d`. For
        labels in {0, 1} no fraction is known, since a record with label 0 has no gradient.
        """
        if not self._both_labels:
            return None
        return 0.5 / np.sqrt(self.dim) if norm == "l1" else 0.5

    @property
    def reached_l1_share(self) -> float | None:
        r"""Fraction that is also known for labels in {0, 1} and a nonnegative problem.

        Two rows with label 1 have disjoint supports of a and b coordinates, and share a small
        entry of one other coordinate. Where this coordinate of the point is far below 0, the
        gradient changes by :math:`w(\sqrt a + \sqrt b)`.
        """
        if not self._one_sided:
            return super().reached_l1_share
        a = (self.dim - 1) // 2
        return float((np.sqrt(a) + np.sqrt(self.dim - 1 - a)) / np.sqrt(2 * self.dim))

    def upper_face_steps(self, step: float) -> tuple[float, float] | None:
        r"""Compute gradient steps of length s along one axis from the upper face, for either label.

        The record is a unit row along the axis, and the other rows of the agent are zero. The
        result is :math:`R - s\lambda R \pm sw\sigma(\mp R)`, which differ by :math:`sw`, the larger
        one first. It is None for labels in {0, 1}.
        """
        if not self._both_labels:
            return None
        above = self.box - step * (self.ridge * self.box - self.weight * expit(-self.box))
        return float(above), float(above - step * self.weight)

    def attained_minimiser_share(self, norm: str, curvature):
        r"""Return the fraction attained by opposite labels on one row, with other rows zero.

        In l2 it is one over :math:`2(1+\kappa)`,
        :math:`\kappa = \frac w4/(\lambda + \text{curvature})`. With h the total curvature and
        :math:`m_\pm` the margins of the two minimisers,
        :math:`h(m_+ - m_-) = w(1-\sigma(m_+)+\sigma(m_-)) \ge w(1-(m_+-m_-)/4)`.
        """
        fraction = self.attained_gradient_share(norm)
        if fraction is None:
            return None
        return fraction / (1.0 + self.record_curvature / (self.least_convexity + curvature))

    @property
    def approaches_bound(self) -> bool:
        r"""True for labels in {-1, +1} and at least two coordinates.

        At points where both rows are on the wrong side,
        :math:`w\|\sigma z-\sigma'z'\| \to 2w`.
        """
        return self._both_labels and self.dim > 1

    @property
    def record_curvature(self) -> float:
        """Bound on the largest eigenvalue of the Hessian of one record's loss."""
        return self.weight / 4

    record_hessian_rank = 1

    @property
    def largest_record_gradient(self) -> float:
        """Largest l2 norm of a record's gradient, which is ``weight`` for rows of norm 1."""
        return self.record_gradient_change / (np.sqrt(2.0) if self._one_sided else 2.0)

    @property
    def lipschitz(self) -> float:
        """Lipschitz constant over the box; infinite without a box."""
        return self.weight * self.records + self.ridge * self.box * np.sqrt(self.dim)

    @cached_property
    def agent_records(self) -> solver.AgentRecords:
        """Records times their labels, with the derived data of the local solvers."""
        return solver.AgentRecords(self.features, self.labels)

    @property
    def _signed(self) -> np.ndarray:
        return self.agent_records.rows

    def part(self, selection: slice) -> LogisticRegression:
        rows, labels = self.features[..., selection, :], self.labels[..., selection]
        sizes = self.sizes
        if sizes is not None:
            sizes = (np.arange(self.records)[selection] < sizes[:, None]).sum(-1)
        return self.with_valid(features=rows, labels=labels, sizes=sizes)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        margins = per_agent(x, np.swapaxes(self._signed, -1, -2))
        return self.ridge * x - self.weight * per_agent(sigmoid_neg(margins), self._signed)

    def rows_of(self, run: int) -> np.ndarray:
        """Return the indices of the agents' records in a run, among the records of all runs.

        The result has shape (agents, records).
        """
        shape = self.features.shape[-3:-1]
        first = run * math.prod(shape) if self.features.ndim == 4 else 0
        return first + np.arange(math.prod(shape)).reshape(shape)

    def initial(self, init: str, release: Any) -> np.ndarray:
        """Return the common starting point, [runs, 1, dim], of all agents of a run.

        It is 0, or for ``random`` a normal vector, from the stream ``data``, whose squared norm has
        the mean 1.
        """
        arguments.choice("algorithm.init", init, INITS)
        if init == "zero":
            return np.zeros((release.runs, 1, self.dim))
        return release.once("initial", "normal", (1, self.dim)) / np.sqrt(self.dim)

    def clipped_gradient(self, x, rows, sizes, clip=np.inf, out=None):
        r"""Compute the mean of clipped gradients of records, plus the regulariser's gradient.

        It is :math:`\frac1{|S|}\sum_S
        \frac{wN\nabla\ell}{\max(1, \|wN\nabla\ell\|/K)} + \lambda x`, with N the largest number of
        records of an agent. The gradient of the regulariser is not clipped.
        """
        signed = self._signed.reshape(-1, self.dim)[rows]
        slopes = self.weight * self.records * sigmoid_neg(np.matvec(signed, x))
        lengths = slopes * np.sqrt(np.vecdot(signed, signed))
        in_sample = np.arange(rows.shape[-1]) < sizes[:, None]
        weights = (
            in_sample * slopes / (np.maximum(sizes, 1)[:, None] * np.maximum(1.0, lengths / clip))
        )
        regular = np.where(sizes[:, None] > 0, self.ridge * x, 0.0)
        return np.subtract(regular, np.vecmat(weights, signed), out=out)

    def objective(self, x: np.ndarray) -> np.ndarray:
        """Compute the local objectives :math:`f_i(x_i)`; shape (..., agents)."""
        margins = per_agent(x, np.swapaxes(self._signed, -1, -2))
        return self.weight * losses_of(margins).sum(-1) + self.ridge / 2 * (x**2).sum(-1)

    def clipped_loss(
        self, x: np.ndarray, bound: Any, selected: np.ndarray | None = None
    ) -> np.ndarray:
        r"""Compute an agent's mean of :math:`\min(\ln(1+e^{-m}), C_{loss})`, with weight 1.

        With ``selected`` and many records, a compiled kernel evaluates eight points per SIMD
        register. It differs by rounding errors, values of other agents are NaN, and ``bound`` is
        equal for all records of an agent.
        """
        if selected is None or not self._has_many_entries:
            margins = per_agent(x, np.swapaxes(self._signed, -1, -2))
            return np.minimum(losses_of(margins), bound).mean(-1)
        agents_shape, lanes = self.labels.shape[:-1], self.agent_records.lanes
        points, mask = x.reshape(-1, *agents_shape, self.dim), selected.reshape(-1, *agents_shape)
        mask = mask & np.isfinite(points).all(-1)
        bounds = np.broadcast_to(bound, (*x.shape[:-1], 1)).reshape(-1, *agents_shape)

        losses = np.full(mask.shape, np.nan)

        def evaluate(first, last):
            for agent in range(first, last):
                agent_index = np.unravel_index(agent, agents_shape)
                index = (mask[(slice(None), *agent_index)], *agent_index)
                losses[index] = kernel.mean_losses(lanes[agent], points[index], bounds[index])

        share_out(evaluate, len(lanes))
        return losses.reshape(x.shape[:-1])

    def local_error_counts(self, x: np.ndarray) -> np.ndarray:
        """Count the local records that each agent's model misclassifies; shape (..., agents).

        Margin 0 predicts the negative class.
        """
        margins = per_agent(x, np.swapaxes(self.features, -1, -2))
        return ((margins > 0) != (self.labels > 0)).sum(-1)

    def hessian(self, x: np.ndarray) -> np.ndarray:
        r"""Compute the Hessians :math:`\nabla^2 f_i(x_i)`; shape (..., agents, dim, dim)."""
        margins = per_agent(x, np.swapaxes(self._signed, -1, -2))
        sigma = sigmoid_neg(margins)
        curvature = self.weight * sigma * (1.0 - sigma)
        weighted = np.swapaxes(self._signed, -1, -2) * curvature[..., None, :]
        return weighted @ self._signed + self.ridge * np.eye(self.dim)

    def hessian_of(self, x: np.ndarray, selected: np.ndarray) -> np.ndarray:
        """Compute the Hessians, [selected, dim, dim], at selected points."""
        batch_axes = selected.shape[1 - self.labels.ndim :]  # several runs can share the records
        rows = np.broadcast_to(self._signed, (*batch_axes, *self._signed.shape[-2:]))
        agent_indices = np.nonzero(selected)[1 - self.labels.ndim :]
        points = x[selected]
        hessians = np.empty((len(points), self.dim, self.dim))
        block_size = max(1, BLOCK_ENTRIES // (self.records * self.dim))
        for first in range(0, len(points), block_size):
            block = slice(first, first + block_size)
            signed = rows[tuple(indices[block] for indices in agent_indices)]
            sigma = sigmoid_neg(np.matvec(signed, points[block]))
            weighted = signed * (self.weight * sigma * (1.0 - sigma))[..., None]
            np.matmul(np.swapaxes(weighted, -1, -2), signed, out=hessians[block])
        return hessians + self.ridge * np.eye(self.dim)

    @cached_property
    def hessian_bound(self) -> tuple[np.ndarray, np.ndarray]:
        r"""Eigenvalues and eigenvectors of :math:`\frac w4 Z_i^TZ_i+\lambda I`, a Hessian bound."""
        gram = np.swapaxes(self._signed, -1, -2) @ self._signed
        return np.linalg.eigh(self.weight / 4 * gram + self.ridge * np.eye(self.dim))

    def proximal(self, linear, penalty, centre, start, tolerance=None):
        """Raise ``Unsolved`` if rounding errors prevent the prescribed ``tolerance``.

        The default is 1e-10, or the rounding error if that is larger. With many records, 1e-10 is
        multiplied by :math:`wN_i` if that exceeds 1.
        """
        require(np.isinf(self.box), "problem.box", self.box, "inf, required by a proximal solve")
        solve = solver.solve_in_lanes if self._has_many_entries else solver.solve_by_arrays
        return solve(self, linear, penalty, centre, start, tolerance)

    @property
    def _has_many_entries(self) -> bool:
        """True if an agent's rows have so many entries that compiled code is faster.

        Subclasses may store fewer rows than an agent has records.
        """
        return math.prod(self.features.shape[-2:]) > SMALL_ENTRIES

    @cached_property
    def own_optimum(self) -> np.ndarray:
        """Minimiser of each local objective; shape ([runs,] agents, dim)."""
        return optimum.local_minimisers(self)

    def project(self, x: np.ndarray) -> np.ndarray:
        return x if np.isinf(self.box) else np.clip(x, -self.box, self.box)

    @cached_property
    def optimum(self) -> np.ndarray:
        r"""Optimum :math:`x^*`, the minimiser of :math:`\sum_i f_i`; shape ([runs,] dim)."""
        return (
            optimum.minimiser_in_box(self)
            if self.features.ndim == 3
            else optimum.minimisers_of_runs(self)
        )

    @property
    def slope_bound(self) -> float:
        r"""Bound :math:`C_1 \ge \|\nabla f_i\|_1` on the l1 norm of gradients over the box."""
        return self.weight * self.records * np.sqrt(self.dim) + self.ridge * self.box * self.dim

    metrics = metrics.METRICS
