r"""Shift of the noise that is the same for all draws, for messages that are processed afterwards.

An algorithm may threshold, clip or round a message after the noise is added. Draws then do not
follow from equal messages, and small draws leave some numbers unchanged. Such an algorithm has
messages :math:`y_D(\xi) = g(x_D + \sigma\xi)`. On neighbouring data all draws need the same shift:

.. math:: y_D(\xi) = y_{D'}(\xi + s) \quad\text{for all } \xi,\qquad s = (x_D - x_{D'})/\sigma.

If one shift gives equal messages for many draws, its cost bounds the privacy loss of the pair. This
module determines the shift of each iteration from numbers that respond to the noise on both data
sets, and tests it with other draws, up to several standard deviations. The shift may depend on the
messages before, which are equal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import lstsq

from private_consensus.core.randomness import generator

from .noise_response import PRECISION, Executed, OtherMessages, Response, Shift
from .streams import ROOT

MAX_NUMBERS = 20_000
"""Largest product of draws and iterations for which shifts are determined."""
GRID = np.linspace(-8.0, 8.0, 33) + 0.1 * np.sin(np.arange(33) ** 2)
"""Draws that determine the shift of an iteration, in another order for each coordinate. They are
irregular, so that none of them is exactly at a threshold."""
TESTED, SIZES = 32, (1.0, 2.0, 4.0, 8.0)
"""Number of draws that test the shift, and their deviations."""
STEPS, STEP = 4, 1e-2
"""Largest number of Newton steps, and the difference of draws for slopes."""
ROBUST_STEPS = 20
"""Repetitions of the fit with smaller weights of draws that it does not explain. A shift across the
end of a range, as in a message modulo 1, changes the message by another amount."""
SMOOTH = 0.1
"""Relative difference of the slopes on both sides; it is larger at a threshold."""
CLOSE = 1e-6
"""Difference of equal messages, in deviations of their noise."""


def first_iterations(executed: Executed, local_response: Response) -> np.ndarray:
    """Return the first iteration, [units], whose messages depend on each draw, 0 if none does.

    A number of messages that depends on the noise raises ``OtherMessages``.
    """
    times = local_response.times
    units = local_response.matrix.shape[1]
    first = np.full(units, np.inf)
    for size in (0.0, *SIZES):
        base_units = size * generator(ROOT, "base of first iterations", int(size)).standard_normal(
            units
        )
        single = np.concatenate([np.zeros((1, units)), np.eye(units)])
        values = executed.values(base_units + single, local_response.rows)
        changed = np.abs(values[1:] - values[0]) > PRECISION * np.abs(values[0])
        first = np.minimum(first, np.where(changed, times, np.inf).min(1))
    return np.where(np.isfinite(first), first, 0).astype(int)


class _Iteration(NamedTuple):
    """Messages and draws of one iteration.

    Parameters
    ----------
    rows, columns : ndarray
        Indices of its messages, and of the draws that no earlier message depends on.
    """

    pair: tuple[Executed, Executed]
    local_response: Response
    rows: np.ndarray
    columns: np.ndarray
    last: int

    def messages(self, index: int, before: np.ndarray, draws: np.ndarray) -> np.ndarray:
        """Return the messages of one data set for draws of this iteration."""
        units = np.repeat(before[None], len(draws), axis=0)
        units[:, self.columns] = draws
        values = self.pair[index].values(units, self.local_response.rows, self.last)
        return values[:, self.rows]


def constant_shift(
    pair: tuple[Executed, Executed], local_response: Response, first: np.ndarray, start: np.ndarray
) -> Shift | None:
    """Find the shift of the noise between two data sets that is the same for all draws.

    ``first``, [units], is the result of :func:`first_iterations`, and ``start``, [units], has the
    draws of earlier iterations on the first data set. The result is None if no shift gives equal
    messages for all tested draws.
    """
    times = local_response.times
    iterations = np.unique(times)
    if (np.diff(times) < 0).any() or len(first) * len(iterations) > MAX_NUMBERS:
        return None
    first_draws, second_draws = start.copy(), start.copy()
    try:
        for t in iterations.tolist():
            rows, columns = np.flatnonzero(times == t), np.flatnonzero(first == t)
            iteration = _Iteration(pair, local_response, rows, columns, t)
            random = generator(ROOT, "draws that test a shift", t)
            moved = _shift_of(iteration, first_draws, second_draws, random)
            if moved is None:
                return None
            second_draws[iteration.columns] += moved
    except OtherMessages:
        return None
    zeros = np.zeros(len(times))
    return Shift(second_draws - first_draws, zeros, True, zeros, local_response)


def _shift_of(
    iteration: _Iteration,
    first_draws: np.ndarray,
    second_draws: np.ndarray,
    random: np.random.Generator,
) -> np.ndarray | None:
    """Return the shift of the draws of one iteration; None if it is not the same for all draws.

    Few draws determine the shift unless most of them are beyond a threshold. If messages repeat, as
    modulo 1, several shifts give equal messages. The shorter one is returned: among many draws,
    those that it takes across the end of the range are the minority.
    """
    columns = len(iteration.columns)
    grid = random.permuted(np.repeat(GRID[:, None], columns, axis=1), axis=0)
    tested = np.resize(SIZES, (TESTED, 1)) * random.standard_normal((TESTED, columns))
    draws = np.concatenate([tested, grid])
    target = iteration.messages(0, first_draws, draws)
    scale = np.maximum(target.std(0), 1e-3 * np.abs(target).max(0))
    allowed = CLOSE * scale + 1e-9 * np.abs(target)
    responds = (
        iteration.messages(0, first_draws, draws + STEP * np.cos(1.0 + np.arange(columns)))
        != target
    )
    solutions: list[np.ndarray] = []
    for fitted in (np.arange(len(SIZES)), np.arange(len(draws))):
        moved = np.zeros(columns)
        for _ in range(STEPS):
            gap = target - iteration.messages(1, second_draws, draws + moved)
            if (np.abs(gap) <= allowed).all():
                solutions.append(moved)
                break
            if not columns:
                return None
            moved = moved + _newton_step(
                iteration, second_draws, draws[fitted] + moved, gap[fitted], scale, responds[fitted]
            )
    return min(solutions, key=lambda moved: round(np.linalg.norm(moved), 5), default=None)


def _newton_step(
    iteration: _Iteration, second_draws: np.ndarray, draws: np.ndarray, gap: np.ndarray,
    scale: np.ndarray, responds: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Return the change of the shift that explains ``gap`` in numbers that respond to noise."""
    columns = draws.shape[1]
    single = STEP * np.eye(columns)[:, None]
    varied = np.concatenate([draws[None], draws + single, draws - single])
    values = iteration.messages(1, second_draws, varied.reshape(-1, columns)).reshape(
        len(varied), *gap.shape
    )
    level, forward, backward = np.split(values, [1, 1 + columns])
    right, left_slope = (forward - level) / STEP, (level - backward) / STEP
    smooth = np.abs(right - left_slope) <= SMOOTH * np.maximum(np.abs(right), np.abs(left_slope))
    matrix = np.moveaxis((right + left_slope) / 2, 0, -1)
    used = responds & smooth.all(0) & (matrix != 0).any(-1)
    weights = 1.0 / np.broadcast_to(np.where(scale > 0, scale, 1.0), gap.shape)[used]
    if not used.any():
        return np.zeros(columns)
    equations, goals = matrix[used] * weights[:, None], gap[used] * weights
    step = lstsq(equations, goals, cond=1e-6)[0]
    for _ in range(ROBUST_STEPS):
        errors = np.abs(equations @ step - goals)
        if errors.max() <= CLOSE:
            break
        weights = 1.0 / np.sqrt(errors + CLOSE)
        step = lstsq(equations * weights[:, None], goals * weights, cond=1e-6)[0]
    return step
