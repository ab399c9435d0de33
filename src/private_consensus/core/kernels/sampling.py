"""Ordered samples without replacement, from a uniform number for each record."""

from __future__ import annotations

import numpy as np

from private_consensus.common.errors import InvalidInput

from .compiling import AVAILABLE, compiled
from .entries import require_layout


def first_of(uniform: np.ndarray, rows: np.ndarray, count: int) -> np.ndarray:
    """Select each agent's rows with the ``count`` smallest numbers, in increasing order.

    The result is a uniform ordered sample without replacement. Each of its prefixes is a sample
    too.

    Parameters
    ----------
    uniform : ndarray, shape (runs, agents, m)
        Uniform random numbers in [0, 1), one per row.
    rows : ndarray of int, shape (runs, agents, m)
        Rows of each agent.
    count : int
        Sample size, at most m.

    Returns
    -------
    ndarray of int, shape (runs, agents, count)
    """
    require_layout("first_of", "rows", rows, uniform.shape)
    if not 0 <= count <= uniform.shape[-1]:
        raise InvalidInput("first_of.count", count, f"0 to {uniform.shape[-1]}")
    if not AVAILABLE:
        return first_of_plainly(uniform, rows, count)
    m = uniform.shape[-1]
    share = count / m
    # Rarely fewer than ``count`` numbers are below it; then all are sorted.
    likely = share + 5.0 * np.sqrt(share * (1.0 - share) / m)
    samples = np.empty((*uniform.shape[:-1], count), rows.dtype)
    _first_of(uniform.reshape(-1, m), rows.reshape(-1, m), likely, samples.reshape(-1, count))
    return samples


def first_of_plainly(uniform, rows, count):
    """Select the same rows as :func:`first_of`, without a compiler.

    Parameters
    ----------
    uniform : ndarray, shape (runs, agents, m)
        Uniform random numbers.
    rows : ndarray of int, shape (runs, agents, m)
        Rows of each agent.
    count : int
        Sample size.

    Returns
    -------
    ndarray of int, shape (runs, agents, count)
    """
    order = np.argsort(uniform, axis=-1)[..., :count]
    return np.take_along_axis(rows, order, -1)


@compiled
def _first_of(uniform, rows, likely, found):
    m, count = uniform.shape[1], found.shape[1]
    numbers, places = np.empty(m), np.empty(m, np.int64)
    sorted_numbers, order, begins = np.empty(m), np.empty(m, np.int64), np.empty(m + 1, np.int64)
    for i in range(len(uniform)):
        limit, below = likely, _below(uniform[i], likely, numbers, places)
        if below < count:
            limit, below = 1.0, _below(uniform[i], np.inf, numbers, places)
        _sort(numbers, places, below, limit, begins, sorted_numbers, order)
        for k in range(count):
            found[i, k] = rows[i, order[k]]


@compiled
def _below(uniform, limit, numbers, places):
    """Collect the numbers below a limit and their indices; return their count."""
    count = 0
    for j in range(uniform.size):
        numbers[count] = uniform[j]
        places[count] = j
        count += uniform[j] < limit
    return count


@compiled
def _sort(numbers, places, count, limit, begins, sorted_numbers, order):
    """Sort ``count`` numbers below ``limit`` and their indices by number.

    The interval [0, limit) has ``count`` equal buckets with about one number each. A bucket sort is
    followed by an insertion sort.
    """
    scale = count / limit
    begins[: count + 1] = 0
    for k in range(count):
        begins[min(np.int64(numbers[k] * scale), count - 1) + 1] += 1
    for part in range(count):
        begins[part + 1] += begins[part]
    for k in range(count):
        part = min(np.int64(numbers[k] * scale), count - 1)
        sorted_numbers[begins[part]], order[begins[part]] = numbers[k], places[k]
        begins[part] += 1
    for k in range(1, count):
        number, place, j = sorted_numbers[k], order[k], k
        while j > 0 and sorted_numbers[j - 1] > number:
            sorted_numbers[j], order[j] = sorted_numbers[j - 1], order[j - 1]
            j -= 1
        sorted_numbers[j], order[j] = number, place
