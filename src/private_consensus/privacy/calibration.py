"""Calibration of noise scales to privacy budgets.

Each function states the norm of the sensitivity. The caller chooses the neighbouring relation, and
the budget is then for that relation. A budget with infinite epsilon gives scale 0.

References
----------
Balle, Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018.
Dwork, Roth, "The algorithmic foundations of differential privacy", 2014, Appendix A.
Ding, dissertation, Theorem 19: the extended Gaussian mechanism.
"""

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

from private_consensus.common.errors import InvalidInput, arguments, require

from .accounting import account
from .budget import Budget
from .conversions import gaussian_mu
from .releases import MAX_COUNT, Release


def gaussian_noise_multiplier(budget: Budget, count: int = 1) -> float:
    r"""Return the standard deviation per l2 sensitivity for ``count`` adaptive Gaussian releases.

    :math:`\sqrt{count}/\mu` with the largest :math:`\mu` that exact Gaussian differential privacy
    allows for the budget of all releases together; no smaller noise is private. It is 0 if the
    budget is infinite or ``count`` is 0. Delta 0 is refused: no Gaussian noise is purely private.
    """
    _check(budget, count=count)
    if not budget.private or count == 0:
        return 0.0
    expected = "above 0 (gaussian noise is never purely private)"
    require(budget.delta > 0, "budget.delta", budget.delta, expected)
    return math.sqrt(count) / gaussian_mu(budget.epsilon, budget.delta)


def analytic_gaussian_scale(budget: Budget, sensitivity: float = 1.0) -> float:
    """Return the smallest standard deviation for one release with an l2 sensitivity.

    (Balle & Wang 2018, for delta above 0.)
    """
    _check(budget, sensitivity)
    return sensitivity * gaussian_noise_multiplier(budget)


def extended_gaussian_scale(budget: Budget, sensitivity: float = 1.0) -> float:
    r"""Return the standard deviation of the extended Gaussian mechanism, for every epsilon > 0.

    .. math:: \sigma = \frac{\sqrt2\,\Delta_2}{2\epsilon}\left(\sqrt L + \sqrt{L+\epsilon}\right),
        \quad L = \ln\frac{\sqrt{2/\pi}}{\delta}

    (Ding, Theorem 19.) The l2 ``sensitivity`` is :math:`\Delta_2`. A delta of 0, or above
    :math:`\sqrt{2/\pi}`, where L is negative, is refused.
    """
    _check(budget, sensitivity)
    if not budget.private:
        return 0.0
    top = math.sqrt(2 / math.pi)
    expected = "above 0 and below sqrt(2/pi) for the extended Gaussian mechanism"
    require(0 < budget.delta < top, "budget.delta", budget.delta, expected)
    tail = math.log(top / budget.delta)
    roots = math.sqrt(tail) + math.sqrt(tail + budget.epsilon)
    return sensitivity * roots / (math.sqrt(2) * budget.epsilon)


@arguments.known_keywords
def calibrate(
    make_releases: Callable[[float], Iterable[Release]],
    budget: Budget,
    *,
    tolerance: float = 1e-6,
) -> float:
    """Return the smallest noise scale at which ``make_releases(scale)`` stays within ``budget``.

    Parameters
    ----------
    make_releases : callable
        Map from a noise scale above 0 to releases; their privacy loss must decrease as the scale
        grows.
    budget : Budget
        Budget of all releases together.
    tolerance : float
        Relative tolerance; the returned scale meets the budget.

    Returns
    -------
    float
        0 if the budget is infinite or nothing private is released.

    Raises
    ------
    InvalidInput
        If no scale meets the budget, as for an exact release or Gaussian noise at delta 0.
    """
    _check(budget)
    require(callable(make_releases), "make_releases", make_releases, "a function")
    arguments.number("tolerance", tolerance, "a number in (0, 1)", lambda v: 0 < v < 1)
    if not budget.private:
        return 0.0

    def excess(scale: float) -> float:
        """Return ln(epsilon / budget); positive if the releases exceed the budget."""
        attained = account(make_releases(scale), budget.delta).epsilon
        return math.log(attained / budget.epsilon) if attained > 0 else -math.inf

    low, high = _bracket(excess, budget)
    return _narrowed(low, high, excess, tolerance) if high.scale > 0 else 0.0


