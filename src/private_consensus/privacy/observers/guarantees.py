r"""mu of Gaussian differential privacy of an agent's data against an observer, from both sides.

For inputs that do not react to noise which the observer cannot see, a view is a Gaussian vector
whose mean moves with the change :math:`\Delta`, and exactly :math:`\mu`-GDP with

.. math::
    \mu^2(\Delta) = \min\{|\delta|^2 : B\delta = A\Delta\}
    = \max_\lambda (\lambda^T A\Delta)^2/|B^T\lambda|^2

(least-norm form of the Gaussian mechanism; Dong, Roth, Su, JRSS-B 2022, for GDP). Where inputs do
react, see :mod:`private_consensus.privacy.observers.adaptivity` before these numbers are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from private_consensus.errors import require
from private_consensus.privacy.conversions import gaussian_epsilon

from .absorption import absorbed_information
from .certificates import Information, certified_information
from .changes import Changes
from .fixed_point import fixed_point_information
from .linear_view import LinearView, dense, gamma, linear_view
from .modular import determines_noise
from .rational import MOST_EXACT_ENTRIES, MOST_ROWS, exact_information, exact_view
from .systems import LinearSystem
from .views import Coalition, Eavesdropper, FinalModels, Observer, SecureSums

ROUNDED_UP = 1 + 1e-12


@dataclass(frozen=True)
class Bracket:
    """Lower and upper bound of mu; the upper one is the guarantee.

    Parameters
    ----------
    lower, upper : float
        Infinite where nothing hides the change.
    """

    lower: float
    upper: float

    @property
    def gap(self) -> float:
        """Relative difference of the two; 0 where they agree, infinite ones included."""
        if self.lower == self.upper:
            return 0.0
        return (self.upper - self.lower) / self.upper

    def epsilon(self, delta: float) -> tuple[float, float]:
        """epsilon at ``delta`` from below and above, by the exact Gaussian curve."""
        lower, upper = (float(gaussian_epsilon(mu, delta)) for mu in (self.lower, self.upper))
        return lower, upper


def mu(system: LinearSystem, observer: Observer, victim: int, changes: Changes) -> Bracket:
    """mu of Gaussian differential privacy of one victim's data against one observer.

    Parameters
    ----------
    system : LinearSystem
    observer : Observer
        Who watches.
    victim : int
        Agent whose input changes; no member of the observer.
    changes : Changes
        Of the victim's private input, in l2; the neighbouring relation enters here alone.

    Returns
    -------
    Bracket
        The largest mu over the allowed changes, from below and from above, for inputs that do not
        react to noise.

    Raises
    ------
    InvalidInput
        For an agent that is not in the graph, a victim that is a member, or an observer who is
        sent nothing.
    """
    return all_victims(system, observer, changes, victims=[victim])[victim]


def all_victims(
    system: LinearSystem,
    observer: Observer,
    changes: Changes,
    victims: Sequence[int] | None = None,
) -> dict[int, Bracket]:
    """:func:`mu` of every victim, or of some, for one observer; what they share is computed once.

    Parameters
    ----------
    system : LinearSystem
    observer : Observer
        Who watches.
    changes : Changes
        Of the victim's private input, in l2; the neighbouring relation enters here alone.
    victims : sequence of int, optional
        Everybody but the members if not given.

    Returns
    -------
    dict of int to Bracket

    Raises
    ------
    InvalidInput
        As :func:`mu`.
    """
    check_kinds(observer, changes)
    observer.check(system.n_agents)
    everybody = [u for u in range(system.n_agents) if u not in observer.members]
    victims = everybody if victims is None else list(victims)
    expected = f"agents 0 to {system.n_agents - 1} that are not members of the observer"
    require(set(victims) <= set(everybody), "victim", victims, expected)
    basis = changes.basis(system.horizon)
    information = information_of(system, observer, basis, victims)
    return {u: _bracket(information, i, changes) for i, u in enumerate(victims)}


def check_kinds(observer: Observer, changes: Changes) -> None:
    """Raise :class:`~private_consensus.errors.InvalidInput` for what is neither."""
    known = "an observer: Eavesdropper(), agent(v), Coalition, SecureSums or FinalModels"
    require(isinstance(observer, Observer), "observer", observer, known)
    sets = "a set of changes: Constant, Once, Free or Cyclic"
    require(isinstance(changes, Changes), "changes", changes, sets)


def pairwise(
    system: LinearSystem, changes: Changes, *, secure: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """mu from below and above for every ordered pair, [victim, observer]; NaN on the diagonal.

    Parameters
    ----------
    system : LinearSystem
    changes : Changes
        Of the victim's private input, in l2; the neighbouring relation enters here alone.
    secure : bool
        Whether an observer sees of each round only the weighted sum over its neighbours.

    Returns
    -------
    lower, upper : ndarray, [N, N]

    Raises
    ------
    InvalidInput
        For an agent that is sent nothing.
    """
    n = system.n_agents
    bounds = np.full((2, n, n), np.nan)
    for v in range(n):
        observer = SecureSums((v,)) if secure else Coalition((v,))
        for u, bracket in all_victims(system, observer, changes).items():
            bounds[:, u, v] = bracket.lower, bracket.upper
    return bounds[0], bounds[1]


def information_of(
    system: LinearSystem, observer: Observer, basis: np.ndarray, victims: Sequence[int]
) -> Information:
    """Compute the information in floating point if every message has enough independent noise,
    else exactly.

    Where a view is too large for exact arithmetic, the information is that of the view with more
    noise from below, and what the victim's own noise hides from above.
    """
    innovations = system.noised_state and system.filter is None
    if innovations and hears_everybody(system, observer):
        return _every_innovation(system, Eavesdropper(observer.members), basis, victims)
    return _of_view(system, observer, basis, victims)


def hears_everybody(system: LinearSystem, observer: Observer) -> bool:
    """Return True if the observer receives each round's message of every other agent, or the one
    model from which all agents continue.

    Parameters
    ----------
    system : LinearSystem
    observer : Observer
        Who watches.

    Returns
    -------
    bool
        Of last models False, and of secure sums of single messages.
    """
    if system.one_model:
        return not isinstance(observer, FinalModels)
    if isinstance(observer, SecureSums | FinalModels):
        return False
    if isinstance(observer, Eavesdropper):
        return True
    others = set(range(system.n_agents)) - set(observer.members)
    members = list(observer.members)
    return all(
        others <= set(round_.senders[round_.receives[members].any(0)])
        for round_ in set(system.rounds)
    )


def _every_innovation(
    system: LinearSystem, observer: Observer, basis: np.ndarray, victims: Sequence[int]
) -> Information:
    """All states, noise included, are seen: each round tells of its own input alone."""
    one = np.ones((1, 1))
    places = [t for t in range(len(basis)) if dense(system.rounds[t].message_inputs).any()]
    if not places:
        k = basis.shape[1]
        nothing = np.zeros((len(victims), k))
        return Information(np.zeros((len(victims), k, k)), nothing[:, 0], nothing > 0)
    basis, rounds = basis[places], [system.rounds[t] for t in places]
    alone = {}
    for round_ in rounds:
        if id(round_) not in alone:
            first = LinearSystem((round_,), system.n_agents)
            alone[id(round_)] = _of_view(first, observer, one, victims)
    each = [alone[id(round_)] for round_ in rounds]
    values = np.array([part.matrix[:, 0, 0] for part in each])
    radii = np.array([part.radius for part in each])
    outside = np.array([part.outside[:, 0] for part in each])
    return Information(
        np.einsum("tv,ti,tj->vij", values, basis, basis, optimize=True),
        (1 + 1e-9) * (radii * (basis**2).sum(1)[:, None]).sum(0)
        + gamma(len(basis) + 4) * (values * (basis**2).sum(1)[:, None]).sum(0),
        np.einsum("tv,ti->vi", outside, basis != 0),
    )


def _of_view(
    system: LinearSystem, observer: Observer, basis: np.ndarray, victims: Sequence[int]
) -> Information:
    view = linear_view(system, observer, basis, victims)
    cap = absorbed_information(system, observer, basis, view.arrives, victims)
    found = certified_information(view)
    if found is not None and found.sharp:
        return replace(found, cap=cap)
    if np.isfinite(cap).all() and determines_noise(system, observer):
        return _own_shift_alone(cap)
    exact = _exactly(system, observer, basis, victims, len(view.covariance))
    return replace(exact or found or _from_below(view), cap=cap)


def _own_shift_alone(cap: np.ndarray) -> Information:
    """Bound the information of a view that determines all noise: only the target agent's own
    shift explains its change.
    """
    outside = np.zeros(cap.shape[:2], dtype=bool)
    return Information(cap, 2e-12 * np.trace(cap, axis1=1, axis2=2), outside, cap)


def _from_below(view: LinearView) -> Information:
    """Bound the information from below by the view with additional independent noise; no upper
    bound.
    """
    covariance = view.covariance.copy()
    for share in (1e-12, 1e-10, 1e-8, 1e-6):
        extra = share * float(np.trace(view.covariance)) * np.eye(len(covariance))
        added = replace(view, covariance=covariance + extra, magnitude=view.magnitude + extra)
        found = certified_information(added)
        if found is not None and found.sharp:
            shrunk = found.matrix - found.radius[:, None, None] * np.eye(found.matrix.shape[1])
            return replace(found, matrix=shrunk, radius=np.full(len(shrunk), np.inf))
    victims, k = view.response.shape[1:]
    nothing = np.zeros((victims, k, k))
    return Information(nothing, np.full(victims, np.inf), np.zeros((victims, k), dtype=bool))


def _exactly(
    system: LinearSystem,
    observer: Observer,
    basis: np.ndarray,
    victims: Sequence[int],
    rows: int,
) -> Information | None:
    """Compute the information by elimination in fractions, or with hundreds of bits; None for
    views too large for both.
    """
    states = system.rounds[0].transition.shape[0]
    if rows * states > MOST_EXACT_ENTRIES:
        return None
    covariance, response = exact_view(system, observer, basis, victims)
    if rows > MOST_ROWS:
        return fixed_point_information(covariance, response, len(victims))
    found = exact_information(covariance, response, len(victims))
    k = basis.shape[1]
    matrix = np.array([m.astype(float) for m, _ in found]).reshape(len(victims), k, k)
    rounding = 2.0**-52 * np.abs(matrix).sum((1, 2))
    return Information(matrix, rounding, np.array([outside for _, outside in found]))


def _bracket(information: Information, index: int, changes: Changes) -> Bracket:
    if information.outside[index].any():
        return Bracket(np.inf, np.inf)
    lower, upper = _squares(information, index, changes)
    return Bracket(
        float(np.sqrt(max(lower, 0.0)) / ROUNDED_UP), float(np.sqrt(max(upper, 0.0)) * ROUNDED_UP)
    )


def _squares(information: Information, index: int, changes: Changes) -> tuple[float, float]:
    matrix, radius = information.matrix[index], float(information.radius[index])
    known = np.isfinite(radius)
    lower, upper = changes.maximum(matrix, radius if known else 0.0)
    if not known:
        upper = np.inf
    if information.cap is not None and np.isfinite(information.cap[index]).all():
        upper = min(upper, changes.maximum(information.cap[index], 0.0)[1])
    return lower, upper
