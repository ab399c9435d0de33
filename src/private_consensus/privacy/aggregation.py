r"""Privacy loss of a random aggregate: realised and on average (Xiao et al.).

An agent outputs :math:`x = a + \Delta` with :math:`a` uniform on an interval of length
:math:`\omega` and :math:`\Delta` Laplace with density :math:`\frac\beta2 e^{-\beta|y|}`. Another
data set moves the interval by at most :math:`h = \alpha\mathcal B_\infty`. Positions are measured
from the interval's lower end. The density of the output, at distance r from the middle, is
proportional to :math:`e^{G(r)}`, even and log-concave. Therefore the loss

.. math:: \Theta(x) = \max_{|t| \le h} \left|\ln
    \frac{\int_0^\omega e^{-\beta|x-y|}dy}{\int_t^{\omega+t} e^{-\beta|x-y|}dy}\right|
    = G(r) - G(r+h) \qquad (10)

is attained where the interval moves away from the output. It is the loss of ONE output. Outside
the interval it is :math:`\beta h` for every :math:`\omega`, so the worst case is not reduced
(errata E1.4). Averages of it are average ex-post losses and no differential privacy.
"""

import numpy as np

from private_consensus.common.errors import require

NODES = 48
"""Gauss-Legendre nodes on each smooth part of the quadrature."""


def log_mass(distance: np.ndarray, length: np.ndarray, beta: np.ndarray) -> np.ndarray:
    r"""Return the logarithm of the mean Laplace kernel over the interval, G(r).

    .. math:: G(r) = \ln\frac1{\omega}\int_0^\omega e^{-\beta|x-y|}dy

    with r, ``distance``, the distance of x from the middle. With :math:`m = \omega/2`: for :math:`r
    \le m` it is :math:`\ln\frac{2 - e^{-\beta(m+r)} - e^{-\beta(m-r)}}{\beta\omega}`; beyond m it
    falls by :math:`\beta` per unit. An interval of ``length`` :math:`\omega = 0` is a point.
    """
    half = length / 2
    beyond = np.maximum(distance - half, 0.0)
    inside = np.minimum(distance, half)
    mass = -np.expm1(-beta * (half + inside)) - np.expm1(-beta * (half - inside))
    width = beta * length
    mean = np.divide(mass, width, out=np.ones_like(mass), where=width > np.finfo(float).tiny)
    return np.log(mean) - beta * beyond


def realised_loss(
    position: np.ndarray, length: np.ndarray, beta: np.ndarray, change: np.ndarray
) -> np.ndarray:
    r"""Return :math:`\Theta`, the loss of one output in one coordinate (Theorem 2.2, eq. (10)).

    ``position`` is the output minus the interval's lower end, ``length`` is :math:`\omega \ge 0`,
    and ``change`` is :math:`h = \alpha\mathcal B_\infty`. The result is broadcast over the
    parameters.
    """
    position, length, beta = np.broadcast_arrays(position, length, beta)
    distance = np.abs(position - length / 2)
    lost = log_mass(distance, length, beta) - log_mass(distance + change, length, beta)
    return np.where(distance >= length / 2, beta * change, np.minimum(lost, beta * change))


def share_inside(length: np.ndarray, beta: np.ndarray) -> np.ndarray:
    r"""Return the probability :math:`1 - (1-e^{-\beta\omega})/(\beta\omega)` of the interval.

    ``length`` is :math:`\omega > 0`.
    """
    return 1.0 + np.expm1(-beta * length) / (beta * length)


def exact_average(length: np.ndarray, beta: np.ndarray, change: np.ndarray) -> np.ndarray:
    r"""Compute :math:`\gamma = E[\Theta(x)]/(\beta h)`, the expectation before Theorem 2.3.

    Gauss-Legendre quadrature over half of the interval, separately on the two sides of the kink
    at distance h from its end. The expectation includes outputs outside the interval, where the
    loss is :math:`\beta h`. ``length`` is :math:`\omega > h`, and ``change`` is :math:`h > 0`.
    """
    length, beta, change = map(np.asarray, np.broadcast_arrays(length, beta, change))
    _require_wide(length, change)
    half = length / 2
    kink = np.maximum(half - change, 0.0)
    inner = sum(
        _integral(low, high, length, beta, change)
        for low, high in ((np.zeros_like(half), kink), (kink, half))
    )
    return 1.0 - share_inside(length, beta) + inner / (beta * change)


def _integral(low, high, length, beta, change) -> np.ndarray:
    """Integrate loss times density over the distances [low, high] on both sides of the middle."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    span = (high - low)[..., None]
    distance = low[..., None] + span * (nodes + 1) / 2
    length, beta, change = (array[..., None] for array in (length, beta, change))
    density = beta * np.exp(log_mass(distance, length, beta))  # twice beta/2: both sides
    lost = realised_loss(length / 2 + distance, length, beta, change)
    return (weights * density * lost).sum(-1) * span[..., 0] / 2


def printed_bound(length: np.ndarray, beta: np.ndarray, change: np.ndarray) -> np.ndarray:
    r"""Return the right side of eq. (11) in closed form, for :math:`\omega > h > 0`.

    Its proof uses the loss where the interval moves towards the output. The loss is larger where
    the interval moves away from it. The bound is too small by a term of second order in h.
    """
    length, beta, change = map(np.asarray, np.broadcast_arrays(length, beta, change))
    _require_wide(length, change)
    reach = (length - change) / 2

    def strip(shift):
        # integral over x in [0, reach] of (beta/2w) int exp(-beta|x + shift - y|) dy, y in [0, w]
        low = np.exp(-beta * shift) * -np.expm1(-beta * reach) / beta
        high = np.exp(-beta * (length - shift)) * np.expm1(beta * reach) / beta
        return (2 * reach - low - high) / (2 * length)

    grown = np.exp(beta * change) * (1 - 2 * strip(0.0)) + 2 * strip(change)
    return np.log(grown) / (beta * change)


def _require_wide(length: np.ndarray, change: np.ndarray) -> None:
    require(
        bool((length > change).all()) and bool((change > 0).all()),
        "aggregation.length",
        float(np.min(length)),
        f"more than the change {float(np.max(change)):g} > 0 (Theorem 2.3)",
    )
