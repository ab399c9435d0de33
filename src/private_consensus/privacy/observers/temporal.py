r"""Noise that is correlated over rounds, chosen for the eavesdropper (MAFALDA-SGD).

Each agent adds :math:`\sigma\,(C^{-1}z)_t` in round t, C lower triangular. Inputs that do not
react, or only to what everybody sees, cost the eavesdropper :math:`|C\Delta|^2/\sigma^2`. What the
noise does to the models of all rounds after mixing, at equal privacy, is

.. math::
    \mathrm{sens}(C)^2\,\mathrm{tr}(G\,X^{-1}), \qquad X = C^T C, \qquad
    G_{st} = \sum_i (A_i^T A_i)_{st} = \sum_{r\ge\max(s,t)} \sum_k \lambda_k(W)^{2r-s-t+2}

for symmetric W with eigenvalues :math:`\lambda_k` and models :math:`W y_r`; no matrix has agents
times rounds rows (objective: Bellet, Cyffers, Frey, Gaudel, Lereverend, Taiani, ICLR 2026, arXiv
2510.17480; this form of G is worked out here).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, sqrtm

from private_consensus.errors import require

from .systems import one_graph, whole

_STEPS = 500
_TOLERANCE = 1e-12


def error_gram(mixing: np.ndarray, horizon: int) -> np.ndarray:
    """G, [T, T], of a symmetric mixing matrix."""
    mixing, horizon = one_graph(mixing), whole(horizon, "horizon")
    symmetric = bool(np.allclose(mixing, mixing.T, rtol=0, atol=1e-12))
    require(symmetric, "mixing", "not symmetric", "symmetric weights")
    squares = np.linalg.eigvalsh(mixing)[:, None] ** np.arange(2 * horizon + 1)
    powers = squares.sum(0)
    s, t, r = np.ogrid[:horizon, :horizon, :horizon]
    later = r >= np.maximum(s, t)
    return np.where(later, powers[np.where(later, 2 * r - s - t + 2, 0)], 0.0).sum(-1)


def noise_energy(gram: np.ndarray, factor: np.ndarray) -> float:
    r"""Squared error of all models, :math:`\mathrm{sens}(C)^2\,\mathrm{tr}(G (C^TC)^{-1})`, where
    one round of any agent changes by at most 1: sens is the largest column norm of C."""
    inverse = np.linalg.inv(factor)
    return float((factor**2).sum(0).max() * np.trace(inverse.T @ gram @ inverse))


def optimal_factor(gram: np.ndarray) -> np.ndarray:
    r"""C of the least error where one round of any agent changes; unit columns, lower triangular.

    Minimises :math:`\mathrm{tr}(G X^{-1})` under :math:`X_{tt} = 1`. With
    :math:`S_v = (D_v^{1/2} G D_v^{1/2})^{1/2}` and the fixed point
    :math:`v \leftarrow \mathrm{diag}(S_v)` the minimiser is
    :math:`X = D_v^{-1/2} S_v D_v^{-1/2}`; :math:`X^{-1} G X^{-1}` is then diagonal, which says that
    it is one. C comes from the Cholesky factor of X with time reversed.
    """
    v = np.sqrt(np.diag(gram))
    for _ in range(_STEPS):
        roots = np.sqrt(v)
        inner = np.real(sqrtm(roots[:, None] * gram * roots))
        new = np.diag(inner).copy()
        done = np.abs(new - v).max() <= _TOLERANCE * new.max()
        v = new
        if done:
            break
    roots = np.sqrt(v)
    inner = np.real(sqrtm(roots[:, None] * gram * roots))
    x = inner / np.multiply.outer(roots, roots)
    scale = np.sqrt(np.diag(x))
    x = x / np.multiply.outer(scale, scale)
    return cholesky(x[::-1, ::-1], lower=False)[::-1, ::-1].copy()
