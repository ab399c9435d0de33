"""Conversions between privacy measures, in closed form or to machine precision.

Three privacy measures: pure epsilon; rho of zero-concentrated differential privacy (zCDP); mu of
Gaussian differential privacy (GDP). A mechanism is mu-GDP if distinguishing two neighbours is never
easier than distinguishing N(0, 1) from N(mu, 1). All functions take floats or arrays and broadcast
them. Rounding is on the safe side: an epsilon is rounded up, a mu or rho down.

References
----------
Balle, Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018: the exact
GDP curve.
Dong, Roth, Su, "Gaussian differential privacy", JRSS-B 2022: mu-GDP and its composition.
Bun, Steinke, "Concentrated differential privacy", TCC 2016: zCDP, its simple conversion.
Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020: the
tighter conversion.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import erfcx, log_ndtr

from private_consensus.common.errors import InvalidInput, arguments

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_HALVINGS = 200  # a bisection ends earlier if the intervals contain no inner float
_LOG_SQRT_2PI = 0.5 * np.log(2 * np.pi)


# --- Gaussian differential privacy -----------------------------------------------------------


def gaussian_delta(mu: Any, epsilon: Any) -> Any:
    r"""Return the smallest delta of a mu-GDP mechanism at ``epsilon``.

    .. math:: \delta = \Phi(\mu/2 - \epsilon/\mu) - e^{\epsilon}\,\Phi(-\mu/2 - \epsilon/\mu)

    (Balle & Wang 2018, Theorem 8.) mu is l2 sensitivity over standard deviation. The relative error
    is below 1e-11 down to the smallest normal float.
    """
    with np.errstate(under="ignore"):
        return _scalar(np.exp(gaussian_log_delta(mu, epsilon)))


def gaussian_log_delta(mu: Any, epsilon: Any) -> Any:
    r"""Return the logarithm of :func:`gaussian_delta`, without its underflow.

    With the Mills ratio :math:`m(t) = \Phi(-t)/\varphi(t)` and
    :math:`t_\pm = \epsilon/\mu \pm \mu/2` the factor :math:`e^\epsilon` cancels exactly:
    :math:`\delta = \varphi(t_-)\,(m(t_-) - m(t_+))`. The result is minus infinity for delta 0.
    """
    mu, epsilon = _broadcast(mu=_nonnegative("mu", mu), epsilon=_nonnegative("epsilon", epsilon))
    result = np.where(np.isinf(mu) & np.isfinite(epsilon), 0.0, -np.inf)
    inner = (mu > 0) & np.isfinite(mu) & np.isfinite(epsilon)
    result[inner] = _log_delta(mu[inner], epsilon[inner])
    return _scalar(result)


def _log_delta(mu: np.ndarray, epsilon: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        centre = np.minimum(epsilon / mu, 1e150)  # beyond, delta is 0 in any number format
        low, high = centre - mu / 2, centre + mu / 2
        log_density = -(low**2) / 2 - _LOG_SQRT_2PI
        log_delta = log_density + np.log(_mills_drop(np.maximum(centre, mu / 2 - 5), mu))
        # far on the other side delta is nearly 1, and 1 - delta is small
        far = ~(low > -5.0)
        tails = np.exp(log_ndtr(low[far])), np.exp(log_density[far]) * _mills(high[far])
        log_delta[far] = np.log1p(-tails[0] - tails[1])
    return log_delta


def _mills(t: np.ndarray) -> np.ndarray:
    """Return the upper tail over the density of the standard normal distribution."""
    return np.sqrt(np.pi / 2) * erfcx(t / np.sqrt(2))


def _mills_drop(centre: np.ndarray, width: np.ndarray) -> np.ndarray:
    """Return m(centre - width/2) - m(centre + width/2), without cancellation for a narrow width."""
    half = width / 2
    narrow = half < 0.25
    drop = _mills(centre - half) - _mills(centre + half)
    middle, reach = centre[narrow], half[narrow]
    slopes = _minus_mills_slope(middle[:, None] + reach[:, None] * _NODES)
    drop[narrow] = reach * np.sum(_WEIGHTS * slopes, axis=-1)
    return drop


def _minus_mills_slope(t: np.ndarray) -> np.ndarray:
    """Return 1 - t m(t) > 0, by its asymptotic series where the difference would cancel."""
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        square = 1 / t**2
        series = square * (1 - 3 * square * (1 - 5 * square * (1 - 7 * square * (1 - 9 * square))))
        direct = 1 - t * _mills(np.minimum(t, 100.0))
    return np.where(t > 50, series, direct)


def gaussian_epsilon(mu: Any, delta: Any) -> Any:
    r"""Return the smallest epsilon >= 0 at which a mu-GDP mechanism has at most ``delta``.

    Inverse of :func:`gaussian_delta` in epsilon, rounded up. The tail bound
    :math:`\delta \le \Phi(\mu/2-\epsilon/\mu)` gives the upper limit of the search,
    :math:`\mu^2/2 + \mu\sqrt{2\ln(1/\delta)}`. It is infinite for delta 0 and mu above 0.
    """
    mu, delta = _nonnegative("mu", mu), _deltas(delta)
    return _evaluated(_epsilons, "loss", mu, delta)


def _epsilons(mu: np.ndarray, log_inverse: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        top = mu**2 / 2 + mu * np.sqrt(2 * log_inverse)
    _, smallest = _bisect(
        lambda e: gaussian_log_delta(mu, e) <= -log_inverse, np.zeros_like(mu), top
    )
    return np.where(gaussian_log_delta(mu, 0 * mu) <= -log_inverse, 0.0, smallest)


def gaussian_mu(epsilon: Any, delta: Any) -> Any:
    """Return the largest mu such that mu-GDP implies (epsilon, delta)-DP, rounded down.

    It is 0 for delta 0 and finite epsilon, and infinite for infinite epsilon.
    """
    epsilon, delta = _nonnegative("epsilon", epsilon), _deltas(delta)
    return _evaluated(_mus, "epsilon", epsilon, delta)


def _mus(epsilon: np.ndarray, log_inverse: np.ndarray) -> np.ndarray:
    tail = np.sqrt(2 * log_inverse)
    # safe by the tail bound, and by delta <= mu / sqrt(2 pi) at epsilon 0
    low = np.maximum(2 * epsilon / (tail + np.sqrt(tail**2 + 2 * epsilon)), np.exp(-log_inverse))
    high = 2 * low
    while np.any(short := gaussian_log_delta(high, epsilon) <= -log_inverse):
        high = np.where(short, 2 * high, high)
    mu, _ = _bisect(lambda mu: gaussian_log_delta(mu, epsilon) > -log_inverse, low, high)
    return mu


# --- Zero-concentrated differential privacy ---------------------------------------------------


def zcdp_epsilon(rho: Any, delta: Any, *, conversion: str = "cks") -> Any:
    r"""Return the epsilon of a rho-zCDP mechanism at ``delta``.

    Parameters
    ----------
    rho, delta : float or array_like
        At least 0; delta below 1. Broadcast together.
    conversion : {"cks", "safe", "shortcut"}
        Formula, see Notes.

    Returns
    -------
    float or ndarray
        Infinite if delta is 0 and rho is not.

    Raises
    ------
    InvalidInput
        For a negative rho, a delta out of range, and an unknown conversion.

    Notes
    -----
    ``shortcut``
        :math:`2\sqrt{\rho\ln(1/\delta)}`. It omits a term and is NOT a valid bound; it serves
        to reproduce papers that use it.
    ``safe``
        :math:`\rho + 2\sqrt{\rho\ln(1/\delta)}` (Bun & Steinke 2016, Proposition 1.3).
    ``cks``
        The minimum over alpha > 1 of :math:`\alpha\rho + \frac{\ln(1/\delta) - \ln\alpha}{\alpha-1}
        + \ln(1 - 1/\alpha)` (Canonne, Kamath, Steinke 2020, Corollary 13), at least 0.
    """
    arguments.choice("conversion", conversion, _FORMULAS)
    rho, delta = _nonnegative("rho", rho), _deltas(delta)
    return _evaluated(_FORMULAS[conversion][0], "loss", rho, delta)


def zcdp_rho(epsilon: Any, delta: Any, *, conversion: str = "cks") -> Any:
    r"""Return the largest rho whose conversion by :func:`zcdp_epsilon` stays within ``epsilon``.

    ``shortcut`` :math:`\epsilon^2/(4\ln(1/\delta))`; ``safe``
    :math:`(\sqrt{\epsilon+\ln(1/\delta)}-\sqrt{\ln(1/\delta)})^2`; ``cks`` by bisection.
    It is 0 for delta 0 and finite epsilon, and infinite for infinite epsilon.
    """
    arguments.choice("conversion", conversion, _FORMULAS)
    epsilon, delta = _nonnegative("epsilon", epsilon), _deltas(delta)
    return _evaluated(_FORMULAS[conversion][1], "epsilon", epsilon, delta)


def _shortcut(rho: np.ndarray, log_inverse: np.ndarray) -> np.ndarray:
    return 2 * np.sqrt(rho * log_inverse)


def _safe(rho: np.ndarray, log_inverse: np.ndarray) -> np.ndarray:
    return rho + 2 * np.sqrt(rho * log_inverse)


def _cks(rho: np.ndarray, log_inverse: np.ndarray) -> np.ndarray:
    """Minimise the ``cks`` bound over ln(alpha - 1) by golden-section search.

    Every alpha gives a valid bound, so that an inexact minimiser is harmless.
    """

    def bound(log_excess):
        excess = np.exp(log_excess)
        log_alpha = np.log1p(excess)
        return (1 + excess) * rho + (log_inverse - log_alpha) / excess + log_excess - log_alpha

    start = 0.5 * np.log(np.maximum(log_inverse, 1e-3) / rho)
    low, high = start - 8, start + 8
    ratio = (np.sqrt(5) - 1) / 2
    for _ in range(60):
        inner_low, inner_high = high - ratio * (high - low), low + ratio * (high - low)
        nearer = np.less(*bound(np.stack([inner_low, inner_high])))
        low, high = np.where(nearer, low, inner_low), np.where(nearer, inner_high, high)
    return np.clip(bound((low + high) / 2), 0.0, _safe(rho, log_inverse))


def _rho_shortcut(epsilon: np.ndarray, log_inverse: np.ndarray) -> np.ndarray:
    return epsilon**2 / (4 * log_inverse)


def _rho_safe(epsilon: np.ndarray, log_inverse: np.ndarray) -> np.ndarray:
    # the difference of square roots, written without cancellation
    return (epsilon / (np.sqrt(epsilon + log_inverse) + np.sqrt(log_inverse))) ** 2


def _rho_cks(epsilon: np.ndarray, log_inverse: np.ndarray) -> np.ndarray:
    low = _rho_safe(epsilon, log_inverse)
    low, high = np.maximum(low, np.exp(-2 * log_inverse) / 4), 4 * low + 1e-300
    low = np.where(_cks(low, log_inverse) <= epsilon, low, _rho_safe(epsilon, log_inverse))
    while np.any(short := _cks(high, log_inverse) <= epsilon):
        high = np.where(short, 2 * high, high)
    rho, _ = _bisect(lambda rho: _cks(rho, log_inverse) > epsilon, low, high)
    return rho


_FORMULAS = {
    "shortcut": (_shortcut, _rho_shortcut), "safe": (_safe, _rho_safe), "cks": (_cks, _rho_cks),
}  # fmt: skip
CONVERSIONS = tuple(_FORMULAS)


# --- helpers ----------------------------------------------------------------------------------


def _bisect(
    beyond: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return neighbouring floats, of which ``beyond`` is true for the second only.

    The last digits of a function are not monotone. Noise scales of papers depend on the ends that
    halving selects.
    """
    for _ in range(_HALVINGS):
        middle = low / 2 + high / 2
        has_inner = (low < middle) & (middle < high)
        if not has_inner.any():
            break
        is_beyond = beyond(middle)
        low = np.where(has_inner & ~is_beyond, middle, low)
        high = np.where(has_inner & is_beyond, middle, high)
    return low, high


