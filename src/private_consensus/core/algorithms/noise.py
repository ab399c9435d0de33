"""Noise of an algorithm: its distribution, the quantity to which it is added, and its scale.

An algorithm declares its noises by :func:`.parameters.noise_field`. A configuration or a
calibration sets such a field to a number, which is the scale of a :class:`Noise`.
:func:`calibrated` sets the scale of an algorithm with the fields ``law``, ``noise``, ``growth`` and
``calibration`` by the accountant or by the formula of its paper.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from private_consensus.common.errors import require
from private_consensus.privacy import Release, calibrate, gamma_norm_noise

GIVEN = "given"
"""Calibration rule of an algorithm whose noise does not depend on the budget."""

CALIBRATIONS = ("accountant", "formula", GIVEN)


def column(value: Any) -> Any:
    """Reshape a field so that it broadcasts against ``[settings, runs, agents, dim]``."""
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return value[:, None, None, None]
    return value


def per_agent(value: Any) -> Any:
    """Reshape a field so that it broadcasts against ``[settings, runs, agents]``."""
    array = column(value)
    return array[..., 0] if isinstance(array, np.ndarray) else array


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
        """Return the draws of scale 1, [runs, agents, dim], of all iterations."""
        return streams.sequence("noise", LAWS[self.law].unit, (problem.n_agents, problem.dim))

    def site(self, scale: np.ndarray, moved: np.ndarray, name: str = "message") -> NoiseSite:
        """Return the site of this noise, with the scales of all iterations.

        Parameters
        ----------
        scale : ndarray, broadcastable to [iterations, agents, dim]
            Scale in the unit of the noised quantity.
        moved : ndarray, shape (iterations,)
            Bound on the change of that quantity by one record, divided by the scale.
        """
        return NoiseSite(name, self.law, scale, self.norm, moved)

    def site_of(self, release: Release, scales: np.ndarray) -> NoiseSite:
        """Return the site ``message`` of this noise, with the ratios that a release states.

        The losses of the release are ratios of sensitivity to scale. ``scales``, [horizon], are
        those of the iterations.
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
        """
        if not self:
            return [Release("exact", sensitivity=float(np.max(sensitivity)), scale=0.0)]
        return [Release(self.law, sensitivity=sensitivity, scale=scales, **attack_fields)]

    def reached(self, problem: Any, horizon: int, first: float | None) -> np.ndarray | None:
        """Return the fraction of the sensitivity that an attack at delta 0 attains, [horizon].

        In iteration 1, the gradient is evaluated at a fixed point, and the fraction has the
        additional factor ``first``; None, for 0, if it is unknown. In later iterations, every point
        has a positive density. The fraction is that at points far from the origin. The result is
        None if it is unknown.
        """
        later = problem.reached_gradient_share(self.norm)
        if later is None:
            return None
        return np.where(np.arange(horizon) == 0, (first or 0.0) * later, later)


def calibrated(algorithm: Any, budget, problem, network, horizon: int) -> Any:
    """Return a copy of an algorithm with one noise, calibrated to a budget; itself if it is fixed.

    The algorithm has the fields ``law``, ``noise``, ``growth`` and ``calibration``.
    """
    if algorithm.noise_is_given:
        return algorithm
    if not budget.private:
        return replace(algorithm, noise=0.0)
    return replace(algorithm, noise=least_noise(algorithm, budget, problem, network, horizon))


def least_noise(algorithm: Any, budget, problem, network, horizon: int) -> float:
    """Return the smallest noise scale that meets a finite budget, by accountant or formula.

    The field ``calibration`` of the algorithm names the rule.
    """
    if algorithm.calibration == "formula":
        return _by_formula(algorithm, budget, problem, network, horizon)

    def releases_at(noise):
        return replace(algorithm, noise=noise).releases(problem, network, horizon)

    return calibrate(releases_at, budget)


def _by_formula(algorithm: Any, budget, problem, network, horizon: int) -> float:
    """Return the noise scale at which the paper's formula equals the epsilon of the budget.

    All formulas have the form a / noise + b, which two values determine.
    """
    at_1, at_2 = (
        replace(algorithm, noise=s).epsilon_by_formula(budget.delta, problem, network, horizon)
        for s in (1.0, 2.0)
    )
    constant, factor = 2 * at_2 - at_1, 2 * (at_1 - at_2)
    expected = f"above {constant:g}, the privacy loss that remains with any noise"
    require(budget.epsilon > constant, "budget.epsilon", budget.epsilon, expected)
    return factor / (budget.epsilon - constant)


def largest_sum(losses: Iterable[Any]) -> float:
    """Sum the losses of an agent over iterations, and return the largest sum.

    ``losses`` has one array [settings, runs, agents, 1] per iteration.
    """
    return float(np.max(sum(losses)))


def published_change(problem) -> float:
    r"""Return the published sensitivity :math:`\mathcal B_\infty = 1/b_i` of Xiao et al.

    It is the weight of one record. It bounds the change of a gradient per coordinate only for
    labels in {0, 1} and features in [0, 1] (errata E1.3). ``problem.record_change("linf")`` is a
    bound in general.
    """
    return getattr(problem, "weight", None) or problem.record_change("linf")
