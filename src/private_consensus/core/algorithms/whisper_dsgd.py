"""Whisper D-SGD: noise covariance that fits the mixing weights (Rodio, Chen, Larsson, 2025)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from private_consensus.privacy.mechanisms import Correlated

from .base import column
from .decor import DECOR

SMALLEST = 1e-3
"""Smallest singular value of W that counts: mixing removes smaller parts, whose noise could grow
without bound."""
STEPS = 60
"""Steps of the fixed-point iteration for the multipliers."""


@dataclass(frozen=True, kw_only=True)
class WhisperDSGD(DECOR):
    r"""Decentralized gradient descent with the noise covariance that is optimal for the weights.

    .. math::
        y = z - \eta\bigl(\mathrm{clip}_C(\nabla f(z)) + V\bigr), \qquad z \leftarrow W y, \qquad
        \mathrm{Cov}(V) = \sigma^2 R

    R minimises the noise that remains after mixing, at a fixed loss of the agent with the largest
    loss:

    .. math:: \min_{R \succ 0} \mathrm{tr}(W R W^\top) \quad\text{with}\quad [R^{-1}]_{ii} \le 1

    With the multipliers :math:`\Lambda` of the constraints and :math:`A = W^\top W`, the stationary
    point is :math:`R A R = \Lambda`, so that
    :math:`R^{-1} = A^{1/2}(A^{1/2}\Lambda A^{1/2})^{-1/2}A^{1/2}`. To the eavesdropper, who knows
    no seeds, all T rounds are one Gaussian mechanism with
    :math:`\mu_u^2 = T\Delta^2 [R^{-1}]_{uu}/\sigma^2`.

    The parameter ``noise`` is :math:`\sigma`, in the unit of the gradient; ``ratio`` is unused.
    """

    observer = "an outsider, who receives every message and knows no agent's noise"
    source = "Rodio, Chen, Larsson 2025, arXiv 2501.14644, covariance of the noise"

    def mechanisms(self, problem, network, horizon):
        change, root = column(self.eta) * self.change(problem), optimal_root(network.mixing)
        return {"step": Correlated(change, self.message_scale, root=root)}


ALGORITHM = WhisperDSGD
EXAMPLE = "logistic_regression"


def optimal_root(mixing: np.ndarray) -> np.ndarray:
    """Return the symmetric square root of the optimal covariance R for symmetric mixing weights W.

    Both are [agents, agents], or [runs, agents, agents].
    """
    # A = W'W has the root |W|, since W is symmetric.
    root = _function_of(mixing, lambda w: np.maximum(np.abs(w), SMALLEST))
    multipliers = np.ones(mixing.shape[:-1])
    for _ in range(STEPS):
        inner = _function_of(root * multipliers[..., None, :] @ root, lambda w: w**-0.5)
        inverse = root @ inner @ root
        losses = np.diagonal(inverse, axis1=-2, axis2=-1)
        # Agents with a loss above 1 need a larger multiplier.
        multipliers = multipliers * losses
    # The fixed point is approximate, but the constraints must hold: the largest loss becomes 1.
    largest = losses.max(-1, keepdims=True)[..., None]
    return _function_of(inverse / largest, lambda w: w**-0.5)


def _function_of(matrix: np.ndarray, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Apply a function to the eigenvalues of symmetric matrices."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * function(values)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
