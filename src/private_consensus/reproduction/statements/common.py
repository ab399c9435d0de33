"""Graphs, random vectors and searches that the computations of several statements use."""

import numpy as np

from private_consensus.core import networks
from private_consensus.core.randomness import Streams


def adjacency_of(name: str, agents: int) -> np.ndarray:
    """Return the adjacency matrix of a ring, path, star or complete graph."""
    return networks.build(Streams(0, (0,)), name, agents).adjacency.astype(float)


def ring_mixing(agents: int) -> np.ndarray:
    """Return the mixing matrix of a ring on which each agent averages itself and two neighbours."""
    return (np.eye(agents) + adjacency_of("ring", agents)) / 3


def lazy_ring_mixing(agents: int, self_weight: float) -> np.ndarray:
    """Return the mixing matrix of a ring in which both neighbours of an agent weigh equally."""
    return self_weight * np.eye(agents) + (1 - self_weight) / 2 * adjacency_of("ring", agents)


def laplacians(adjacency: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the signless Laplacian and the Laplacian of a graph."""
    degree = np.diag(adjacency.sum(1))
    return degree + adjacency, degree - adjacency


def noise_weight(plus: np.ndarray, minus: np.ndarray) -> float:
    """Return the factor tau of the noise in error bounds of ADMM.

    It is the square of the largest eigenvalue of ``plus``, the signless Laplacian, over twice the
    second smallest of ``minus``, the Laplacian.
    """
    return np.linalg.eigvalsh(plus)[-1] ** 2 / (2 * np.linalg.eigvalsh(minus)[1])


def noisy_admm(
    plus: np.ndarray, minus: np.ndarray, eta: float, curvature: float, targets: np.ndarray | float,
    start: np.ndarray, noises: np.ndarray,
) -> np.ndarray:  # fmt: skip
    r"""Run ADMM whose messages have noise, for :math:`f_i = \frac h2(x - a_i)^2`.

    ``plus`` and ``minus`` are the Laplacians of :func:`laplacians`, and ``targets`` :math:`a_i`.
    Return x^0, ..., x^T before their ``noises``, [T + 1, agents, ...].
    """
    x, dual, xs = start, np.zeros_like(start), [start]
    matrix = curvature * np.eye(len(start)) + eta * (plus + minus)
    sent = x + noises[0]
    for noise in noises[1:]:
        x = np.linalg.solve(matrix, curvature * targets - dual + eta * plus @ sent)
        sent = x + noise
        dual = dual + eta * minus @ sent
        xs.append(x)
    return np.array(xs)


def second_modulus(mixing: np.ndarray) -> float:
    """Return the second largest absolute value of the eigenvalues of a symmetric matrix."""
    return float(np.sort(np.abs(np.linalg.eigvalsh(mixing)))[-2])


def vectors_of_norm(rng: np.random.Generator, norm: float, shape: tuple[int, ...]) -> np.ndarray:
    """Sample vectors of a given l2 norm along the last axis, with random directions."""
    vectors = rng.normal(size=shape)
    return vectors * (norm / np.linalg.norm(vectors, axis=-1, keepdims=True))