def _deltas(delta: Any) -> np.ndarray:
    return arguments.array("delta", delta, "numbers in [0, 1)", lambda v: (v >= 0) & (v < 1))


def _nonnegative(key: str, value: Any) -> np.ndarray:
    return arguments.array(key, value, "numbers >= 0", lambda v: v >= 0)


def _broadcast(**arrays: np.ndarray) -> Sequence[np.ndarray]:
    try:
        return np.broadcast_arrays(*arrays.values())
    except ValueError as error:
        shapes = tuple(np.shape(array) for array in arrays.values())
        raise InvalidInput(", ".join(arrays), shapes, "shapes that broadcast") from error


Conversion = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Function of losses, or of epsilons, and of ln(1/delta), all positive and finite."""


def _evaluated(convert: Conversion, key: str, value: np.ndarray, delta: np.ndarray) -> Any:
    """Convert losses or epsilons, by the ``key``: arrays, or numbers, whose results are cached."""
    if value.ndim == delta.ndim == 0:
        return _of_numbers(convert, key, float(value), float(delta))
    return _of_arrays(convert, key, value, delta)


@lru_cache(maxsize=4096)  # many settings of a grid have equal privacy parameters
def _of_numbers(convert: Conversion, key: str, value: float, delta: float) -> float:
    return float(_of_arrays(convert, key, value, delta))


def _of_arrays(convert: Conversion, key: str, value: Any, delta: Any) -> np.ndarray:
    """Return epsilon or a loss: infinite for an infinite value.

    At delta 0, a positive loss has an infinite epsilon, and a finite epsilon allows no loss.
    """
    value, delta = _broadcast(**{key: value, "delta": delta})
    is_loss = key == "loss"
    result = np.where(value > 0 if is_loss else np.isinf(value), np.inf, 0.0)
    inner = np.isfinite(value) & (delta > 0) & ((value > 0) | (not is_loss))
    result[inner] = convert(value[inner], -np.log(delta[inner]))
    return result


def _scalar(value: np.ndarray) -> Any:
    """Return a plain float for scalar input."""
    return float(value) if np.ndim(value) == 0 else value
