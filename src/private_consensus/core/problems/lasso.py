r"""Distributed lasso (Gratton et al., eqs. (2), (33), (34)).

.. math:: f_k(\beta) = w \sum_{j=1}^{N_k} \ell(x_{k,j}^T\beta - y_{k,j})
          + \frac{\eta}{K}\|\beta\|_1, \qquad \ell(r) = r^2

with :math:`w = 1/N_k` (``loss: mean``, eq. (2)) or 1 (``loss: sum``, whose sum over agents is
(33)). The reference :math:`\beta^c` minimises the sum of the agents' objectives.

With ``gradient_bound`` the loss is Huber's, :math:`\ell(r) = r^2` up to :math:`|2r| = c_1` and
linear beyond. Rows have norm at most 1, so that the norm of a record's gradient is at most
:math:`c_1`. This is Assumption 3 of the paper, which squared loss violates. :math:`\beta^c`
remains the lasso's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from private_consensus.common.arrays import require_rows_within
from private_consensus.common.errors import require

from ..parameters import Count, FiniteNonNegative, FinitePositive, Positive, validated
from ..randomness import Streams
from ..solvers import Unsolved
from .base import PUBLIC_RECORDS, Problem, consensus_error

SWEEPS = 20_000
TOLERANCE = 1e-14
MAX_STEPS = 100_000
"""Largest number of proximal gradient steps of a local problem."""
NOISE_VARIANCE = 0.1
r"""Variance of the noise :math:`\psi` of the responses (section VI)."""


@dataclass(frozen=True)
class Lasso(Problem):
    r"""Local linear regressions of all agents, with an l1 penalty.

    Parameters
    ----------
    features : ndarray, shape (runs, agents, N, P)
        Features of the records.
    responses : ndarray, shape (runs, agents, N)
        Responses y of the records.
    weight : float
        Weight :math:`w` of one record's loss.
    penalty : float
        Coefficient :math:`\lambda = \eta/K` of the l1 norm in the objective of each agent.
    gradient_bound : float
        Bound :math:`c_1` on the slope of Huber's loss; infinite for squared loss.
    row_bound : float
        Bound on the l2 norm of the features of a record; infinite if rows are not normalised.
    """

    features: np.ndarray
    responses: np.ndarray
    weight: FinitePositive
    penalty: FiniteNonNegative
    gradient_bound: Positive = np.inf
    row_bound: Positive = np.inf

    axes: ClassVar[Mapping[str, str]] = {
        "features": "run agent record coordinate",
        "responses": "run agent record",
    }

    def __post_init__(self):
        super().__post_init__()
        axes = ("run", "agent", "record", "coordinate")
        require_rows_within("problem.features", self.features, self.row_bound, axes)

    least_convexity = 0.0
    from_data: ClassVar[Mapping[str, str]] = {
        "smoothness": "the largest eigenvalue of the Hessian of an agent's loss",
        "strong_convexity": "the smallest eigenvalue of the Hessian of an agent's loss",
        "optimum": "the non-private optimum",
        "optimum_norm": "the norm of the non-private optimum",
    }

    oracles: ClassVar[tuple[str, ...]] = (
        PUBLIC_RECORDS,
        "where features are normalised, columns are divided by their largest entry, over all "
        "agents' records",
    )

    @cached_property
    def gram(self) -> np.ndarray:
        """Hessian :math:`2 w X_k^T X_k` of the squared loss; shape (runs, agents, P, P)."""
        return 2.0 * self.weight * self.features.swapaxes(-1, -2) @ self.features

    @cached_property
    def pull(self) -> np.ndarray:
        """Vector :math:`2 w X_k^T y_k` of the squared loss; shape (runs, agents, P)."""
        return 2.0 * self.weight * (self.responses[..., None, :] @ self.features)[..., 0, :]

    @cached_property
    def smoothness(self) -> np.ndarray:
        """Largest eigenvalue of each agent's Hessian; shape (runs, agents, 1)."""
        return np.linalg.eigvalsh(self.gram)[..., -1:]

    @cached_property
    def strong_convexity(self) -> np.ndarray:
        """Smallest eigenvalue of each agent's Hessian; shape (runs, agents, 1)."""
        return np.linalg.eigvalsh(self.gram)[..., :1]

    @property
    def record_gradient_change(self) -> float:
        r"""Bound :math:`2wc_1` times the largest row norm, in the scale of ``f_k``.

        It is infinite for squared loss, whose gradient :math:`2x(x^T\beta - y)` is unbounded, and
        without a bound on the row norm.
        """
        return 2.0 * self.weight * self.gradient_bound * self.row_bound

    def attained_gradient_share(self, norm: str) -> float:
        """Return the fraction attained by two records with large responses of opposite signs.

        In the limit of large responses, they change the gradient by :math:`2wc_1` times the row at
        every point. Without :math:`c_1`, or without a bound on rows, the change is unbounded.
        """
        is_l1 = norm == "l1" and np.isfinite(self.record_gradient_change)
        return 1.0 / np.sqrt(self.dim) if is_l1 else 1.0

    def attained_minimiser_share(self, norm: str, curvature) -> float:
        r"""Return the fraction attained by two records with large responses of opposite signs.

        The row of the records is along an axis, and all other rows are zero. The minimiser is a
        soft threshold of its argument, which changes by at most :math:`2wc_1`. The threshold
        reduces this change by at most :math:`2\lambda`.
        """
        fraction = max(0.0, 1.0 - self.minimiser_slack / self.record_gradient_change)
        return fraction * self.attained_gradient_share(norm)

    @property
    def minimiser_slack(self) -> float:
        r"""Largest effect :math:`2\lambda` of the soft threshold on the change of a minimiser.

        For every :math:`c_1`, the records are a row :math:`\zeta e_1` with the responses
        :math:`\pm c_1/(2\zeta)` and the gradients
        :math:`\mp c_1e_1 + 2\zeta^2\beta_1e_1`. In the limit of short rows these are
        :math:`\mp c_1e_1` on every bounded set. All other rows are zero.
        """
        return 2.0 * self.penalty

    @cached_property
    def optimum(self) -> np.ndarray:
        r"""Non-private optimum :math:`\beta^c`, shape (runs, P)."""
        return lasso(self.gram.sum(1), self.pull.sum(1), self.penalty * self.n_agents)

    @cached_property
    def optimum_norm(self) -> np.ndarray:
        r"""Norm :math:`\|\beta^c\|_2` of the non-private optimum, shape (runs,)."""
        return np.linalg.norm(self.optimum, axis=-1)

    def smooth_gradient(self, x: np.ndarray) -> np.ndarray:
        """Compute the gradient of the loss without the penalty."""
        if np.isinf(self.gradient_bound):
            return (x[..., None, :] @ self.gram)[..., 0, :] - self.pull
        residuals = (self.features @ x[..., None])[..., 0] - self.responses
        slopes = np.clip(2.0 * residuals, -self.gradient_bound, self.gradient_bound)
        return self.weight * (slopes[..., None, :] @ self.features)[..., 0, :]

    def part(self, selection: slice) -> Lasso:
        rows, responses = self.features[..., selection, :], self.responses[..., selection]
        return self.with_valid(features=rows, responses=responses)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Compute a subgradient of each local objective; that of the l1 norm is 0 at 0."""
        return self.smooth_gradient(x) + self.penalty * np.sign(x)

    def proximal(self, linear, penalty, centre, start, tolerance=None):
        r"""Minimise by proximal gradient steps, whose number follows from the condition number.

        Each step of length :math:`2/(\Lambda+\mu)` multiplies the error by at most
        :math:`(\Lambda-\mu)/(\Lambda+\mu)`, with :math:`\mu = D_i` and
        :math:`\Lambda = D_i + \lambda_{\max}`. For squared loss, :math:`\mu` also includes the
        smallest eigenvalue of the agent's Hessian. The relative error is about ``TOLERANCE``. More
        than ``MAX_STEPS`` steps raise ``Unsolved``, since the bounds on the effect of a record hold
        for minimisers only.
        """
        require(tolerance is None, "tolerance", tolerance, "None for the lasso")
        largest = penalty + self.smoothness
        smallest = penalty + self.strong_convexity * np.isinf(self.gradient_bound)
        step = 2.0 / (largest + smallest)
        steps = _steps((largest - smallest) / (largest + smallest))
        x, constant, threshold = start, linear - penalty * centre, step * self.penalty
        for step_index in range(int(steps.max())):
            next_x = x - step * (self.smooth_gradient(x) + constant + penalty * x)
            next_x -= np.minimum(np.maximum(next_x, -threshold), threshold)
            # The number of steps of an agent does not depend on the other agents.
            x = np.where(step_index < steps, next_x, x)
        return x

    def squared_error(self, x: np.ndarray) -> np.ndarray:
        r"""Compute the agents' total squared error :math:`\sum_k \|\beta_k - \beta^c\|_2^2`.

        The result has shape (..., runs).
        """
        return ((x - self.optimum[:, None]) ** 2).sum((-1, -2))

    def normalised_error(self, x: np.ndarray) -> np.ndarray:
        r"""Compute the squared error relative to the reference.

        It is :math:`\sum_k\|\beta_k-\beta^c\|^2/\|\beta^c\|^2`, a sum over agents with the value K
        at the origin (Gratton et al., section VI). It is infinite if :math:`\beta^c = 0`.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = self.squared_error(x) / self.optimum_norm**2
        return np.where(self.optimum_norm > 0, relative, np.inf)

    metrics = {  # noqa: RUF012
        "normalised_error": normalised_error,
        "squared_error": squared_error,
        "consensus_error": consensus_error,
    }


