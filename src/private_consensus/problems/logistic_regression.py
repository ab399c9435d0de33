r"""Regularised logistic regression on records shared out to agents.

.. math:: f_i(x) = w \sum_{j} \ln\bigl(1 + e^{-y_{ij}\, x^T z_{ij}}\bigr) +
\tfrac{\lambda}{2}\|x\|_2^2

with labels in {-1, +1} and rows :math:`\|z\|_2 \le 1`. ``w = 1`` makes it a sum over the records
(paper 000), ``w = C / N_i`` a scaled mean (papers 001, 004). Paper 001 prints labels in {0, 1}: a
record labelled 0 then has a constant loss and teaches nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from ..errors import InvalidInput, require
from ..fast import logistic as fast
from ..fast.compiling import AVAILABLE, share_out
from ..randomness import Streams
from ..solvers import ROUNDING, TOLERANCE, Unsolved
from ..solvers import minimise as minimise_batch
from .base import Problem, consensus_error

CODINGS = ("signed", "zero_one")
PARTITIONS = ("shared", "per_run")
INITS = ("zero", "random")
SOLVER_ERROR = 1e-9
LARGEST_EXPONENT = 700.0
TOGETHER = 8192
FEW = 20_000
"""Numbers in an agent's records below which one operation on all agents beats a call an agent."""


