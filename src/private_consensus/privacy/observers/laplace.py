r"""Epsilon of a partial view of Laplace noise, by shifting the noise.

For unknown :math:`z_k`, Laplace distributed with scale 1 (scales are in B), a shift :math:`\delta`
with :math:`B\delta = A\Delta` turns the view on one data set into the view on its neighbour, at
:math:`\sum_k|\delta_k|`:

.. math:: \varepsilon \le \min\Bigl\{\sum_k |\delta_k| : B\delta = A\Delta\Bigr\}

which is a linear program. Computations of the observer on the view are post-processing. Equality
holds if the view determines the noise. The solver's shift misses the change slightly. A further
shift of at most :math:`\sqrt n\,\|r\|_2/\sqrt{\lambda_{\min}(BB^T)}` in l1 corrects it and is
counted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from scipy.linalg import cho_factor
from scipy.optimize import linprog

from private_consensus.common.errors import require

from .absorption import own_ratio_table
from .certificates import smallest_eigenvalue
from .changes import Changes, Constant, Once
from .linear_view import LinearView, gamma, linear_view, noise_matrix
from .systems import LinearSystem
from .views import Observer

MAX_NOISES = 20_000
"""Largest number of unknown noises for which the linear program is formed."""
_DIGITS, _MAX_CACHED_SHIFTS = 12, 4096
_SHIFTS: dict[bytes, np.ndarray | None] = {}
"""Cached solutions of linear programs, by a checksum of the program."""


def laplace_epsilon(
    system: LinearSystem, observer: Observer, victim: int, changes: Changes
) -> float:
    """Return an upper bound on epsilon for the largest change in the set, for Laplace noise.

    ``Once`` uses the most costly round and ``Constant`` the single vector along a coordinate. For
    every other set the losses of the rounds are added.

    Parameters
    ----------
    system : LinearSystem
        Algorithm; its noise is Laplace noise of scale 1 before it is scaled.
    observer : Observer
        Observing agents or eavesdropper.
    victim : int
        Target agent, whose input changes; no member of the observer.
    changes : Changes
        Allowed changes of the target agent's private input, sizes in l1.

    Returns
    -------
    float
        epsilon at delta = 0; infinite if no shift of unknown noise hides the change.

    Raises
    ------
    InvalidInput
        See :func:`~private_consensus.privacy.observers.mu`.
    """
    return laplace_epsilons([system], observer, [victim], changes)[victim]


def laplace_epsilons(
    channels: Sequence[LinearSystem],
    observer: Observer,
    victims: Sequence[int],
    changes: Changes,
) -> dict[int, float]:
    """Return :func:`laplace_epsilon` of several target agents, for one or several input numbers.

    A change of a private input has one number per channel, and its size is the sum of their
    absolute values. The most costly channel therefore bounds the loss of each single change.

    Parameters
    ----------
    channels : sequence of LinearSystem
        Algorithm, for each number of a private input. Its noise is Laplace noise of scale 1 before
        it is scaled.
    observer : Observer
        Observing agents or eavesdropper.
    victims : sequence of int
        Target agents; no members of the observer.
    changes : Changes
        Allowed changes of a target agent's private input, sizes in l1.

    Returns
    -------
    dict of int to float
        epsilon at delta = 0 by target agent.
    """
    n_agents = channels[0].n_agents
    observer.check(n_agents)
    for victim in victims:
        inside = 0 <= victim < n_agents and victim not in observer.members
        require(inside, "victim", victim, f"agents 0 to {n_agents - 1}, except members")
    if not victims:
        return {}
    costs = [_costs(channel, observer, victims, changes) for channel in channels]
    return {
        victim: sum(map(max, zip(*by_channel, strict=True)), 0.0)
        for victim, *by_channel in zip(victims, *costs, strict=True)
    }


def _costs(
    system: LinearSystem, observer: Observer, victims: Sequence[int], changes: Changes
) -> list[list[float]]:
    """Return the costs whose sum is the loss of a target agent, for each target agent.

    They are the costs of all rounds, or the cost of the most costly single change.
    """
    basis = changes.basis(system.horizon)
    view = linear_view(system, observer, basis, victims)
    noise = noise_matrix(system, observer)
    columns = noise.shape[1]
    require(columns <= MAX_NOISES, "observer", f"{columns} noise values", f"at most {MAX_NOISES}")
    ratios = own_ratio_table(system, observer, victims)
    single_change = isinstance(changes, Once | Constant)
    smallest = _smallest_eigenvalue(view)
    costs = []
    for i in range(len(victims)):
        absorbed = [_absorbed(change, ratios[:, i], view.arrives[:, i]) for change in basis.T]
        shifted = partial(_shifted, noise, view, smallest, i)
        costs.append(
            [_costliest(absorbed, shifted)]
            if single_change
            else [min(cost, shifted(k)) if cost else 0.0 for k, cost in enumerate(absorbed)]
        )
    return costs


def _costliest(absorbed: Sequence[float], shifted: Callable[[int], float]) -> float:
    """Return the largest cost of a change, the smaller of its local-noise and program costs.

    A program is solved only if the cost by the own noise exceeds the largest cost so far.
    """
    largest = 0.0
    for k in np.argsort(absorbed)[::-1]:
        if absorbed[k] <= largest:
            break
        largest = max(largest, min(absorbed[k], shifted(k)))
    return largest


def _absorbed(column: np.ndarray, ratios: np.ndarray, arrives: np.ndarray) -> float:
    """Return the l1 cost if the target agent's own noise hides every input that arrives."""
    needed = arrives & (column != 0)
    return float((ratios[needed] * np.abs(column[needed])).sum() * (1 + 1e-12))


