"""Ridge logistic regressions of 8,000 records and 104 features, as in Ding, section 3.

The terms that couple an agent to its neighbours are omitted: scikit-learn does not have them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from private_consensus.core.problems import logistic_regression
from private_consensus.core.problems.logistic_regression.solver import solve_in_lanes
from private_consensus.core.randomness import Streams

from ..bench_local_solver import one_at_a_time, rows
from .timing import line, longer, once, seconds

AGENTS, RECORDS, SETTINGS, SCALE = 2, 8000, 8, 100.0
WHAT = "a local problem"
NORM = 1e-5
"""Of the gradient, that ours is asked for, in the unit of the loss, whose scale is 100."""


def measured() -> Iterator[dict[str, Any]]:
    """Seconds a problem: eight in a register, one a call, and one a call of each peer."""
    streams = Streams(1, (0,), dict.fromkeys(("data", "graph", "noise", "sampling"), "bench"))
    problem = logistic_regression.build(
        streams, AGENTS, prepared=rows(2 * RECORDS + 1000), records=RECORDS, ridge=4e-5,
        weight="mean", loss_scale=SCALE, partition="per_run",
    )  # fmt: skip
    many, alone = _asked(problem, SETTINGS), _asked(problem, 1)
    exact = solve_in_lanes(problem, *alone, 1e-9)

    def lanes(asked):
        return lambda: solve_in_lanes(problem, *asked, NORM)

    full = seconds(lanes(many)) / (SETTINGS * AGENTS)
    single = seconds(lanes(alone)) / AGENTS
    peers = {f"scipy {name}": one_at_a_time(name) for name in ("L-BFGS-B", "Newton-CG")}
    peers |= {f"scikit-learn {name}": _sklearn(name) for name in SOLVERS}
    for name, solve in peers.items():
        found, took = once(lambda solve=solve: solve(problem, alone))
        if found is None:
            yield longer(WHAT, name, single * AGENTS)
            continue
        norm = _gradient_norm(problem, found, alone)
        same = f"within {np.abs(found - exact).max():.0e}, gradient {norm:.0e}"
        for what, ours in (
            (f"{WHAT}, eight per register", full),
            (f"{WHAT}, one per call", single),
        ):
            yield line(what, name, ours, took / AGENTS, same)


SOLVERS = {"lbfgs": 1e-7, "newton-cholesky": 1e-7, "liblinear": 1e-7}


def _asked(problem, settings: int) -> list[np.ndarray]:
    shape = (settings, 1, AGENTS, problem.dim)
    penalty = np.linspace(0.5, 1.0, settings).reshape(-1, 1, 1, 1)
    return [np.zeros(shape), penalty, np.zeros(shape), np.zeros(shape)]


def _gradient_norm(problem, found, asked) -> float:
    linear, penalty, centre, _ = asked
    slope = problem.gradient(found) + linear + penalty * (found - centre)
    return float(np.linalg.norm(slope, axis=-1).max())


def _sklearn(solver: str):
    def solve(problem, asked):
        found = np.empty(asked[3].shape)
        penalties = np.broadcast_to(asked[1][..., 0], found.shape[:-1])
        for at in np.ndindex(found.shape[:-1]):
            curvature = penalties[at] + problem.ridge
            model = LogisticRegression(
                C=problem.weight / curvature, fit_intercept=False, solver=solver,
                tol=SOLVERS[solver], max_iter=5000,
            )  # fmt: skip
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(problem.features[at[1:]], problem.labels[at[1:]])
            found[at] = model.coef_[0]
        return found

    return solve
