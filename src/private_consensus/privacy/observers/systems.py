r"""Algorithms that are linear in private inputs and Gaussian noise, one round at a time.

With :math:`s_0 = 0` (a public start shifts the view and reveals nothing), independent standard
normal :math:`z_t` and private inputs :math:`p_t`, one per agent,

.. math::
    s_t = F_t s_{t-1} + G_t p_t + N_t z_t, \qquad m_t = H_t s_{t-1} + J_t p_t + L_t z_t

are state and messages. The coordinates of vectors are independent copies of this system, so that
the dimension cancels. The final models are :math:`x = O s_T`, with O = ``output``, which may
include a last mixing without noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from private_consensus.common.errors import InvalidInput, require

LARGEST = 1e60
"""Limit of weights, gains and noise: squares of their quotients do not overflow."""
MODEL, MESSAGE = "model", "message"
"""Outputs of gossip: the models after mixing the last messages, or these messages."""
SPARSE_FROM = 200
"""Number of rows from which on a square matrix of a round is stored in sparse form."""


@dataclass(frozen=True, eq=False)
class Round:
    """Round of a linear algorithm of N agents: update of states, messages and their receivers.

    Parameters
    ----------
    transition, inputs, noise : ndarray or csr_array, [states, states], [states, N] and so on
        F, G and N of the state's recursion.
    message_transition, message_inputs, message_noise : ndarray or csr_array, [messages, ...]
        H, J and L: the messages as functions of the state *before* the round, of its inputs and of
        its noise.
    senders : ndarray of int, [messages]
        Sender of each message; -1 for a sum over agents whose terms are not observed.
    receives : ndarray of bool, [N, messages]
        True if an agent receives a message.
    uses : ndarray, [N, messages]
        Weight with which each agent uses a message; secure sums reveal only the weighted sum.
    owners : ndarray of bool, [noises, N]
        True if an agent knows a noise variable: the agent that samples it, and both for pair noise.
    kinds : ndarray of int, [messages], optional
        Kinds of messages that are summed separately: coordinates, or vectors of different meaning.
        One kind if not given.
    """

    transition: Any
    inputs: Any
    noise: Any
    message_transition: Any
    message_inputs: Any
    message_noise: Any
    senders: np.ndarray
    receives: np.ndarray
    uses: np.ndarray
    owners: np.ndarray
    kinds: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class LinearSystem:
    r"""Rounds 1 to T of a linear algorithm.

    Parameters
    ----------
    rounds : sequence of Round
        One round per iteration.
    n_agents : int
        Number of agents N.
    output : ndarray, [N, states], optional
        Final models as a function of :math:`s_T`; not every algorithm has one.
    filter : ndarray, [T, T], optional
        :math:`C^{-1}`, lower triangular: the noise of round t is :math:`\sum_r C^{-1}_{tr} z_r`,
        in every agent; independent noise if not given.
    noised_state : bool
        True if each agent sends its whole state, with fresh noise. Later messages then depend only
        on values that an eavesdropper received and on later inputs and noise.
    one_model : bool
        True if in each round every agent receives one common state, from which all agents continue.
        An observer of this state knows everything to which inputs react.
    exact : function, optional
        Returns the system in fractions, if its numbers are products that are rounded here.
    """

    rounds: Sequence[Round]
    n_agents: int
    output: np.ndarray | None = None
    filter: np.ndarray | None = None
    noised_state: bool = False
    one_model: bool = False
    exact: Callable[[], LinearSystem] | None = None

    def __post_init__(self) -> None:
        require(len(self.rounds) > 0, "horizon", len(self.rounds), "at least one round")
        if self.filter is not None:
            shape = (len(self.rounds),) * 2
            is_valid = np.shape(self.filter) == shape and not np.triu(self.filter, 1).any()
            require(is_valid, "filter", np.shape(self.filter), f"lower triangular of shape {shape}")

    @property
    def horizon(self) -> int:
        return len(self.rounds)


def one_graph(mixing: np.ndarray) -> np.ndarray:
    """Return the mixing matrix of one fixed graph, [N, N], finite and square.

    Raises
    ------
    InvalidInput
        For several graphs, and for weights that are not finite or too large.
    """
    mixing = np.asarray(mixing, dtype=float)
    is_valid = mixing.ndim == 2 and mixing.shape[0] == mixing.shape[1] and mixing.shape[0] >= 2
    require(
        is_valid,
        "mixing",
        mixing.shape,
        "the shape [agents, agents] of one graph for all rounds, with at least 2 agents",
    )
    require(bool(np.isfinite(mixing).all()), "mixing", "a non-finite weight", "finite weights")
    largest = float(np.abs(mixing).max())
    require(largest <= LARGEST, "mixing", largest, f"weights of at most {LARGEST:g}")
    return mixing


def links(mixing: np.ndarray, adjacency: np.ndarray | None) -> np.ndarray:
    """Return the edges that carry broadcasts: non-zero weights, and edges of the graph.

    Parameters
    ----------
    mixing : ndarray, [N, N]
        Weights.
    adjacency : ndarray of bool, [N, N], or None
        Edges that carry messages of weight 0.

    Returns
    -------
    ndarray of bool, [receiver, sender]
        False on the diagonal.
    """
    receives = mixing != 0
    if adjacency is not None:
        shape = np.shape(adjacency)
        require(shape == mixing.shape, "adjacency", shape, f"the shape of mixing, {mixing.shape}")
        receives = receives | np.asarray(adjacency, dtype=bool)
    return receives & ~np.eye(len(mixing), dtype=bool)


def per_round(value: ArrayLike, horizon: int, key: str, *, positive: bool = False) -> np.ndarray:
    """Expand a number, or T numbers, to one number per round.

    Parameters
    ----------
    value : float or array_like [T]
        Finite numbers, at least 0.
    horizon : int
        T, number of rounds.
    key : str
        Name of the parameter, for the error message.
    positive : bool
        True if 0 is not allowed.

    Returns
    -------
    ndarray, [T]
    """
    kind = "above 0" if positive else "finite, >= 0"
    expected = f"a number or {horizon} numbers, {kind}"
    try:
        values = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise InvalidInput(key, value, expected) from None
    require(values.ndim == 0 or values.shape == (horizon,), key, value, expected)
    values = np.broadcast_to(values, (horizon,))
    is_valid = np.isfinite(values).all() and (values > 0 if positive else values >= 0).all()
    require(bool(is_valid), key, value, expected)
    in_range = (values == 0) | ((values >= 1 / LARGEST) & (values <= LARGEST))
    require(bool(in_range.all()), key, value, f"0 or from {1 / LARGEST:g} to {LARGEST:g}")
    return values


def checked_number(value: float, key: str, *, zero: bool = False) -> float:
    """Check that a number is finite and above 0, or at least 0.

    Parameters
    ----------
    value : float
        Number to check.
    key : str
        Name of the parameter, for the error message.
    zero : bool
        True if 0 is allowed.

    Returns
    -------
    float
    """
    return float(per_round(value, 1, key, positive=not zero)[0])


@dataclass(frozen=True, eq=False)
class Broadcast:
    """Broadcast of one number per agent to all of its receivers.

    Parameters
    ----------
    mixing : ndarray, [N, N]
        Weights.
    adjacency : ndarray of bool, [N, N], optional
        Edges that carry messages of weight 0.

    Attributes
    ----------
    heard : ndarray of bool, [receiver, sender]
        Edges that carry messages.
    uses : ndarray, [receiver, sender]
        Weight with which a receiver uses a message; 0 on the diagonal.
    own : ndarray of bool, [N, N]
        The identity: each agent knows its own noise.
    """

    mixing: np.ndarray
    adjacency: np.ndarray | None = None
    heard: np.ndarray = field(init=False)
    uses: np.ndarray = field(init=False)
    own: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        receives = links(self.mixing, self.adjacency)
        uses = np.where(np.eye(len(receives), dtype=bool), 0.0, self.mixing)
        object.__setattr__(self, "heard", receives)
        object.__setattr__(self, "uses", uses)
        object.__setattr__(self, "own", np.eye(len(receives), dtype=bool))

    def round(
        self, transition: Any, inputs: Any, noise: Any, owners: np.ndarray | None = None
    ) -> Round:
        """Return a round that broadcasts the first N numbers of the new state, one per agent.

        Parameters
        ----------
        transition, inputs, noise : ndarray or csr_array, [states, ...]
            F, G and N of the state's recursion.
        owners : ndarray of bool, [noises, N], optional
            Agents that know a noise variable; by default each agent knows its own.

        Returns
        -------
        Round
        """
        n = len(self.heard)
        return Round(
            *(transition, inputs, noise),
            *(transition[:n], inputs[:n], noise[:n]),
            senders=np.arange(n),
            receives=self.heard,
            uses=self.uses,
            owners=self.own if owners is None else owners,
        )


def stored(matrix: np.ndarray) -> Any:
    """Return the matrix, in sparse form if it has at least ``SPARSE_FROM`` rows."""
    return matrix if len(matrix) < SPARSE_FROM else csr_array(matrix)


def noised_descent(
    mixing: np.ndarray,
    horizon: int,
    *,
    gain: ArrayLike = 1.0,
    noise: ArrayLike = 1.0,
    transition: np.ndarray | None = None,
    adjacency: np.ndarray | None = None,
    filter: np.ndarray | None = None,
) -> LinearSystem:
    r"""Build the system that mixes, steps, adds noise and sends the noisy state.

    .. math:: y_t = F_t y_{t-1} + \gamma_t p_t + \sigma_t n_t

    With :math:`F_t = W` and :math:`\gamma_t = \eta_t` this is decentralized gradient descent with
    noise in every message (Showkatbakhsh et al., Algorithm 1; PDOP; DSGD with noise;
    LDP-GD) for fixed gradients as inputs :math:`p_t`. With ``transition`` :math:`(I - \eta_t H) W`
    (gradient at the mixed value) or :math:`W - \eta_t H` (at the local value) and inputs b it is
    the closed loop of losses :math:`\frac12 x^T H_i x - b_i^T x` with public :math:`H_i`.

    Parameters
    ----------
    mixing : ndarray, [N, N] or [T, N, N]
        W. For a sequence of graphs that is known beforehand, the t-th carries message t and mixes
        it for round t + 1.
    horizon : int
        T, number of rounds.
    gain, noise : float or ndarray [T]
        :math:`\gamma_t \ge 0` and :math:`\sigma_t`, of which at least the first that carries an
        input is above 0.
    transition : ndarray, [N, N] or [T, N, N], optional
        :math:`F_t`; :math:`W_{t-1}` if not given.
    adjacency : ndarray of bool, optional
        Edges that carry messages of weight 0.
    filter : ndarray, [T, T], optional
        :math:`C^{-1}` of noise correlated over rounds.

    Returns
    -------
    LinearSystem

    Raises
    ------
    InvalidInput
        With the name of the parameter.
    """
    horizon = positive_integer(horizon, "horizon")
    graphs = sequence(mixing, horizon, "mixing")
    mixed = [graphs[0], *graphs[:-1]]
    moves = mixed if transition is None else sequence(transition, horizon, "transition")
    gains = per_round(gain, horizon, "gain")
    scales = per_round(noise, horizon, "noise")
    require(
        bool(scales.any()),
        "noise",
        noise,
        "above 0, since the privacy loss without noise is infinite",
    )
    n = len(graphs[0])
    eye = stored(np.eye(n))
    sent = {id(W): Broadcast(W, adjacency) for W in graphs}
    transitions = {id(F): stored(F) for F in moves}
    rounds: dict[tuple, Round] = {}
    keys = [(id(F), id(W), g, s) for F, W, g, s in zip(moves, graphs, gains, scales, strict=True)]
    for key in keys:
        F, W, g, s = key
        if key not in rounds:
            rounds[key] = sent[W].round(transitions[F], eye * g, eye * s)
    return LinearSystem([rounds[key] for key in keys], n, eye, filter, noised_state=True)


def gossip(
    mixing: np.ndarray,
    horizon: int,
    *,
    noise: float = 1.0,
    output: str = MODEL,
    adjacency: np.ndarray | None = None,
) -> LinearSystem:
    r"""Build the system that adds noise once and then averages.

    :math:`x_0 = s + \sigma n,\ x_{t+1} = W x_t`; the messages are
    :math:`x_0, \dots, x_{T-1}` (Cyffers, Even, Bellet, Massoulie, 2022, arXiv 2206.05091,
    without acceleration).

    Parameters
    ----------
    mixing : ndarray, [N, N]
        W, one fixed graph.
    horizon : int
        T, number of rounds.
    noise : float
        :math:`\sigma > 0` of the one draw at the start.
    output : {"model", "message"}
        Final models that :class:`FinalModels` observes: :math:`x_T = W x_{T-1}` after round T, or
        the last message :math:`x_{T-1}`. A single model depends on agents one edge farther away
        than the last message of that agent.
    adjacency : ndarray of bool, [N, N], optional
        Edges that carry messages of weight 0.

    Returns
    -------
    LinearSystem

    Raises
    ------
    InvalidInput
        With the name of the parameter.
    """
    return muffliato_gd(mixing, 1, horizon, noise=noise, output=output, adjacency=adjacency)


def muffliato_gd(
    mixing: np.ndarray,
    steps: int,
    rounds: int,
    *,
    gain: ArrayLike = 1.0,
    noise: ArrayLike = 1.0,
    output: str = MODEL,
    adjacency: np.ndarray | None = None,
) -> LinearSystem:
    """Build the system of noisy steps, each followed by gossip without noise (Muffliato-GD).

    A step sends ``rounds`` messages, the first of them the noisy state (Cyffers, Even, Bellet,
    Massoulie, 2022, arXiv 2206.05091). Inputs have T = ``steps * rounds`` entries; only every
    ``rounds``-th has a gain.

    Parameters
    ----------
    mixing : ndarray, [N, N]
        W, one fixed graph.
    steps : int
        Number of noisy steps.
    rounds : int
        K, messages per step.
    gain : float or ndarray [steps]
        Factor of an input, at least 0.
    noise : float or ndarray [steps]
        Standard deviation per coordinate, above 0.
    output : {"model", "message"}
        Final models: W times the last message, or the last message.
    adjacency : ndarray of bool, [N, N], optional
        Edges that carry messages of weight 0.

    Returns
    -------
    LinearSystem

    Raises
    ------
    InvalidInput
        With the name of the parameter.
    """
    steps, rounds = positive_integer(steps, "steps"), positive_integer(rounds, "rounds")
    first = np.tile(np.arange(rounds) == 0, steps)
    gains = np.repeat(per_round(gain, steps, "gain"), rounds) * first
    scales = np.repeat(per_round(noise, steps, "noise", positive=True), rounds) * first
    mixing = one_graph(mixing)
    options = {"gain": gains, "noise": scales, "adjacency": adjacency}
    system = noised_descent(mixing, steps * rounds, **options)
    return replace(system, output=last_output(output, mixing, system.output))


def last_output(output: str, model: np.ndarray, message: Any) -> Any:
    """Return the matrix from the last state to the final models.

    Parameters
    ----------
    output : {"model", "message"}
        Definition of the final models.
    model, message : ndarray, [N, states]
        The matrix for each value of ``output``.

    Returns
    -------
    ndarray, [N, states]
    """
    require(output in (MODEL, MESSAGE), "output", output, f"{MODEL} or {MESSAGE}")
    return model if output == MODEL else message


def positive_integer(value: Any, key: str) -> int:
    """Check that a value is a positive integer.

    Parameters
    ----------
    value : int
        Number to check.
    key : str
        Name of the parameter, for the error message.

    Returns
    -------
    int
    """
    require(
        isinstance(value, int | np.integer) and value >= 1, key, value, "a whole number above 0"
    )
    return int(value)


def sequence(matrices: ArrayLike, horizon: int, key: str) -> list[np.ndarray]:
    """Return one square matrix per round, from one matrix or T matrices.

    Parameters
    ----------
    matrices : array_like, [N, N] or [T, N, N]
        One matrix, or one per round.
    horizon : int
        T, number of rounds.
    key : str
        Name of the parameter, for the error message.

    Returns
    -------
    list of ndarray, [N, N]
    """
    matrices = np.asarray(matrices, dtype=float)
    if matrices.ndim != 3:
        return [one_graph(matrices)] * horizon
    require(len(matrices) == horizon, key, matrices.shape, f"one matrix, or {horizon} of them")
    return [one_graph(matrix) for matrix in matrices]
