r"""Any algorithm at a true budget, by the one accountant.

A paper's calibration means different things by epsilon. Here an algorithm is calibrated to a
nominal budget b such that *the accountant's* epsilon of all that it releases is the target, at one
delta and for one relation. Where noise is one number, it is scaled from where a nominal budget sets
it, which also serves where a paper's theorem ends at some b; else b itself is looked for. Either is
done by bracketing and secants on a logarithm, with which the accountant's epsilon grows.

Whatever was found is verified: never above the target, and within :data:`SLACK` of it. A lower
bound never serves as a budget. What is not proven is not calibrated to a true budget: it runs at
the noise that its paper prescribes, and its bracket says what is known.

Tuning that is paid for releases every trial: ``copies`` of the releases are composed by the same
accountant. Which of the trials is chosen follows from these and from public records (`tuning`), and
so spends nothing more.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..algorithms.base import Algorithm, parameters
from ..errors import InvalidInput, OutsideRange, require
from ..privacy import (
    Budget,
    Guarantee,
    Relation,
    Release,
    account,
    gaussian_epsilon,
    gaussian_mu,
)

RELATION = Relation("record", "replace")
SLACK = 0.01
"""Share of the target that may stay unspent."""
ROUNDED = 1e-9
"""Share of a budget that is not asked for: where a calibration meets it exactly, how the account is
rounded does not decide whether it is kept."""
AIM = -0.003
"""Logarithm of the share of the target that is looked for."""
NEAR = 0.002
"""What the logarithm of epsilon may be off what is looked for."""
WIDTH = 5e-4
"""Of the logarithm of a nominal budget at which a search ends."""
FACTOR, ATTEMPTS, REFUSALS = 4.0, 30, 4
NOISES = ("noise", "sigma", "output_noise", "query_noise", "threshold_noise")
"""Names of fields that hold noise."""
FARTHEST = 40.0
"""Logarithm of a factor of noise that is not looked beyond."""


@dataclass(frozen=True)
class Calibrated:
    """An algorithm at its noise, and the bracket of what that noise costs.

    Parameters
    ----------
    algorithm : Algorithm
    epsilon : float
        The accountant's, of all copies of all releases.
    lower : float
        Below which no guarantee lies.
    proven : bool
    """

    algorithm: Algorithm
    epsilon: float
    lower: float
    proven: bool


def calibrate_to(
    algorithm: Algorithm, target: Budget, problem: Any, network: Any, horizon: int, copies: int = 1
) -> Calibrated:
    """The algorithm at the noise for which the accountant's epsilon is the target's.

    Parameters
    ----------
    target : Budget
        Of all copies together, replacing one record.
    copies : int
        How often all that is released is released.

    Raises
    ------
    InvalidInput
        For another relation, a budget that no noise meets, or an algorithm that is not private.
    """
    found = str(algorithm.relation)
    require(algorithm.relation == RELATION, "algorithm.relation", found, str(RELATION))
    require(target.private and target.delta > 0, "budget", str(target), "epsilon and delta above 0")
    search = _Search(algorithm, target, problem, network, horizon, copies)
    share = target.epsilon
    if copies > 1:
        mu = gaussian_mu(target.epsilon, target.delta) / math.sqrt(copies)
        share = gaussian_epsilon(mu, target.delta)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideRange)
        return search.found(share * (1 - ROUNDED))


class _Search:
    """Nominal budgets that were tried, and what they cost."""

    def __init__(self, algorithm, target, problem, network, horizon, copies):
        self.algorithm, self.target, self.copies = algorithm, target, copies
        self.world = problem, network, horizon
        self.refusal: InvalidInput | None = None
        # Where a search begins and ends it comes by again, and each time is a search by itself.
        self.tried: dict[float, Algorithm | None] = {}
        self.accounted: dict[Algorithm, Guarantee] = {}

    def at(self, nominal: float) -> Algorithm | None:
        """Calibrated as the paper does; None where it refuses such a budget."""
        if nominal not in self.tried:
            budget = Budget(nominal, self.target.delta)
            try:
                self.tried[nominal] = self.algorithm.calibrate(budget, *self.world)
            except InvalidInput as error:
                self.refusal = error
                self.tried[nominal] = None
        return self.tried[nominal]

    def _accepted(self, nominal: float) -> Algorithm:
        made = self.at(nominal)
        if made is None:
            raise self.refusal or self._unmet
        return made

    @property
    def _unmet(self) -> InvalidInput:
        expected = "a budget that some noise meets"
        return InvalidInput("budget.epsilon", self.target.epsilon, expected)

    def releases(self, algorithm: Algorithm) -> list[Release]:
        """All of them, in all copies."""
        return list(algorithm.releases(*self.world)) * self.copies

    def guarantee(self, algorithm: Algorithm) -> Guarantee:
        """Compute the guarantee by the accountant."""
        if algorithm not in self.accounted:
            found = account(self.releases(algorithm), self.target.delta)
            self.accounted[algorithm] = found
        return self.accounted[algorithm]

    def judged(self, algorithm: Algorithm) -> Calibrated:
        """Compute the guarantee with its lower and upper bound."""
        guarantee = self.guarantee(algorithm)
        lower = algorithm.lower_bound(self.releases(algorithm), self.target.delta).epsilon
        return Calibrated(algorithm, guarantee.epsilon, float(lower), guarantee.proven)

    def excess(self, algorithm: Algorithm) -> float:
        """Logarithm of the epsilon over the target."""
        found = self.guarantee(algorithm).epsilon
        return math.log(found / self.target.epsilon) if found > 0 else -math.inf

    def found(self, first: float) -> Calibrated:
        start = self.at(first)
        if start is not None:
            guarantee = self.guarantee(start)
            if not guarantee.proven or _met(guarantee.epsilon, self.target):
                return self.judged(start)
        scaled = start is not None and _noise_of(start)
        made = self._scaled(start) if scaled else self._nominal(first)
        judged = self.judged(made)
        expected = f"noise at which the accountant finds {self.target.epsilon:g}"
        met = _met(judged.epsilon, self.target)
        require(met, "budget.epsilon", judged.epsilon, expected)
        return judged

    def _nominal(self, first: float) -> Algorithm:
        """The algorithm at the nominal budget that is looked for."""
        low, high = self._ends(first)
        if low is None:
            raise self.refusal or self._unmet
        if high is None:
            made = self._accepted(low)
            expected = "a budget that the paper's calibration reaches, or noise that is one number"
            require(bool(_noise_of(made)), "budget.epsilon", self.target.epsilon, expected)
            return self._scaled(made)
        return self._accepted(math.exp(_root(self._excess_of, math.log(low), math.log(high))))

    def _excess_of(self, log_nominal: float) -> float:
        made = self.at(math.exp(log_nominal))
        return math.inf if made is None else self.excess(made) - AIM

    def _ends(self, first: float) -> tuple[float | None, float | None]:
        """Nominal budgets that spend too little and too much; None where there are none."""
        low = high = None
        nominal, refusals = first, 0
        for _ in range(ATTEMPTS):
            made = self.at(nominal)
            refused = made is None
            refusals += refused
            if refused and (low is not None or high is not None or refusals > REFUSALS):
                break  # too large for the paper's theorem, or too small for any noise
            if refused or self.excess(made) > AIM:
                high = high if refused else nominal
                step = 1 / FACTOR
            else:
                low, step = nominal, FACTOR
            if low is not None and high is not None:
                break
            nominal *= step
        return low, high

    def _scaled(self, algorithm: Algorithm) -> Algorithm:
        """Scale the noise that a nominal budget requires, if the noise is one number."""

        key = _noise_of(algorithm)
        noise = float(parameters(algorithm)[key])

        def at(log_scale: float) -> Algorithm:
            return replace(algorithm, **{key: noise * math.exp(-log_scale)})

        def excess(log_scale: float) -> float:
            return self.excess(at(log_scale)) - AIM

        low = high = 0.0
        width = max(0.25, min(1.1 * abs(excess(low)), 4.0))
        while excess(low) > 0:
            high, low, width = low, low - width, 2 * width
            require(low > -FARTHEST, "budget", str(self.target), "one that some noise meets")
        while high <= low or excess(high) <= 0:
            low, high, width = high, high + width, 2 * width
            require(high < FARTHEST, "budget", str(self.target), "one that asks for noise")
        return at(_root(excess, low, high))


def _noise_of(algorithm: Algorithm) -> str:
    """Name of the one number that is all of an algorithm's noise; empty where there is none."""
    given = parameters(algorithm)
    present = [key for key in NOISES if np.any(np.asarray(given.get(key, 0.0)) > 0)]
    if len(present) != 1 or present[0] not in ("noise", "sigma"):
        return ""
    return present[0] if np.ndim(given[present[0]]) == 0 else ""


