"""Releases: mechanism, sensitivity, noise scale and count, as an accountant takes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from private_consensus.errors import InvalidInput, arguments, require

# The norm in which a mechanism's sensitivity is measured; None: it has no sensitivity.
NORMS = {
    "gaussian": "l2",
    "laplace": "l1",
    "gamma_norm": "l2",
    "discrete_gaussian": "l2",
    "pure": None,
    "profile": None,
    "exact": None,
}
# Orders at which a mechanism known by its privacy profile gives its Renyi divergence.
RENYI_ORDERS = (
    *(1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5),
    *map(float, range(4, 11)),
    *map(float, range(12, 33, 2)),
    *map(float, range(36, 65, 4)),
    *(80.0, 96.0, 128.0, 192.0, 256.0),
)
SAMPLINGS = ("poisson", "fixed_size")
MAX_COUNT = 10**12
"""Largest number of releases; a larger one is a slip of the pen."""


@dataclass(frozen=True)
class Sampling:
    """Sampling of the records of one release from the agent's data.

    Parameters
    ----------
    kind : {"poisson", "fixed_size"}
        ``poisson``: every record on its own with probability ``rate``; the release's sensitivity
        and the whole statement are then for adding or removing a record. ``fixed_size``: a uniform
        subset without replacement, of size ``rate`` times the number of records; sensitivity and
        statement are then for replacing a record.
    rate : float
        In [0, 1].

    Raises
    ------
    InvalidInput
        With key ``sampling.kind`` or ``sampling.rate``.
    """

    kind: str
    rate: float

    def __post_init__(self):
        arguments.choice("sampling.kind", self.kind, SAMPLINGS)
        within = "a number in [0, 1]"
        rate = arguments.number("sampling.rate", self.rate, within, lambda v: 0 <= v <= 1)
        object.__setattr__(self, "rate", rate)

    @property
    def change(self) -> str:
        """The neighbouring change for which amplification by this sampling is known."""
        return "add_remove" if self.kind == "poisson" else "replace"


class PrivacyProfile(Protocol):
    """A mechanism known by what bounds it for every pair of neighbours; hashable."""

    def renyi(self) -> tuple[float, ...]:
        """Renyi divergence at each of :data:`RENYI_ORDERS`, of either direction."""

    def deltas(self, epsilon: np.ndarray) -> tuple[np.ndarray, ...]:
        """delta at each (also negative) epsilon of a dominating pair: one profile if it serves
        both directions, two if not, none if no pair is known."""

    def largest(self) -> float:
        """A loss that is exceeded with negligible probability."""

    def attained(self) -> tuple[tuple[float, float, float], ...]:
        r"""What some pair of neighbours attains, none if that is not known: the law of its loss
        is that of :math:`(1-\gamma)N(0,1)+\gamma N(\mu,1)` against :math:`N(0,1)`, one
        (probability, :math:`\gamma`, :math:`\mu`) for each value of what is seen beside it."""

    def mu_if_sampled(self) -> float:
        r"""Sensitivity over standard deviation of the noise, given that the record is in the batch:
        the largest :math:`\mu`."""


@dataclass(frozen=True)
class RandomCount:
    r"""Gaussian releases of one :math:`\mu` whose number K is random and seen, and independent of
    the data. A :class:`PrivacyProfile` for attacks alone: it bounds nothing from above.

    Parameters
    ----------
    mu : float
    probabilities : tuple of float
        Of K = 0, 1, ...
    """

    mu: float
    probabilities: tuple[float, ...]

    def __post_init__(self):
        arguments.number("random_count.mu", self.mu, "a number >= 0", lambda v: v >= 0)
        key, expected = "random_count.probabilities", "a 1-D array of probabilities with sum 1"
        law = arguments.array(key, self.probabilities, expected, lambda v: (v >= 0) & (v <= 1))
        require(law.ndim == 1 and abs(law.sum() - 1) < 1e-6, key, self.probabilities, expected)

    def renyi(self) -> tuple[float, ...]:
        """Infinite, as no upper bound is known; 0 where there is nothing to see."""
        something = self.mu > 0 and any(self.probabilities[1:])
        return (np.inf if something else 0.0,) * len(RENYI_ORDERS)

    def deltas(self, epsilon: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return None, since no curve is known."""
        return ()

    def largest(self) -> float:
        """Return infinity, since no largest loss exists."""
        return np.inf

    def mu_if_sampled(self) -> float:
        """Return the value of a single release."""
        return self.mu

    def attained(self) -> tuple[tuple[float, float, float], ...]:
        r"""K releases are one of :math:`\sqrt K\mu`."""
        counted = enumerate(self.probabilities)
        return tuple((p, 1.0, float(np.sqrt(k)) * self.mu) for k, p in counted if p > 0)


