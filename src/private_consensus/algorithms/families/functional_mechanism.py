r"""What classifiers by the functional mechanism share. Not an algorithm.

Noise perturbs the coefficients of the quadratic objective; the classifier is the minimiser of what
comes out, which costs no more privacy. Everything is released at once, at t = 1.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from ...privacy.functional import COEFFICIENTS, FAIRNESS, Sensitivity
from ...solvers import quadratics
from ..base import Algorithm, NoiseSite
from ..parameters import nonnegative, one_of, positive

MEANS = ("public", "data")
SENSITIVITIES = ("paper", "tight")
LAWS = {"laplace": ("laplace", np.sqrt(2.0)), "gaussian": ("normal", 1.0)}
"""Unit law of each noise, and the standard deviation of a unit draw."""

RIDGE = 4.0
"""Standard deviations of the noise that ``ridge`` adds to the diagonal (Zhang et al. 2012)."""


class Scales(NamedTuple):
    """Noise scales, broadcastable to [settings, runs, d] and, last, [settings, runs, d, d]."""

    linear: np.ndarray
    fairness: np.ndarray
    quadratic: np.ndarray


@dataclass(frozen=True, kw_only=True)
class FunctionalMechanism(Algorithm):
    r"""Minimiser of a noisy quadratic.

    Parameters
    ----------
    mechanism : {"laplace", "gaussian"}
        Law of the noise.
    fair : {"off", "perrec", "plus", "penal"}
        Fairness term. ``penal``: :math:`|g^T w|` itself, g a block of noisy coefficients of its
        own. ``plus``: :math:`g^T w`, one sign. ``perrec``: :math:`\sum_i |z_i - \bar z| x_i^T w`,
        which the proofs of Lemmas 22 and 24 have in place of the absolute value. ``off``: none.
    alpha : float
        :math:`\alpha_1`, what the noisy covariance is multiplied with, which costs no privacy; 0
        leaves the fairness term out and keeps its noise, which makes a control.
    solver : {"ridge", "trim", "ball", "literal"}
        What is done where the noisy quadratic has no minimum, see
        :func:`private_consensus.solvers.quadratics.minimise`; ``ridge`` adds four standard
        deviations of the noise on each diagonal coefficient.
    radius : float
        R of ``ball``.
    coeffs : {"ordered", "unique"}
        Noise on all :math:`d^2` products (then made symmetric), or on each monomial once.
    sens : {"paper", "tight"}
        The printed sensitivities, for features in [0, 1]; or those for rows of norm <= 1.
    zbar : {"public", "data"}
        Whether the mean of the protected attribute is public; if not, its change counts, in what
        the accountant finds and in tight sensitivities.
    emulated : float
        Number of records whose relative noise is emulated: the noise is multiplied by n over this
        number, and nothing is claimed for our n. 0 for none.
    """

    mechanism: str = one_of("laplace", LAWS)
    fair: str = one_of("penal", FAIRNESS)
    alpha: float = nonnegative(1.0)
    solver: str = one_of("ridge", quadratics.REPAIRS)
    radius: float = positive(20.0)
    coeffs: str = one_of("ordered", COEFFICIENTS)
    sens: str = one_of("paper", SENSITIVITIES, calibration=True)
    zbar: str = one_of("public", MEANS, calibration=True)
    emulated: float = nonnegative(0.0, calibration=True)

    needs: ClassVar[tuple[str, ...]] = ("coefficients", "coefficient_change")

    @property
    def uses(self) -> tuple[str, ...]:
        """A mean that is not public has its change counted."""
        return ("mean",) if self.fair != "off" and self.zbar == "public" else ()

    @property
    def law(self) -> str:
        """Return the distribution of all noises."""
        return self.mechanism

    def sensitivity(self, problem, fair: str) -> Sensitivity:
        """Tight sensitivities of the problem's coefficients."""
        public = self.zbar == "public"
        return problem.coefficient_change(fair, public_mean=public, coefficients=self.coeffs)

    def emulation(self, problem) -> float:
        """Return the factor of the noise."""
        return len(problem.labels) / self.emulated if self.emulated else 1.0

    def statements(self, budget, problem, network, horizon):
        """Return the privacy statements; none for noise that emulates more records."""
        return [(self, np.inf if self.emulated else budget.epsilon)]

    @abstractmethod
    def scales(self, problem) -> Scales:
        """Noise scales of all settings."""

    def perturbed(self, problem, streams) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Noisy M, b and g; g is 0 where the fairness term is part of b, or off."""
        made, scales = problem.coefficients, self.scales(problem)
        law, dim = LAWS[self.mechanism][0], problem.dim
        linear = made.linear + scales.linear * streams.draw("noise", law, (dim,), "linear")
        noise = _symmetric(streams.draw("noise", law, (dim, dim), "quadratic"), self.coeffs)
        quadratic = made.quadratic + scales.quadratic * noise
        if self.fair == "off":
            return quadratic, linear, np.zeros_like(linear)
        covariance = made.distance if self.fair == "perrec" else made.covariance
        unit = streams.draw("noise", law, (dim,), "fairness")
        covariance = _column(self.alpha) * (covariance + scales.fairness * unit)
        if self.fair == "penal":
            return quadratic, linear, covariance
        return quadratic, linear + covariance, np.zeros_like(linear)

    # What audits ask for.

    def noised_once(self, quadratic, linear, covariance) -> np.ndarray:
        """Coefficients that have one draw each: the diagonal of M, b and, where it is a block of
        its own, g; [..., number]."""
        diagonal = np.diagonal(quadratic, axis1=-2, axis2=-1)
        parts = [diagonal, linear, *([covariance] if self.fair == "penal" else [])]
        shape = np.broadcast_shapes(*(part.shape for part in parts))
        return np.concatenate([np.broadcast_to(part, shape) for part in parts], axis=-1)

    def noise_sites(self, problem, network, horizon):
        if not all(np.all(part > 0) for part in self._noised(problem)):
            return []
        norm = "l1" if self.mechanism == "laplace" else "l2"
        unknown = np.full(horizon, np.nan)
        return [NoiseSite("coefficients", self.mechanism, np.ones((1, 1, 1)), norm, unknown)]

    def residuals(self, problem, network, streams, execution):
        """The coefficients that were minimised, less the exact ones."""
        if execution.internal is None or not self.noise_sites(problem, network, 1):
            return
        made = problem.coefficients
        covariance = made.distance if self.fair == "perrec" else made.covariance
        covariance = self.alpha * covariance
        linear = made.linear + (covariance if self.fair in ("plus", "perrec") else 0.0)
        bare = self.noised_once(made.quadratic, linear, covariance)
        scale = np.concatenate(self._noised(problem), axis=-1)
        yield {"coefficients": (execution.internal[:, 0] - bare[:, None]) / scale}

    def _noised(self, problem) -> list[np.ndarray]:
        """Scales of :meth:`noised_once` of a single setting, each [1, d]."""
        scales = self.scales(problem)
        parts = [np.diagonal(scales.quadratic, axis1=-2, axis2=-1), scales.linear]
        if self.fair == "penal":
            parts.append(self.alpha * scales.fairness)
        return [np.broadcast_to(part, (1, 1, problem.dim))[0] for part in parts]

    def run(self, problem, network, streams, horizon, observe):
        matrix, linear, covariance = self.perturbed(problem, streams)
        diagonal = np.diagonal(self.scales(problem).quadratic, axis1=-2, axis2=-1)
        found = quadratics.minimise(
            matrix,
            linear,
            covariance,
            repair=self.solver,
            ridge=RIDGE * LAWS[self.mechanism][1] * diagonal,
            radius=_column(self.radius)[..., 0],
        )
        shown = {
            "released": found.w[..., None, :],
            "internal": self.noised_once(matrix, linear, covariance)[..., None, :],
            "repaired": found.repaired,
            "dropped": found.dropped,
        }
        observe(1, np.arange(len(horizon)), shown)


def _column(value) -> np.ndarray:
    """A field as it broadcasts against [settings, runs, d]."""
    return np.reshape(value, (-1, 1, 1))


def by_columns(part, rest, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scales of linear and quadratic coefficients: ``part`` where a chosen column is involved."""
    part, rest = _column(part), _column(rest)
    linear = np.where(chosen, part, rest)
    either = chosen[:, None] | chosen[None, :]
    return linear, np.where(either, part[..., None], rest[..., None])


def _symmetric(unit: np.ndarray, coefficients: str) -> np.ndarray:
    """Noise of a symmetric matrix from draws on all products or, of their upper half, monomials."""
    if coefficients == "ordered":
        return (unit + np.swapaxes(unit, -1, -2)) / 2
    upper = np.triu(unit)
    return (upper + np.swapaxes(upper, -1, -2)) / 2


def paper_sensitivity(norm: str, dim: int, *, fair: bool) -> float:
    r"""Lemmas 21 and 22 (l1): :math:`d^2/4 + d`, :math:`d^2/4 + 3d`; 23 and 24 (l2):
    :math:`\sqrt{d^2/16 + d}`, :math:`\sqrt{d^2/16 + 9d}`."""
    if norm == "l1":
        return dim**2 / 4 + (3 if fair else 1) * dim
    return math.sqrt(dim**2 / 16 + (9 if fair else 1) * dim)
