"""Noise and epsilon of Q-DPSGD by Theorems 11 and 15 of Ding, and releases of eq. (28)."""

from __future__ import annotations

import math

import numpy as np

from private_consensus.common.errors import require
from private_consensus.privacy import Budget, Release


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
    r"""Return the releases of Q-DPSGD-2 as published, where agents continue from exact models.

    In eq. (28) of Ding, one record in one batch changes the model in all later rounds. In each
    round, a change is multiplied by :math:`c = |1-\varepsilon+\varepsilon w_{ii}|`, and the next
    gradients are evaluated at different points. Two clipped means differ by at most 2K. The models
    therefore differ by at most :math:`\Delta_t = 2\alpha\varepsilon K\,(1-c^t)/(1-c)`, and no
    amplification by sampling applies. ``keep`` is the largest c of any agent, above 1 for large
    mixing steps. The other parameters are those of :func:`private_consensus.privacy.noisy_message`.
    One discrete Gaussian release covers all rounds.
    """
    require(0 <= keep < math.inf, "keep", keep, "a finite number of at least 0")
    t = np.arange(1, horizon + 1)
    remaining_shift = (
        t if keep == 1 else -np.expm1(t * np.log(keep)) / (1 - keep) if keep else np.ones(horizon)
    )
    sensitivity = 2 * step * clip * remaining_shift + resolution * math.sqrt(dim)
    note = "every message depends on all earlier batches, since agents continue from exact models"
    return [
        Release("discrete_gaussian", sensitivity / resolution, sigma * clip / resolution, note=note)
    ]


def theorem11_sigma(budget: Budget, records: int, horizon: int, *, factor: float = 1.0) -> float:
    r"""Return the sigma of Theorem 11 and Remark 6 of Ding; 0 for an infinite budget.

    .. math:: \sigma^2 = \frac{16T}{m^2\epsilon}\left(\frac{2\ln(1/\delta)}{\epsilon}+1\right)c^2

    Parameters
    ----------
    records, horizon : int
        Number of records m of an agent and number of rounds T.
    factor : float
        c: 1 for Q-DPSGD-1, :func:`theorem15_factor` for Q-DPSGD-2.
    """
    if not budget.private:
        return 0.0
    require(budget.delta > 0, "budget.delta", budget.delta, "above 0 for Theorem 11")
    order = 2 * math.log(1 / budget.delta) / budget.epsilon + 1
    return factor * math.sqrt(16 * horizon * order / (records**2 * budget.epsilon))


def theorem11_epsilon(
    sigma: float,
    delta: float,
    records: int,
    horizon: int,
    *,
    factor: float = 1.0,
) -> float:
    r"""Return the epsilon of Theorem 11 for a sigma; the inverse of :func:`theorem11_sigma`.

    :math:`\epsilon = T\,8\rho c^2/(m^2\sigma^2) + \ln(1/\delta)/(\rho-1)` with
    :math:`\rho = 2\ln(1/\delta)/\epsilon+1`, solved for epsilon. It is infinite without noise.
    ``sigma`` is the standard deviation of the noise over the clipping norm.
    """
    if sigma == 0:
        return math.inf
    a = 16 * horizon * factor**2 / (records**2 * sigma**2)
    return (a + math.sqrt(a**2 + 8 * a * math.log(1 / delta))) / 2


def theorem15_factor(
    *, step: float, resolution: float, dim: int, clip: float, size: float
) -> float:
    r"""Return the factor :math:`c = \alpha\varepsilon + \eta\sqrt p\,|S|/K` of Theorem 15.

    Parameters
    ----------
    step : float
        Product of gradient step and mixing step, :math:`\alpha\varepsilon`.
    resolution : float
        Resolution :math:`\eta` of the grid; 0 to omit the second term.
    dim, clip, size : float
        Number p of coordinates, clipping norm K, and batch size :math:`|S|`.
    """
    return step + resolution * math.sqrt(dim) * size / clip
