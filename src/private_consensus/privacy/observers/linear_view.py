r"""View of an observer as a linear image of inputs and unknown noise.

A view is :math:`o = A p + B z`. The computations need :math:`C = B B^T`, the covariance of the
unknown noise, and :math:`A` applied to a basis of changes, both with a bound on their rounding
errors. :math:`B`, with one column for each agent and round, is never formed.

The recursion runs backwards. With :math:`Z` the rows of all messages of rounds after r, as
functions of :math:`s_r`, round r adds the blocks :math:`[Z G_r; J_r]` to A and :math:`[Z N_r; L_r]`
to B, and :math:`Z \leftarrow [Z F_r; H_r]`. A step costs one product with :math:`F_r`, and the
whole recursion :math:`O(n k^2 T)` for k rows and n states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from private_consensus.common.errors import require

from .systems import LinearSystem, Round
from .views import Observer

UNIT_ROUNDOFF = 2.0**-53
MAX_ROWS = 12_000
"""Largest number of rows of a view whose covariance is factorised: about 1 GB."""
Convert = Callable[[Any], Any]
"""Conversion of a matrix before its use: identity, absolute values, or fractions."""


@dataclass(frozen=True, eq=False)
class LinearView:
    """View of an observer in floating point: covariance of noise and response to changes.

    Parameters
    ----------
    covariance : ndarray, [rows, rows]
        C, covariance of the unknown noise in the view.
    magnitude : ndarray, [rows, rows]
        C computed from absolute values: rounding errors are at most ``relative_error`` of it.
    response : ndarray, [rows, victims, basis]
        Effect of each target agent's basis changes on the view.
    response_magnitude : ndarray, [rows, victims, basis]
        Response computed from absolute values.
    relative_error : float
        Bound on rounding errors, relative to the magnitudes.
    arrives : ndarray of bool, [T, victims]
        True if an input of a round affects the view (causal bound).
    """

    covariance: np.ndarray
    magnitude: np.ndarray
    response: np.ndarray
    response_magnitude: np.ndarray
    relative_error: float
    arrives: np.ndarray


def linear_view(
    system: LinearSystem, observer: Observer, basis: np.ndarray, victims: Sequence[int]
) -> LinearView:
    """Compute a view in floating point with a bound on its rounding errors.

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
    LinearView

    Raises
    ------
    InvalidInput
        For an observer that is not in the graph, or one that receives nothing.
    """
    observer.check(system.n_agents)
    blocks = _Backward(system, observer)
    expected = f"at most {MAX_ROWS} rows (messages observed per round, times rounds); fewer rounds"
    require(blocks.n_rows <= MAX_ROWS, "observer", f"{blocks.n_rows} rows", expected)
    with np.errstate(over="ignore", invalid="ignore"):
        covariance, response, arrives = blocks.sums(basis, victims)
    fits = bool(np.isfinite(covariance).all() and np.isfinite(response).all())
    require(fits, "system", "numbers too large", "weights whose squares do not overflow")
    if blocks.nonnegative and not (basis < 0).any():
        magnitude, response_magnitude = covariance, response
    else:  # absolute values exclude cancellation, in magnitudes and in arriving inputs
        absolute = _Backward(system, observer, abs)
        magnitude, response_magnitude, arrives = absolute.sums(np.abs(basis), victims)
    error = gamma(blocks.depth)
    return LinearView(covariance, magnitude, response, response_magnitude, error, arrives)


def noise_matrix(system: LinearSystem, observer: Observer) -> np.ndarray:
    """Return B, [rows, unknown noises of all rounds], for small views.

    Parameters
    ----------
    system : LinearSystem
        Algorithm with noise that is independent over rounds.
    observer : Observer
        Observing agents or eavesdropper.

    Returns
    -------
    ndarray, [rows, noises]
        Rows in the order of :class:`LinearView`.
    """
    observer.check(system.n_agents)
    require(system.filter is None, "filter", "correlated noise", "independent noise")
    backward = _Backward(system, observer)
    blocks = []
    for noise, _ in backward:
        padded = np.zeros((backward.n_rows, noise.shape[1]))
        padded[len(padded) - len(noise) :] = noise
        blocks.append(padded)
    return np.hstack(blocks[::-1])


def gamma(operations: int) -> float:
    r"""Return :math:`\gamma_k = ku/(1-ku)` for k roundings.

    It bounds the relative error of k roundings of positive terms (Higham, Accuracy and stability of
    numerical algorithms, 2002, section 3.1).
    """
    return operations * UNIT_ROUNDOFF / (1 - operations * UNIT_ROUNDOFF)


class _Backward:
    """Blocks of A and B, from the last round to the first.

    Rows are in the order of rounds, with final models at the end. A block has the rows of its round
    and of later ones; a row of an earlier round does not depend on it.
    """

    def __init__(
        self, system: LinearSystem, observer: Observer, convert: Convert = lambda matrix: matrix
    ) -> None:
        self.system, self.observer, self.convert = system, observer, convert
        self._prepared: dict[int, _RoundBlocks] = {}
        self.final = _final(system, observer, convert)
        counts = [len(self._at(round_).rows) for round_ in system.rounds]
        self.n_rows = len(self.final) + sum(counts)
        empty = f"an observer who receives messages in {system.horizon} rounds"
        require(self.n_rows > 0, "observer", observer, empty)

    def _at(self, round_: Round) -> _RoundBlocks:
        key = id(round_)
        if key not in self._prepared:
            self._prepared[key] = _RoundBlocks(round_, self.observer, self.convert)
        return self._prepared[key]

    @property
    def nonnegative(self) -> bool:
        filtered = self.system.filter is not None and (self.system.filter < 0).any()
        nonnegative_rounds = all(prepared.nonnegative for prepared in self._prepared.values())
        return nonnegative_rounds and not filtered and not (self.final < 0).any()

    @property
    def depth(self) -> int:
        """Upper bound on the number of roundings of a covariance or response entry."""
        horizon = self.system.horizon
        widest = max(prepared.max_terms for prepared in self._prepared.values())
        noises = max(len(round_.owners) for round_ in self.system.rounds)
        return 2 * (horizon + 2) * (widest + 4) + noises + 4 * horizon + 32

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield noise blocks [rows so far, unknown noises] and input blocks [rows so far, N]."""
        z = self.final
        for round_ in reversed(self.system.rounds):
            prepared = self._at(round_)
            noise = np.concatenate([prepared.message_noise, _times(z, prepared.noise)])
            inputs = np.concatenate([prepared.message_inputs, _times(z, prepared.inputs)])
            z = np.concatenate([prepared.message_transition, _times(z, prepared.transition)])
            yield noise, inputs

    def sums(self, basis: np.ndarray, victims: Sequence[int]) -> tuple[np.ndarray, ...]:
        """Return covariance, responses and arriving inputs, with rows in the order of rounds.

        Parameters
        ----------
        basis : ndarray, [T, k]
            Changes of a private input over the rounds.
        victims : sequence of int
            Target agents.

        Returns
        -------
        covariance : ndarray, [rows, rows]
            C.
        response : ndarray, [rows, victims, k]
            A times the basis.
        arrives : ndarray of bool, [T, victims]
            True if an input of a round affects the view.
        """
        columns = np.asarray(victims, dtype=int)
        kind = object if self.final.dtype == object else float
        response = np.zeros((self.n_rows, len(columns), basis.shape[1]), dtype=kind)
        covariance = np.zeros((self.n_rows, self.n_rows), dtype=kind)
        arrives = np.zeros((len(basis), len(columns)), dtype=bool)
        coloured = []
        for t, (noise, inputs) in zip(reversed(range(len(basis))), self, strict=True):
            n_known = len(inputs)
            arrives[t] = (inputs[:, columns] != 0).any(0)
            later = slice(self.n_rows - n_known, None)
            response[later] += inputs[:, columns, None] * basis[t]
            if self.system.filter is not None:
                coloured.append(noise)
            elif noise.any():
                covariance[later, later] += noise @ noise.T
        if coloured:
            covariance += self._coloured(coloured[::-1])
        return covariance, response, arrives

    def _coloured(self, blocks: list[np.ndarray]) -> np.ndarray:
        """Return C if the noise of round t is a combination of that of rounds 1 to t."""
        kind = blocks[0].dtype
        covariance = np.zeros((self.n_rows, self.n_rows), dtype=kind)
        shaped = self.convert(self.system.filter)
        for r in range(len(blocks)):
            total = np.zeros((self.n_rows, blocks[0].shape[1]), dtype=kind)
            for s in range(r, len(blocks)):
                total[self.n_rows - len(blocks[s]) :] += blocks[s] * shaped[s, r]
            covariance += total @ total.T
        return covariance


