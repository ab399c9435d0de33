r"""Noise from unit draws.

The draws come from outside, so that settings with different scales share them; ``scale`` broadcasts
and may carry a settings axis. Scales mean what :mod:`private_consensus.privacy.releases` says. The
draws are floating-point numbers: the guarantee is that of the real-valued mechanism. The one that
is exact on a computer is in :mod:`private_consensus.privacy.discrete`.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def gaussian_noise(unit: np.ndarray, scale: Any) -> np.ndarray:
    """Noise of standard deviation ``scale`` from standard normal draws; hides an l2 sensitivity.

    Parameters
    ----------
    unit : ndarray
        Standard normal draws.
    scale : float or ndarray
        Broadcast against ``unit``.

    Returns
    -------
    ndarray
    """
    return scale * unit


def laplace_noise(unit: np.ndarray, scale: Any) -> np.ndarray:
    r"""Noise of density :math:`e^{-|y|/b}/(2b)`, b = ``scale``; hides an l1 sensitivity.

    Parameters
    ----------
    unit : ndarray
        Laplace draws of scale 1.
    scale : float or ndarray
        Broadcast against ``unit``.

    Returns
    -------
    ndarray
    """
    return scale * unit


def gamma_norm_noise(direction: np.ndarray, radius: np.ndarray, scale: Any) -> np.ndarray:
    r"""Noise of density proportional to :math:`e^{-\|b\|_2/s}`, s = ``scale``.

    Hides an l2 sensitivity. In polar coordinates the density of the radius is
    :math:`r^{d-1}e^{-r/s}`: Gamma with shape d, independent of a uniform
    direction (Chaudhuri, Monteleoni, Sarwate, JMLR 2011).

    Parameters
    ----------
    direction : ndarray, shape (..., d)
        Standard normal draws; only their direction is used.
    radius : ndarray, shape (...)
        Draws of the Gamma law of shape d and scale 1.
    scale : float or ndarray
        1/zeta; broadcast against ``direction``.

    Returns
    -------
    ndarray, shape (..., d)
    """
    length = np.linalg.norm(direction, axis=-1, keepdims=True)
    return scale * (radius[..., None] * direction / length)
