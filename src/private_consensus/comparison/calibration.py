"""Calibration of any algorithm to a true budget by a common accountant.

The calibrations of the papers give epsilon different meanings. Here an algorithm is calibrated to
a nominal budget b such that *the accountant's* epsilon of all its releases is the target, for a
given delta and relation. If the noise is a single number, it is scaled from its value at a nominal
budget. This also works if a paper's theorem excludes some b. Otherwise the search is for b itself.
Both searches use bracketing and secants on a logarithm in which the accountant's epsilon increases.

Every result is verified: epsilon is never above the target, and at most a fraction :data:`SLACK`
below it. A lower bound never serves as a budget. An algorithm without a proven guarantee is not
calibrated to a true budget. It runs at the noise that its paper prescribes, and lower and upper
bounds on epsilon are reported.

Tuning that counts in the budget releases every trial: the accountant composes ``copies`` of the
releases. The choice of a trial depends on these releases and on public records (`tuning`), and so
adds no privacy loss.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from private_consensus.common.errors import InvalidInput, OutsideRange, require
from private_consensus.core.algorithms.base import Algorithm, parameters
from private_consensus.privacy import (
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
"""Fraction of the target by which epsilon may be below it."""
ROUNDING_MARGIN = 1e-9
"""Fraction by which the requested budget is reduced, so that rounding in the accountant does not
decide the verification of an exact calibration."""
LOG_AIM = -0.003
"""Logarithm of the fraction of the target at which the search aims."""
NEAR = 0.002
"""Allowed error of the logarithm of epsilon in the search."""
WIDTH = 5e-4
"""Width of the bracket, in the logarithm of a nominal budget, at which a search ends."""
FACTOR, ATTEMPTS, REFUSALS = 4.0, 30, 4
"""Factor between successive nominal budgets of the search for a bracket, maximum number of these
budgets, and maximum number of budgets that the paper's calibration may refuse."""
NOISES = ("noise", "sigma", "output_noise", "query_noise", "threshold_noise")
"""Names of the parameters of algorithms that scale noise."""
MAX_LOG_FACTOR = 40.0
"""Largest absolute logarithm of the factor by which the search scales noise."""


class Calibrated(NamedTuple):
    """Calibrated algorithm, and bounds on its privacy loss.

    Parameters
    ----------
    algorithm : Algorithm
        Algorithm with its noise.
    epsilon : float
        The accountant's epsilon of all copies of all releases.
    lower : float
        Lower bound on the epsilon of every valid guarantee.
    proven : bool
        True if the accountant's epsilon is proven.
    """

    algorithm: Algorithm
    epsilon: float
    lower: float
    proven: bool


def calibrate_to(
    algorithm: Algorithm, target: Budget, problem: Any, network: Any, horizon: int, copies: int = 1
) -> Calibrated:
    """Scale the noise of an algorithm so that the accountant's epsilon equals the target.

    Parameters
    ----------
    algorithm : Algorithm
        Algorithm to calibrate.
    target : Budget
        Budget of all copies together, replacing one record.
    problem : Problem
        Problem of the agents.
    network : Network
        Graph of the run.
    horizon : int
        Number of iterations.
    copies : int, default 1
        Number of times that every release is made.

    Returns
    -------
    Calibrated

    Raises
    ------
    InvalidInput
        For another relation, a budget that no noise meets, or an algorithm that is not private.
    """
    relation = str(algorithm.relation)
    require(algorithm.relation == RELATION, "algorithm.relation", relation, str(RELATION))
    require(target.private and target.delta > 0, "budget", str(target), "epsilon and delta above 0")
    search = _Search(algorithm, target, problem, network, horizon, copies)
    epsilon_per_copy = target.epsilon
    if copies > 1:
        mu = gaussian_mu(target.epsilon, target.delta) / math.sqrt(copies)
        epsilon_per_copy = gaussian_epsilon(mu, target.delta)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideRange)
        return search.calibrated(epsilon_per_copy * (1 - ROUNDING_MARGIN))


