"""Logistic loss of margins, and products of models with the records of their agents."""

from __future__ import annotations

import numpy as np

LARGEST_EXPONENT = 700.0
TOGETHER = 8192
"""Number of margins whose losses are computed together."""


def sigmoid_neg(margins: np.ndarray) -> np.ndarray:
    """Compute :math:`1/(1+e^m)` without overflow; twice as fast as the general function."""
    return 1.0 / (1.0 + np.exp(np.minimum(margins, LARGEST_EXPONENT)))


def losses_of(margins: np.ndarray) -> np.ndarray:
    r"""Compute :math:`\ln(1+e^{-m})` up to rounding of 1.

    Blocks of margins are processed one at a time to fit the innermost cache.
    """
    flat = np.ravel(margins)
    losses = np.empty(flat.shape)
    for first in range(0, flat.size, TOGETHER):
        block = flat[first : first + TOGETHER]
        losses[first : first + TOGETHER] = np.log(1.0 + np.exp(-np.abs(block))) - np.minimum(
            block, 0.0
        )
    return losses.reshape(margins.shape)


def per_agent(x: np.ndarray, matrices: np.ndarray) -> np.ndarray:
    """Compute ``x[..., agents, k] @ matrices[([runs,] agents, k, m]``, with one product per agent.

    Parameters
    ----------
    x : ndarray, shape (..., [runs,] agents, k)
        Rows of the products.
    matrices : ndarray, shape ([runs,] agents, k, m)
        One matrix per agent.

    Returns
    -------
    ndarray, shape (..., [runs,] agents, m)
    """
    if matrices.ndim > 3:
        # [..., runs, agents, k]: all axes before the runs become rows of one product.
        ahead = int(np.prod(x.shape[:-3]))
        rows = np.moveaxis(x.reshape(ahead, *x.shape[-3:]), 0, -2)
        return np.moveaxis(rows @ matrices, -2, 0).reshape(*x.shape[:-1], matrices.shape[-1])
    rows = np.moveaxis(x, -2, 0).reshape(x.shape[-2], -1, x.shape[-1])
    product = rows @ matrices
    shape = (x.shape[-2], *x.shape[:-2], matrices.shape[-1])
    return np.moveaxis(product.reshape(shape), 0, -2)