class _RoundBlocks:
    """Matrices of a round for one observer: observed rows, and columns of unknown noise."""

    def __init__(self, round_: Round, observer: Observer, convert: Convert) -> None:
        unknown = observer.unknown(round_)
        self.rows = convert(observer.rows(round_))
        matrices = (round_.transition, round_.inputs, _columns(round_.noise, unknown))
        self.transition, self.inputs, self.noise = (
            _operand(convert(matrix)) for matrix in matrices
        )
        noise = _columns(round_.message_noise, unknown)
        messages = (round_.message_transition, round_.message_inputs, noise)
        observed = [_observed_rows(self.rows, convert(matrix)) for matrix in messages]
        self.message_transition, self.message_inputs, self.message_noise = observed
        self.nonnegative = not any(
            (stored_values(matrix) < 0).any() for matrix in (*matrices, *observed)
        )
        terms = [int((matrix != 0).sum(0).max()) if matrix.shape[1] else 0 for matrix in matrices]
        self.max_terms = max(*terms, int((self.rows != 0).sum(1).max(initial=0)))


def _final(system: LinearSystem, observer: Observer, convert: Convert) -> np.ndarray:
    rows = observer.final_rows(system)
    states = system.rounds[-1].transition.shape[0]
    if not len(rows):
        return convert(np.zeros((0, states)))
    require(
        system.output is not None,
        "observer",
        observer,
        "an observer of messages only: this system has no final models",
    )
    return convert(rows) @ convert(dense(system.output))