_SMALL, _LARGE = 1e-12, 1e18
"""Scales beyond which the search takes larger steps."""
_SMALLEST, _LARGEST = 1e-290, 1e290


class _EvaluatedScale(NamedTuple):
    """Scale with the logarithm of epsilon / budget, at most 0 if the scale meets the budget."""

    scale: float
    excess: float


def _bracket(
    excess: Callable[[float], float], budget: Budget
) -> tuple[_EvaluatedScale, _EvaluatedScale]:
    """Return successive powers of 4 that exceed and meet the budget; both 0 if all meet it.

    Very small and very large scales are powers of 4^8.
    """
    current = _EvaluatedScale(1.0, excess(1.0))
    step = 0.25 if current.excess <= 0 else 4.0
    while True:
        usual = _SMALL <= current.scale <= _LARGE
        scale = current.scale * (step if usual else step**8)
        following = _EvaluatedScale(scale, excess(scale))
        if (following.excess <= 0) != (current.excess <= 0):
            return (following, current) if current.excess <= 0 else (current, following)
        if following.scale < _SMALLEST:
            return _EvaluatedScale(0.0, math.inf), _EvaluatedScale(0.0, -math.inf)
        if following.scale > _LARGEST:
            expected = "a larger epsilon or delta: no noise scale meets it"
            if math.isfinite(following.excess):
                remaining = budget.epsilon * math.exp(following.excess)
                expected = (
                    f"epsilon above {remaining:.4g}, the loss that remains with any noise; for a "
                    "perturbed objective, more curvature decreases it (Jacobian term)"
                )
            raise InvalidInput("budget", str(budget), expected)
        current = following


def _narrowed(
    low: _EvaluatedScale, high: _EvaluatedScale, excess: Callable[[float], float], tolerance: float
) -> float:
    r"""Find a scale that meets the budget, while a scale smaller by ``tolerance`` does not.

    The logarithm of a loss is almost linear in that of its scale, so that three or four
    interpolations replace twenty bisections. The ITP method (Oliveira, Takahashi, ACM Transactions
    on Mathematical Software 2020) with :math:`\kappa_1 = 0.2` over the first width,
    :math:`\kappa_2 = 2`, :math:`n_0 = 1`.
    """
    first = width = math.log(high.scale / low.scale)
    goal = math.log1p(tolerance)
    reach = goal * 2.0 ** math.ceil(math.log2(first / goal))
    while width > goal:
        rise = high.excess - low.excess
        crossing = -low.excess / rise * width if math.isfinite(rise) else width / 2
        distance = width / 2 - crossing
        offset_to_middle = math.copysign(min(0.2 * width**2 / first, abs(distance)), distance)
        max_offset = max(reach - width / 2, 0.0)
        offset = max(-max_offset, min(max_offset, crossing + offset_to_middle - width / 2))
        scale = low.scale * math.exp(width / 2 + offset)
        if not low.scale < scale < high.scale:
            break
        current = _EvaluatedScale(scale, excess(scale))
        low, high = (low, current) if current.excess <= 0 else (current, high)
        width = math.log(high.scale / low.scale)
        reach /= 2
    return high.scale


def _check(budget: Budget, sensitivity: float = 0.0, count: int = 1) -> None:
    arguments.instance("budget", budget, Budget, "a Budget")
    expected = "a finite number >= 0"
    arguments.number("sensitivity", sensitivity, expected, lambda v: 0 <= v < math.inf)
    arguments.whole("count", count, 0, MAX_COUNT)
