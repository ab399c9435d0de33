r"""Ratio of the densities of messages on two data sets, for messages not affine in the noise.

Messages :math:`y = y_D(\xi)` that determine their draws have the density
:math:`\varphi(\xi) / |\det \partial y_D / \partial \xi|`. If equal messages need the draws
:math:`\xi` on D and :math:`\xi'` on D', the privacy loss is

.. math:: \log\frac{\varphi(\xi)}{\varphi(\xi')} + \log\Big|\det\Big(
    \frac{\partial y_D}{\partial \xi}\Big)^{-1} \frac{\partial y_{D'}}{\partial \xi'}\Big|.

The first term is the cost of the shift. The second term is 0 for noise that is added to private
values and then processed by a fixed function. Otherwise the shift is not the whole cost: the shape
or the size of the noise depends on private data.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from private_consensus.core.randomness import generator
from private_consensus.privacy.audit.bounds import clopper_pearson

from .noise_response import CONVERGED, PRECISION, Executed, OtherMessages, Response, Work, slopes
from .streams import ROOT

ITERATIONS = 3
"""Number of first iterations whose messages are compared."""
POINTS, SIZES = 30, (0.25, 1.0, 2.0)
"""Number of random base points, and the standard deviations of their draws."""
MIN_POINTS = 3
"""Number of points with another density from which a kink is no explanation."""
DIFFERENT = 1e-3
"""Absolute log ratio of determinants from which densities differ."""
STEPS = (1e-2, 3e-3)
"""Steps of the difference quotients of responses; both have to give equal determinants."""
NEWTON_STEPS, MAX_STEP = 20, 1.0
"""Largest number of Newton steps, and largest change of a draw in one step."""
SAMPLES, FIRST_SAMPLES = 4_000, 1_000
"""Number of draws that estimate delta, and the first of them. If the first ones show no larger
delta than declared, the others are left out."""
NUMBERS_AT_ONCE = 2_000_000
"""Number of responses that are computed at once."""
LOSS_ERROR = 1e-2
"""Largest numerical error of a privacy loss that is not subtracted from it."""
LEVEL = 1e-7
"""Error probability of one lower bound on delta; an audit computes a few hundred of them."""


class Densities(NamedTuple):
    """Densities of equal messages on two data sets, at random draws of the first one.

    Parameters
    ----------
    losses : ndarray, shape (points,)
        Log ratio of the densities, less its numerical error; NaN where it was not computed, or for
        other noise than Gaussian and Laplace noise.
    determinants : ndarray, shape (points,)
        Part of the log ratio that the shift of the noise does not explain; NaN if not computed.
    """

    losses: np.ndarray
    determinants: np.ndarray

    @property
    def differ(self) -> bool:
        """Return True if the shift of the noise is not the whole cost."""
        return int((np.abs(self.determinants) > DIFFERENT).sum()) >= MIN_POINTS


class Excess(NamedTuple):
    """Point (epsilon, delta) of a privacy profile, and a larger lower bound on delta."""

    epsilon: float
    delta: float
    lower: float


class ComparedMessages(NamedTuple):
    """Messages of an agent in the first iterations, on two data sets.

    Parameters
    ----------
    local_response : Response
        It states the rows, and the draws on which they depend.
    """

    pair: tuple[Executed, Executed]
    local_response: Response
    agent: int

    def densities(self, draws: np.ndarray, start: np.ndarray | None = None) -> Densities:
        """Compare the densities of equal messages for draws on the first data set.

        The draws are [points, units]. Only draws that enter messages of the agent first are solved
        for. Points without a solution have no result, such as messages that are clipped or that do
        not determine their draws. Newton's method for the second data set begins at ``start``, by
        default at ``draws``.
        """
        pair = [replace(executed, work=Work()) for executed in self.pair]
        prefix = self.local_response.prefix(self.local_response.times <= ITERATIONS)
        of_agent = np.array(
            [r.agent == self.agent and not r.kind.startswith("output") for r in prefix.rows]
        )
        responds = np.abs(prefix.matrix) > PRECISION * prefix.scale[:, None]
        columns = np.flatnonzero(responds.any(0) & of_agent[responds.argmax(0)])
        rows = np.flatnonzero(of_agent & (prefix.scale > 0))
        if not len(columns) or len(rows) < len(columns):
            return Densities(*np.full((2, len(draws)), np.nan))
        size = max(1, NUMBERS_AT_ONCE // (2 * len(columns) * draws.shape[1]))
        solved = draws.copy()
        solved[:, columns] = (draws if start is None else start)[:, columns]
        blocks = [
            _densities(pair, prefix, rows, columns, draws[block], solved[block])
            for block in (slice(begin, begin + size) for begin in range(0, len(draws), size))
        ]
        return Densities(*map(np.concatenate, zip(*blocks, strict=True)))

    def repeat_values(self) -> bool:
        """Return True if messages take equal values for different noise, as modulo 1.

        Their density is a sum over these noise values. Newton's method finds them if it starts at
        other draws.
        """
        points = random_points(self.pair[0].layout.units)
        for executed in self.pair:
            equal = self._replace(pair=(executed, executed))
            losses = equal.densities(points, np.roll(points, 1, axis=0)).losses
            if (np.abs(losses) > LOSS_ERROR).any():
                return True
        return False

    def excess(self, profile: Iterable[tuple[float, float]], seed: int) -> Excess | None:
        """Return a point of a privacy profile that random messages refute; None if there is none.

        The profile has pairs of epsilon and delta. Nothing is tested for other noise than Gaussian
        and Laplace noise.
        """
        layout = self.pair[0].layout
        if not set(layout.laws) <= {"gaussian", "laplace"}:
            return None
        shape = SAMPLES, layout.units
        random = generator(ROOT + seed, "draws of densities")
        normal, laplace = random.standard_normal(shape), random.laplace(size=shape)
        draws = np.where(layout.laws == "gaussian", normal, laplace)
        for pair in (self.pair, self.pair[::-1]):
            losses, exceeded = np.zeros(0), list(profile)
            for samples in np.split(draws, [FIRST_SAMPLES]):
                if exceeded:
                    of_samples = self._replace(pair=pair).densities(samples).losses
                    losses = np.concatenate([losses, of_samples])
                exceeded = [
                    point for point in exceeded if _excess(losses, point[0]).mean() > point[1]
                ]
            for epsilon, delta in exceeded:
                lower = delta_lower_bound(losses, epsilon)
                if lower > delta:
                    return Excess(epsilon, delta, lower)
        return None


def with_other_densities(compared: Iterable[ComparedMessages]) -> list[int]:
    """Return the indices of messages whose densities differ, the largest difference first.

    Messages that repeat values have no single density and are left out.
    """
    sizes: dict[int, float] = {}
    for index, messages in enumerate(compared):
        result = messages.densities(random_points(messages.pair[0].layout.units))
        if result.differ and not messages.repeat_values():
            sizes[index] = float(np.nanmean(np.abs(result.determinants)))
    return sorted(sizes, key=lambda index: -sizes[index])


def _densities(
    pair: Sequence[Executed], prefix: Response, rows: np.ndarray, columns: np.ndarray,
    draws: np.ndarray, solved: np.ndarray,
) -> Densities:  # fmt: skip
    """Return the densities at ``draws``; ``solved`` becomes the draws on the second data set."""
    losses, determinants, error = *np.full((2, len(draws)), np.nan), np.zeros(len(draws))

    def slopes_of(index: int, points: np.ndarray, step: float) -> np.ndarray:
        def values_at(units: np.ndarray) -> np.ndarray:
            values = pair[index].values(units, prefix.rows, ITERATIONS)
            return values[:, rows] / prefix.scale[rows]

        return slopes(values_at, points, columns, step)

    try:
        target = pair[0].values(draws, prefix.rows, ITERATIONS)
        allowed = CONVERGED * prefix.scale + 1e-9 * np.abs(target)
        first_slopes = slopes_of(0, draws, STEPS[0])
        active = invertible = np.flatnonzero(_is_invertible(first_slopes))
        for _ in range(NEWTON_STEPS if len(active) else 0):
            gap = target[active] - pair[1].values(solved[active], prefix.rows, ITERATIONS)
            is_open = (np.abs(gap) > 1e-4 * allowed[active]).any(1)
            active, gap = active[is_open], gap[is_open][:, rows] / prefix.scale[rows]
            if not len(active):
                break
            matrix = slopes_of(1, solved[active], STEPS[0])
            step = (np.linalg.pinv(matrix, rcond=1e-6) @ gap[..., None])[..., 0]
            solved[np.ix_(active, columns)] += np.clip(step, -MAX_STEP, MAX_STEP)
        gap = target - pair[1].values(solved, prefix.rows, ITERATIONS)
        equal = invertible[(np.abs(gap) <= allowed).all(1)[invertible]]
        if len(equal):
            second_slopes = slopes_of(1, solved[equal], STEPS[0])
            determinants[equal] = _log_determinants(first_slopes[equal], second_slopes)
        points = np.flatnonzero(np.abs(determinants) > DIFFERENT)
        if len(points):
            fine = _log_determinants(
                slopes_of(0, draws[points], STEPS[1]), slopes_of(1, solved[points], STEPS[1])
            )
            error[points] = np.abs(determinants[points] - fine)
            is_precise = error[points] <= np.maximum(DIFFERENT, 0.1 * np.abs(fine))
            determinants[points] = np.where(is_precise, fine, np.nan)
    except OtherMessages:
        return Densities(losses, np.full(len(draws), np.nan))
    laws = pair[0].layout.laws[columns]
    if set(laws) <= {"gaussian", "laplace"}:
        first, second = (
            np.where(laws == "gaussian", values[:, columns] ** 2 / 2, np.abs(values[:, columns]))
            for values in (draws, solved)
        )
        losses = (second - first).sum(1) + determinants - error
    return Densities(losses, determinants)


def _is_invertible(matrices: np.ndarray) -> np.ndarray:
    """Return True for each matrix that determines the draws."""
    identity = np.linalg.pinv(matrices, rcond=1e-3) @ matrices
    return np.abs(identity - np.eye(matrices.shape[-1])).max((1, 2)) <= DIFFERENT


def _log_determinants(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return log |det R| of first @ R = second per point; NaN if it is not unique."""
    ratio = np.linalg.pinv(first, rcond=1e-3) @ second
    error = np.abs(first @ ratio - second).max((1, 2))
    is_unique = error <= DIFFERENT * np.abs(second).max((1, 2))
    is_unique &= _is_invertible(first) & _is_invertible(second)
    return np.where(is_unique, np.linalg.slogdet(ratio)[1], np.nan)


def random_points(units: int) -> np.ndarray:
    """Return random base points, [points, units], with draws of several standard deviations."""
    random = generator(ROOT, "base points of densities").standard_normal((POINTS, units))
    return np.resize(SIZES, (POINTS, 1)) * random


def _excess(losses: np.ndarray, epsilon: float) -> np.ndarray:
    r"""Return :math:`(1 - e^{\varepsilon - L})_+` for each loss L, 0 for unknown losses."""
    size = np.where(losses > epsilon + LOSS_ERROR, losses - LOSS_ERROR - epsilon, 0.0)
    return -np.expm1(-size)


def delta_lower_bound(losses: np.ndarray, epsilon: float) -> float:
    r"""Return a lower bound on delta at ``epsilon``, with the error probability :data:`LEVEL`.

    It estimates :math:`\delta(\varepsilon) = E[(1 - e^{\varepsilon - L})_+]` by coins with these
    probabilities. The losses L, [points], are those of random messages on the first data set; NaN
    if unknown.
    """
    coins = generator(ROOT, "coins of delta").random(len(losses))
    hits = int((coins < _excess(losses, epsilon)).sum())
    return float(clopper_pearson(hits, len(losses), LEVEL)[0])
