"""Noise and releases of Q-DPSGD as paper 004 states them: Theorems 11 and 15, and (28)."""

from __future__ import annotations

import math

import numpy as np

from ...errors import require
from ...privacy import Budget, Release, SampledNoise

SIGMA_RULES = ("thm11", "proof11", "accountant")


def reused_state_releases(
    sigma: float,
    horizon: int,
    *,
    keep: float,
    step: float,
    resolution: float,
    dim: int,
    clip: float,
) -> list[Release]:
    r"""Releases of Q-DPSGD-2 as printed, (28) of 004: the exact model is used again.

    One record in one batch shifts the model for good: by the next message
    :math:`c = 1-\varepsilon+\varepsilon w_{ii}` (``keep``) of the shift is left, and all later
    gradients are taken elsewhere. All that is certain is that two clipped means differ by at most
    2K, so that the models are apart by at most
    :math:`\Delta_t = 2\alpha\varepsilon K\,(1-c^t)/(1-c)`, and no sampling can be credited.

    Parameters
    ----------
    sigma, step, resolution, dim, clip
        As in :func:`private_consensus.privacy.noisy_message`.
    keep : float
        c, in [0, 1]; of the agent that keeps most.
    """
    require(0 <= keep <= 1, "keep", keep, "a number in [0, 1]")
    t = np.arange(1, horizon + 1)
    kept = (
        t if keep == 1 else -np.expm1(t * np.log(keep)) / (1 - keep) if keep else np.ones(horizon)
    )
    apart = 2 * step * clip * kept + resolution * math.sqrt(dim)
    note = "the exact model is used again: every message depends on all earlier batches"
    return [Release("discrete_gaussian", apart / resolution, sigma * clip / resolution, note=note)]


def theorem11_sigma(
    budget: Budget, records: int, horizon: int, *, proof: bool = False, factor: float = 1.0
) -> float:
    r"""Noise of Theorem 11 and Remark 6 of 004.

    .. math:: \sigma^2 = \frac{16T}{m^2\epsilon}\left(\frac{2\ln(1/\delta)}{\epsilon}+1\right)c^2

    Parameters
    ----------
    records, horizon : int
        m and T.
    proof : bool
        The proof's m in the place of :math:`m^2`.
    factor : float
        c: 1 for Q-DPSGD-1, :func:`theorem15_factor` for Q-DPSGD-2.
    """
    if not budget.private:
        return 0.0
    require(budget.delta > 0, "budget.delta", budget.delta, "above 0 for Theorem 11")
    order = 2 * math.log(1 / budget.delta) / budget.epsilon + 1
    power = 1 if proof else 2
    return factor * math.sqrt(16 * horizon * order / (records**power * budget.epsilon))


def theorem11_epsilon(
    sigma: float,
    delta: float,
    records: int,
    horizon: int,
    *,
    proof: bool = False,
    factor: float = 1.0,
) -> float:
    r"""Epsilon that Theorem 11 gives at sigma; the inverse of :func:`theorem11_sigma`.

    :math:`\epsilon = T\,8\rho c^2/(m^2\sigma^2) + \ln(1/\delta)/(\rho-1)` with
    :math:`\rho = 2\ln(1/\delta)/\epsilon+1`, solved for epsilon.
    """
    if sigma == 0:
        return math.inf
    a = 16 * horizon * factor**2 / (records ** (1 if proof else 2) * sigma**2)
    return (a + math.sqrt(a**2 + 8 * a * math.log(1 / delta))) / 2


def theorem15_factor(
    *, step: float, resolution: float, dim: int, clip: float, size: float
) -> float:
    r""":math:`\alpha\varepsilon + \eta\sqrt p\,|S|/K` of Theorem 15; resolution 0 drops the
    second term."""
    return step + resolution * math.sqrt(dim) * size / clip


def sgd_sigma(rule: str, budget: Budget, noise: SampledNoise, horizon: int) -> float:
    """Sigma of a noised batch by a named rule; 0 for an infinite budget.

    Parameters
    ----------
    rule : {"thm11", "proof11", "accountant"}
        Theorem 11 with Remark 6, its proof's version, or :meth:`SampledNoise.sigma`.
    """
    expected = f"one of {', '.join(SIGMA_RULES)}"
    require(rule in SIGMA_RULES, "algorithm.sigma_rule", rule, expected)
    if rule == "accountant":
        return noise.sigma(budget, horizon)
    return theorem11_sigma(budget, noise.records, horizon, proof=rule == "proof11")