EXAMPLE = {"records": 20, "dim": 10}


def _steps(rate: np.ndarray) -> np.ndarray:
    """Return the number of steps, at least 1, that reduce the error by the factor ``TOLERANCE``."""
    with np.errstate(divide="ignore"):
        count = np.ceil(np.log(TOLERANCE) / np.log(np.maximum(rate, 0.0)))
    count = np.where(rate > 0, count, 0) + 1
    if not np.all(count <= MAX_STEPS):
        needed = f"{np.max(count):.3g} proximal steps are necessary, at most {MAX_STEPS} are taken"
        raise Unsolved(f"{needed}: a larger quadratic penalty needs fewer")
    return count


def soft_threshold(x: np.ndarray, threshold) -> np.ndarray:
    r"""Compute the soft threshold :math:`\mathrm{sign}(x)\max(|x| - \tau, 0)`."""
    return np.copysign(np.maximum(np.abs(x) - threshold, 0.0), x)


def lasso(gram: np.ndarray, pull: np.ndarray, penalty: float) -> np.ndarray:
    r"""Minimise :math:`\tfrac12 b^TGb - p^Tb + \lambda\|b\|_1` by coordinate descent.

    G is ``gram``, [R, P, P]; p is ``pull``, [R, P]; and :math:`\lambda` is ``penalty``. The result
    is [R, P].
    """
    b = np.zeros_like(pull)
    scale = np.abs(pull).max(-1, initial=1e-300)
    # The number of sweeps of a run does not depend on the other runs.
    active = np.ones(len(pull), bool)
    for _ in range(SWEEPS):
        before = b.copy()
        for i in range(pull.shape[-1]):
            diagonal = gram[:, i, i]
            partial_residual = pull[:, i] - (gram[:, i] * b).sum(-1) + diagonal * b[:, i]
            # A feature that is 0 in all records has no effect; its coefficient stays 0.
            moves = active & (diagonal > 0)
            np.divide(soft_threshold(partial_residual, penalty), diagonal, b[:, i], where=moves)
        active &= np.abs(b - before).max(-1) > TOLERANCE * scale
        if not active.any():
            break
    return b


