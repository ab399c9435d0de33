"""Solvers of the agents' problems: logistic loss plus a linear and a quadratic term."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...kernels import logistic as fast
from ...kernels.compiling import share_out
from ...solvers import ROUNDING, TOLERANCE, Unsolved
from ...solvers import minimise as minimise_batch
from .loss import per_agent, sigmoid_neg

FAR, OUT, SLACK, ROUGHLY = 10.0, 100.0, 0.1, 1e-3
"""Constants of the second model. If the weight of all records exceeds ``FAR``, minimisers are
assumed to be as far from the origin as that of the mean loss times ``OUT``, with curvature
``SLACK``, computed to the fraction ``ROUGHLY`` of the largest gradient."""


class _LocalProblems(NamedTuple):
    """Local problems of several settings, with arrays of shape [settings, [runs,] agents, ...].

    The fields are the curvature D, the tolerances, the linear terms and the initial points.
    """

    curvature: np.ndarray
    tolerance: np.ndarray
    pull: np.ndarray
    start: np.ndarray


class _Ends(NamedTuple):
    """Solutions of all problems of a call, with sums over records and numbers of gradients."""

    x: np.ndarray
    sums: np.ndarray
    taken: np.ndarray


class AgentRecords:
    """Records times their labels, with the derived data of the local solvers.

    Problems that differ only in weights share it, and the SIMD lanes of its solver.
    """

    def __init__(self, features: np.ndarray, labels: np.ndarray):
        self.rows = features * labels[..., None]
        self.ends: _Ends | None = None

    @cached_property
    def lanes(self) -> list[fast.SignedRecords]:
        return [fast.records(rows) for rows in self._of_each_agent(self.rows)]

    @cached_property
    def few(self) -> fast.SmallRecordSet:
        return fast.few_records(self._of_each_agent(self.rows))

    @cached_property
    def models(self) -> list[fast.Model]:
        r"""Spectral form of :math:`\frac14 Z_i^T Z_i`, which bounds the Hessian at weight 1."""
        values, vectors = np.linalg.eigh(np.swapaxes(self.rows, -1, -2) @ self.rows / 4)
        values = np.maximum(values, 0.0).reshape(-1, values.shape[-1])
        spectra = zip(values, self._of_each_agent(vectors), strict=True)
        return [fast.model(*spectrum) for spectrum in spectra]

    @cached_property
    def farther(self) -> list[fast.Model]:
        r"""Spectral form of :math:`Z_i^T S Z_i / \theta_i` at a point farther from the origin.

        S is diagonal with :math:`\sigma(1-\sigma)` of the records at the point, and
        :math:`\theta_i` is four times its mean.
        """
        agents = zip(self._of_each_agent(self.rows), self.lanes, self.models, strict=True)
        return [_farther(*agent) for agent in agents]

    def _of_each_agent(self, array: np.ndarray) -> np.ndarray:
        return array.reshape(-1, *array.shape[-2:])

    def solve(self, problems: _LocalProblems, weight: float, far: bool) -> np.ndarray:
        """Compute the minimisers of problems whose losses have a weight.

        Parameters
        ----------
        problems : _LocalProblems
            Problems of all agents.
        weight : float
            w.
        far : bool
            True if the minimisers are far from the origin.

        Returns
        -------
        ndarray, shape of ``problems.start``
        """
        solutions = np.empty(problems.start.shape)
        (_, sums, gradient_counts), sums_known = self._last(problems.start)
        lanes, models = self.lanes, self.farther if far else self.models

        def solve(first, last):
            for agent in range(first, last):
                holder = np.unravel_index(agent, self.rows.shape[:-2])
                # Problems with most gradients last time are first, so that no lane waits.
                counts = gradient_counts[(slice(None), *holder)]
                order = np.argsort(-counts, kind="stable"), *holder
                batch = _LocalProblems(*(array[order] for array in problems))
                distinct, inverse = _distinct(batch)
                batch = _LocalProblems(*(array[distinct] for array in batch))
                added, start_sums_known = sums[order][distinct], sums_known[order][distinct]
                x, gradients = fast.minimise(
                    lanes[agent], weight, models[agent], batch.curvature, batch.pull, batch.start,
                    batch.tolerance, added, start_sums_known,
                )  # fmt: skip
                solutions[order], sums[order] = x[inverse], added[inverse]
                gradient_counts[order] = gradients[inverse]
                if not gradients.all():
                    reason = f"gradient norm above {batch.tolerance.min():.3g}"
                    raise Unsolved(f"{reason} after {fast.AT_MOST} steps, agent {holder[-1]}")

        share_out(solve, len(lanes))
        self.ends = _Ends(solutions.copy(), sums, gradient_counts)
        return solutions

    def _last(self, start: np.ndarray) -> tuple[_Ends, np.ndarray]:
        """Return the last results and a mask of problems whose sums over records are known.

        The sums are known if a problem starts at its last solution.
        """
        if self.ends is not None and self.ends.x.shape == start.shape:
            return self.ends, (self.ends.x == start).all(-1)
        batch_shape, dim = start.shape[:-1], start.shape[-1]
        nothing = _Ends(start, np.empty((*batch_shape, dim + 2)), np.zeros(batch_shape, np.int64))
        return nothing, np.zeros(batch_shape, bool)


def _farther(rows: np.ndarray, lanes: fast.SignedRecords, bound: fast.Model) -> fast.Model:
    """Compute the model of :attr:`AgentRecords.farther` for one agent's signed rows."""
    origin = np.zeros((1, rows.shape[1]))
    numbers = np.array([SLACK]), origin, origin, np.array([ROUGHLY * OUT])
    (x,), _ = fast.minimise(lanes, OUT / len(rows), bound, *numbers)
    share = sigmoid_neg(rows @ x)
    bend = share * (1.0 - share)
    half = np.sqrt(bend / (4.0 * bend.mean()))[:, None] * rows
    values, vectors = np.linalg.eigh(half.T @ half)
    return fast.model(np.maximum(values, 0.0), vectors)


