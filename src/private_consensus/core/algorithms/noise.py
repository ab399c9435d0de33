"""Noise of an algorithm: its distribution, its scale, and the quantity to which it is added.

An algorithm declares its noises by :func:`.parameters.noise_field`. A configuration or a
calibration sets such a field to a number, which is the scale of a :class:`Noise`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from private_consensus.privacy import Release, gamma_norm_noise

from .shapes import column


def _gamma_norm_unit(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    direction = generator.standard_normal(shape)
    return gamma_norm_noise(direction, generator.gamma(shape[-1], size=shape[:-1]), 1.0)


class Law(NamedTuple):
    """Distribution of unit draws, and norm of the sensitivity that calibrates the scale.

    ``unit`` is None for a distribution on a grid, whose draws are not multiples of unit draws.
    """

    unit: Any
    norm: str


LAWS = {
    "laplace": Law("laplace", "l1"),
    "gaussian": Law("normal", "l2"),
    "gamma_norm": Law(_gamma_norm_unit, "l2"),
    "discrete_gaussian": Law(None, "l2"),
}
SCALED = tuple(name for name, law in LAWS.items() if law.unit is not None)
"""Names of the distributions whose draws are unit draws times a scale."""


class NoiseSite(NamedTuple):
    """Declared position, distribution and scale of a noise, for audits.

    Parameters
    ----------
    name : str
        Noised quantity, such as ``message`` or ``minimisation``.
    law : {"gaussian", "laplace", "gamma_norm"}
        Distribution.
    scale : ndarray, broadcastable to [iterations, agents, dim]
        Declared scale, in the unit of the noised quantity; NaN if no noise is added.
    norm : {"l1", "l2"}
        Norm of a change of the noised quantity.
    moved : ndarray, [iterations]
        Declared bound on the change of the noised quantity by one record, divided by the scale.
        The privacy cost of a release is a function of this ratio.
    selected : bool
        True if the sampled noise affects which messages are sent.
    max_observed : int, optional
        Largest number of iterations whose messages are sent, if the choice is independent of
        data and noise. None: all iterations.
    """

    name: str
    law: str
    scale: np.ndarray
    norm: str
    moved: np.ndarray
    selected: bool = False
    max_observed: int | None = None


@dataclass(frozen=True)
class Noise:
    """Independent draws of one distribution, added to one quantity.

    Parameters
    ----------
    scale : float or ndarray
        Scale of all draws or, with ``growth``, the scale at iteration 0, in the unit that the
        algorithm states; 0 for no noise. In a batch it has a leading settings axis.
    law : {"gaussian", "laplace", "gamma_norm", "discrete_gaussian"}
        Distribution of the draws.
    added_to : str
        Noised quantity, such as ``message``, ``gradient`` or ``dual``.
    growth : float or ndarray
        Ratio of the scales of successive iterations: that of iteration t is ``scale / growth**t``.
    """

    scale: Any = 0.0
    law: str = "gaussian"
    added_to: str = "message"
    growth: Any = 1.0

    def __bool__(self) -> bool:
        """Return True if every setting of a batch has noise."""
        return bool(np.all(np.asarray(self.scale) > 0))

    @property
    def norm(self) -> str:
        """Norm of the sensitivity of the noised quantity."""
        return LAWS[self.law].norm

    def at(self, t: int) -> Any:
        """Return the scale in iteration t, in a shape that broadcasts against iterates."""
        return column(self.scale) / column(self.growth) ** t

    def scales(self, horizon: int) -> np.ndarray:
        """Return the scales of a single setting, [horizon]."""
        return self.scale / self.growth ** np.arange(1, horizon + 1)

    def units(self, problem: Any, streams: Any) -> Iterator[np.ndarray]:
        """Return the draws of scale 1 of all iterations.

        Parameters
        ----------
        problem : Problem
            Number of agents and dimension.
        streams : Streams
            Random streams of all runs.

        Returns
        -------
        iterator of ndarray, shape (runs, agents, dim)
            One array per iteration.
        """
        return streams.sequence("noise", LAWS[self.law].unit, (problem.n_agents, problem.dim))

    def site(self, scale: np.ndarray, moved: np.ndarray, name: str = "message") -> NoiseSite:
        """Return the site of this noise, with the scales of all iterations.

        Parameters
        ----------
        scale : ndarray, broadcastable to [iterations, agents, dim]
            Scale in the unit of the noised quantity.
        moved : ndarray, shape (iterations,)
            Bound on the change of that quantity by one record, divided by the scale.
        name : str
            Noised quantity.

        Returns
        -------
        NoiseSite
            Site with the distribution and norm of this noise.
        """
        return NoiseSite(name, self.law, scale, self.norm, moved)

    def site_of(self, release: Release, scales: np.ndarray) -> NoiseSite:
        """Return the site of this noise on messages, with the ratios that a release states.

        Parameters
        ----------
        release : Release
            Release whose losses are the ratios of sensitivity to scale.
        scales : ndarray, shape (horizon,)
            Noise scale of each iteration.

        Returns
        -------
        NoiseSite
            Site named ``message``.
        """
        moved = np.broadcast_to(release.losses(), len(scales))
        return self.site(scales[:, None, None], moved)

    def releases(self, sensitivity: Any, scales: np.ndarray, **attack_fields: Any) -> list[Release]:
        """Return the release of the noised quantity in all iterations; exact without noise.

        Parameters
        ----------
        sensitivity : float or ndarray, shape (horizon,)
            Bound on the change by one record, in the norm of the noise.
        scales : float or ndarray, shape (horizon,)
            Noise scale of each iteration.
        **attack_fields : Any
            Fields of :class:`.Release` that state the loss that a known attack attains.

        Returns
        -------
        list of Release
            One release that covers all iterations.
        """
        if not self:
            return [Release("exact", sensitivity=float(np.max(sensitivity)), scale=0.0)]
        return [Release(self.law, sensitivity=sensitivity, scale=scales, **attack_fields)]

    def reached(self, problem: Any, horizon: int, first: float | None) -> np.ndarray | None:
        """Return the fraction of the gradient's sensitivity that an attack at delta 0 attains.

        In iteration 1, the gradient is evaluated at a fixed point. In later iterations, every
        point has a positive density. The fraction is that at points far from the origin.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        horizon : int
            Number of iterations.
        first : float or None
            Additional factor in iteration 1; None if it is unknown.

        Returns
        -------
        ndarray, shape (horizon,), or None
            None if either fraction is unknown.
        """
        later = problem.reached_gradient_share(self.norm)
        if first is None or later is None:
            return None
        return np.where(np.arange(horizon) == 0, first * later, later)