def normalise(features: np.ndarray) -> np.ndarray:
    """Divide columns by their largest entry over all agents, then rows by their l2 norm."""
    columns = features / np.abs(features).max((1, 2), keepdims=True)
    return columns / np.linalg.norm(columns, axis=-1, keepdims=True)


@validated
def build(
    streams: Streams,
    agents: int,
    *,
    records: Count,
    dim: Count,
    eta: FinitePositive = 1.0,
    loss: Literal["mean", "sum"] = "sum",
    normalised: bool = True,
    responses: Literal["normalised", "raw"] = "normalised",
    gradient_bound: Positive = np.inf,
) -> Lasso:
    r"""Sample :math:`y = X\omega + \psi` with standard normal X and :math:`\omega` (section VI).

    Parameters
    ----------
    streams : Streams
        Random streams; all samples come from the stream ``data``.
    agents : int
        Number of agents K.
    records : int
        Number :math:`N_k` of records of each agent.
    dim : int
        Number of features P.
    eta : float
        Weight of the penalty in the sum over agents.
    loss : {"sum", "mean"}
        Local loss: sum or mean over the agent's records.
    normalised : bool
        True to normalise the features by columns and rows.
    responses : {"normalised", "raw"}
        Features from which :math:`y` is computed: normalised or as sampled.
    gradient_bound : float
        Bound :math:`c_1` on the slope of Huber's loss; infinite for squared loss.

    Returns
    -------
    Lasso
    """
    raw = streams.draw("data", "normal", (agents, records, dim), "features")
    omega = streams.draw("data", "normal", (dim,), "coefficients")
    psi = streams.draw("data", "normal", (agents, records), "errors")
    features = normalise(raw) if normalised else raw
    explained = features if responses == "normalised" else raw
    y = np.einsum("rkjp,rp->rkj", explained, omega) + np.sqrt(NOISE_VARIANCE) * psi
    weight = 1.0 / records if loss == "mean" else 1.0
    row_bound = 1.0 if normalised else np.inf
    return Lasso(features, y, weight, eta / agents, gradient_bound, row_bound)
