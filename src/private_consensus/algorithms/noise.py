"""Noise, apart from the algorithm that adds it: what calibration sets.

An algorithm has hyper-parameters, and fields made by :func:`.parameters.noise_field`. A number that
is given for such a field, by a configuration or by a calibration, is the scale of a
:class:`Noise`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..privacy import Release, gamma_norm_noise
from .shapes import column


def _gamma_norm_unit(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    direction = generator.standard_normal(shape)
    return gamma_norm_noise(direction, generator.gamma(shape[-1], size=shape[:-1]), 1.0)


class Law(NamedTuple):
    """Unit draws of a noise, and the norm of the sensitivity that it hides.

    ``unit`` is None where draws of a scale are not multiples of draws of scale 1: on a grid.
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
"""Laws of a unit draw times a scale."""


class NoiseSite(NamedTuple):
    """A place where an algorithm says that it adds noise.

    Parameters
    ----------
    name : str
        Such as ``message`` or ``minimisation``.
    law : str
        ``gaussian``, ``laplace`` or ``gamma_norm``.
    scale : ndarray, broadcastable to [iterations, agents, dim]
        Declared, in the unit of what the noise is added to; NaN where none is added.
    norm : str
        In which a change of the data is measured there.
    moved : ndarray, [iterations]
        Declared bound on that change over the scale; what a release costs is a function of it.
    selected : bool
        Whether the noise itself has a part in what of it is sent.
    max_observed : int, optional
        Largest number of iterations whose noise enters a message of one agent, if the others are
        dropped independently of data and noise. None: all iterations.
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
    """Independent draws of one law, added in one place.

    Parameters
    ----------
    scale : float or ndarray
        Of all draws, or of the first one, in the unit that the algorithm states; 0 for no noise. In
        a batch it has the settings axis in front.
    law : {"gaussian", "laplace", "gamma_norm", "discrete_gaussian"}
    added_to : str
        Such as ``message``, ``gradient`` or ``dual``.
    growth : float or ndarray
        The scale of iteration t is ``scale / growth**t``.
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
        """Return the norm of the change that the noise hides."""
        return LAWS[self.law].norm

    def at(self, t: int) -> Any:
        """Scale of iteration t, as it broadcasts against iterates."""
        return column(self.scale) / column(self.growth) ** t

    def scales(self, horizon: int) -> np.ndarray:
        """Scales of a single setting, [horizon]."""
        return self.scale / self.growth ** np.arange(1, horizon + 1)

    def units(self, problem: Any, streams: Any) -> Iterator[np.ndarray]:
        """Unit draws [runs, agents, dim], one an iteration."""
        return streams.sequence("noise", LAWS[self.law].unit, (problem.n_agents, problem.dim))

    def site(self, scale: np.ndarray, moved: np.ndarray, name: str = "message") -> NoiseSite:
        """Return the noise site for audits, at the scales of all iterations."""
        return NoiseSite(name, self.law, scale, self.norm, moved)

    def site_of(self, release: Release, scales: np.ndarray) -> NoiseSite:
        """The same on messages, each of which costs what a release says; scales are [horizon]."""
        moved = np.broadcast_to(release.losses(), len(scales))
        return self.site(scales[:, None, None], moved)

    def releases(self, sensitivity: Any, scales: np.ndarray, **known: Any) -> list[Release]:
        """One release an iteration; exact ones without noise. ``known`` is what is known to be
        attained."""
        if not self:
            return [Release("exact", sensitivity=float(np.max(sensitivity)), scale=0.0)]
        return [Release(self.law, sensitivity=sensitivity, scale=scales, **known)]

    def reached(self, problem: Any, horizon: int, first: float | None) -> np.ndarray | None:
        """What of the gradient's change is reached at delta 0: ``first`` in iteration 1, whose
        point is not chosen, and later what points far out give, for noise reaches everywhere."""
        later = problem.reached_gradient_share(self.norm)
        if first is None or later is None:
            return None
        return np.where(np.arange(horizon) == 0, first * later, later)
