r"""Problem (1) of Xiao et al. with a general linear constraint, :math:`\sum_i A_i x_i = c`.

Consensus is the special case in which the edges of a graph define the :math:`A_i`. Here the
:math:`A_i` are arbitrary: agents converge to different points and are coupled by the constraint
only. Algorithm 2 "only captures consensus optimization" (before Theorem 3.4); ADMM with random
penalties is not restricted to consensus.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import root
from scipy.special import expit

from .base import Parts, bound, geometric


@dataclass(frozen=True)
class Constrained:
    r"""Problem :math:`\min \sum_i f_i(x_i)` subject to :math:`\sum_i A_i x_i = c`.

    .. math:: f_i(x) = \sum_j \ln(1+e^{b_{ij}^Tx}) + \tfrac m2\|x\|_2^2

    Parameters
    ----------
    A : ndarray, shape (agents, rows, dim)
        Matrices of the constraint.
    c : ndarray, shape (rows,)
        Right side of the constraint.
    b : ndarray, shape (agents, terms, dim)
        Vectors of the logistic terms.
    m : float
        Strong convexity.
    """

    A: np.ndarray
    c: np.ndarray
    b: np.ndarray
    m: float

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Compute the gradient of each agent; shape (agents, dim)."""
        return np.vecmat(expit(np.matvec(self.b, x)), self.b) + self.m * x

    def residual(self, x: np.ndarray) -> np.ndarray:
        r"""Return the residual :math:`\sum_i A_i x_i - c`; shape (rows,)."""
        return np.matvec(self.A, x).sum(0) - self.c

    def pull(self, multiplier: np.ndarray) -> np.ndarray:
        """Return :math:`A_i^T v_i` for a common v or for one v per agent; shape (agents, dim)."""
        return np.vecmat(multiplier, self.A)

    def proximal(self, centre: np.ndarray, penalty: float) -> np.ndarray:
        r"""Return :math:`\arg\min f_i(x) + \frac D2\|x - v_i\|_2^2`, by 12 Newton steps."""
        x, eye = centre.copy(), np.eye(centre.shape[-1])
        for _ in range(12):
            probability = expit(np.matvec(self.b, x))
            hessian = (self.b * (probability * (1 - probability))[..., None]).swapaxes(
                -1, -2
            ) @ self.b
            slope = self.gradient(x) + penalty * (x - centre)
            x = x - np.linalg.solve(hessian + (self.m + penalty) * eye, slope[..., None])[..., 0]
        return x

    def solution(self) -> tuple[np.ndarray, np.ndarray]:
        r"""Return :math:`x^*` and :math:`\lambda^*` of (33), computed by a root finder.

        They are a root of :math:`\nabla f_i(x_i) = A_i^T\lambda` and :math:`\sum A_i x_i = c`.
        """
        shape = self.A.shape[0], self.A.shape[2]

        def conditions(u):
            x, multiplier = u[: -len(self.c)].reshape(shape), u[-len(self.c) :]
            return np.append((self.gradient(x) - self.pull(multiplier)).ravel(), self.residual(x))

        u = root(conditions, np.zeros(np.prod(shape) + len(self.c)), tol=1e-13).x
        return u[: -len(self.c)].reshape(shape), u[-len(self.c) :]


def sample_problem(seed: int) -> Constrained:
    """Sample a problem with random matrices of largest singular value 1.

    It has four agents with three variables and five logistic terms each, two constraints, and
    strong convexity 1.
    """
    rng, agents, rows, dim = np.random.default_rng(seed), 4, 2, 3
    A = rng.normal(size=(agents, rows, dim))
    A /= np.linalg.norm(A, 2, axis=(-2, -1))[:, None, None]
    b = rng.normal(size=(agents, 5, dim)) / np.sqrt(5 * dim)
    return Constrained(A, rng.normal(size=rows), b, 1.0)


def run(
    problem: Constrained, first_order: bool, rounds: int, *, spread: float, seed: int = 0,
    D: float = 6.0, rho: float = 0.5, zeta: float = 0.5,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    r"""Return the points of (12) or (13) and the multipliers after each round.

    With :math:`D I = A_i^T\rho_i A_i + \Gamma_i`, both updates start from a point :math:`v_i` that
    depends on the other agents through the residual r only:

    .. math:: v_i = x_i + D^{-1}A_i^T(\lambda - \rho_i r), \qquad
        x_i \leftarrow v_i - D^{-1}\nabla f_i(x_i) \quad\text{or}\quad
        \arg\min f_i + \tfrac D2\|x - v_i\|^2

    The gradient step (13) is taken if ``first_order``. The diagonal of each :math:`\rho_i` is
    uniform on rho (1 - spread) to rho (1 + spread), sampled independently for each agent, row and
    round. D and zeta are total penalty and dual step size. The results are [rounds, agents, dim]
    and [rounds, rows].
    """
    rng = np.random.default_rng(seed)
    agents, rows, dim = problem.A.shape
    x, multiplier = np.zeros((agents, dim)), np.zeros(rows)
    points, multipliers = [], []
    for _ in range(rounds):
        penalties = rho * (1 + spread * rng.uniform(-1, 1, size=(agents, rows)))
        shift = problem.pull(multiplier - penalties * problem.residual(x)) / D
        centre = x + shift
        x = centre - problem.gradient(x) / D if first_order else problem.proximal(centre, D)
        multiplier = multiplier - zeta * problem.residual(x)
        points.append(x)
        multipliers.append(multiplier)
    return np.array(points), np.array(multipliers)


def _convergence(first_order: bool) -> Parts:
    """Test that runs of (12) or (13) converge to the solution at a linear rate.

    Five problems of four agents in three dimensions with two constraints, arbitrary A_i, losses
    that are not quadratic; diagonal penalties uniform on (0, 1) in every round, 200 rounds.
    """
    relative_distances, violations, log_distances = [], [], []
    for seed in range(5):
        problem = sample_problem(seed)
        x, multiplier = problem.solution()
        points, multipliers = run(problem, first_order, 200, spread=1.0, seed=seed)
        squares = ((points - x) ** 2).sum((-1, -2)) + ((multipliers - multiplier) ** 2).sum(-1)
        relative = np.sqrt(squares / ((x**2).sum() + (multiplier**2).sum()))
        relative_distances.append(relative[-1])
        violations.append(np.abs(problem.residual(points[-1])).max())
        log_distances.append(np.log(relative[20:120]))
    k, distances = np.arange(100), np.exp(np.mean(log_distances, 0))
    return (
        bound("distance of (x, lambda) to the solution over its norm", 1e-6, relative_distances),
        bound("sum A_i x_i - c", 1e-6, violations),
        geometric("decline of ln distance, late against early", k, distances),
    )


def equation_12() -> Parts:
    """Test that ADMM with random penalties and exact minimisation converges for any matrices."""
    return _convergence(False)


def equation_13() -> Parts:
    """Test that (12) with gradient steps in place of minimisation converges for any matrices."""
    return _convergence(True)
