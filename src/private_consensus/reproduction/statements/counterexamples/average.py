"""Errata of Wang et al.: consensus plus innovation (E3)."""

from __future__ import annotations

import numpy as np

from .base import ErratumResult, erratum, finding

T, GAIN, LOSS = 20, 0.8, 0.5
"""Number of messages, contraction per iteration, and privacy loss of one changed measurement."""


def _losses(starts_from_noisy: bool, changed: list[int]) -> np.ndarray:
    """Return the privacy loss of each message of an agent, given all earlier messages.

    The shift of a message is divided by the scale of its noise. The data change at the times
    ``changed``. If ``starts_from_noisy``, updates start from the sent value, as published, else
    from the agent's exact value.
    """
    state_shift, shifts = 0.0, np.zeros(T)
    for t in range(1, T):
        shift = LOSS if t - 1 in changed else 0.0
        state_shift = shift + (0.0 if starts_from_noisy else GAIN * state_shift)
        shifts[t] = state_shift
    return np.abs(shifts)


@erratum("E3.1")
def two_units() -> ErratumResult:
    """Compare the privacy loss if one measurement changes with that if all measurements change."""
    single, stream = _losses(True, [3]).sum(), _losses(True, list(range(T))).sum()
    description = (
        f"{T} messages of loss {LOSS:g}: given the preceding messages, one changed measurement "
        f"changes one mean, and the total loss is {single:g}. If all measurements may change, the "
        f"total loss is {stream:g}, because the message at t = 0 contains no data. Theorem 4.15 "
        f"states {T * LOSS:g}."
    )
    holds = np.isclose(single, LOSS) and np.isclose(stream, (T - 1) * LOSS)
    return finding("epsilon of one measurement", T * LOSS, single, holds, description)


@erratum("E3.2")
def geometric_sum() -> ErratumResult:
    """Sum the privacy losses of a stream of measurements, which starts at t = 1."""
    q, p = 0.4, 0.8
    total = float(np.sum((q / p) ** np.arange(1, 200)))
    claimed = p / (p - q)
    description = (
        f"q = {q:g}, p = {p:g}: p/(p-q) = {claimed:g} counts the message at t = 0, which contains "
        f"no data. The loss of the other messages is {total:g}, and {q / p:g} for one measurement."
    )
    holds = bool(np.isclose(total, q / (p - q))) and total < claimed
    return finding("epsilon of a stream", claimed, total, holds, description)


@erratum("E3.3")
def first_steps() -> ErratumResult:
    """Evaluate the published schedules at the first steps, where they divide by zero."""
    gamma = 0.8
    with np.errstate(divide="ignore"):
        first, second = np.array([0.0]) ** -gamma, (np.array([1.0]) - 1) ** -gamma
    H = np.array([[2.0, -1.0], [0.5, 0.5]])
    rows, matrix_sum = np.abs(H).sum(1).max(), np.abs(H).sum()
    description = (
        "t^-gamma at t = 0 and (t-1)^-gamma at t = 1 are infinite; a shift by 1 is assumed. The "
        f"published sum over all entries of a matrix is {matrix_sum:g}, but the largest row sum, "
        f"{rows:g}, also bounds the change."
    )
    holds = bool(np.isinf(first[0]) and np.isinf(second[0]) and rows < matrix_sum)
    return finding("step at t = 0", 0.0, float(first[0]), holds, description)


@erratum("E3.4")
def own_exact_value() -> ErratumResult:
    """Compute the privacy loss of one measurement if updates start from the exact own values."""
    published, exact_start = _losses(True, [3]).sum(), _losses(False, [3]).sum()
    description = (
        f"If an agent continues from its noisy value, as published, the loss is {published:g}. If "
        f"it continues from its exact value, the loss is {exact_start:.3f}."
    )
    holds = exact_start > 2 * published
    return finding("epsilon of one measurement", published, exact_start, holds, description)