def _columns(matrix: Any, mask: np.ndarray) -> Any:
    return matrix if mask.all() else matrix[:, mask]


def stored_values(matrix: Any) -> np.ndarray:
    """Return the numbers of a matrix, without the zeros of a sparse one."""
    return matrix.data if issparse(matrix) else matrix


def dense(matrix: Any) -> np.ndarray:
    """Convert a matrix that may be sparse to an array."""
    return matrix.toarray() if issparse(matrix) else np.asarray(matrix)


def _operand(matrix: Any) -> Any:
    """Prepare a matrix to multiply rows from the right: sparse transposed, exact by columns."""
    if issparse(matrix):
        return csr_array(matrix.T)
    if matrix.dtype != object:
        return matrix
    return [(np.flatnonzero(column), column[column != 0]) for column in matrix.T]


def _times(rows: np.ndarray, operand: Any) -> np.ndarray:
    if isinstance(operand, np.ndarray):
        return rows @ operand
    if isinstance(operand, list):
        products = [(rows[:, rows_used] * values).sum(1) for rows_used, values in operand]
        return np.stack(products, axis=1) if products else np.zeros((len(rows), 0), dtype=object)
    return np.ascontiguousarray((operand @ rows.T).T)


def _observed_rows(rows: np.ndarray, matrix: Any) -> np.ndarray:
    return (matrix.T @ rows.T).T if issparse(matrix) else rows @ matrix
