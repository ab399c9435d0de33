r"""Regularised logistic regression on records distributed among agents.

.. math:: f_i(x) = w \sum_{j} \ln\bigl(1 + e^{-y_{ij}\, x^T z_{ij}}\bigr) +
    \tfrac{\lambda}{2}\|x\|_2^2

with labels in {-1, +1} and rows :math:`\|z\|_2 \le 1`. With ``w = 1`` it is a sum over the records
(Showkatbakhsh et al.), with ``w = C / N_i`` a scaled mean (Xiao et al., Ding). Xiao et al. state
labels in {0, 1}: a record labelled 0 then has a constant loss and no influence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from private_consensus.common import arrays
from private_consensus.common.errors import arguments, require
from private_consensus.kernels import logistic as kernel
from private_consensus.kernels.compiling import share_out

from ..parameters import Count, FiniteNonNegative, FinitePositive, Positive, validated
from ..randomness import Streams
from ..solvers import minimise
from ..solvers.logistic import (
    AgentRecords,
    losses_of,
    per_agent,
    sigmoid_neg,
    solve_by_arrays,
    solve_in_lanes,
)
from .base import Problem, consensus_error

INITS = ("zero", "random")
Coding = Literal["signed", "zero_one"]
CODINGS = {"signed": (-1, 1), "zero_one": (0, 1)}
"""Negative and positive label of each coding."""
BLOCK_ENTRIES = 2**17
"""Number of record entries per block of points whose Hessians are computed."""
SMALL_ENTRIES = 20_000
"""Number of record entries per agent up to which array operations on all agents are faster than
compiled code."""
OPTIMUM_ERROR = 1e-9
"""Numerical error of the optimum, below which distances to it are not resolved."""


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

    axes: ClassVar[Mapping[str, str]] = {
        "features": "[run] agent record coordinate",
        "labels": "[run] agent record",
        "test_features": "[run] test coordinate",
    }

    def __post_init__(self):
        super().__post_init__()
        features, labels, tests = self.features, self.labels, self.test_features
        axes = ("run", "agent", "record", "coordinate")
        arrays.require_shape("problem.labels", labels, features.shape[:-1], "features")
        arrays.require_rows_within("problem.features", features, 1.0, axes)
        if self.nonnegative:
            expected = "a number >= 0, since the problem is nonnegative"
            arrays.require_each(features >= 0, "problem.features", features, axes, expected)
        negative, positive = CODINGS[self.coding]
        hint = "" if self.coding == "zero_one" else "; labels 0 and 1 need coding='zero_one'"
        coded, expected = np.isin(labels, (negative, positive)), f"{negative} or {positive}{hint}"
        arrays.require_each(coded, "problem.labels", labels, axes[:-1], expected)
        shape = tests.shape[:-1]
        arrays.require_shape("problem.test_labels", self.test_labels, shape, "test_features")
        if self.sizes is not None:
            self._require_padding(self.sizes, negative)

    def _require_padding(self, sizes: np.ndarray, negative: float) -> None:
        """Refuse invalid numbers of records, and padding that is not empty."""
        key, largest = "problem.sizes", self.records
        arrays.require_array(key, sizes, ("agent",), kinds="iu")
        arrays.require_shape(key, sizes, (self.n_agents,), "the agents")
        expected = f"a whole number between 1 and {largest}, the rows of an agent"
        arrays.require_each((sizes >= 1) & (sizes <= largest), key, sizes, ("agent",), expected)
        is_record = np.arange(largest) < sizes[:, None]
        empty = (self.features == 0).all(-1) & (self.labels == negative)
        expected = f"padding after the agent's records: zeros with the label {negative}"
        axes = ("run", "agent", "record")
        arrays.require_each(empty | is_record, "problem.labels", self.labels, axes, expected)

    @property
    def record_counts(self) -> np.ndarray:
        """Number of records of each agent, without padding; shape (agents,)."""
        return np.full(self.n_agents, self.records) if self.sizes is None else self.sizes

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

    def attained_gradient_share(self, norm: str) -> float | None:
        r"""Return 1/2, which two records with one row of norm 1 and opposite labels attain.

        They change the gradient by :math:`w(\sigma(-m)+\sigma(m)) = w` at every point. In l1, with
        the row along one axis, the change is :math:`w` and the bound is :math:`2w\sqrt d`. For
        labels in {0, 1} no fraction is known, since a record with label 0 has no gradient.
        """
        if self.coding == "zero_one":
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
        if self.coding == "zero_one":
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
        return self.coding == "signed" and self.dim > 1

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
    def _signed(self) -> np.ndarray:
        """Rows times their labels."""
        return self.features * self.labels[..., None]

    @cached_property
    def agent_records(self) -> AgentRecords:
        """Records with the derived data of the compiled solver."""
        return AgentRecords(self._signed)

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
        solve = solve_in_lanes if self._has_many_entries else solve_by_arrays
        return solve(self, linear, penalty, centre, start, tolerance)

    @property
    def _has_many_entries(self) -> bool:
        """True if an agent's rows have so many entries that compiled code is faster.

        Subclasses may store fewer rows than an agent has records.
        """
        return math.prod(self.features.shape[-2:]) > SMALL_ENTRIES

    def project(self, x: np.ndarray) -> np.ndarray:
        return x if np.isinf(self.box) else np.clip(x, -self.box, self.box)

    @cached_property
    def own_optimum(self) -> np.ndarray:
        """Minimiser of each local objective; shape ([runs,] agents, dim)."""
        minimisers = minimise(
            self.gradient,
            lambda x, selected: self.hessian(x)[selected],
            np.zeros((*self.features.shape[:-2], self.dim)),
            magnitude=self.weight * self.records,
        )
        expected = "a box that holds every agent's minimiser"
        require(bool((np.abs(minimisers) <= self.box).all()), "problem.box", self.box, expected)
        return minimisers

    @cached_property
    def optimum(self) -> np.ndarray:
        r"""Optimum :math:`x^*`, the minimiser of :math:`\sum_i f_i`; shape ([runs,] dim)."""
        return self._optimum_in_box() if self.features.ndim == 3 else self._optima_of_runs()

    def _same_model(self, point: np.ndarray) -> np.ndarray:
        """Return one model for all agents."""
        shape = (*point.shape[:-1], self.n_agents, self.dim)
        return np.broadcast_to(point[..., None, :], shape)

    def _optima_of_runs(self) -> np.ndarray:
        expected = "inf, since the data differ between runs"
        require(np.isinf(self.box), "problem.box", self.box, expected)
        return minimise(
            lambda x: self.gradient(self._same_model(x)).sum(-2),
            lambda x, selected: self.hessian(self._same_model(x)).sum(-3)[selected],
            np.zeros((len(self.features), self.dim)),
            magnitude=self.n_agents * self.weight * self.records,
        )

    def _optimum_in_box(self) -> np.ndarray:
        def total(point):
            x = self._same_model(point)
            return self.objective(x).sum(), self.gradient(x).sum(0)

        bounds = None if np.isinf(self.box) else [(-self.box, self.box)] * self.dim
        options = {"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9 * self.weight, "maxcor": 30}
        start = np.zeros(self.dim)
        return minimize(total, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x

    @property
    def slope_bound(self) -> float:
        r"""Bound :math:`C_1 \ge \|\nabla f_i\|_1` on the l1 norm of gradients over the box."""
        return self.weight * self.records * np.sqrt(self.dim) + self.ridge * self.box * self.dim

    def excess(self, estimate: np.ndarray) -> np.ndarray:
        r"""Compute the excess loss per record, :math:`(f(\hat x) - f(x^*)) / N`."""
        loss, optimal_loss = (
            self.objective(self._same_model(x)).sum(-1) for x in (estimate, self.optimum)
        )
        return (loss - optimal_loss) / (self.record_counts.sum() * self.weight)

    def misclassified(self, estimate: np.ndarray) -> np.ndarray:
        """Compute the fraction of misclassified test records; margin 0 is the negative class."""
        if self.test_features.ndim == 2:
            positive = estimate @ self.test_features.T > 0
        else:
            positive = np.matvec(self.test_features, estimate) > 0
        return (positive != (self.test_labels > 0)).mean(-1)

    def log_distance(self, x: np.ndarray) -> np.ndarray:
        r"""Compute the mean of :math:`\ln(\|x_i - x^*\|_2 / d)` (Xiao et al., Appendix E)."""
        distance = np.linalg.norm(x - self.optimum[..., None, :], axis=-1)
        return np.log(np.maximum(distance, OPTIMUM_ERROR) / self.dim).mean(-1)

    def squared_distance(self, x: np.ndarray) -> np.ndarray:
        """Compute the mean squared distance to the optimum (Ding, Theorems 12 and 16)."""
        return ((x - self.optimum[..., None, :]) ** 2).sum(-1).mean(-1)

    def local_loss(self, x: np.ndarray) -> np.ndarray:
        r"""Compute the mean over agents of :math:`\frac1{|D_i|}\sum\ln(1+e^{-m})`."""
        losses = self.clipped_loss(x, np.inf, np.ones(x.shape[:-1], bool))
        if self.sizes is None:
            return losses.mean(-1)
        padding = (self.records - self.sizes) * math.log(2.0)  # of zero rows
        return ((losses * self.records - padding) / self.sizes).mean(-1)

    def local_error(self, x: np.ndarray) -> np.ndarray:
        """Compute the fraction of all local records that their agent's model misclassifies."""
        margins = per_agent(x, np.swapaxes(self.features, -1, -2))
        wrong = (margins > 0) != (self.labels > 0)
        return wrong.sum((-1, -2)) / self.record_counts.sum()

    def local_test_error(self, x: np.ndarray) -> np.ndarray:
        """Compute the mean over agents of the local model's error on the test rows."""
        rows = np.swapaxes(self.test_features, -1, -2)
        if rows.ndim == 2:
            margins = x @ rows
        else:  # all settings and agents of a run together
            runs = np.moveaxis(x, -3, 0)
            margins = runs.reshape(len(runs), -1, self.dim) @ rows
            margins = np.moveaxis(margins.reshape(*runs.shape[:-1], -1), 0, -3)
        positive = self.test_labels > 0
        positive = positive[..., None, :] if positive.ndim > 1 else positive
        return ((margins > 0) != positive).mean((-1, -2))

    def train_majority(self, x: np.ndarray) -> np.ndarray:
        """Compute the fraction of the more frequent label among all local records."""
        positive = (self.labels > 0).sum((-1, -2)) / self.record_counts.sum()
        return np.broadcast_to(np.maximum(positive, 1.0 - positive), x.shape[:-2])

    def test_majority(self, x: np.ndarray) -> np.ndarray:
        """Compute the fraction of the more frequent label among the test records."""
        positive = (self.test_labels > 0).mean(-1)
        return np.broadcast_to(np.maximum(positive, 1.0 - positive), x.shape[:-2])

    metrics = {  # noqa: RUF012
        "own_loss": local_loss,
        "own_train_accuracy": lambda problem, x: 1.0 - problem.local_error(x),
        "own_test_error": local_test_error,
        "own_test_accuracy": lambda problem, x: 1.0 - problem.local_test_error(x),
        "majority_train_accuracy": train_majority,
        "majority_test_accuracy": test_majority,
        "majority_test_error": lambda problem, x: 1.0 - problem.test_majority(x),
        "log_distance": log_distance,
        "origin_log_distance": lambda problem, x: problem.log_distance(np.zeros_like(x)),
        "squared_distance": squared_distance,
        "test_error": lambda problem, x: problem.misclassified(x.mean(-2)),
        "excess_loss": lambda problem, x: problem.excess(x.mean(-2)),
        "consensus_error": consensus_error,
    }


