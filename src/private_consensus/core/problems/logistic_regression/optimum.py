"""Minimisers of the sum of all objectives and of each local objective."""

from typing import Any

import numpy as np
from scipy.optimize import minimize

from private_consensus.common.errors import require

from ...solvers import minimise as minimise_batch


def minimisers_of_runs(problem: Any) -> np.ndarray:
    r"""Compute the minimiser of :math:`\sum_i f_i` per run, for runs with their own data.

    The result has shape (runs, dim).
    """
    require(
        np.isinf(problem.box), "problem.box", problem.box, "inf, since the data differ between runs"
    )

    def same_model(point):
        return np.broadcast_to(point[:, None, :], problem.features.shape[:2] + point.shape[-1:])

    return minimise_batch(
        lambda point: problem.gradient(same_model(point)).sum(-2),
        lambda point, selected: problem.hessian(same_model(point)).sum(-3)[selected],
        np.zeros((len(problem.features), problem.dim)),
        magnitude=problem.n_agents * problem.weight * problem.records,
    )


def local_minimisers(problem: Any) -> np.ndarray:
    """Compute the minimiser of each local objective; shape ([runs,] agents, dim)."""
    minimisers = minimise_batch(
        problem.gradient,
        lambda x, selected: problem.hessian(x)[selected],
        np.zeros((*problem.features.shape[:-2], problem.dim)),
        magnitude=problem.weight * problem.records,
    )
    expected = "a box that holds every agent's minimiser"
    require(bool((np.abs(minimisers) <= problem.box).all()), "problem.box", problem.box, expected)
    return minimisers


def minimiser_in_box(problem: Any) -> np.ndarray:
    r"""Compute the minimiser of :math:`\sum_i f_i` over the box with L-BFGS-B; shape (dim,)."""

    def total(point):
        x = np.broadcast_to(point, (problem.n_agents, problem.dim))
        return problem.objective(x).sum(), problem.gradient(x).sum(0)

    bounds = None if np.isinf(problem.box) else [(-problem.box, problem.box)] * problem.dim
    options = {"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9 * problem.weight, "maxcor": 30}
    return minimize(
        total, np.zeros(problem.dim), jac=True, method="L-BFGS-B", bounds=bounds, options=options
    ).x
