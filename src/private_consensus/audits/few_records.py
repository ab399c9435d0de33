r"""Logistic regression of agents that hold few distinct records, each many times.

The local minimiser then lies in the span of the distinct rows :math:`u_j = y_jz_j`:

.. math:: \hat x = b + \sum_j s_j u_j, \qquad
    s_j = \frac{w c_j}{\lambda + D_i}\,\sigma(-u_j^T\hat x), \qquad
    b = \frac{D_ic - a}{\lambda + D_i}

with :math:`c_j` copies of record j, so that a problem of any number of records and coordinates
takes one or two unknowns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from private_consensus.core.problems.logistic_regression import LogisticRegression

STEPS, HALVINGS = 60, 40
EXACT = 1e-12


@dataclass(frozen=True, eq=False)
class FewRecords(LogisticRegression):
    """Logistic regression with repeated records that are stored once.

    Parameters
    ----------
    features, labels : ndarray, shape (agents, distinct, dim) and (agents, distinct)
        Distinct records of each agent.
    counts : ndarray, shape (distinct,)
        Number of copies of each distinct record.
    total : int
        Number of records per agent; records that are not counted are rows of zeros.
    """

    counts: np.ndarray = field(default_factory=lambda: np.ones(1))
    total: int = 1

    @property
    def records(self) -> int:
        return self.total

    def part(self, selection: slice) -> FewRecords:
        """Return the selected records: the first, if selected; all others are equal, or empty."""
        indices = np.arange(self.total)[selection]
        first = float((indices == 0).any())
        counts = np.array([first, len(indices) - first])[: len(self.counts)]
        return self.with_valid(counts=counts, total=len(indices))

    def _margins(self, x: np.ndarray) -> np.ndarray:
        return np.matvec(self._signed, x)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        holders, gradient = slice(0, self._holders), self.ridge * x
        rows = self._signed[holders]
        share = self.counts * expit(-np.matvec(rows, x[..., holders, :]))
        gradient[..., holders, :] -= self.weight * np.vecmat(share, rows)
        return gradient

    def objective(self, x: np.ndarray) -> np.ndarray:
        losses = (self.counts * np.logaddexp(0.0, -self._margins(x))).sum(-1)
        losses = losses + (self.total - self.counts.sum()) * np.log(2.0)
        return self.weight * losses + self.ridge / 2 * (x**2).sum(-1)

    def clipped_loss(
        self, x: np.ndarray, bound: ArrayLike, selected: np.ndarray | None = None
    ) -> np.ndarray:
        """Ignore ``selected``: the losses of all agents are computed."""
        bound = np.asarray(bound)
        losses = np.minimum(np.logaddexp(0.0, -self._margins(x)), bound)
        empty = np.minimum(np.log(2.0), np.atleast_1d(bound)[..., 0])
        empty_losses = (self.total - self.counts.sum()) * empty
        return ((self.counts * losses).sum(-1) + empty_losses) / self.total

    def hessian(self, x: np.ndarray) -> np.ndarray:
        share = expit(-self._margins(x))
        curvature = self.weight * self.counts * share * (1.0 - share)
        weighted = np.einsum("nkd,...nk->...ndk", self._signed, curvature)
        return weighted @ self._signed + self.ridge * np.eye(self.dim)

    def hessian_of(self, x: np.ndarray, selected: np.ndarray) -> np.ndarray:
        return self.hessian(x)[selected]

    def local_error_counts(self, x: np.ndarray) -> np.ndarray:
        """Return the number of misclassified records of each model; empty records have label 1."""
        margins = np.matvec(self.features, x)
        misclassified = (margins > 0) != (self.labels > 0)
        return np.round(
            (self.counts * misclassified).sum(-1) + self.total - self.counts.sum()
        ).astype(int)

    @cached_property
    def expanded(self) -> LogisticRegression:
        """Return the problem with one row per record."""
        counts = np.round(self.counts).astype(int)
        rows, labels = np.repeat(self.features, counts, 1), np.repeat(self.labels, counts, 1)
        missing = self.total - rows.shape[1]
        rows = np.pad(rows, [(0, 0), (0, missing), (0, 0)])
        labels = np.pad(labels, [(0, 0), (0, missing)], constant_values=1.0)
        tests = self.test_features, self.test_labels
        constants = self.weight, self.ridge, self.box
        return LogisticRegression(rows, labels, *tests, *constants, coding=self.coding)

    def rows_of(self, run: int) -> np.ndarray:
        return self.expanded.rows_of(run)

    def clipped_gradient(
        self,
        x: np.ndarray,
        rows: np.ndarray,
        sizes: np.ndarray,
        clip: float = np.inf,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        return self.expanded.clipped_gradient(x, rows, sizes, clip, out)

    def proximal(
        self,
        linear: np.ndarray,
        penalty: ArrayLike,
        centre: np.ndarray,
        start: np.ndarray,
        tolerance: np.ndarray | float | None = None,
    ) -> np.ndarray:
        """Compute proximal points by Newton's method in the coefficients s.

        Each step is halved until the objective decreases.
        """
        curvature = np.asarray(penalty) + self.ridge
        base = (penalty * centre - linear) / curvature
        holders = slice(0, self._holders)
        minimiser = base + 0.0
        minimiser[..., holders, :] += self._pulled(base[..., holders, :], _of(holders, curvature))
        return minimiser

    @cached_property
    def _holders(self) -> int:
        """Number of agents up to the last one with a non-empty record; the others stay at b."""
        return 1 + int(np.flatnonzero(self._signed.any((-2, -1))).max(initial=0))

    @cached_property
    def _gram(self) -> np.ndarray:
        """Gram matrices of the agents' records, for agents with non-empty records."""
        rows = self._signed[: self._holders]
        return np.einsum("nkd,nld->nkl", rows, rows)

    def _pulled(self, base: np.ndarray, curvature: np.ndarray) -> np.ndarray:
        """Compute the distance by which records move the minimisers of their agents from b."""
        rows, gram = self._signed[: self._holders], self._gram
        margins = np.matvec(rows, base)
        pull = self.weight * self.counts / curvature
        evaluation = _Evaluation.of(np.zeros_like(margins), margins, gram, pull)
        identity = np.eye(margins.shape[-1])
        for _ in range(STEPS):
            share = expit(evaluation.against)
            slope = evaluation.s - pull * share
            if (np.abs(slope) <= EXACT * (pull + np.abs(evaluation.s))).all():
                break
            bend = (pull * share * (1.0 - share))[..., None] * gram
            newton_step = np.linalg.solve(identity + bend, slope[..., None])[..., 0]
            evaluation = _descended(evaluation, newton_step, margins, gram, pull)
        return np.vecmat(evaluation.s, rows)


