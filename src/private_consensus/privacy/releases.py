"""Releases, the input of the accountants: mechanism, sensitivity, noise scale and count."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from private_consensus.common.errors import InvalidInput, arguments, require

from .loss_distributions import Pair

NORMS = {"gaussian": "l2", "laplace": "l1", "gamma_norm": "l2", "discrete_gaussian": "l2"}
"""Norm of the sensitivity of each distribution of noise."""
NEEDED = {
    **dict.fromkeys(NORMS, ("sensitivity", "scale")),
    "pure": ("epsilon",),
    "profile": (),
    "exact": ("sensitivity",),
}
"""Numbers that each mechanism needs."""
ROUNDING = 1e-12
"""Relative difference below which two losses count as equal."""
MAX_COUNT = 10**12
"""Largest number of releases; a larger one is treated as an input error."""
MAX_LISTED = 4
"""Largest number of pairs of sensitivity and scale that the text of a release lists."""


class PrivacyProfile(ABC):
    """Hashable description of a mechanism by bounds that hold for every pair of neighbours."""

    def pair(self) -> Pair | None:
        """Return a dominating pair, which some neighbours attain; None if none is known."""
        return None

    def divergence(self, order: float) -> float:
        """Return a bound on the Renyi divergence of an order above 1, in both directions.

        It is used if no dominating pair is known, and infinite if there is no bound.
        """
        return math.inf

    @abstractmethod
    def mu_if_sampled(self) -> float:
        r"""Return the largest :math:`\mu`, given that the record is in the batch.

        :math:`\mu` is the sensitivity over the standard deviation of the noise.
        """


@dataclass(frozen=True, eq=False)
class Release(arguments.KnownKeywords):
    r"""Release of one noisy value, or of a series of noisy values.

    Parameters
    ----------
    mechanism : str
        ``gaussian``: scale is the standard deviation of each coordinate; l2 sensitivity.
        ``laplace``: scale is b of the density :math:`e^{-|y|/b}/(2b)`, whose standard deviation is
        :math:`\sqrt2\,b`; l1 sensitivity.
        ``gamma_norm``: density proportional to :math:`e^{-\zeta\|b\|_2}`, scale is
        :math:`1/\zeta`; l2 sensitivity.
        ``discrete_gaussian``: scale is the parameter sigma on the integers, sensitivity counted in
        steps of the grid; l2.
        ``pure``: a mechanism known only by its pure ``epsilon``.
        ``profile``: known by its :class:`PrivacyProfile`, which credits its sampling already.
        ``exact``: a value released without noise. Sensitivity 0 means that it is independent of the
        private data; without a sensitivity it depends on them.
    sensitivity, scale : float or 1-D array
        An array has one value per iteration; the two are broadcast together.
    count : int
        Number of repetitions of the whole series.
    proven : bool
        True if the sensitivity is proven. The accountants report it.
    note : str
        Reason why the sensitivity is not proven, or an assumption.
    epsilon : float or 1-D array
        Pure epsilon of each release; used by ``pure`` only.
    profile : PrivacyProfile
        Privacy profile; used by ``profile`` only.
    dim : int, optional
        Number of coordinates of ``gamma_norm`` noise. Used by lower bounds only.
    attained : float or 1-D array, optional
        Fraction of the stated sensitivity that ONE pair of neighbours attains at EVERY release of
        the series, for all earlier outcomes (a limit of pairs counts as one pair). For ``laplace``:
        by a change of a single coordinate. For ``discrete_gaussian``: used at delta 0 only. None
        if no such fraction is known. For ``exact`` and ``profile``: 1 if a pair has different
        values, or attains :meth:`PrivacyProfile.pair`. Lower bounds are computed
        from it, see :mod:`private_consensus.privacy.brackets`; no accountant uses it.
    reached : float or 1-D array, optional
        Fraction that one pair approaches arbitrarily closely along SOME sequence of outcomes, each
        with a positive density. At delta 0 only this fraction matters. For ``laplace``: in any
        shape. None: equal to ``attained``.
    attack : Release, optional
        Release of known distribution that reveals at most as much as this one. It replaces this
        release in lower bounds.
    log_tolerance : float
        b, for an attack: on both data sets the observation has the stated distribution up to
        factors within :math:`[e^{-b}, e^b]`.

    Raises
    ------
    InvalidInput
        With key ``release.<field>``.
    """

    mechanism: str
    sensitivity: Any = None
    scale: Any = None
    count: int = 1
    proven: bool = True
    note: str = ""
    epsilon: Any = None
    profile: PrivacyProfile | None = None
    dim: int | None = None
    attained: Any = None
    reached: Any = None
    attack: Release | None = None
    log_tolerance: float = 0.0

    def __post_init__(self):
        arguments.choice("release.mechanism", self.mechanism, NEEDED)
        if self.mechanism == "exact" and self.sensitivity is None:
            object.__setattr__(self, "sensitivity", np.inf)
        needed = NEEDED[self.mechanism]
        for name in needed:
            object.__setattr__(self, name, _levels(name, getattr(self, name)))
        for name in {"sensitivity", "scale", "epsilon"} - set(needed):
            unused, noiseless = getattr(self, name), self.mechanism == "exact" and name == "scale"
            empty = unused is None or (noiseless and arguments.real(unused) == 0)
            require(empty, f"release.{name}", unused, f"None for the mechanism {self.mechanism}")
        is_profile = self.mechanism == "profile"
        expected = "a PrivacyProfile" if is_profile else f"None for {self.mechanism}"
        kind = PrivacyProfile if is_profile else type(None)
        arguments.instance("release.profile", self.profile, kind, expected)
        count = arguments.whole("release.count", self.count, 0, MAX_COUNT)
        object.__setattr__(self, "count", count)
        arguments.instance("release.proven", self.proven, bool | np.bool_, "True or False")
        arguments.text("release.note", self.note)
        key, nonnegative = "release.log_tolerance", "a number >= 0"
        arguments.number(key, self.log_tolerance, nonnegative, lambda v: v >= 0)
        shape = self.losses().shape  # fails early if sensitivity and scale do not broadcast
        expected = "a fraction in [0, 1], or one per release of the series"
        for name in ("attained", "reached"):
            if (value := getattr(self, name)) is not None:
                fractions = _levels(name, value)
                fits = np.all(fractions <= 1) and np.shape(fractions) in ((), shape)
                require(bool(fits), f"release.{name}", value, expected)
                object.__setattr__(self, name, fractions)

    @property
    def norm(self) -> str | None:
        """Norm of the sensitivity; None if the mechanism has no sensitivity."""
        return NORMS.get(self.mechanism)

    def losses(self) -> np.ndarray:
        """Return the loss parameter of each release of the series, before sampling and ``count``.

        Sensitivity over scale: mu of a Gaussian; the pure epsilon of ``laplace``, ``gamma_norm``
        and ``pure``; :meth:`PrivacyProfile.mu_if_sampled` of ``profile``. It is infinite if a
        data-dependent value is released without noise.

        Returns
        -------
        ndarray, shape (releases,)
        """
        if self.mechanism == "pure":
            return np.atleast_1d(self.epsilon)
        if self.profile is not None:
            return np.array([self.profile.mu_if_sampled()])
        if self.mechanism == "exact":
            return np.where(np.atleast_1d(self.sensitivity) > 0, np.inf, 0.0)
        try:
            pair = np.atleast_1d(self.sensitivity, self.scale)
            sensitivity, scale = np.broadcast_arrays(*pair)
        except ValueError as error:
            shapes = np.shape(self.sensitivity), np.shape(self.scale)
            raise InvalidInput("release.scale", shapes, "shapes that broadcast") from error
        without_noise = (scale == 0) | np.isinf(sensitivity)
        infinite = np.full(scale.shape, np.inf)
        with np.errstate(over="ignore"):
            ratio = np.divide(sensitivity, scale, out=infinite, where=~without_noise)
        return np.where(sensitivity == 0, 0.0, ratio)

    def covers(self, smaller: Release) -> bool:
        """Return True if another release of the same kind has at most the loss of this one.

        Profiles are compared for equality, numbers up to rounding errors.
        """
        kinds = [(r.mechanism, r.dim, r.profile) for r in (self, smaller)]
        losses, smaller_losses = self.losses(), smaller.losses()
        return (
            kinds[0] == kinds[1]
            and smaller.count <= self.count
            and (smaller.proven or not self.proven)
            and losses.shape == smaller_losses.shape
            and bool(np.all(smaller_losses <= losses * (1 + ROUNDING)))
        )

    def __str__(self) -> str:
        """Describe the release, such as ``gaussian: 100 x sensitivity 0.02, scale 0.5``.

        Iterations with equal numbers are counted together. More than :data:`MAX_LISTED` different
        pairs of sensitivity and scale are described by their ranges, the sum of the
        :meth:`losses` (pure epsilon) and the root of the sum of their squares (mu of a Gaussian).
        """
        if self.profile is not None:
            return f"{self.mechanism}: {self.count} x {self.profile}"
        names = NEEDED[self.mechanism]
        series = np.broadcast_arrays(*(np.atleast_1d(getattr(self, name)) for name in names))
        counts = Counter(zip(*(values.tolist() for values in series), strict=True))
        if len(counts) <= MAX_LISTED:
            texts = (f"{self.count * n} x {_described(names, v)}" for v, n in counts.items())
            return f"{self.mechanism}: {' | '.join(texts)}"
        losses = self.losses()
        sums = self.count * losses.sum(), np.sqrt(self.count * np.sum(losses**2))
        return (
            f"{self.mechanism}: {self.count * len(losses)} x {_described(names, series)}, "
            f"{_described(('sum of losses', 'root of the sum of their squares'), sums)}"
        )


def _described(names: Sequence[str], numbers: Sequence[Any]) -> str:
    """Return names with numbers, or with ranges of numbers, such as "scale 0.5 to 2"."""
    ends = [(f"{np.min(values):.10g}", f"{np.max(values):.10g}") for values in numbers]
    texts = (low if low == high else f"{low} to {high}" for low, high in ends)
    return ", ".join(f"{name} {text}" for name, text in zip(names, texts, strict=True))


def _levels(name: str, value: Any) -> float | np.ndarray:
    """Convert a value to a non-negative float or a read-only 1-D array.

    An empty array is an error: no releases are a count of 0, not a loss of 0.
    """
    key, expected = f"release.{name}", "a number >= 0, or a non-empty 1-D array of them"
    levels = np.array(arguments.array(key, value, expected, lambda v: v >= 0))
    require(levels.ndim <= 1 and levels.size > 0, key, value, expected)
    levels.setflags(write=False)
    return float(levels) if levels.ndim == 0 else levels
