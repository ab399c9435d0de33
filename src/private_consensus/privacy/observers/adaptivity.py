r"""Guarantees where private inputs react to noise that the observer does not see.

The formula of :mod:`~private_consensus.privacy.observers.guarantees` takes every input as given. A
gradient in training is not: it is taken at a state that carries noise, and an agent that the
observer does not hear reacts to noise that the observer does not see. On a path of three, a victim,
an agent with clipped gradients of a non-convex loss, and the observer, the true mu is 1.62 where
the formula says 0.63. So a number comes with the rule by which it holds.

``exact``
    Inputs react to nothing (averages, DP-CI), or linearly with public curvature, which is then part
    of the system's transition. The formula, for every observer.
``adaptive``
    The observer hears the whole noised state of everybody it is not, or all go on from one model
    that everybody is told: inputs of all agents are functions of what it has seen, and the formula
    holds for every loss (column-echelon argument of Denisov, McMahan, Rush, Smith, Thakurta,
    NeurIPS 2022, with the Gaussian filter of Smith, Thakurta, 2022).
``contraction`` (F1)
    Every local map expands distances by at most a known factor: 1 for gradient steps of convex
    L-smooth losses with :math:`\eta \le 2/L`; clipping whole gradients destroys it. A predictable
    shift of hidden noise, bounded by budgets (:func:`contraction_bound`); decentralized privacy
    amplification by iteration (Feldman, Mironov, Talwar, Thakurta, FOCS 2018).
``light_cone`` (F0)
    Any inputs whose change at equal states is bounded: the victim's own noise absorbs it in every
    round whose messages can still arrive.
``refused``
    The agent goes on from a state without noise: nothing is known, mu is infinite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import minimize

from private_consensus.errors import require
from private_consensus.privacy.releases import Release

from .absorption import own_ratio_table
from .changes import Changes
from .guarantees import Bracket, all_victims, hears_everybody
from .linear_view import dense
from .systems import LinearSystem, Round
from .views import Eavesdropper, FinalModels, Observer

RULES = ("exact", "adaptive", "contraction", "light_cone", "refused")
NOTES = {
    "exact": "inputs do not react to noise",
    "adaptive": "the observer sees all that inputs react to",
    "contraction": "local maps expand distances by at most the declared factor",
    "light_cone": "the victim's own noise, in every round that can still arrive",
    "refused": "agents go on from states without noise, and inputs react to them",
}
_ITERATIONS = 2000
_ROUNDED_UP = 1 + 1e-9
_WORTH = 1e-6


@dataclass(frozen=True)
class Inputs:
    r"""How private inputs depend on the states at which they are taken.

    Parameters
    ----------
    react : bool
        False: not at all, or as the system's transition has it already.
    expansion : float, optional
        Declared bound c on how much a local map :math:`z \mapsto z - \eta\nabla f_i(z)` expands
        distances, of all agents and for all of their data; 1 for convex L-smooth losses and
        :math:`\eta \le 2/L`. None: not known.
    """

    react: bool = True
    expansion: float | None = None

    def __post_init__(self) -> None:
        given = self.expansion
        fine = given is None or (np.isfinite(given) and given >= 0)
        require(bool(fine), "inputs.expansion", given, "a number >= 0")


@dataclass(frozen=True)
class Statement:
    """mu of one pair and the rule by which it is a guarantee.

    Parameters
    ----------
    open_loop : Bracket
        The formula's value, with inputs taken as given.
    mu : float
        What is guaranteed.
    rule : str
        Of :data:`RULES`.
    """

    open_loop: Bracket
    mu: float
    rule: str

    def release(self) -> Release:
        """The guarantee, as the accountants take it."""
        return Release("gaussian", sensitivity=self.mu, scale=1.0, note=NOTES[self.rule])


def statement(
    system: LinearSystem, observer: Observer, victim: int, changes: Changes, inputs: Inputs
) -> Statement:
    """mu by the formula and the mu that is guaranteed, for one victim and observer.

    Parameters
    ----------
    system : LinearSystem
    observer : Observer
        Who watches.
    victim : int
        Agent whose input changes; no member of the observer.
    changes : Changes
        Of the victim's private input, in l2; the neighbouring relation enters here alone.
    inputs : Inputs
        How private inputs react to the states at which they are taken.

    Returns
    -------
    Statement
        The guarantee is the smallest mu among the rules that apply (see the module).

    Raises
    ------
    InvalidInput
        For agents that are not in the graph, and views of nothing.
    """
    return statements(system, observer, changes, inputs, [victim])[victim]


def statements(
    system: LinearSystem,
    observer: Observer,
    changes: Changes,
    inputs: Inputs,
    victims: Sequence[int] | None = None,
) -> dict[int, Statement]:
    """:func:`statement` of every victim, or of some; what they share is computed once.

    Parameters
    ----------
    system : LinearSystem
    observer : Observer
        Who watches.
    changes : Changes
        Of the victim's private input, in l2; the neighbouring relation enters here alone.
    inputs : Inputs
        How private inputs react to the states at which they are taken.
    victims : sequence of int, optional
        Everybody but the members if not given.

    Returns
    -------
    dict of int to Statement

    Raises
    ------
    InvalidInput
        As :func:`statement`.
    """
    formulas = all_victims(system, observer, changes, victims)
    return {u: _stated(system, observer, u, changes, inputs, f) for u, f in formulas.items()}


def _stated(
    system: LinearSystem,
    observer: Observer,
    victim: int,
    changes: Changes,
    inputs: Inputs,
    formula: Bracket,
) -> Statement:
    if not inputs.react:
        return Statement(formula, formula.upper, "exact")
    if not system.noised_state:
        return Statement(formula, np.inf, "refused")
    if hears_everybody(system, observer):
        return Statement(formula, formula.upper, "adaptive")
    cone = light_cone_bound(system, observer, victim, changes)
    if inputs.expansion is not None and is_descent(system):
        moved = contraction_bound(system, observer, victim, changes, inputs.expansion)
        if moved < cone * (1 - _WORTH):
            return Statement(formula, moved, "contraction")
    return Statement(formula, cone, "light_cone")


def _heard(round_: Round, observer: Observer) -> np.ndarray:
    """Senders of messages that a member is sent, alone or in a sum."""
    if isinstance(observer, Eavesdropper):
        return np.unique(round_.senders)
    if isinstance(observer, FinalModels):
        return np.array([], dtype=int)
    members = list(observer.members)
    received = round_.receives[members].any(0) | (round_.uses[members] != 0).any(0)
    return np.unique(round_.senders[received])


@lru_cache(maxsize=4)
def light_cone(system: LinearSystem, observer: Observer) -> np.ndarray:
    """Whether anything that an agent does in a round can show in the view, bool [T, N].

    A step a link and a round, along every link that carries a message, whatever its weight.
    """
    n = system.n_agents
    reached = np.zeros(n, dtype=bool)
    reached[_seen_last(observer, n)] = True
    arrives = np.zeros((system.horizon, n), dtype=bool)
    for t in reversed(range(system.horizon)):
        round_ = system.rounds[t]
        reached = reached.copy()
        reached[_heard(round_, observer)] = True
        arrives[t] = reached
        reached = reached | _links(round_, n)[reached].any(0)
    arrives.flags.writeable = False  # others are given the same
    return arrives


def _seen_last(observer: Observer, n: int) -> list[int]:
    """Agents of whose last states something is seen."""
    if isinstance(observer, FinalModels):
        return list(range(n)) if observer.of is None else list(observer.of)
    return list(range(n)) if getattr(observer, "last_states", False) else []


def _links(round_: Round, n: int) -> np.ndarray:
    """Return which agents can influence which messages of a round, bool [to, from]."""
    sent = round_.receives.astype(float) @ (round_.senders[:, None] == np.arange(n))
    moves = dense(round_.transition) != 0
    return (sent > 0) | moves if moves.shape == (n, n) else sent > 0


def light_cone_bound(
    system: LinearSystem, observer: Observer, victim: int, changes: Changes
) -> float:
    r"""F0: :math:`\mu^2 \le \sum_t (\gamma_t|\Delta_t|/\sigma_t)^2` over rounds t that can arrive.

    For inputs of any kind whose change at equal states is at most :math:`|\Delta_t|`.

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
    float
        Upper bound on mu; infinite for a state without noise of its own, and for noise that is
        correlated over rounds or shared by agents.
    """
    if not system.noised_state or system.filter is not None:
        return np.inf
    arrives = light_cone(system, observer)[:, victim]
    ratios = own_ratio_table(system, observer, [victim])[:, 0]
    worst = 0.0
    for sizes in changes.patterns(system.horizon):
        needed = arrives & (sizes > 0) & (ratios > 0)
        worst = max(worst, float(((ratios[needed] * sizes[needed]) ** 2).sum()))
    return float(np.sqrt(worst) * _ROUNDED_UP)


def is_descent(system: LinearSystem) -> bool:
    """Return True if a round is mixing with non-negative weights and independent noise in every
    agent.
    """
    if not system.noised_state or system.filter is not None:
        return False
    return all(_descent_terms(round_) is not None for round_ in set(system.rounds))


def _descent_terms(round_: Round) -> tuple[np.ndarray, float, float] | None:
    """Mixing, gain and noise of a round of noised descent, or None for any other."""
    mixing, inputs, noise = map(dense, (round_.transition, round_.inputs, round_.noise))
    n = len(mixing)
    square = mixing.shape == inputs.shape == noise.shape == (n, n)
    if not square or (mixing < 0).any() or not np.array_equal(round_.owners, np.eye(n)):
        return None
    gain, scale = inputs[0, 0], noise[0, 0]
    own = np.array_equal(inputs, gain * np.eye(n)) and np.array_equal(noise, scale * np.eye(n))
    return (mixing, gain, scale) if own and scale > 0 else None


def contraction_bound(
    system: LinearSystem, observer: Observer, victim: int, changes: Changes, expansion: float
) -> float:
    r"""F1: :math:`\mu^2 \le \sum_{t,i}(a_t^i/\sigma_t)^2` for any budgets :math:`s_t^i \ge 0` that
    are 0 where the observer looks,

    .. math::
        a_t^i = \max\Bigl(0,\ c\sum_j W_{ij}s_{t-1}^j + \gamma_t|\Delta_t|\,[i=u] - s_t^i\Bigr)

    Two worlds' states may differ by at most :math:`s_t^i`: noise of agent i, which the observer
    does not know, is shifted to shrink the difference to that, by at most :math:`a_t^i` and
    predictably. The budgets are chosen by minimisation; wherever that stops, the bound holds. Of
    secure sums it is the bound for what is sent one by one. Infinite for last models with members:
    their known noise cannot be shifted, and what they receive is not seen.

    Parameters
    ----------
    system : LinearSystem
    observer : Observer
        Who watches.
    victim : int
        Agent whose input changes; no member of the observer.
    changes : Changes
        Of the victim's private input, in l2; the neighbouring relation enters here alone.
    expansion : float
        c, by which a local map may expand distances (l2), for all agents and all of their data.

    Returns
    -------
    float
        Upper bound on mu.

    Raises
    ------
    InvalidInput
        For a system that is not a noised descent with weights >= 0.
    """
    known = {id(round_): _descent_terms(round_) for round_ in system.rounds}
    terms = [found for round_ in system.rounds if (found := known[id(round_)]) is not None]
    fits = system.noised_state and system.filter is None and len(terms) == system.horizon
    require(fits, "system", "another", "noised descent with weights >= 0 and noise in every round")
    if isinstance(observer, FinalModels) and observer.members:
        return np.inf
    hidden = _hidden(system, observer)
    scales = np.array([scale for _, _, scale in terms])
    mixing = [matrix for matrix, _, _ in terms]
    gains = np.array([gain for _, gain, _ in terms])
    worst = 0.0
    for sizes in changes.patterns(system.horizon):
        entered = np.zeros_like(hidden, dtype=float)
        entered[:, victim] = gains * sizes
        if entered.any():
            worst = max(worst, _least_energy(mixing, scales, entered, hidden, expansion))
    return float(np.sqrt(worst) * _ROUNDED_UP)


def _hidden(system: LinearSystem, observer: Observer) -> np.ndarray:
    """Return where the states of two neighbouring data sets may differ, bool [T, N]."""
    hidden = np.ones((system.horizon, system.n_agents), dtype=bool)
    hidden[-1, _seen_last(observer, system.n_agents)] = False
    if isinstance(observer, FinalModels):
        return hidden
    hidden[:, list(observer.members)] = False
    for t, round_ in enumerate(system.rounds):
        hidden[t, _heard(round_, observer)] = False
    return hidden


def _least_energy(
    mixing: list[np.ndarray],
    scales: np.ndarray,
    entered: np.ndarray,
    hidden: np.ndarray,
    expansion: float,
) -> float:
    """The least sum of squared shifts over budgets that was found, solved in a unit of its own."""
    unit = float(entered.max())
    entered, variances = entered / unit, scales[:, None] ** 2
    forth = np.stack(mixing)[1:]
    back = forth.swapaxes(1, 2)

    def energy(flat: np.ndarray) -> tuple[float, np.ndarray]:
        budgets = np.zeros(hidden.shape)
        budgets[hidden] = np.maximum(flat, 0.0)
        shifts = entered - budgets
        shifts[1:] += expansion * np.matvec(forth, budgets[:-1])
        shifts = np.maximum(shifts, 0.0)
        pulls = 2 * shifts / variances
        slopes = -pulls
        slopes[:-1] += expansion * np.matvec(back, pulls[1:])
        return float((shifts**2 / variances).sum()), slopes[hidden]

    start = np.zeros(int(hidden.sum()))
    if not len(start):
        return energy(start)[0] * unit**2
    options = {"maxiter": _ITERATIONS, "maxfun": 2 * _ITERATIONS, "ftol": 1e-12, "gtol": 1e-9}
    bounds = [(0.0, None)] * len(start)
    found = minimize(energy, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return min(energy(found.x)[0], energy(start)[0]) * unit**2
