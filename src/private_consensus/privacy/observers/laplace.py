r"""Epsilon of a partial view of Laplace noise, by shifting the noise.

For unknown :math:`z_k` with Laplace law of scale 1 (scales are in B), a shift :math:`\delta` with
:math:`B\delta = A\Delta` turns one world's view into the other's at :math:`\sum_k|\delta_k|`:

.. math:: \varepsilon \le \min\Bigl\{\sum_k |\delta_k| : B\delta = A\Delta\Bigr\}

a linear program; what the observer does with the view is post-processing. Equality where the view
determines the noise. The solver's shift misses the change by a little; a further shift of at most
:math:`\sqrt n\,\|r\|_2/\sqrt{\lambda_{\min}(BB^T)}` in l1 repairs it and is counted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from scipy.linalg import cho_factor
from scipy.optimize import linprog

from private_consensus.errors import require

from .absorption import own_ratio_table
from .certificates import smallest_eigenvalue
from .changes import Changes, Constant, Once
from .linear_view import LinearView, gamma, linear_view, noise_matrix
from .systems import LinearSystem
from .views import Observer

MOST_NOISES = 20_000
"""Unknown noises up to which the linear program is formed."""
_DIGITS, _MOST_SHIFTS = 12, 4096
_SHIFTS: dict[bytes, np.ndarray | None] = {}
"""Solutions of programs, by a checksum of them."""


def laplace_epsilon(
    system: LinearSystem, observer: Observer, victim: int, changes: Changes
) -> float:
    """Upper bound on epsilon for the largest change in the set, Laplace noise throughout.

    ``Once`` takes the costliest round and ``Constant`` the one vector along a coordinate; of any
    other set the rounds are added up.

    Parameters
    ----------
    system : LinearSystem
        Its noise is Laplace noise of scale 1 before it is scaled.
    observer : Observer
        Who watches.
    victim : int
        Agent whose input changes; no member of the observer.
    changes : Changes
        Of the victim's private input, sizes in l1.

    Returns
    -------
    float
        epsilon at delta = 0; infinite where no shift of unknown noise hides the change.

    Raises
    ------
    InvalidInput
        As :func:`~private_consensus.privacy.observers.mu`.
    """
    return laplace_epsilons(system, observer, [victim], changes)[victim]


def laplace_epsilons(
    system: LinearSystem, observer: Observer, victims: Sequence[int], changes: Changes
) -> dict[int, float]:
    """:func:`laplace_epsilon` of several victims; the view and its noise are formed once."""
    observer.check(system.n_agents)
    for victim in victims:
        inside = 0 <= victim < system.n_agents and victim not in observer.members
        require(inside, "victim", victim, f"agents 0 to {system.n_agents - 1} that are no members")
    if not victims:
        return {}
    basis = changes.basis(system.horizon)
    view = linear_view(system, observer, basis, victims)
    noise = noise_matrix(system, observer)
    columns = noise.shape[1]
    require(columns <= MOST_NOISES, "observer", f"{columns} noises", f"at most {MOST_NOISES}")
    ratios = own_ratio_table(system, observer, victims)
    one = isinstance(changes, Once | Constant)
    smallest = _smallest_eigenvalue(view)
    found = {}
    for i, victim in enumerate(victims):
        own = [_absorbed(change, ratios[:, i], view.arrives[:, i]) for change in basis.T]
        shifted = partial(_shifted, noise, view, smallest, i)
        found[victim] = _costliest(own, shifted) if one else _together(own, shifted)
    return found


def _costliest(own: Sequence[float], shifted: Callable[[int], float]) -> float:
    """The largest of what changes cost at least, by the own noise or shifted; programs are solved
    for those only of which the own noise costs more than what was found."""
    found = 0.0
    for k in np.argsort(own)[::-1]:
        if own[k] <= found:
            break
        found = max(found, min(own[k], shifted(k)))
    return found


def _together(own: Sequence[float], shifted: Callable[[int], float]) -> float:
    return sum((min(cost, shifted(k)) for k, cost in enumerate(own) if cost), 0.0)


def _absorbed(column: np.ndarray, ratios: np.ndarray, arrives: np.ndarray) -> float:
    """The victim's own noise hides what arrives, in every round."""
    needed = arrives & (column != 0)
    return float((ratios[needed] * np.abs(column[needed])).sum() * (1 + 1e-12))


def _smallest_eigenvalue(view: LinearView) -> float:
    try:
        return smallest_eigenvalue(view, cho_factor(view.covariance, lower=True))
    except np.linalg.LinAlgError:
        return 0.0


def _shifted(
    noise: np.ndarray, view: LinearView, smallest: float, place: int, change: int
) -> float:
    """The linear program's value for one basis change of one victim, made feasible."""
    response, size = view.response[:, place, change], view.response_magnitude[:, place, change]
    return _program(noise, response, size, view.relative_error, smallest)


def _program(
    noise: np.ndarray, a: np.ndarray, size: np.ndarray, error: float, smallest: float
) -> float:
    if not size.any():
        return 0.0
    if smallest <= 0:
        return np.inf
    shift = _least_shift(noise, a)
    if shift is None:
        return np.inf
    rounding = 2 * (error + gamma(noise.shape[1] + 4))
    missed = np.abs(a - noise @ shift) + rounding * (np.abs(noise) @ np.abs(shift) + size)
    repair = np.sqrt(noise.shape[1]) * np.linalg.norm(missed) / np.sqrt(smallest)
    return float((np.abs(shift).sum() + repair) * (1 + 1e-12))


def _least_shift(noise: np.ndarray, a: np.ndarray) -> np.ndarray | None:
    """The program's solution, in units of its largest entries and to ``_DIGITS`` digits of them:
    the programs of several budgets are one. What a shift misses, the caller states and pays."""
    units = np.abs(noise).max(), np.abs(a).max()
    if not all(units):
        return _solved(noise, a)
    given = [
        np.round(part / unit, _DIGITS) + 0.0  # no -0.0
        for part, unit in zip((noise, a), units, strict=True)
    ]
    key = hashlib.sha256(b"".join(part.tobytes() for part in given)).digest()
    if key not in _SHIFTS:
        if len(_SHIFTS) >= _MOST_SHIFTS:
            _SHIFTS.clear()
        _SHIFTS[key] = _solved(*given)
    shift = _SHIFTS[key]
    return None if shift is None else shift * (units[1] / units[0])


def _solved(noise: np.ndarray, a: np.ndarray) -> np.ndarray | None:
    costs = np.ones(2 * noise.shape[1])
    found = linprog(costs, A_eq=np.hstack([noise, -noise]), b_eq=a, method="highs")
    return None if found.x is None else found.x[: noise.shape[1]] - found.x[noise.shape[1] :]
