r"""Audit of one release of D-ZOA: the privacy loss of one outer iteration of one agent.

The output of agent 1 is sampled many times on two neighbouring data sets that differ in one
response. The iteration starts at a converged state: every agent has the model :math:`\beta^c`, and
the multiplier balances the gradient of agent 1. Rows of the agent are scaled and its responses
clipped, so that between 0 and :math:`\beta^c` the gradient of each record has a norm of at most
:math:`c_1` (Assumption 3 of Gratton et al.). The differing response has the smallest and the
largest value that this bound allows.

The audit compares the mean with the exact minimiser, the standard deviation with :math:`\sigma_k`
of (25), and the shape with the normal distribution. It also computes a lower bound on epsilon. Its
event is a half space in the direction of the difference of the two exact minimisers. The threshold
is chosen on one half of the outputs and tested on the other (Clopper and Pearson). The mechanism
that the paper assumes, the exact minimiser plus :math:`N(0,\sigma_k^2I)`, is audited likewise.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from private_consensus.common.errors import require
from private_consensus.core.algorithms.base import Attack, common_value
from private_consensus.core.algorithms.d_zoa import DZOA
from private_consensus.core.algorithms.families.consensus_admm import (
    neighbourhood_sizes,
    provable,
)
from private_consensus.core.parameters import Fraction
from private_consensus.core.problems.lasso import lasso
from private_consensus.kernels.two_point import solve
from private_consensus.privacy.mechanisms import Gaussian

TINY = 1e-300


class AuditCase(NamedTuple):
    """Augmented objectives of agent 1 on two neighbouring data sets.

    Parameters
    ----------
    gram : ndarray, shape (P, P)
        Hessian of the loss, equal for both data sets.
    linear, minimisers : ndarray, shape (2, P)
        Linear term and minimiser of each objective.
    """

    gram: np.ndarray
    linear: np.ndarray
    minimisers: np.ndarray


@dataclass(frozen=True, kw_only=True)
class ReleaseAudit(DZOA, Attack):
    """Audit of one release of agent 1 by many repetitions on two neighbouring data sets.

    Parameters
    ----------
    mechanism : {"d_zoa", "gaussian"}
        Audited mechanism: Algorithm 1, or the exact minimiser with the assumed noise.
    replicates : int
        Number of outputs on each of the two data sets; half of them select the test, the other half
        give its result.
    confidence : float
        Confidence level of the bound on epsilon of one release.
    """

    mechanism: Literal["d_zoa", "gaussian"] = "d_zoa"
    replicates: int = 20_000
    confidence: Fraction

    quantities: ClassVar = (
        "epsilon_bound", "epsilon_claimed", "bound_p_value", "bound_delta", "bound_confidence",
        "deviation_ratio", "bias_ratio", "bias_relative", "distance_to_normal",
    )  # fmt: skip
    needs: ClassVar[tuple[str, ...]] = ("features", "responses", *DZOA.needs)

    def calibrate(self, budget, problem, network, horizon):
        require(horizon == 1, "horizon", horizon, "1: the audit is of one release")
        return super().calibrate(budget, problem, network, horizon)

    def mechanisms(self, problem, network, horizon):
        """Declare the release of D-ZOA, or the Gaussian release of the assumed mechanism."""
        if self.mechanism == "d_zoa":
            return super().mechanisms(problem, network, horizon)
        bounded = problem.record_change("l2")
        return {"estimate": Gaussian(bounded / (2.0 * self.rho), self.noise, **provable(bounded))}

    def claimed_epsilon(self, delta, problem, network, horizon):
        """Return the epsilon of one iteration by (25), at the set noise."""
        level = np.sqrt(2.1 * np.log(1.25 / delta))
        return float(self.c1 * level / (self.rho * problem.records * self.noise))

    def run(self, problem, network, streams, horizon, observe):
        settings = len(horizon)
        sizes = np.broadcast_to(neighbourhood_sizes(network), (len(streams.runs), problem.n_agents))
        run_results = [
            self._audit_run(problem, network, run, float(sizes[run, 0]), generator, settings)
            for run, generator in enumerate(streams.generators("noise"))
        ]
        observed = {
            key: np.stack([result[key] for result in run_results], axis=1) for key in run_results[0]
        }
        observe(1, np.arange(settings), observed)

    def _audit_run(self, problem, network, run, size, generator, settings) -> dict:
        """Audit one run; return each quantity with one value per setting."""
        curvature = 2.0 * float(np.max(self.rho)) * size
        case = neighbours(problem, run, curvature, float(np.max(self.c1)))
        count = int(np.max(self.replicates))
        keys = generator.integers(0, 2**32, size=(2, count, 2), dtype=np.uint32)
        units = generator.standard_normal((2, count, problem.dim))
        sigma = np.broadcast_to(self.noise, settings) / size
        if self.mechanism == "gaussian":
            noise = sigma[:, None, None, None] * units
            outputs = case.minimisers[:, None] + noise
        else:
            length = self.step_length(problem.optimum_norm[:, None], problem, network)
            steps = np.broadcast_to(length, (settings, len(problem.optimum), problem.n_agents))
            outputs = self._replicated(case, problem, curvature, steps[:, run, 0], keys)
        claims = (self.epsilon, self.delta, self.confidence)
        stated = [np.broadcast_to(value, settings) for value in claims]
        rows = [measured(*values, case) for values in zip(outputs, sigma, *stated, strict=True)]
        return {key: np.array([row[key] for row in rows]) for key in rows[0]}

    def _replicated(self, case, problem, curvature, steps, keys) -> np.ndarray:
        """Return the sampled outputs, [settings, 2, replicates, P]."""
        settings, count = len(steps), keys.shape[1]
        outputs = [
            solve(
                case.gram[None, None],
                np.full((1, 1, 1), curvature),
                np.broadcast_to(linear, (settings, count, 1, problem.dim)),
                np.full(settings, problem.penalty),
                steps[:, None, None],
                dataset_keys,
                0,
                loops=int(common_value("T", self.T)),
                samples=int(common_value("J", self.J)),
            )
            for linear, dataset_keys in zip(case.linear, keys, strict=True)
        ]
        return np.stack([output[:, :, 0] for output in outputs], axis=1)


def neighbours(problem: Any, run: int, curvature: float, c1: float) -> AuditCase:
    r"""Return agent 1 at the optimum, with one response at its largest and smallest allowed value.

    ``curvature`` is :math:`2\rho|N_k|`, and ``c1`` bounds the gradient of a record.
    """
    optimum = problem.optimum[run]
    fitted = problem.features[run, 0] @ optimum
    scale = np.minimum(1.0, 0.9 * c1 / np.maximum(np.abs(fitted), TINY))
    X, fitted = problem.features[run, 0] * scale[:, None], fitted * scale
    # |2 (x'b - y)| <= c1 at 0 and at the optimum, hence on the segment between them.
    low, high = np.maximum(fitted, 0.0) - c1 / 2, np.minimum(fitted, 0.0) + c1 / 2
    record = int(np.argmax((high - low) * np.linalg.norm(X, axis=-1)))
    y = np.clip(problem.responses[run, 0], low, high)
    pairs = np.stack([y, y])
    pairs[:, record] = high[record], low[record]
    pull = 2.0 * problem.weight * pairs @ X
    gram = 2.0 * problem.weight * X.T @ X
    slope = gram @ optimum - pull.mean(0) + problem.penalty * np.sign(optimum)
    linear = -pull - slope - curvature * optimum
    hessian = gram + curvature * np.eye(len(gram))
    minimisers = lasso(np.stack([hessian, hessian]), -linear, problem.penalty)
    return AuditCase(gram, linear, minimisers)


def measured(
    outputs: np.ndarray,
    sigma: float,
    epsilon: float,
    delta: float,
    confidence: float,
    case: AuditCase,
) -> dict:
    """Compute the privacy bounds and distribution statistics of outputs, [2, replicates, P].

    Outputs that are not finite count as infinitely far along the direction. ``sigma`` is the
    standard deviation of (25). The bound on epsilon holds with probability ``confidence``.
    """
    # Slow to import, and reading a plan loads every algorithm.
    from scipy import stats

    from private_consensus.privacy.event_bounds import selected_bound

    shift = case.minimisers[0] - case.minimisers[1]
    direction = shift / np.linalg.norm(shift)
    finite = np.all(np.isfinite(outputs), axis=-1)
    along = np.where(finite, np.where(finite[..., None], outputs, 0.0) @ direction, np.inf)
    bound = selected_bound(*along, delta=delta, confidence=confidence)
    finite_outputs = outputs[0][finite[0]]
    deviations = finite_outputs.std(0, ddof=1)
    centred = (along[0][finite[0]] - along[0][finite[0]].mean()) / along[0][finite[0]].std(ddof=1)
    bias = finite_outputs.mean(0) - case.minimisers[0]
    return {
        "epsilon_bound": bound.epsilon,
        "epsilon_claimed": epsilon,
        "bound_p_value": bound.p_value(epsilon),
        "bound_delta": delta,
        "bound_confidence": confidence,
        "deviation_ratio": deviations.mean() / sigma,
        "bias_ratio": np.linalg.norm(bias) / sigma,
        "bias_relative": np.linalg.norm(bias) / np.linalg.norm(case.minimisers[0]),
        "distance_to_normal": float(stats.kstest(centred, stats.norm.cdf).statistic),
    }


ALGORITHM = ReleaseAudit