@dataclass(frozen=True, eq=False)
class Release:
    r"""Noisy answer, or a series of them.

    Parameters
    ----------
    mechanism : str
        ``gaussian``: scale is the standard deviation of each coordinate; l2 sensitivity.
        ``laplace``: scale is b of the density :math:`e^{-|y|/b}/(2b)`; l1 sensitivity.
        ``gamma_norm``: density proportional to :math:`e^{-\zeta\|b\|_2}`, scale is
        :math:`1/\zeta`; l2 sensitivity.
        ``discrete_gaussian``: scale is the parameter sigma on the integers, sensitivity counted in
        steps of the grid; l2.
        ``pure``: a mechanism known only by its pure ``epsilon``.
        ``profile``: known by its :class:`PrivacyProfile`, which credits its sampling already.
        ``exact``: a value released without noise; sensitivity 0 says that it is independent of the
        private data, none given that it is not.
    sensitivity, scale : float or 1-D array
        One value an iteration where an array; the two are broadcast together.
    norm : {"l1", "l2"}, optional
        Of the sensitivity. Only there to be read and checked: each mechanism has one.
    count : int
        How often the whole series happens.
    sampling : Sampling, optional
        None: all records take part.
    proven : bool
        Whether the sensitivity is proven. An accountant hands this on.
    note : str
        Why not, or what is assumed.
    epsilon : float or 1-D array
        Only of ``pure``.
    profile : PrivacyProfile
        Only of ``profile``.
    dim : int, optional
        Of ``gamma_norm``: how many coordinates the noise has. Lower bounds alone ask for it.
    attained : float or 1-D array, optional
        Share of the stated sensitivity that ONE pair of neighbours attains at EVERY release of the
        series, whatever happened before (a limit of pairs counts as one); of ``laplace`` by a
        change of a single coordinate, of ``discrete_gaussian`` by whole steps of one coordinate.
        None where no such share is known. Of ``exact`` and ``profile``: 1 if a pair has different
        values, or attains :meth:`PrivacyProfile.attained`. Lower bounds are made of it, see
        :mod:`private_consensus.privacy.brackets`; no accountant reads it.
    reached : float or 1-D array, optional
        Share that one pair comes arbitrarily near to along SOME course of the series, all of whose
        outcomes have a density: all that counts at delta 0. Of ``laplace`` in any shape. None: what
        is attained.
    attack : Release, optional
        Of known law, and known to tell no more than this one: takes its place in lower bounds.
    log_tolerance : float
        Of an attack, b: on either data set what is seen has the stated law up to factors within
        :math:`[e^{-b}, e^b]`.

    Raises
    ------
    InvalidInput
        With key ``release.<field>``.
    """

    mechanism: str
    sensitivity: Any = None
    scale: Any = None
    norm: str | None = None
    count: int = 1
    sampling: Sampling | None = None
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
        arguments.choice("release.mechanism", self.mechanism, NORMS)
        if self.mechanism == "exact" and self.sensitivity is None:
            object.__setattr__(self, "sensitivity", np.inf)
        needed = _NEEDED[self.mechanism]
        for name in needed:
            object.__setattr__(self, name, _levels(name, getattr(self, name)))
        for name in _NUMBERS - set(needed):
            unread, noiseless = getattr(self, name), self.mechanism == "exact" and name == "scale"
            empty = unread is None or (noiseless and arguments.real(unread) == 0)
            require(empty, f"release.{name}", unread, f"nothing for {self.mechanism}")
        self._check_norm()
        self._check_curves()
        self._check_options()
        for name in ("attained", "reached"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, self._shares(name))
        self.losses()  # sensitivity and scale must broadcast; better now than in the accountant

    def _check_options(self):
        count = arguments.whole("release.count", self.count, 0, MAX_COUNT)
        object.__setattr__(self, "count", count)
        arguments.flag("release.proven", self.proven)
        arguments.text("release.note", self.note)
        if self.dim is not None:
            arguments.whole("release.dim", self.dim, 1)
        for name, kind in (("sampling", Sampling), ("attack", Release)):
            value = getattr(self, name)
            if value is not None:
                arguments.instance(f"release.{name}", value, kind, f"a {kind.__name__} or None")
        tolerance = arguments.number(
            "release.log_tolerance", self.log_tolerance, "a number >= 0", lambda v: v >= 0
        )
        object.__setattr__(self, "log_tolerance", tolerance)

    def _check_norm(self):
        natural = NORMS[self.mechanism]
        if natural is None:
            return
        given = natural if self.norm is None else self.norm
        require(given == natural, "release.norm", self.norm, f"{natural} for {self.mechanism}")
        object.__setattr__(self, "norm", given)

    def _shares(self, name: str) -> float | np.ndarray:
        """A share of the sensitivity, or one a release of the series."""
        given = getattr(self, name)
        shares = _levels(name, given)
        expected = "a share in [0, 1], or one for each release of the series"
        fitting = np.ndim(shares) == 0 or np.shape(shares) == self.losses().shape
        require(bool(np.all(shares <= 1)) and fitting, f"release.{name}", given, expected)
        return shares

    def _check_curves(self):
        wanted = self.mechanism == "profile"
        expected = f"{'a PrivacyProfile' if wanted else 'nothing'} for {self.mechanism}"
        has_curve = callable(getattr(self.profile, "renyi", None))
        fits = has_curve if wanted else self.profile is None
        require(fits, "release.profile", self.profile, expected)

    def losses(self) -> np.ndarray:
        """Loss parameter of each release of the series, before sampling and ``count``.

        Sensitivity over scale: mu of a Gaussian, the pure epsilon of ``laplace``, ``gamma_norm``
        and ``pure``, the divergence at the smallest order of ``profile``, infinity where something
        data-dependent is released without noise.

        Returns
        -------
        ndarray, 1-D
        """
        if self.mechanism == "pure":
            return np.atleast_1d(self.epsilon)
        if self.profile is not None:
            return np.array([self.profile.renyi()[0]])
        if self.mechanism == "exact":
            return np.where(np.atleast_1d(self.sensitivity) > 0, np.inf, 0.0)
        try:
            sensitivity, scale = np.broadcast_arrays(*map(np.atleast_1d, self._pair()))
        except ValueError as error:
            shapes = tuple(np.shape(part) for part in self._pair())
            raise InvalidInput("release.scale", shapes, "shapes that broadcast") from error
        return _ratio(sensitivity, scale)

    def _pair(self):
        return self.sensitivity, self.scale