EXAMPLE = {"prepared": "synthetic", "records": 50, "ridge": 0.001, "weight": "mean"}


def require_records(agents: int, records: int, rows: int) -> None:
    """Refuse more records per agent than there are rows; one row remains for the test."""
    largest = (rows - 1) // agents
    expected = f"a whole number >= 1 and <= {largest}: {rows} rows for {agents} agents and a test"
    require(1 <= records <= largest, "problem.records", records, expected)


@validated
def build(
    streams: Streams,
    agents: int,
    *,
    prepared,
    records: Count,
    ridge: FiniteNonNegative,
    box: Positive = np.inf,
    weight: float | str = 1.0,
    loss_scale: FinitePositive = 1.0,
    test_rows: Count | None = None,
    partition: Literal["shared", "per_run"] = "shared",
    coding: Coding = "signed",
    nonnegative: bool = False,
) -> LogisticRegression:
    r"""Distribute prepared rows to agents at random; the remaining rows are the test set.

    Parameters
    ----------
    streams : Streams
        Random streams; the partition comes from the stream ``data``.
    agents : int
        Number of agents.
    prepared : object
        Prepared records: ``features`` (rows of norm <= 1) and ``labels`` in {-1, +1}.
    records : int
        Number of records per agent.
    ridge : float
        Regularisation per record: an agent's :math:`\lambda` is ``records * weight * ridge``.
    box : float
        Bound R of the domain :math:`[-R, R]^d`.
    weight : float or "mean"
        Weight of one record's loss; "mean" is ``loss_scale`` / records.
    loss_scale : float
        Factor C of the mean loss and of the ridge, as in earlier work that Ding cites.
    test_rows : int, optional
        Largest number of test rows.
    partition : {"shared", "per_run"}
        One partition for all runs, or a new one for each run.
    coding : {"signed", "zero_one"}
        Labels as prepared, or 1 for the negative class and 0 for the positive class (Xiao et al.).
    nonnegative : bool
        Whether the preparation makes all features nonnegative for every data set.

    Returns
    -------
    LogisticRegression

    Raises
    ------
    InvalidInput
        If there are not enough rows, the norm of a row exceeds 1, or labels are coded otherwise.
    """
    rows = len(prepared.labels)
    require_records(agents, records, rows)
    labels = np.asarray(prepared.labels).astype(float)
    arrays.require_each(np.abs(labels) == 1, "problem.prepared.labels", labels, ("row",), "-1 or 1")
    features, axes = np.asarray(prepared.features), ("row", "coordinate")
    arrays.require_rows_within("problem.prepared.features", features, 1.0, axes)
    labels = labels if coding == "signed" else (labels < 0).astype(float)
    if partition == "shared":
        order = streams.shared("data").permutation(rows)
    else:
        order = np.stack([source.permutation(rows) for source in streams.generators("data")])
    training, remaining = order[..., : agents * records], order[..., agents * records :]
    remaining = remaining[..., :test_rows]
    expected = "1 unless problem.weight is mean"
    require(weight == "mean" or loss_scale == 1.0, "problem.loss_scale", loss_scale, expected)
    weight = loss_scale / records if weight == "mean" else float(weight)
    shape = (*order.shape[:-1], agents, records)
    return LogisticRegression(
        features[training].reshape(*shape, -1),
        labels[training].reshape(shape),
        features[remaining],
        labels[remaining],
        weight,
        ridge * records * weight,
        box,
        coding,
        nonnegative=nonnegative,
    )