def _smallest_eigenvalue(view: LinearView) -> float:
    try:
        return smallest_eigenvalue(view, cho_factor(view.covariance, lower=True))
    except np.linalg.LinAlgError:
        return 0.0


def _shifted(
    noise: np.ndarray, view: LinearView, smallest: float, index: int, change: int
) -> float:
    """Return the cost of a shift of the noise that hides one change of one target agent."""
    response, size = view.response[:, index, change], view.response_magnitude[:, index, change]
    return _program(noise, response, size, view.relative_error, smallest)


def _program(
    noise: np.ndarray, a: np.ndarray, size: np.ndarray, error: float, smallest: float
) -> float:
    if not size.any():
        return 0.0
    if smallest <= 0:
        return np.inf
    shift = _min_shift(noise, a)
    if shift is None:
        return np.inf
    rounding = 2 * (error + gamma(noise.shape[1] + 4))
    missed = np.abs(a - noise @ shift) + rounding * (np.abs(noise) @ np.abs(shift) + size)
    correction = np.sqrt(noise.shape[1]) * np.linalg.norm(missed) / np.sqrt(smallest)
    return float((np.abs(shift).sum() + correction) * (1 + 1e-12))


def _min_shift(noise: np.ndarray, a: np.ndarray) -> np.ndarray | None:
    """Return the solution of the linear program, rounded so that different budgets share it.

    The data are scaled by their largest entries and rounded to ``_DIGITS`` digits. The caller
    accounts for the part of the change that the shift misses.
    """
    units = np.abs(noise).max(), np.abs(a).max()
    if not all(units):
        return _solved(noise, a)
    scaled = [
        np.round(array / unit, _DIGITS) + 0.0  # no -0.0
        for array, unit in zip((noise, a), units, strict=True)
    ]
    key = hashlib.sha256(b"".join(array.tobytes() for array in scaled)).digest()
    if key not in _SHIFTS:
        if len(_SHIFTS) >= _MAX_CACHED_SHIFTS:
            _SHIFTS.clear()
        _SHIFTS[key] = _solved(*scaled)
    shift = _SHIFTS[key]
    return None if shift is None else shift * (units[1] / units[0])


def _solved(noise: np.ndarray, a: np.ndarray) -> np.ndarray | None:
    costs = np.ones(2 * noise.shape[1])
    solution = linprog(costs, A_eq=np.hstack([noise, -noise]), b_eq=a, method="highs")
    return (
        None if solution.x is None else solution.x[: noise.shape[1]] - solution.x[noise.shape[1] :]
    )