_NUMBERS = {"sensitivity", "scale", "epsilon"}
_NEEDED = {
    "gaussian": ("sensitivity", "scale"),
    "laplace": ("sensitivity", "scale"),
    "gamma_norm": ("sensitivity", "scale"),
    "discrete_gaussian": ("sensitivity", "scale"),
    "pure": ("epsilon",),
    "profile": (),
    "exact": ("sensitivity",),
}


def pure(epsilon: Any, *, count: int = 1, **options: Any) -> Release:
    """A release known only by its pure epsilon."""
    return Release("pure", epsilon=epsilon, count=count, **options)


def exact(sensitivity: Any = None, **options: Any) -> Release:
    """A value released as it is; it depends on private data unless ``sensitivity`` is 0."""
    return Release("exact", sensitivity, **options)


def _levels(name: str, value: Any) -> float | np.ndarray:
    """A non-negative float or read-only 1-D array.

    An empty array is refused: no releases are a count of 0, not a loss of 0.
    """
    key, expected = f"release.{name}", "a number >= 0, or a 1-D array of such that is not empty"
    levels = np.array(arguments.array(key, value, expected, lambda v: v >= 0))
    require(levels.ndim <= 1 and levels.size > 0, key, value, expected)
    levels.setflags(write=False)
    return float(levels) if levels.ndim == 0 else levels


def _ratio(sensitivity: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Sensitivity over scale: 0 where nothing depends on the data, inf where nothing hides it."""
    unhidden = (scale == 0) | np.isinf(sensitivity)
    ratio = np.divide(sensitivity, scale, out=np.full(scale.shape, np.inf), where=~unhidden)
    return np.where(sensitivity == 0, 0.0, ratio)
