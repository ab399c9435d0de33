r"""Guarantees if private inputs react to noise that is hidden from the observer.

The formula of :mod:`~private_consensus.privacy.observers.guarantees` treats every input as fixed. A
gradient in training is not fixed: it is computed at a state that contains noise. An agent whose
messages the observer does not receive reacts to noise that is hidden from the observer. Example: a
path of three with a target agent, an agent with clipped gradients of a non-convex loss, and the
observer. The true mu is 1.62, while the formula gives 0.63. Therefore every number has a rule:

``exact``
    Inputs react to nothing (averages, DP-CI), or linearly with public curvature, which is then part
    of the system's transition. The formula holds for every observer.
``upper_bound``
    As ``exact``, but the lower and the upper bound on the formula differ, because the view is large
    or rounding of the weights decides what it reveals.
``adaptive``
    The observer receives the whole noisy state of every other agent, or all agents continue from
    one model that they all receive. Inputs of all agents are then functions of the view, and the
    formula holds for every loss (column-echelon argument of Denisov, McMahan, Rush, Smith,
    Thakurta, NeurIPS 2022, with the Gaussian filter of Smith, Thakurta, 2022).
``contraction`` (F1)
    Every local map expands distances by at most a known factor: 1 for gradient steps of convex
    L-smooth losses with :math:`\eta \le 2/L`; clipping whole gradients violates it. A predictable
    shift of hidden noise, bounded by budgets (:func:`contraction_bound`); decentralized privacy
    amplification by iteration (Feldman, Mironov, Talwar, Thakurta, FOCS 2018).
``light_cone`` (F0, causal bound)
    Any inputs whose change at equal states is bounded: the target agent's own noise absorbs it in
    every round whose messages can still arrive.
``refused``
    The agent continues from a state without noise: no bound is known, mu is infinite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import minimize

from private_consensus.common.errors import require

from ..releases import Release
from .absorption import own_ratio_table
from .changes import Changes
from .guarantees import Bracket, all_victims, receives_all_messages
from .linear_view import dense
from .systems import LinearSystem, Round
from .views import Eavesdropper, FinalModels, Observer

RULES = ("exact", "upper_bound", "adaptive", "contraction", "light_cone", "refused")
NOTES = {
    "exact": "inputs do not react to noise",
    "upper_bound": "inputs do not react to noise; the lower bound is smaller",
    "adaptive": "the observer receives everything to which inputs react",
    "contraction": "local maps expand distances by at most the declared factor",
    "light_cone": "the victim's own noise, in every round that can still arrive",
    "refused": "agents continue from states without noise, and inputs react to these states",
}
_ITERATIONS = 2000
_ROUNDED_UP = 1 + 1e-9
_MIN_IMPROVEMENT = 1e-6


@dataclass(frozen=True)
class Inputs:
    r"""Dependence of private inputs on the states at which they are computed.

    Parameters
    ----------
    react : bool
        False if inputs do not depend on states, or only as the system's transition states.
    expansion : float, optional
        Declared bound c on how much a local map :math:`z \mapsto z - \eta\nabla f_i(z)` expands
        distances, of all agents and for all of their data; 1 for convex L-smooth losses and
        :math:`\eta \le 2/L`. None: not known.
    """

    react: bool = True
    expansion: float | None = None

    def __post_init__(self) -> None:
        expansion = self.expansion
        is_valid = expansion is None or (np.isfinite(expansion) and expansion >= 0)
        require(bool(is_valid), "inputs.expansion", expansion, "a number >= 0")


@dataclass(frozen=True)
class Statement:
    """Bounds on mu of one pair, and the rule by which mu is a guarantee.

    Parameters
    ----------
    open_loop : Bracket
        Bounds of the formula, with fixed inputs.
    mu : float
        Guaranteed mu.
    rule : str
        One of :data:`RULES`.
    """

    open_loop: Bracket
    mu: float
    rule: str

    def release(self) -> Release:
        """Return the guarantee as a release for the accountants."""
        return Release("gaussian", sensitivity=self.mu, scale=1.0, note=NOTES[self.rule])


def statement(
    system: LinearSystem, observer: Observer, victim: int, changes: Changes, inputs: Inputs
) -> Statement:
    """Return mu by the formula and the guaranteed mu, for one target agent and observer.

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
    inputs : Inputs
        Dependence of private inputs on the states at which they are computed.

    Returns
    -------
    Statement
        The guarantee is the smallest mu among the rules that apply (see the module).

    Raises
    ------
    InvalidInput
        For agents that are not in the graph, and observers that receive nothing.
    """
    return statements(system, observer, changes, inputs, [victim])[victim]


def statements(
    system: LinearSystem,
    observer: Observer,
    changes: Changes,
    inputs: Inputs,
    victims: Sequence[int] | None = None,
) -> dict[int, Statement]:
    """Return :func:`statement` of all or some target agents, with shared computations.

    Parameters
    ----------
    system : LinearSystem
        Algorithm.
    observer : Observer
        Observing agents or eavesdropper.
    changes : Changes
        Allowed changes of the target agent's private input, in l2. Only they depend on the
        neighbouring relation.
    inputs : Inputs
        Dependence of private inputs on the states at which they are computed.
    victims : sequence of int, optional
        Target agents; by default every agent except the members.

    Returns
    -------
    dict of int to Statement

    Raises
    ------
    InvalidInput
        See :func:`statement`.
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
        rule = "exact" if formula.gap <= _MIN_IMPROVEMENT else "upper_bound"
        return Statement(formula, formula.upper, rule)
    if not system.noised_state:
        return Statement(formula, np.inf, "refused")
    if receives_all_messages(system, observer):
        return Statement(formula, formula.upper, "adaptive")
    causal_bound = light_cone_bound(system, observer, victim, changes)
    if inputs.expansion is not None and is_descent(system):
        contraction = contraction_bound(system, observer, victim, changes, inputs.expansion)
        if contraction < causal_bound * (1 - _MIN_IMPROVEMENT):
            return Statement(formula, contraction, "contraction")
    return Statement(formula, causal_bound, "light_cone")


