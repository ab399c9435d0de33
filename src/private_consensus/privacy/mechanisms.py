"""Gamma-norm noise, computed from random draws of scale 1.

The draws are parameters, so that settings with different scales share them; ``scale`` broadcasts
and may have a settings axis. Scales are defined in :mod:`private_consensus.privacy.releases`. The
draws are floating-point numbers, while the guarantee is that of the real-valued mechanism.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from private_consensus.common.errors import InvalidInput, arguments, require


def gamma_norm_noise(direction: np.ndarray, radius: np.ndarray, scale: Any) -> np.ndarray:
    r"""Return noise of density proportional to :math:`e^{-\|b\|_2/s}`, s = ``scale``.

    It hides an l2 sensitivity. In polar coordinates the density of the radius is
    :math:`r^{d-1}e^{-r/s}`: Gamma with shape d, independent of a uniform direction (Chaudhuri,
    Monteleoni, Sarwate, JMLR 2011).

    Parameters
    ----------
    direction : ndarray, shape (..., d)
        Standard normal draws; only their direction is used.
    radius : ndarray, shape (...)
        Draws of the Gamma distribution of shape d and scale 1.
    scale : float or ndarray
        s = 1/zeta; broadcast against ``direction``.

    Returns
    -------
    ndarray, shape (..., d)
    """
    direction, radius = _draws("direction", direction), _draws("radius", radius)
    fits = direction.ndim >= 1 and direction.shape[-1] >= 1
    require(fits, "direction", direction.shape, "a shape (..., d) with d >= 1")
    expected = f"shape {direction.shape[:-1]}, that of the directions"
    require(radius.shape == direction.shape[:-1], "radius", radius.shape, expected)
    length = np.linalg.norm(direction, axis=-1, keepdims=True)
    require(bool(np.all(length > 0)), "direction", direction, "vectors that are not 0")
    unit = _draws("unit", radius[..., None] * direction / length)
    scale = arguments.array("scale", scale, "numbers >= 0", lambda v: v >= 0)
    try:
        return scale * unit
    except ValueError as error:
        shapes = unit.shape, scale.shape
        raise InvalidInput("unit, scale", shapes, "shapes that broadcast") from error


def _draws(key: str, draws: np.ndarray) -> np.ndarray:
    return arguments.array(key, draws, "an array of finite numbers", np.isfinite)
