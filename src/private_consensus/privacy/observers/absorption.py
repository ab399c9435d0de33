r"""Causal bound: the target agent's own noise hides its change before any observer receives it.

If the noise of a round enters an agent's state and messages as its input does,
:math:`\gamma_t p_t + \sigma_t n_t`, the shift :math:`-\gamma_t\Delta_t/\sigma_t` of that noise
hides the change entirely. The shift is needed only in rounds whose input can reach the observer
before the end. Therefore

.. math:: \mu^2 \le \sum_{t\,\text{arrives}} (\gamma_t |\Delta_t|/\sigma_t)^2,

for every reaction of the other agents to the messages that they receive. The bound holds for inputs
of any kind, including those that react to noise, as long as an input's change is bounded at equal
states (causal shifts; a shift that depends on the past costs at most its bound, Dong, Roth, Su
2022 and Smith, Thakurta 2022, arXiv 2210.17520).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache, lru_cache

import numpy as np
from numpy import inf
from scipy.linalg import solve_triangular

from .linear_view import dense
from .systems import LinearSystem, Round
from .views import Observer


def absorbed_information(
    system: LinearSystem,
    observer: Observer,
    basis: np.ndarray,
    arrives: np.ndarray,
    victims: Sequence[int],
) -> np.ndarray:
    """Return a matrix that dominates the information of each target agent, [victims, k, k].

    Parameters
    ----------
    system : LinearSystem
        Algorithm.
    observer : Observer
        Observing agents or eavesdropper.
    basis : ndarray, [T, k]
        Changes of a private input over the rounds.
    arrives : ndarray of bool, [T, victims]
        True if a round's input affects the view.
    victims : sequence of int
        Target agents.

    Returns
    -------
    ndarray, [victims, k, k]
        Infinite on the diagonal for changes that the target agent's own noise does not hide.
    """
    ratios = own_ratio_table(system, observer, victims)
    return np.stack(
        [
            _information(system.filter, basis, ratios[:, i], arrives[:, i])
            for i in range(len(victims))
        ]
    )


def _information(
    filter_: np.ndarray | None, basis: np.ndarray, ratios: np.ndarray, arrives: np.ndarray
) -> np.ndarray:
    if not arrives.any():
        return np.zeros((basis.shape[1],) * 2)
    last = int(np.flatnonzero(arrives)[-1]) + 1
    needed = np.where(arrives[:last, None], basis[:last], 0.0)
    hidden = np.isfinite(ratios[:last])
    if (needed[~hidden] != 0).any():
        return np.diag(np.full(basis.shape[1], np.inf))
    shift = needed * np.where(hidden, ratios[:last], 0.0)[:, None]
    if filter_ is None:
        return shift.T @ shift * (1 + 1e-12)
    shift = solve_triangular(filter_[:last, :last], shift, lower=True)
    return shift.T @ shift * (1 + 1e-9)


def own_ratio_table(system: LinearSystem, observer: Observer, victims: Sequence[int]) -> np.ndarray:
    """Return the ratio of gain to own noise of each round and target agent.

    Parameters
    ----------
    system : LinearSystem
        Algorithm.
    observer : Observer
        Observing agents or eavesdropper.
    victims : sequence of int
        Target agents.

    Returns
    -------
    ndarray, [T, victims]
        Infinite if no own noise enters as the input does.
    """
    cache: dict[int, np.ndarray] = {}
    for round_ in system.rounds:
        if id(round_) not in cache:
            cache[id(round_)] = _own_ratios(round_, observer, victims)
    return np.array([cache[id(round_)] for round_ in system.rounds])


def _own_ratios(round_: Round, observer: Observer, victims: Sequence[int]) -> np.ndarray:
    ratio = _ratios(round_)
    sole_owner = round_.owners & observer.unknown(round_)[:, None]
    sole_owner &= sole_owner.sum(1, keepdims=True) == 1
    return np.array(
        [min((ratio(u, q) for q in np.flatnonzero(sole_owner[:, u])), default=inf) for u in victims]
    )


@lru_cache(maxsize=64)
def _ratios(round_: Round) -> Callable[[int, int], float]:
    """Return a cached :func:`_ratio` of an input and a noise of a round, for all observers."""
    inputs = np.concatenate([dense(round_.inputs), dense(round_.message_inputs)])
    noise = np.concatenate([dense(round_.noise), dense(round_.message_noise)])
    return cache(lambda u, q: _ratio(inputs[:, u], noise[:, q]))


def _ratio(inputs: np.ndarray, noise: np.ndarray) -> float:
    """Return c with ``inputs = c * noise`` exactly; infinity if there is none."""
    if not inputs.any():
        return 0.0
    nonzero = np.flatnonzero(inputs)
    if not np.array_equal(nonzero, np.flatnonzero(noise)):
        return inf
    if len(nonzero) == 1:  # the quotient of two floats is rounded like that of two fractions
        return abs(float(inputs[nonzero[0]] / noise[nonzero[0]]))
    pairs = [(Fraction(inputs[i]), Fraction(noise[i])) for i in nonzero]
    first_in, first_noise = pairs[0]
    parallel = all(a * first_noise == first_in * b for a, b in pairs)
    return abs(float(first_in / first_noise)) if parallel else inf
