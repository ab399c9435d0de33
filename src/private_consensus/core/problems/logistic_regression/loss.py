"""Logistic loss of margins, and products of models with the records of their agents."""

from __future__ import annotations

import numpy as np

LARGEST_EXPONENT = 700.0
BLOCK_MARGINS = 8192
"""Number of margins per block, which fits into the innermost cache."""


def sigmoid_neg(margins: np.ndarray) -> np.ndarray:
    """Compute the sigmoid :math:`1/(1+e^m)` of negative margins without overflow."""
    return 1.0 / (1.0 + np.exp(np.minimum(margins, LARGEST_EXPONENT)))


def losses_of(margins: np.ndarray) -> np.ndarray:
    r"""Compute the logistic losses :math:`\ln(1+e^{-m})` with absolute rounding errors of 1e-16."""
    flat = np.ravel(margins)
    losses = np.empty(flat.shape)
    for first in range(0, flat.size, BLOCK_MARGINS):
        block = flat[first : first + BLOCK_MARGINS]
        losses[first : first + BLOCK_MARGINS] = np.log(1.0 + np.exp(-np.abs(block))) - np.minimum(
            block, 0.0
        )
    return losses.reshape(margins.shape)


def per_agent(x: np.ndarray, matrices: np.ndarray) -> np.ndarray:
    """Multiply the rows of each agent by the matrix of the agent.

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
        batch_size = int(np.prod(x.shape[:-3]))
        rows = np.moveaxis(x.reshape(batch_size, *x.shape[-3:]), 0, -2)
        return np.moveaxis(rows @ matrices, -2, 0).reshape(*x.shape[:-1], matrices.shape[-1])
    rows = np.moveaxis(x, -2, 0).reshape(x.shape[-2], -1, x.shape[-1])
    product = rows @ matrices
    shape = (x.shape[-2], *x.shape[:-2], matrices.shape[-1])
    return np.moveaxis(product.reshape(shape), 0, -2)