def _observed_senders(round_: Round, observer: Observer) -> np.ndarray:
    """Return the senders of messages that a member receives, as messages or in a sum."""
    if isinstance(observer, Eavesdropper):
        return np.unique(round_.senders)
    if isinstance(observer, FinalModels):
        return np.array([], dtype=int)
    members = list(observer.members)
    received = round_.receives[members].any(0) | (round_.uses[members] != 0).any(0)
    return np.unique(round_.senders[received])


@lru_cache(maxsize=4)
def light_cone(system: LinearSystem, observer: Observer) -> np.ndarray:
    """Return True for rounds in which an action of an agent can affect the view.

    Information moves one edge per round, along every edge that carries a message, for any weight.

    Parameters
    ----------
    system : LinearSystem
        Algorithm.
    observer : Observer
        Observing agents or eavesdropper.

    Returns
    -------
    ndarray of bool, [T, N]
        Read-only.
    """
    n = system.n_agents
    reached = np.zeros(n, dtype=bool)
    reached[_agents_with_observed_last_state(system, observer)] = True
    arrives = np.zeros((system.horizon, n), dtype=bool)
    for t in reversed(range(system.horizon)):
        round_ = system.rounds[t]
        reached = reached.copy()
        reached[_observed_senders(round_, observer)] = True
        arrives[t] = reached
        reached = reached | _influences(round_, n)[reached].any(0)
    arrives.flags.writeable = False  # the cached array is shared
    return arrives


def _agents_with_observed_last_state(system: LinearSystem, observer: Observer) -> list[int]:
    """Return the agents whose last states are observed, at least in part.

    A final model may be a mixture of last states, for example after a last round of gossip.
    """
    every_agent = list(range(system.n_agents))
    if isinstance(observer, FinalModels):
        if system.output is None or system.output.shape[1] != system.n_agents:
            return every_agent
        observed = observer.final_rows(system) @ dense(system.output)
        return np.flatnonzero((observed != 0).any(0)).tolist()
    return every_agent if observer.receives_last_states else []


def _influences(round_: Round, n: int) -> np.ndarray:
    """Return True, per receiver and sender, if the sender influences the receiver in a round."""
    sent = round_.receives.astype(float) @ (round_.senders[:, None] == np.arange(n))
    moves = dense(round_.transition) != 0
    return (sent > 0) | moves if moves.shape == (n, n) else sent > 0