class _Evaluation(NamedTuple):
    """Coefficients with the negative margins of the records and the objective at them."""

    s: np.ndarray
    against: np.ndarray
    value: np.ndarray

    @classmethod
    def of(
        cls, s: np.ndarray, margins: np.ndarray, gram: np.ndarray, pull: np.ndarray
    ) -> _Evaluation:
        """Evaluate the objective at some coefficients."""
        turned = np.matvec(gram, s)
        against = -(margins + turned)
        value = (pull * np.logaddexp(0.0, against) + s * turned / 2).sum(-1)
        return cls(s, against, value)


def _descended(
    evaluation: _Evaluation,
    newton_step: np.ndarray,
    margins: np.ndarray,
    gram: np.ndarray,
    pull: np.ndarray,
) -> _Evaluation:
    """Take a step that is halved until the objective decreases."""
    upper_bound, length = (
        evaluation.value + EXACT * np.abs(evaluation.value),
        np.ones(evaluation.s.shape[:-1]),
    )
    after = _Evaluation.of(evaluation.s - newton_step, margins, gram, pull)
    for _ in range(HALVINGS):
        worse = after.value > upper_bound
        if not worse.any():
            break
        length = np.where(worse, length / 2, length)
        after = _Evaluation.of(evaluation.s - length[..., None] * newton_step, margins, gram, pull)
    return after


def _of(agents: slice, values: np.ndarray) -> np.ndarray:
    """Select agents of values [..., agents, 1], unless all agents share one value."""
    return values[..., agents, :] if values.ndim > 1 and values.shape[-2] > 1 else values