def _distinct(problems: _LocalProblems) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of an agent's distinct problems, and the map from all problems to them."""
    first_index: dict[bytes, int] = {}
    rows = np.column_stack(problems)
    row_bytes = rows.view((np.void, rows.itemsize * rows.shape[1])).ravel().tolist()
    first = [first_index.setdefault(row, index) for index, row in enumerate(row_bytes)]
    return np.unique(first, return_inverse=True)


def solve_in_lanes(loss, linear, penalty, centre, start, tolerance=None):
    """Solve the problems in compiled code, one per SIMD lane.

    All settings of an agent, and all runs that share the records, are solved together.

    Parameters
    ----------
    loss : LogisticRegression
        Local objectives.
    linear, centre : ndarray, broadcastable to (settings, runs, agents, dim)
        Linear coefficient a and centre c of the quadratic penalty.
    penalty : ndarray, broadcastable to (settings, runs, agents, 1)
        Coefficient D > 0 of the quadratic penalty.
    start : ndarray, shape (settings, runs, agents, dim)
        Initial points.
    tolerance : float or ndarray, optional
        l2 norm of the gradient at the result.

    Returns
    -------
    ndarray, shape (settings, runs, agents, dim)
    """
    everyone = start.shape[:-1]
    pull = np.broadcast_to(linear - penalty * centre, start.shape)
    curvature = np.broadcast_to(loss.ridge + np.asarray(penalty)[..., 0], everyone)
    # An approximate minimiser depends on the iterates: it always uses the bound.
    far = tolerance is None and loss.weight * loss.records > FAR
    if tolerance is None:
        # The sensitivity grows with the weight, and so does the allowed remaining gradient.
        least = TOLERANCE * max(1.0, loss.weight * loss.records)
        tolerance = np.maximum(least, ROUNDING * np.linalg.norm(pull, axis=-1))
    numbers = curvature, np.broadcast_to(tolerance, everyone)
    holders = loss.labels.shape[:-1]
    flat = (a.reshape(-1, *holders) for a in numbers)
    wide = (a.reshape(-1, *holders, loss.dim) for a in (pull, start))
    problems = _LocalProblems(*flat, *wide)
    return loss.agent_records.solve(problems, loss.weight, far).reshape(start.shape)


def solve_by_arrays(loss, linear, penalty, centre, start, tolerance=None):
    """Solve the problems by array operations on all agents, for small problems.

    Parameters
    ----------
    loss : LogisticRegression
        Local objectives.
    linear, centre : ndarray, broadcastable to (settings, runs, agents, dim)
        Linear coefficient a and centre c of the quadratic penalty.
    penalty : ndarray, broadcastable to (settings, runs, agents, 1)
        Coefficient D > 0 of the quadratic penalty.
    start : ndarray, shape (settings, runs, agents, dim)
        Initial points.
    tolerance : float or ndarray, optional
        l2 norm of the gradient at the result.

    Returns
    -------
    ndarray, shape (settings, runs, agents, dim)
    """
    values, vectors = loss.hessian_bound
    shrink = 1.0 / (values + penalty)
    pull = linear - penalty * centre

    def descend(slope):
        return per_agent(shrink * per_agent(slope, vectors), np.swapaxes(vectors, -1, -2))

    def hessian(x, selected):
        penalties = np.broadcast_to(penalty, (*selected.shape, 1))[selected]
        return loss.hessian_of(x, selected) + penalties[..., None] * np.eye(loss.dim)

    return minimise_batch(
        lambda x: loss.gradient(x) + penalty * x + pull,
        hessian,
        start,
        descend=descend,
        magnitude=np.linalg.norm(pull, axis=-1) if tolerance is None else 0.0,
        tolerance=TOLERANCE if tolerance is None else tolerance,
    )