@dataclass(frozen=True)
class LogisticRegression(Problem):
    """Agents' records, with a test set held by nobody.

    Parameters
    ----------
    features : ndarray, shape ([runs,] agents, records, dim)
        Rows of l2 norm <= 1.
    labels : ndarray, shape ([runs,] agents, records)
        In {-1, +1}, or in {0, 1} as paper 001 prints them.
    test_features, test_labels : ndarray, shapes ([runs,] rows, dim) and ([runs,] rows)
    weight : float
        ``w``, the weight of one record's loss.
    ridge : float
        :math:`\\lambda`.
    box : float
        The domain is :math:`[-R, R]^d`; infinite for none.
    """

    features: np.ndarray
    labels: np.ndarray
    test_features: np.ndarray
    test_labels: np.ndarray
    weight: float
    ridge: float
    box: float = np.inf

    @property
    def n_agents(self) -> int:
        return self.features.shape[-3]

    @property
    def records(self) -> int:
        return self.features.shape[-2]

    @property
    def dim(self) -> int:
        return self.features.shape[-1]

    @property
    def strong_convexity(self) -> float:
        return self.ridge

    least_convexity = strong_convexity

    @property
    def smoothness(self) -> float:
        """Second derivative of the logistic loss is at most 1/4, rows have norm at most 1."""
        return self.weight * self.records / 4 + self.ridge

    @property
    def record_gradient_change(self) -> float:
        r"""Each record's gradient has norm at most ``w``, so a replacement moves it by 2w.

        For labels in {0, 1} and rows without negative entries it is
        :math:`\sup \|\sigma z - \sigma' z'\|_2 w = \sqrt2\, w`, two orthogonal rows.
        """
        return self.weight * (np.sqrt(2.0) if self._one_sided else 2.0)

    def record_change(self, norm: str) -> float:
        r"""In ``linf``, 2w; w where every coordinate of a record's gradient has one sign.

        That is so for labels in {0, 1} and rows without negative entries (paper 001's
        :math:`\mathcal B_\infty = 1/b_i`), and for no other coding (errata E1.3).
        """
        if norm == "linf":
            return self.weight * (1.0 if self._one_sided else 2.0)
        return super().record_change(norm)

    @cached_property
    def _one_sided(self) -> bool:
        # Labels that all happen to be +1 are of the signed coding: it allows -1 in their place.
        coded = bool((self.labels >= 0).all() and (self.labels == 0).any())
        return coded and bool((self.features >= 0).all())

    @property
    def _both_labels(self) -> bool:
        """Whether labels are in {-1, +1}."""
        return not bool((self.labels == 0).any())

    def attained_gradient_share(self, norm: str) -> float | None:
        r"""Half: the other label on the same row of norm 1 moves the gradient by
        :math:`w(\sigma(-m)+\sigma(m)) = w` at every point.

        In l1 along one axis :math:`w` of :math:`2w\sqrt d`. A record with label 0 has no gradient,
        and nothing is attained everywhere.
        """
        if not self._both_labels:
            return None
        return 0.5 / np.sqrt(self.dim) if norm == "l1" else 0.5

    def attained_step_share(self, steps):
        r"""Half without a box, or where it cuts nothing; else a quarter: for the other label on a
        row along an axis and zero rows beside it.

        The two steps go to :math:`m(1-s\lambda)\pm sw\sigma(\mp m)`. For
        :math:`s(\lambda + w/4) \le 1` both rise with m, and at m = R the upper one is in the box if
        :math:`w\sigma(-R) \le \lambda R`. For :math:`sw \le R,\ s\lambda \le 1` and
        :math:`m \ge 0` the lower one is in the box, and the upper one, if it is cut at R, is
        :math:`sw\sigma(m) \ge sw/2` above it.
        """
        steps = np.asarray(steps)
        if not self._both_labels:
            return None
        if np.isinf(self.box):
            return np.full(steps.shape, 0.5)
        rising = steps * (self.ridge + self.weight / 4) <= 1
        inside = self.weight * expit(-self.box) <= self.ridge * self.box
        small = (steps * self.weight <= self.box) & (steps * self.ridge <= 1)
        return np.where(rising & inside, 0.5, np.where(small, 0.25, 0.0))

    def attained_minimiser_share(self, norm: str, curvature):
        r"""The other label on the same row, with zero rows beside it: one over
        :math:`2(1+\kappa)`, :math:`\kappa = \frac w4/(\lambda + \text{curvature})`.

        With h the curvature in all and :math:`m_\pm` the margins of the two minimisers,
        :math:`h(m_+ - m_-) = w(1-\sigma(m_+)+\sigma(m_-)) \ge w(1-(m_+-m_-)/4)`.
        """
        share = self.attained_gradient_share(norm)
        if share is None:
            return None
        return share / (1.0 + self.record_curvature / (self.least_convexity + curvature))

    def reached_gradient_share(self, norm: str) -> float | None:
        r"""All, in the limit of two rows that are nearly opposite, far out where both are on the
        wrong side: :math:`w\|\sigma z-\sigma'z'\| \to 2w`.

        In l1 one coordinate is spared, :math:`\sqrt{(d-1)/d}`: where both rows have little of it
        and of one sign, so that any noise on the other coordinates leaves room to be far out.
        """
        if not self._both_labels or self.dim == 1:
            return self.attained_gradient_share(norm)
        return float(np.sqrt(1.0 - 1.0 / self.dim)) if norm == "l1" else 1.0

    @property
    def record_curvature(self) -> float:
        """Largest eigenvalue of the Hessian of one record's loss, of rank one."""
        return self.weight / 4

    @property
    def lipschitz(self) -> float:
        """Over the box; infinite without one, since the regulariser's gradient is unbounded."""
        return self.weight * self.records + self.ridge * self.box * np.sqrt(self.dim)

    @cached_property
    def _signed(self) -> np.ndarray:
        return self.features * self.labels[..., None]

    def part(self, taken: slice) -> LogisticRegression:
        rows, labels = self.features[..., taken, :], self.labels[..., taken]
        return replace(self, features=rows, labels=labels)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        margins = _per_agent(x, np.swapaxes(self._signed, -1, -2))
        return -self.weight * _per_agent(_sigmoid_neg(margins), self._signed) + self.ridge * x

    def rows_of(self, run: int) -> np.ndarray:
        """Places of the agents' records of a run among those of all runs, (agents, records)."""
        shape = self.features.shape[-3:-1]
        first = run * math.prod(shape) if self.features.ndim == 4 else 0
        return first + np.arange(math.prod(shape)).reshape(shape)

    def initial(self, init: str, streams: Streams) -> np.ndarray:
        """The common starting point of all agents of a run, ``zero`` or ``random`` (normal, of
        norm one on average); shape (runs, 1, dim)."""
        require(init in INITS, "algorithm.init", init, f"one of {', '.join(INITS)}")
        if init == "zero":
            return np.zeros((len(streams.runs), 1, self.dim))
        return streams.draw("data", "normal", (1, self.dim), "initial") / np.sqrt(self.dim)

    def clipped_gradient(
        self,
        x: np.ndarray,
        rows: np.ndarray,
        sizes: np.ndarray,
        clip: float = np.inf,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        r"""Mean of clipped gradients of sampled records, and the gradient of the regulariser, which
        is no record's: :math:`\frac1{|S|}\sum_S \frac{wN_i\nabla\ell}
        {\max(1, \|wN_i\nabla\ell\|/K)} + \lambda x`.

        Parameters
        ----------
        x : ndarray, shape (agents, dim)
        rows : ndarray of int, shape (agents, widest)
            Places of :meth:`rows_of`; an agent's sample is the first of its rows.
        sizes : ndarray of int, shape (agents,)
            :math:`|S|`; an empty sample has gradient 0.
        clip : float
            K; infinite for none.
        out : ndarray, shape (agents, dim), optional

        Returns
        -------
        ndarray, shape (agents, dim)
        """
        signed = self._signed.reshape(-1, self.dim)[rows]
        slopes = self.weight * self.records * _sigmoid_neg(np.matvec(signed, x))
        lengths = slopes * np.sqrt(np.vecdot(signed, signed))
        taken = np.arange(rows.shape[-1]) < sizes[:, None]
        weights = taken * slopes / (np.maximum(sizes, 1)[:, None] * np.maximum(1.0, lengths / clip))
        regular = np.where(sizes[:, None] > 0, self.ridge * x, 0.0)
        return np.subtract(regular, np.vecmat(weights, signed), out=out)

    def objective(self, x: np.ndarray) -> np.ndarray:
        r""":math:`f_i(x_i)`; shape (..., agents)."""
        margins = _per_agent(x, np.swapaxes(self._signed, -1, -2))
        return self.weight * _losses(margins).sum(-1) + self.ridge / 2 * (x**2).sum(-1)

    def clipped_loss(self, x: np.ndarray, bound: Any) -> np.ndarray:
        r"""Mean over an agent's records of :math:`\min(\ln(1+e^{-m}), C_{loss})`, weight 1.

        Parameters
        ----------
        x : ndarray, shape (..., agents, dim)
        bound : float or ndarray
            Broadcast against (..., agents, records).
        """
        margins = _per_agent(x, np.swapaxes(self._signed, -1, -2))
        return np.minimum(_losses(margins), bound).mean(-1)

    def clipped_loss_change(self, bound: Any) -> Any:
        r""":math:`C_{loss}/N_i`: one of :math:`N_i` losses moves within :math:`[0, C_{loss}]`."""
        return bound / self.records

    def hessian(self, x: np.ndarray) -> np.ndarray:
        r""":math:`\nabla^2 f_i(x_i)`; shape (..., agents, dim, dim)."""
        margins = _per_agent(x, np.swapaxes(self._signed, -1, -2))
        share = _sigmoid_neg(margins)
        curvature = self.weight * share * (1.0 - share)
        weighted = np.swapaxes(self._signed, -1, -2) * curvature[..., None, :]
        return weighted @ self._signed + self.ridge * np.eye(self.dim)

    @cached_property
    def _bound(self) -> tuple[np.ndarray, np.ndarray]:
        r"""Spectral form of :math:`\frac w4 Z_i^T Z_i + \lambda I \succeq \nabla^2 f_i`."""
        gram = np.swapaxes(self._signed, -1, -2) @ self._signed
        return np.linalg.eigh(self.weight / 4 * gram + self.ridge * np.eye(self.dim))

    def proximal(self, linear, penalty, centre, start, tolerance=None):
        """To a gradient norm of at most 1e-10, verified, or to what rounding allows.

        A ``tolerance`` that rounding does not allow is not met silently: ``Unsolved``.
        """
        require(np.isinf(self.box), "problem.box", self.box, "no box for a proximal solve")
        many = self.records * self.dim > FEW
        solve = self.proximal_simd if many and AVAILABLE else self.proximal_plainly
        return solve(linear, penalty, centre, start, tolerance)

    def proximal_simd(self, linear, penalty, centre, start, tolerance=None):
        """All settings (and runs, where they share the records) of an agent side by side."""
        everyone = start.shape[:-1]
        pull = np.broadcast_to(linear - penalty * centre, start.shape)
        curvature = np.broadcast_to(self.ridge + np.asarray(penalty)[..., 0], everyone)
        if tolerance is None:
            tolerance = np.maximum(TOLERANCE, ROUNDING * np.linalg.norm(pull, axis=-1))
        tolerance = np.broadcast_to(tolerance, everyone)
        found = np.empty(start.shape)

        def solve(first, last):
            for agent in range(first, last):
                holder = np.unravel_index(agent, self.labels.shape[:-1])
                here = (..., *holder)
                dim = self.dim
                given = (curvature[here].ravel(), pull[(*here, slice(None))].reshape(-1, dim))
                solution, taken = fast.minimise(
                    self._lane_records[agent],
                    self.weight,
                    self._lane_bounds[agent],
                    *given,
                    start[(*here, slice(None))].reshape(-1, dim),
                    tolerance[here].ravel(),
                )
                if not taken.all():
                    wanted = f"gradient norm above {tolerance[here].min():.3g}"
                    raise Unsolved(f"{wanted} after {fast.AT_MOST} steps, agent {holder[-1]}")
                shape = (*found.shape[: -1 - len(holder)], dim)
                found[(*here, slice(None))] = solution.reshape(shape)

        share_out(solve, len(self._lane_records))
        return found

    @cached_property
    def _lane_records(self) -> list[fast.Records]:
        return [fast.records(own) for own in self._of_each_agent(self._signed)]

    @cached_property
    def _lane_bounds(self) -> list[fast.Bound]:
        values, vectors = self._bound
        every = zip(values.reshape(-1, self.dim), self._of_each_agent(vectors), strict=True)
        return [fast.bound(own - self.ridge, basis) for own, basis in every]

    def _of_each_agent(self, array: np.ndarray) -> np.ndarray:
        return array.reshape(-1, *array.shape[-2:])

    def proximal_plainly(self, linear, penalty, centre, start, tolerance=None):
        """The same by array operations on all agents: for small problems, or without a compiler."""
        values, vectors = self._bound
        shrink = 1.0 / (values + penalty)
        pull = linear - penalty * centre

        def descend(slope):
            return np.matvec(vectors, shrink * np.vecmat(slope, vectors))

        return minimise_batch(
            lambda x: self.gradient(x) + penalty * x + pull,
            lambda x: self.hessian(x) + np.asarray(penalty)[..., None] * np.eye(self.dim),
            start,
            descend=descend,
            magnitude=np.linalg.norm(pull, axis=-1) if tolerance is None else 0.0,
            tolerance=TOLERANCE if tolerance is None else tolerance,
        )

    def project(self, x: np.ndarray) -> np.ndarray:
        return x if np.isinf(self.box) else np.clip(x, -self.box, self.box)

    @cached_property
    def optimum(self) -> np.ndarray:
        r""":math:`x^*`, the minimiser of :math:`\sum_i f_i`; shape ([runs,] dim)."""
        return self._optimum_in_box() if self.features.ndim == 3 else self._optima_of_runs()

    def _optima_of_runs(self) -> np.ndarray:
        require(np.isinf(self.box), "problem.box", self.box, "no box where runs have own data")

        def everywhere(point):
            return np.broadcast_to(point[:, None, :], self.features.shape[:2] + point.shape[-1:])

        return minimise_batch(
            lambda point: self.gradient(everywhere(point)).sum(-2),
            lambda point: self.hessian(everywhere(point)).sum(-3),
            np.zeros((len(self.features), self.dim)),
            magnitude=self.n_agents * self.weight * self.records,
        )

    @cached_property
    def own_optimum(self) -> np.ndarray:
        """Minimiser of each agent's own objective; shape ([runs,] agents, dim)."""
        found = minimise_batch(
            self.gradient,
            self.hessian,
            np.zeros((*self.features.shape[:-2], self.dim)),
            magnitude=self.weight * self.records,
        )
        expected = "a box that holds every agent's minimiser"
        require(bool((np.abs(found) <= self.box).all()), "problem.box", self.box, expected)
        return found

    @property
    def slope_bound(self) -> float:
        r""":math:`C_1 \ge \|\nabla f_i\|_1` over the box."""
        return self.weight * self.records * np.sqrt(self.dim) + self.ridge * self.box * self.dim

    def _optimum_in_box(self) -> np.ndarray:
        def total(point):
            x = np.broadcast_to(point, (self.n_agents, self.dim))
            return self.objective(x).sum(), self.gradient(x).sum(0)

        bounds = None if np.isinf(self.box) else [(-self.box, self.box)] * self.dim
        options = {"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9 * self.weight, "maxcor": 30}
        return minimize(
            total, np.zeros(self.dim), jac=True, method="L-BFGS-B", bounds=bounds, options=options
        ).x

    def excess(self, estimate: np.ndarray) -> np.ndarray:
        r""":math:`(f(\hat x) - f(x^*)) / N`, a record's share; estimates (..., dim)."""
        everywhere = np.broadcast_to(
            estimate[..., None, :], (*estimate.shape[:-1], self.n_agents, self.dim)
        )
        star = self.optimum[..., None, :]
        best = self.objective(
            np.broadcast_to(star, (*star.shape[:-2], self.n_agents, self.dim))
        ).sum(-1)
        return (self.objective(everywhere).sum(-1) - best) / (
            self.n_agents * self.records * self.weight
        )

    def misclassified(self, estimate: np.ndarray) -> np.ndarray:
        """Share of test rows on the wrong side; margin 0 predicts the negative class."""
        if self.test_features.ndim == 2:
            positive = estimate @ self.test_features.T > 0
        else:
            positive = np.matvec(self.test_features, estimate) > 0
        return (positive != (self.test_labels > 0)).mean(-1)

    def log_distance(self, x: np.ndarray) -> np.ndarray:
        r"""Mean over agents of :math:`\ln(\|x_i - x^*\|_2 / d)` (paper 001, Appendix E)."""
        distance = np.linalg.norm(x - self.optimum[..., None, :], axis=-1)
        return np.log(np.maximum(distance, SOLVER_ERROR) / self.dim).mean(-1)

    def squared_distance(self, x: np.ndarray) -> np.ndarray:
        r""":math:`\frac1N\sum_i\|x_i - x^*\|_2^2` (paper 004, Theorems 12 and 16)."""
        return ((x - self.optimum[..., None, :]) ** 2).sum(-1).mean(-1)

    def own_loss(self, x: np.ndarray) -> np.ndarray:
        """Mean over agents of :math:`\\frac1{|D_i|}\\sum\\ln(1+e^{-m})`: no weight, no ridge."""
        return self.clipped_loss(x, np.inf).mean(-1)

    def own_error(self, x: np.ndarray) -> np.ndarray:
        """Mean over agents of the share of its own records that its own model gets wrong."""
        margins = _per_agent(x, np.swapaxes(self.features, -1, -2))
        return ((margins > 0) != (self.labels > 0)).mean((-1, -2))

    def own_test_error(self, x: np.ndarray) -> np.ndarray:
        """Mean over agents of the share of test rows that an agent's own model gets wrong."""
        rows = np.swapaxes(self.test_features, -1, -2)
        if rows.ndim == 2:
            margins = x @ rows
        else:  # all settings and agents of a run at once
            runs = np.moveaxis(x, -3, 0)
            margins = runs.reshape(len(runs), -1, self.dim) @ rows
            margins = np.moveaxis(margins.reshape(*runs.shape[:-1], -1), 0, -3)
        positive = self.test_labels > 0
        return ((margins > 0) != (positive[..., None, :] if positive.ndim > 1 else positive)).mean(
            (-1, -2)
        )

    metrics = {  # noqa: RUF012
        "own_loss": lambda problem, x: problem.own_loss(x),
        "own_train_error": lambda problem, x: problem.own_error(x),
        "own_train_accuracy": lambda problem, x: 1.0 - problem.own_error(x),
        "own_test_error": lambda problem, x: problem.own_test_error(x),
        "own_test_accuracy": lambda problem, x: 1.0 - problem.own_test_error(x),
        "majority_train_accuracy": lambda problem, x: _majority(problem.labels, 2, x),
        "majority_test_accuracy": lambda problem, x: _majority(problem.test_labels, 1, x),
        "majority_test_error": lambda problem, x: 1.0 - _majority(problem.test_labels, 1, x),
        "log_distance": lambda problem, x: problem.log_distance(x),
        "origin_log_distance": lambda problem, x: problem.log_distance(np.zeros_like(x)),
        "squared_distance": lambda problem, x: problem.squared_distance(x),
        "test_error": lambda problem, x: problem.misclassified(x.mean(-2)),
        "excess_loss": lambda problem, x: problem.excess(x.mean(-2)),
        "consensus_error": consensus_error,
    }

    @cached_property
    def majority_error(self) -> float:
        """Error of always predicting the more frequent class of the test set."""
        positive = float((self.test_labels > 0).mean())
        return min(positive, 1 - positive)


def _majority(labels: np.ndarray, axes: int, x: np.ndarray) -> np.ndarray:
    """Share of the more frequent label, whatever the model x [..., agents, dim]; shape [...]."""
    positive = (labels > 0).mean(tuple(range(-axes, 0)))
    return np.broadcast_to(np.maximum(positive, 1.0 - positive), x.shape[:-2])


def _sigmoid_neg(margins: np.ndarray) -> np.ndarray:
    r""":math:`1/(1+e^m)`, without overflow; twice as fast as the general function."""
    return 1.0 / (1.0 + np.exp(np.minimum(margins, LARGEST_EXPONENT)))


def _losses(margins: np.ndarray) -> np.ndarray:
    r""":math:`\ln(1+e^{-m})` to rounding of 1; some at a time stay in the innermost cache."""
    every = np.ravel(margins)
    losses = np.empty(every.shape)
    for first in range(0, every.size, TOGETHER):
        own = every[first : first + TOGETHER]
        losses[first : first + TOGETHER] = np.log(1.0 + np.exp(-np.abs(own))) - np.minimum(own, 0.0)
    return losses.reshape(margins.shape)


def _per_agent(x: np.ndarray, matrices: np.ndarray) -> np.ndarray:
    """``x[..., agents, k] @ matrices[([runs,] agents, k, m]``, as one product an agent."""
    if matrices.ndim > 3:
        # [..., runs, agents, k] with all that stands before the runs as rows of one product.
        ahead = int(np.prod(x.shape[:-3]))
        rows = np.moveaxis(x.reshape(ahead, *x.shape[-3:]), 0, -2)
        return np.moveaxis(rows @ matrices, -2, 0).reshape(*x.shape[:-1], matrices.shape[-1])
    rows = np.moveaxis(x, -2, 0).reshape(x.shape[-2], -1, x.shape[-1])
    product = rows @ matrices
    shape = (x.shape[-2], *x.shape[:-2], matrices.shape[-1])
    return np.moveaxis(product.reshape(shape), 0, -2)


def shared_by_runs(parameters: Mapping[str, Any]) -> bool:
    """Whether all runs have one partition, so that it is made once."""
    return parameters.get("partition", "shared") == "shared"


METRICS = LogisticRegression.metrics
EXAMPLE = {"prepared": "adult-onehot104", "records": 1000, "ridge": 0.001, "box": 5.0}


def build(
    streams: Streams,
    agents: int,
    *,
    prepared,
    records: int,
    ridge: float,
    box: float = np.inf,
    weight: float | str = 1.0,
    loss_scale: float = 1.0,
    test_rows: int | None = None,
    partition: str = "shared",
    coding: str = "signed",
) -> LogisticRegression:
    """Share out prepared rows to agents at random; what is left over is the test set.

    Parameters
    ----------
    prepared : object
        With ``features`` (rows of norm <= 1) and ``labels`` in {-1, +1}.
    records : int
        Records an agent.
    ridge : float
        :math:`\\lambda` a record: the agent's regulariser is ``records * weight * ridge``.
    weight : float or "mean"
        Weight of one record's loss; "mean" is ``loss_scale`` / records.
    loss_scale : float
        C of paper 004's predecessors, which multiply the mean loss, and with it the ridge.
    test_rows : int, optional
        At most so many of the rows left over.
    partition : {"shared", "per_run"}
        One for all runs, or a fresh one for each run.
    coding : {"signed", "zero_one"}
        Labels as prepared, or 1 for the negative and 0 for the positive class (paper 001).

    Raises
    ------
    InvalidInput
        Where there are not enough rows, a row is longer than 1, or labels are coded otherwise.
    """
    rows = len(prepared.labels)
    require(
        records >= 1 and agents * records < rows,
        "problem.records",
        records,
        f"fewer than {rows / agents:g} records for each of {agents} agents ({rows} rows)",
    )
    require(coding in CODINGS, "problem.coding", coding, f"one of {', '.join(CODINGS)}")
    require(
        partition in PARTITIONS, "problem.partition", partition, f"one of {', '.join(PARTITIONS)}"
    )
    longest = float(np.sqrt((prepared.features**2).sum(1).max()))
    if longest > 1 + 1e-9:
        raise InvalidInput("problem.prepared", f"row norm {longest:g}", "rows of l2 norm <= 1")
    labels = prepared.labels.astype(float)
    labels = labels if coding == "signed" else (labels < 0).astype(float)
    order = _order(streams, rows, partition)
    training, rest = order[..., : agents * records], order[..., agents * records :]
    rest = rest[..., :test_rows]
    require(loss_scale > 0, "problem.loss_scale", loss_scale, "above 0")
    require(
        weight == "mean" or loss_scale == 1.0,
        "problem.loss_scale",
        loss_scale,
        "1 where the weight is not the mean",
    )
    weight = loss_scale / records if weight == "mean" else float(weight)
    shape = (*order.shape[:-1], agents, records)
    return LogisticRegression(
        prepared.features[training].reshape(*shape, -1),
        labels[training].reshape(shape),
        prepared.features[rest],
        labels[rest],
        weight,
        ridge * records * weight,
        box,
    )


def _order(streams: Streams, rows: int, partition: str) -> np.ndarray:
    """Rows in random order, ``[rows]`` or ``[runs, rows]``."""
    if partition == "shared":
        return streams.shared("data").permutation(rows)
    return np.stack([generator.permutation(rows) for generator in streams.generators("data")])