def _root(excess: Callable[[float], float], low: float, high: float) -> float:
    """Find where an increasing function is within :data:`NEAR` of 0; at a jump, at most
    :data:`WIDTH` below it.

    Each evaluation may be a search by itself. A secant needs few of them; each third step halves,
    so that a leap, or noise that spends nothing and budgets that are refused, end it too.
    """
    at_low, at_high = excess(low), excess(high)
    steps = 0
    while high - low > WIDTH and not -NEAR <= at_low <= 0:
        secant = steps % 3 < 2 and math.isfinite(at_low) and math.isfinite(at_high)
        share = at_low / (at_low - at_high) if secant else 0.5
        middle = low + share * (high - low)
        found = excess(middle)
        if 0 < found <= NEAR:
            return middle
        if found <= 0:
            low, at_low = middle, found
        else:
            high, at_high = middle, found
        steps += 1
    return low


def _met(epsilon: float, target: Budget) -> bool:
    return (1 - SLACK) * target.epsilon <= epsilon <= target.epsilon


def prescribed(
    algorithm: Algorithm, target: Budget, problem: Any, network: Any, horizon: int
) -> Calibrated:
    """The algorithm at the noise that its paper prescribes for a budget, with its bracket."""
    search = _Search(algorithm, target, problem, network, horizon, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideRange)
        made = algorithm.calibrate(target, problem, network, horizon)
        return search.judged(made)
