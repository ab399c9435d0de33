r"""Regularised logistic regression on records shared out to agents.

.. math:: f_i(x) = w \sum_{j} \ln\bigl(1 + e^{-y_{ij}\, x^T z_{ij}}\bigr) +
\tfrac{\lambda}{2}\|x\|_2^2

with labels in {-1, +1} and rows :math:`\|z\|_2 \le 1`. ``w = 1`` makes it a sum over the records
(paper 000), ``w = C / N_i`` a scaled mean (papers 001, 004).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from ..errors import InvalidInput, require
from ..randomness import Streams
from .base import Problem, consensus_error


@dataclass(frozen=True)
class LogisticRegression(Problem):
    """Agents' records, with a test set held by nobody.

    Parameters
    ----------
    features : ndarray, shape ([runs,] agents, records, dim)
        Rows of l2 norm <= 1.
    labels : ndarray, shape ([runs,] agents, records)
        In {-1, +1}.
    test_features, test_labels : ndarray, shapes (rows, dim) and (rows,)
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

    @property
    def smoothness(self) -> float:
        """Second derivative of the logistic loss is at most 1/4, rows have norm at most 1."""
        return self.weight * self.records / 4 + self.ridge

    @property
    def record_gradient_change(self) -> float:
        """Each record's gradient has norm at most ``w``, so a replacement moves it by 2w."""
        return 2.0 * self.weight

    @property
    def lipschitz(self) -> float:
        """Over the box; infinite without one, since the regulariser's gradient is unbounded."""
        return self.weight * self.records + self.ridge * self.box * np.sqrt(self.dim)

    @cached_property
    def _signed(self) -> np.ndarray:
        return self.features * self.labels[..., None]

    def gradient(self, x: np.ndarray) -> np.ndarray:
        margins = _per_agent(x, np.swapaxes(self._signed, -1, -2))
        return -self.weight * _per_agent(expit(-margins), self._signed) + self.ridge * x

    def objective(self, x: np.ndarray) -> np.ndarray:
        r""":math:`f_i(x_i)`; shape (..., agents)."""
        margins = _per_agent(x, np.swapaxes(self._signed, -1, -2))
        return self.weight * np.logaddexp(0, -margins).sum(-1) + self.ridge / 2 * (x**2).sum(-1)

    def project(self, x: np.ndarray) -> np.ndarray:
        return x if np.isinf(self.box) else np.clip(x, -self.box, self.box)

    @cached_property
    def optimum(self) -> np.ndarray:
        r""":math:`x^*`, the minimiser of :math:`\sum_i f_i` over the box; runs share the data."""
        require(self.features.ndim == 3, "features", self.features.shape, "data shared by all runs")

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
        best = self.objective(np.broadcast_to(self.optimum, (self.n_agents, self.dim))).sum()
        return (self.objective(everywhere).sum(-1) - best) / (
            self.n_agents * self.records * self.weight
        )

    def misclassified(self, estimate: np.ndarray) -> np.ndarray:
        """Share of test rows on the wrong side; margin 0 predicts the negative class."""
        positive = estimate @ self.test_features.T > 0
        return (positive != (self.test_labels > 0)).mean(-1)

    metrics = {  # noqa: RUF012
        "test_error": lambda problem, x: problem.misclassified(x.mean(-2)),
        "excess_loss": lambda problem, x: problem.excess(x.mean(-2)),
        "consensus_error": consensus_error,
    }

    @cached_property
    def majority_error(self) -> float:
        """Error of always predicting the more frequent class of the test set."""
        positive = float((self.test_labels > 0).mean())
        return min(positive, 1 - positive)


def _per_agent(x: np.ndarray, matrices: np.ndarray) -> np.ndarray:
    """``x[..., agents, k] @ matrices[([runs,] agents, k, m]``, as one product an agent."""
    if matrices.ndim > 3:
        return (x[..., None, :] @ matrices)[..., 0, :]
    rows = np.moveaxis(x, -2, 0).reshape(x.shape[-2], -1, x.shape[-1])
    product = rows @ matrices
    shape = (x.shape[-2], *x.shape[:-2], matrices.shape[-1])
    return np.moveaxis(product.reshape(shape), 0, -2)


SHARED_BY_RUNS = True
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
    test_rows: int | None = None,
) -> LogisticRegression:
    """Share out prepared rows to agents at random, the same for all runs; the rest is the test set.

    Parameters
    ----------
    prepared : object
        With ``features`` (rows of norm <= 1) and ``labels`` in {-1, +1}.
    records : int
        Records an agent.
    ridge : float
        :math:`\\lambda` a record: the agent's regulariser is ``records * weight * ridge``.
    weight : float or "mean"
        Weight of one record's loss; "mean" is 1 / records.
    test_rows : int, optional
        At most so many of the rows left over.

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
    longest = float(np.sqrt((prepared.features**2).sum(1).max()))
    if longest > 1 + 1e-9:
        raise InvalidInput("problem.prepared", f"row norm {longest:g}", "rows of l2 norm <= 1")
    order = streams.shared("data").permutation(rows)
    training, rest = order[: agents * records], order[agents * records :]
    rest = rest[:test_rows]
    weight = 1.0 / records if weight == "mean" else float(weight)
    return LogisticRegression(
        prepared.features[training].reshape(agents, records, -1),
        prepared.labels[training].reshape(agents, records).astype(float),
        prepared.features[rest],
        prepared.labels[rest].astype(float),
        weight,
        ridge * records * weight,
        box,
    )
