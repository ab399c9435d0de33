"""Exact test, modulo a prime, of whether a view determines all unknown noise.

The rank modulo a prime is at most the rank over the rationals. Full column rank modulo a prime
therefore proves that the view determines every noise. Then only a shift of the target agent's own
noise can hide a change, if such a shift exists; the noise of other agents hides nothing. On graphs
without symmetry this holds after a few rounds of gossip with one draw of noise.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from .linear_view import dense
from .rational import in_fractions, rational
from .systems import LinearSystem, Round
from .views import Observer

PRIMES = (1_048_573, 1_048_571)
"""Below 2**20, so that a floating-point product of 4,096 terms is exact."""
MAX_TERMS = 4096
MAX_ENTRIES = 4_000_000
"""Largest product of rows and noises for which the rank is computed."""


def determines_noise(system: LinearSystem, observer: Observer) -> bool:
    """Return True if full column rank is proven; False implies nothing.

    Parameters
    ----------
    system : LinearSystem
        Algorithm.
    observer : Observer
        Observing agents or eavesdropper.

    Returns
    -------
    bool
    """
    states = max(round_.transition.shape[0] for round_ in system.rounds)
    if system.filter is not None or states > MAX_TERMS:
        return False
    system = in_fractions(system)
    return any(_full_rank(system, observer, prime) for prime in PRIMES)


def _full_rank(system: LinearSystem, observer: Observer, prime: int) -> bool:
    cache: dict[int, list[_Parts]] = {}
    final = rational(observer.final_rows(system)) @ rational(_output(system))
    z, blocks, visible = _Parts(_modulo(final, prime), final != 0), [], []
    for round_ in reversed(system.rounds):
        if id(round_) not in cache:
            cache[id(round_)] = _prepared(round_, observer, prime)
        transition, noise, onward, fresh = cache[id(round_)]
        block = z.times(noise, prime).under(fresh)
        blocks.append(block.residues)
        visible.append(block.pattern.any(0))
        z = z.times(transition, prime).under(onward)
    rows, visible_noise = len(z.residues), np.concatenate(visible)
    if rows < visible_noise.sum() or rows * len(visible_noise) > MAX_ENTRIES:
        return False
    matrix = np.zeros((rows, len(visible_noise)), dtype=np.int64)
    column = 0
    for block in blocks:
        matrix[rows - len(block) :, column : column + block.shape[1]] = block
        column += block.shape[1]
    return _rank(matrix[:, visible_noise], prime) == visible_noise.sum()


class _Parts(NamedTuple):
    """Residues of a matrix, and its pattern of possibly non-zero entries.

    Multiples of the prime have residue 0 and belong to the pattern.
    """

    residues: np.ndarray
    pattern: np.ndarray

    def times(self, factor: _Parts, prime: int) -> _Parts:
        """Return the product of two matrices modulo the prime.

        Parameters
        ----------
        factor : _Parts
            Right factor.
        prime : int
            Modulus.

        Returns
        -------
        _Parts
        """
        pattern = self.pattern.astype(float) @ factor.pattern > 0
        return _Parts(self.residues @ factor.residues % prime, pattern)

    def columns(self, mask: np.ndarray) -> _Parts:
        return _Parts(self.residues[:, mask], self.pattern[:, mask])

    def under(self, above: _Parts) -> _Parts:
        return _Parts(*map(np.concatenate, zip(above, self, strict=True)))


def _output(system: LinearSystem) -> np.ndarray:
    states = system.rounds[-1].transition.shape[0]
    return np.zeros((system.n_agents, states)) if system.output is None else dense(system.output)


def _prepared(round_: Round, observer: Observer, prime: int) -> list[_Parts]:
    """Return F, N and the observed H and L with columns of unknown noise, modulo the prime."""
    unknown, rows = observer.unknown(round_), observer.rows(round_)
    observed = _Parts(_modulo(rows, prime), rows != 0)
    transition, noise, message_transition, message_noise = _of_round(round_, prime)
    return [
        transition,
        noise.columns(unknown),
        observed.times(message_transition, prime),
        observed.times(message_noise.columns(unknown), prime),
    ]


@lru_cache(maxsize=64)
def _of_round(round_: Round, prime: int) -> list[_Parts]:
    """Return F, N, H and L modulo the prime, which are equal for all observers."""
    matrices = (
        round_.transition, round_.noise, round_.message_transition, round_.message_noise,
    )  # fmt: skip
    return [_Parts(_modulo(matrix, prime), dense(matrix) != 0) for matrix in matrices]


def _modulo(matrix: Any, prime: int) -> np.ndarray:
    """Reduce the rational numbers of a matrix modulo a prime that divides no denominator."""
    values, inverse = np.unique(rational(dense(matrix)), return_inverse=True)
    residues = [_residue(Fraction(value), prime) for value in values]
    return np.array(residues, dtype=float)[inverse].reshape(np.shape(matrix))


def _residue(value: Fraction, prime: int) -> int:
    return value.numerator * pow(value.denominator, -1, prime) % prime


def _rank(matrix: np.ndarray, prime: int) -> int:
    """Compute the rank modulo a prime by elimination; products of two residues fit into 64 bits."""
    matrix, rank = matrix % prime, 0
    for column in range(matrix.shape[1]):
        nonzero = np.flatnonzero(matrix[rank:, column])
        if not len(nonzero):
            continue
        pivot = rank + int(nonzero[0])
        matrix[[rank, pivot]] = matrix[[pivot, rank]]
        matrix[rank] = matrix[rank] * pow(int(matrix[rank, column]), -1, prime) % prime
        below = rank + 1 + np.flatnonzero(matrix[rank + 1 :, column])
        matrix[below] = (
            matrix[below] - np.multiply.outer(matrix[below, column], matrix[rank])
        ) % prime
        rank += 1
    return rank
