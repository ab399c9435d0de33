r"""Lower and upper bounds on mu-GDP of an agent's data against an observer.

If inputs do not react to noise that is hidden from the observer, a view is a Gaussian vector whose
mean moves with the change :math:`\Delta`. It is exactly :math:`\mu`-GDP with

.. math::
    \mu^2(\Delta) = \min\{|\delta|^2 : B\delta = A\Delta\}
    = \max_\lambda (\lambda^T A\Delta)^2/|B^T\lambda|^2

(least-norm form of the Gaussian mechanism; Dong, Roth, Su, JRSS-B 2022, for GDP). If inputs do
react, see :mod:`private_consensus.privacy.observers.adaptivity` before these numbers are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from private_consensus.common.errors import require

from ..conversions import gaussian_epsilon
from .absorption import absorbed_information
from .certificates import Information, certified_information
from .changes import Changes
from .fixed_point import fixed_point_information
from .linear_view import LinearView, dense, gamma, linear_view
from .modular import determines_noise
from .rational import (
    MAX_EXACT_ENTRIES,
    MAX_ROWS,
    exact_information,
    exact_view,
    is_exact,
)
from .systems import LinearSystem
from .views import Coalition, Eavesdropper, FinalModels, Observer, SecureSums

ROUNDED_UP = 1 + 1e-12


@dataclass(frozen=True)
class Bracket:
    """Lower and upper bound of mu; the upper bound is the guarantee.

    Parameters
    ----------
    lower, upper : float
        Bounds on mu; infinite if no noise hides the change.
    """

    lower: float
    upper: float

    @property
    def gap(self) -> float:
        """Relative difference of the two bounds; 0 if they agree, infinite ones included."""
        if self.lower == self.upper:
            return 0.0
        return (self.upper - self.lower) / self.upper

    def epsilon(self, delta: float) -> tuple[float, float]:
        """Return lower and upper bound of epsilon at ``delta``, by the exact Gaussian curve."""
        lower, upper = (float(gaussian_epsilon(mu, delta)) for mu in (self.lower, self.upper))
        return lower, upper


def mu(system: LinearSystem, observer: Observer, victim: int, changes: Changes) -> Bracket:
    """Return bounds on mu of one target agent's data against one observer.

    Parameters
    ----------
    system : LinearSystem
        Algorithm.
    observer : Observer
        Observing agents or eavesdropper.
    victim : int
        Target agent, whose input changes; no member of the observer.
    changes : Changes
        Allowed changes of the target agent's private input, in l2. Only they depend on the
        neighbouring relation.

    Returns
    -------
    Bracket
        Bounds on the largest mu over the allowed changes, for inputs that do not react to noise.

    Raises
    ------
    InvalidInput
        For an agent that is not in the graph, a target agent that is a member, or an observer that
        receives nothing.
    """
    return all_victims(system, observer, changes, victims=[victim])[victim]


def all_victims(
    system: LinearSystem,
    observer: Observer,
    changes: Changes,
    victims: Sequence[int] | None = None,
) -> dict[int, Bracket]:
    """Return :func:`mu` of all or some target agents for one observer, with shared computations.

    Parameters
    ----------
    system : LinearSystem
        Algorithm.
    observer : Observer
        Observing agents or eavesdropper.
    changes : Changes
        Allowed changes of the target agent's private input, in l2. Only they depend on the
        neighbouring relation.
    victims : sequence of int, optional
        Target agents; by default every agent except the members.

    Returns
    -------
    dict of int to Bracket

    Raises
    ------
    InvalidInput
        See :func:`mu`.
    """
    check_kinds(observer, changes)
    observer.check(system.n_agents)
    non_members = [u for u in range(system.n_agents) if u not in observer.members]
    victims = non_members if victims is None else list(victims)
    expected = f"agents 0 to {system.n_agents - 1} that are not members of the observer"
    require(set(victims) <= set(non_members), "victim", victims, expected)
    basis = changes.basis(system.horizon)
    information = information_of(system, observer, basis, victims)
    return {u: _bracket(information, i, changes) for i, u in enumerate(victims)}


def check_kinds(observer: Observer, changes: Changes) -> None:
    """Raise :class:`~private_consensus.common.errors.InvalidInput` for objects of the wrong type.

    Parameters
    ----------
    observer : Observer
        Checked for its type.
    changes : Changes
        Checked for its type.
    """
    observers = "an observer: Eavesdropper(), agent(v), Coalition, SecureSums or FinalModels"
    require(isinstance(observer, Observer), "observer", observer, observers)
    sets = "a set of changes: Constant, Once, Free or Cyclic"
    require(isinstance(changes, Changes), "changes", changes, sets)


def pairwise(
    system: LinearSystem, changes: Changes, *, secure: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return bounds on mu for every ordered pair of agents, [victim, observer].

    Parameters
    ----------
    system : LinearSystem
        Algorithm.
    changes : Changes
        Allowed changes of the target agent's private input, in l2. Only they depend on the
        neighbouring relation.
    secure : bool
        True if an observer receives in each round only the weighted sum over its neighbours.

    Returns
    -------
    lower, upper : ndarray, [N, N]
        NaN on the diagonal.

    Raises
    ------
    InvalidInput
        For an agent that receives nothing.
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
    """Compute the information in floating point if the noise suffices, else exactly.

    Floating point requires enough independent noise in every message. If a view is too large for
    exact arithmetic, the lower bound is that of the view with additional noise. The upper bound
    then follows from the target agent's own noise.

    Parameters
    ----------
    system : LinearSystem
        Algorithm.
    observer : Observer
        Observing agents or eavesdropper.
    basis : ndarray, [T, k]
        Changes of a private input over the rounds.
    victims : sequence of int
        Target agents.

    Returns
    -------
    Information
    """
    innovations = system.noised_state and system.filter is None
    if innovations and receives_all_messages(system, observer):
        return _from_all_states(system, Eavesdropper(observer.members), basis, victims)
    return _of_view(system, observer, basis, victims)


def receives_all_messages(system: LinearSystem, observer: Observer) -> bool:
    """Return True if the observer receives every other agent's message in each round.

    The result is also True if the observer receives the one model from which all agents continue.

    Parameters
    ----------
    system : LinearSystem
        Algorithm.
    observer : Observer
        Observing agents or eavesdropper.

    Returns
    -------
    bool
        False for final models, and for secure sums of single messages.
    """
    if system.one_model:
        return not isinstance(observer, FinalModels)
    if isinstance(observer, SecureSums | FinalModels):
        return False
    if isinstance(observer, Eavesdropper):
        return True
    non_members = set(range(system.n_agents)) - set(observer.members)
    members = list(observer.members)
    return all(
        non_members <= set(round_.senders[round_.receives[members].any(0)])
        for round_ in set(system.rounds)
    )


def _from_all_states(
    system: LinearSystem, observer: Observer, basis: np.ndarray, victims: Sequence[int]
) -> Information:
    """Compute the information if all noisy states are observed.

    Each round depends on its own input only.
    """
    unit_basis = np.ones((1, 1))
    rounds_with_input = [
        t for t in range(len(basis)) if dense(system.rounds[t].message_inputs).any()
    ]
    if not rounds_with_input:
        k = basis.shape[1]
        zeros = np.zeros((len(victims), k))
        return Information(np.zeros((len(victims), k, k)), zeros[:, 0], zeros > 0)
    basis, rounds = basis[rounds_with_input], [system.rounds[t] for t in rounds_with_input]
    of_round = {}
    for round_ in rounds:
        if id(round_) not in of_round:
            first = LinearSystem((round_,), system.n_agents)
            of_round[id(round_)] = _of_view(first, observer, unit_basis, victims)
    by_round = [of_round[id(round_)] for round_ in rounds]
    values = np.array([information.matrix[:, 0, 0] for information in by_round])
    radii = np.array([information.radius for information in by_round])
    outside = np.array([information.outside[:, 0] for information in by_round])
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
    certified = certified_information(view)
    if certified is not None and certified.is_tight:
        return replace(certified, cap=cap)
    if np.isfinite(cap).all() and determines_noise(system, observer):
        information = _from_own_noise(cap)
    else:
        exact = _exactly(system, observer, basis, victims, len(view.covariance))
        information = replace(exact or certified or _from_below(view), cap=cap)
    return information if is_exact(system) else _despite_rounding(information, _from_below(view))


def _despite_rounding(information: Information, below: Information) -> Information:
    """Return the upper bound of the first and the lower bound of the second information.

    Rounded numbers of an algorithm may hide or reveal what its exact numbers do not.
    """
    is_bounded = np.isfinite(information.radius) & ~information.outside.any(1)
    identity = np.eye(information.matrix.shape[1])
    upper = information.matrix + information.radius[:, None, None] * identity
    return replace(below, cap=np.where(is_bounded[:, None, None], upper, information.cap))


def _from_own_noise(cap: np.ndarray) -> Information:
    """Bound the information of a view that determines all noise.

    Only a shift of the target agent's own noise can then hide its change.
    """
    outside = np.zeros(cap.shape[:2], dtype=bool)
    return Information(cap, 2e-12 * np.trace(cap, axis1=1, axis2=2), outside, cap)


def _from_below(view: LinearView) -> Information:
    """Bound the information from below, by the view with additional independent noise."""
    covariance = view.covariance.copy()
    for fraction in (1e-12, 1e-10, 1e-8, 1e-6):
        extra = fraction * float(np.trace(view.covariance)) * np.eye(len(covariance))
        added = replace(view, covariance=covariance + extra, magnitude=view.magnitude + extra)
        certified = certified_information(added)
        if certified is not None and certified.is_tight:
            shrunk = certified.matrix - certified.radius[:, None, None] * np.eye(
                certified.matrix.shape[1]
            )
            return replace(certified, matrix=shrunk, radius=np.full(len(shrunk), np.inf))
    victims, k = view.response.shape[1:]
    zeros = np.zeros((victims, k, k))
    return Information(zeros, np.full(victims, np.inf), np.zeros((victims, k), dtype=bool))


def _exactly(
    system: LinearSystem,
    observer: Observer,
    basis: np.ndarray,
    victims: Sequence[int],
    rows: int,
) -> Information | None:
    """Compute the information in fractions, or with hundreds of bits; None for larger views."""
    states = system.rounds[0].transition.shape[0]
    if rows * states > MAX_EXACT_ENTRIES:
        return None
    covariance, response = exact_view(system, observer, basis, victims)
    if rows > MAX_ROWS:
        return fixed_point_information(covariance, response, len(victims))
    exact = exact_information(covariance, response, len(victims))
    k = basis.shape[1]
    matrix = np.array([m.astype(float) for m, _ in exact]).reshape(len(victims), k, k)
    rounding = 2.0**-52 * np.abs(matrix).sum((1, 2))
    return Information(matrix, rounding, np.array([outside for _, outside in exact]))


def _bracket(information: Information, index: int, changes: Changes) -> Bracket:
    if information.outside[index].any():
        return Bracket(np.inf, np.inf)
    lower, upper = _squares(information, index, changes)
    return Bracket(
        float(np.sqrt(max(lower, 0.0)) / ROUNDED_UP), float(np.sqrt(max(upper, 0.0)) * ROUNDED_UP)
    )


def _squares(information: Information, index: int, changes: Changes) -> tuple[float, float]:
    matrix, radius = information.matrix[index], float(information.radius[index])
    is_bounded = np.isfinite(radius)
    lower, upper = changes.maximum(matrix, radius if is_bounded else 0.0)
    if not is_bounded:
        upper = np.inf
    if information.cap is not None and np.isfinite(information.cap[index]).all():
        upper = min(upper, changes.maximum(information.cap[index], 0.0)[1])
    return lower, upper