class _Search:
    """Search over nominal budgets; caches the algorithms and their guarantees."""

    def __init__(self, algorithm, target, problem, network, horizon, copies):
        self.algorithm, self.target, self.copies = algorithm, target, copies
        self.world = problem, network, horizon
        self.refusal: InvalidInput | None = None
        # The search revisits its end points, and each calibration may be a search in itself.
        self.at, self.guarantee = cache(self._at), cache(self._guarantee)

    def _at(self, nominal: float) -> Any:
        """Return the algorithm calibrated by its paper to a nominal epsilon; None if refused."""
        try:
            return self.algorithm.calibrate(Budget(nominal, self.target.delta), *self.world)
        except InvalidInput as error:
            self.refusal = error
            return None

    def releases(self, algorithm: Algorithm) -> list[Release]:
        """Return all releases of all copies."""
        return list(algorithm.releases(*self.world)) * self.copies

    def _guarantee(self, algorithm: Algorithm) -> Guarantee:
        """Compute the guarantee by the accountant."""
        return account(self.releases(algorithm), self.target.delta)

    def bounded(self, algorithm: Algorithm) -> Calibrated:
        """Return the algorithm with the lower and upper bound on its epsilon."""
        guarantee = self.guarantee(algorithm)
        lower = algorithm.lower_bound(self.releases(algorithm), self.target.delta).epsilon
        return Calibrated(algorithm, guarantee.epsilon, float(lower), guarantee.proven)

    def excess(self, algorithm: Algorithm | None) -> float:
        """Return the logarithm of epsilon over the aim; infinite if the paper refuses."""
        epsilon = math.inf if algorithm is None else self.guarantee(algorithm).epsilon
        return math.log(epsilon / self.target.epsilon) - LOG_AIM if epsilon > 0 else -math.inf

    def calibrated(self, first: float) -> Calibrated:
        """Return the calibrated algorithm, and verify that its epsilon meets the target."""
        start = self.at(first)
        if start is not None:
            guarantee = self.guarantee(start)
            if not guarantee.proven or _met(guarantee.epsilon, self.target):
                return self.bounded(start)
        scaled = start is not None and _noise_of(start)
        algorithm = self._scaled(start) if scaled else self._nominal(first)
        with_bounds = self.bounded(algorithm)
        expected = f"noise for which the accountant confirms {self.target.epsilon:g}"
        met = _met(with_bounds.epsilon, self.target)
        require(met, "budget.epsilon", with_bounds.epsilon, expected)
        return with_bounds

    def _nominal(self, first: float) -> Algorithm:
        """Search for the nominal budget and return the algorithm at it."""
        low, high = self._ends(first)
        if low is None:
            expected = "a budget that some noise scale meets and that the paper's theorem covers"
            unmet = InvalidInput("budget.epsilon", self.target.epsilon, expected)
            raise self.refusal or unmet
        if high is None:
            algorithm = self.at(low)
            expected = "a budget within reach of the paper's calibration, or a single noise scale"
            require(bool(_noise_of(algorithm)), "budget.epsilon", self.target.epsilon, expected)
            return self._scaled(algorithm)
        ends = math.log(low), math.log(high)
        return self.at(math.exp(_root(lambda x: self.excess(self.at(math.exp(x))), *ends)))

    def _ends(self, first: float) -> tuple[float | None, float | None]:
        """Return nominal budgets with a too small and a too large loss; None for a missing one."""
        low = high = None
        nominal, refusals = first, 0
        for _ in range(ATTEMPTS):
            algorithm = self.at(nominal)
            refused = algorithm is None
            refusals += refused
            if refused and (low is not None or high is not None or refusals > REFUSALS):
                break  # too large for the paper's theorem, or too small for any noise
            if self.excess(algorithm) > 0:
                high = high if refused else nominal
                step = 1 / FACTOR
            else:
                low, step = nominal, FACTOR
            if low is not None and high is not None:
                break
            nominal *= step
        return low, high

    def _scaled(self, algorithm: Algorithm) -> Algorithm:
        """Scale the noise of a calibrated algorithm until its epsilon meets the target."""

        key = _noise_of(algorithm)
        noise = float(parameters(algorithm)[key])

        def at(log_scale: float) -> Algorithm:
            return replace(algorithm, **{key: noise * math.exp(-log_scale)})

        def excess(log_scale: float) -> float:
            return self.excess(at(log_scale))

        low = high = 0.0
        width = max(0.25, min(1.1 * abs(excess(low)), 4.0))
        while excess(low) > 0:
            high, low, width = low, low - width, 2 * width
            expected = "a larger budget: no noise scale meets it"
            require(low > -MAX_LOG_FACTOR, "budget", str(self.target), expected)
        while high <= low or excess(high) <= 0:
            low, high, width = high, high + width, 2 * width
            expected = "a smaller budget: this one requires no noise"
            require(high < MAX_LOG_FACTOR, "budget", str(self.target), expected)
        return at(_root(excess, low, high))


def _noise_of(algorithm: Algorithm) -> str:
    """Return the name of the only noise parameter, if it is one number; empty otherwise."""
    values = parameters(algorithm)
    present = [key for key in NOISES if np.any(np.asarray(values.get(key, 0.0)) > 0)]
    if len(present) != 1 or present[0] not in ("noise", "sigma"):
        return ""
    return present[0] if np.ndim(values[present[0]]) == 0 else ""


def _root(excess: Callable[[float], float], low: float, high: float) -> float:
    """Find a point where an increasing function is within :data:`NEAR` of 0.

    At a jump the point is at most :data:`WIDTH` below it. An evaluation may be a search in itself,
    and the secant method needs few of them. Every third step bisects, so that the search also ends
    at jumps, and if noise costs nothing or budgets are refused.
    """
    at_low, at_high = excess(low), excess(high)
    steps = 0
    while high - low > WIDTH and not -NEAR <= at_low <= 0:
        secant = steps % 3 < 2 and math.isfinite(at_low) and math.isfinite(at_high)
        fraction = at_low / (at_low - at_high) if secant else 0.5
        middle = low + fraction * (high - low)
        at_middle = excess(middle)
        if 0 < at_middle <= NEAR:
            return middle
        if at_middle <= 0:
            low, at_low = middle, at_middle
        else:
            high, at_high = middle, at_middle
        steps += 1
    return low


def _met(epsilon: float, target: Budget) -> bool:
    return (1 - SLACK) * target.epsilon <= epsilon <= target.epsilon


def prescribed(
    algorithm: Algorithm, target: Budget, problem: Any, network: Any, horizon: int
) -> Calibrated:
    """Return the algorithm with the noise that its paper prescribes, and bounds on its epsilon.

    Parameters
    ----------
    algorithm : Algorithm
        Algorithm to calibrate.
    target : Budget
        Budget in the sense of the paper.
    problem : Problem
        Problem of the agents.
    network : Network
        Graph of the run.
    horizon : int
        Number of iterations.

    Returns
    -------
    Calibrated
    """
    search = _Search(algorithm, target, problem, network, horizon, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OutsideRange)
        calibrated = algorithm.calibrate(target, problem, network, horizon)
        return search.bounded(calibrated)