def light_cone_bound(
    system: LinearSystem, observer: Observer, victim: int, changes: Changes
) -> float:
    r"""Bound mu by the noise of the target agent in rounds whose input can arrive (F0).

    .. math:: \mu^2 \le \sum_{t\,\text{arrives}} (\gamma_t|\Delta_t|/\sigma_t)^2

    For inputs of any kind whose change at equal states is at most :math:`|\Delta_t|`.

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
    float
        Upper bound on mu; infinite for a state without independent noise, and for noise that is
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
    """Return True if all rounds mix with non-negative weights and add independent noise."""
    if not system.noised_state or system.filter is not None:
        return False
    return all(_descent_terms(round_) is not None for round_ in set(system.rounds))


def _descent_terms(round_: Round) -> tuple[np.ndarray, float, float] | None:
    """Return mixing, gain and noise scale of a round of noisy descent; None for other rounds."""
    mixing, inputs, noise = map(dense, (round_.transition, round_.inputs, round_.noise))
    n = len(mixing)
    square = mixing.shape == inputs.shape == noise.shape == (n, n)
    if not square or (mixing < 0).any() or not np.array_equal(round_.owners, np.eye(n)):
        return None
    gain, scale = inputs[0, 0], noise[0, 0]
    diagonal = np.array_equal(inputs, gain * np.eye(n)) and np.array_equal(noise, scale * np.eye(n))
    return (mixing, gain, scale) if diagonal and scale > 0 else None


def contraction_bound(
    system: LinearSystem, observer: Observer, victim: int, changes: Changes, expansion: float
) -> float:
    r"""Bound mu for local maps that expand distances by at most a known factor (F1).

    :math:`\mu^2 \le \sum_{t,i}(a_t^i/\sigma_t)^2` for any budgets :math:`s_t^i \ge 0` that
    are 0 for observed states,

    .. math::
        a_t^i = \max\Bigl(0,\ c\sum_j W_{ij}s_{t-1}^j + \gamma_t|\Delta_t|\,[i=u] - s_t^i\Bigr)

    The states on the two data sets may differ by at most :math:`s_t^i`. The noise of agent i,
    hidden from the observer, is shifted to reduce the difference to that, by at most :math:`a_t^i`
    and predictably. The budgets are found by minimisation; the bound holds wherever that stops. For
    secure sums it is the bound for single messages. It is infinite for final models with members:
    their known noise cannot be shifted, and the messages that they receive are not observed.

    Parameters
    ----------
    system : LinearSystem
        Noisy descent with weights >= 0.
    observer : Observer
        Observing agents or eavesdropper.
    victim : int
        Target agent, whose input changes; no member of the observer.
    changes : Changes
        Allowed changes of the target agent's private input, in l2. Only they depend on the
        neighbouring relation.
    expansion : float
        c, by which a local map may expand distances (l2), for all agents and all of their data.

    Returns
    -------
    float
        Upper bound on mu.

    Raises
    ------
    InvalidInput
        For a system that is not a noisy descent with weights >= 0.
    """
    terms_by_round = {id(round_): _descent_terms(round_) for round_ in system.rounds}
    terms = [
        round_terms
        for round_ in system.rounds
        if (round_terms := terms_by_round[id(round_)]) is not None
    ]
    fits = system.noised_state and system.filter is None and len(terms) == system.horizon
    expected = "noisy states as messages, weights >= 0, and independent noise in every round"
    require(fits, "system", "a system other than noisy descent", expected)
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
            worst = max(worst, _min_energy(mixing, scales, entered, hidden, expansion))
    return float(np.sqrt(worst) * _ROUNDED_UP)


def _hidden(system: LinearSystem, observer: Observer) -> np.ndarray:
    """Return True, per round and agent, if states on neighbouring data sets may differ."""
    hidden = np.ones((system.horizon, system.n_agents), dtype=bool)
    hidden[-1, _agents_with_observed_last_state(system, observer)] = False
    if isinstance(observer, FinalModels):
        return hidden
    hidden[:, list(observer.members)] = False
    for t, round_ in enumerate(system.rounds):
        hidden[t, _observed_senders(round_, observer)] = False
    return hidden


def _min_energy(
    mixing: list[np.ndarray],
    scales: np.ndarray,
    entered: np.ndarray,
    hidden: np.ndarray,
    expansion: float,
) -> float:
    """Minimise the sum of squared shifts over the budgets of agents and rounds."""
    unit = float(entered.max())
    entered, variances = entered / unit, scales[:, None] ** 2
    mixings = np.stack(mixing)[1:]
    transposed = mixings.swapaxes(1, 2)

    def energy(flat: np.ndarray) -> tuple[float, np.ndarray]:
        budgets = np.zeros(hidden.shape)
        budgets[hidden] = np.maximum(flat, 0.0)
        shifts = entered - budgets
        shifts[1:] += expansion * np.matvec(mixings, budgets[:-1])
        shifts = np.maximum(shifts, 0.0)
        pulls = 2 * shifts / variances
        slopes = -pulls
        slopes[:-1] += expansion * np.matvec(transposed, pulls[1:])
        return float((shifts**2 / variances).sum()), slopes[hidden]

    start = np.zeros(int(hidden.sum()))
    if not len(start):
        return energy(start)[0] * unit**2
    options = {"maxiter": _ITERATIONS, "maxfun": 2 * _ITERATIONS, "ftol": 1e-12, "gtol": 1e-9}
    bounds = [(0.0, None)] * len(start)
    solution = minimize(energy, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return min(energy(solution.x)[0], energy(start)[0]) * unit**2
