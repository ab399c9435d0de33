"""Common base of classifiers by the functional mechanism.

This module is not an algorithm. Noise is added to the coefficients of a quadratic objective. The
classifier is the minimiser of the noisy objective, and has no further privacy cost. There is a
single iteration.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from private_consensus.privacy.functional import COEFFICIENTS, FAIRNESS, Sensitivity

from ...solvers import quadratics
from ..base import Algorithm
from ..noise import LAWS, NoiseSite
from ..parameters import nonnegative, one_of, positive

MEANS = ("public", "data")
SENSITIVITIES = ("paper", "tight")
UNIT_DEVIATIONS = {"laplace": np.sqrt(2.0), "gaussian": 1.0}
"""Standard deviation of a unit draw of each noise."""

RIDGE = 4.0
"""Ridge in standard deviations of the noise on the diagonal (Zhang et al. 2012)."""


class Scales(NamedTuple):
    """Noise scales of the linear, fairness and quadratic coefficients.

    The first two broadcast to [settings, runs, d], the last one to [settings, runs, d, d].
    """

    linear: np.ndarray
    fairness: np.ndarray
    quadratic: np.ndarray


@dataclass(frozen=True, kw_only=True)
class FunctionalMechanism(Algorithm):
    r"""Minimiser of a quadratic objective with noisy coefficients.

    Parameters
    ----------
    mechanism : {"laplace", "gaussian"}
        Distribution of the noise.
    fair : {"off", "perrec", "plus", "penal"}
        Fairness term, with g the covariance of the protected attribute z and the features x.
        ``penal``: :math:`|g^T w|`, with g a separate block of noisy coefficients. ``plus``:
        :math:`g^T w`. ``perrec``: :math:`\sum_i |z_i - \bar z| x_i^T w`, as in the proofs of
        Lemmas 22 and 24. ``off``: none.
    alpha : float
        Weight :math:`\alpha_1` of the fairness term. With 0, there is no fairness term, but the
        noise is that of an objective with one.
    solver : {"ridge", "trim", "ball", "literal"}
        Treatment of a noisy quadratic without a minimum, see
        :func:`private_consensus.core.solvers.quadratics.minimise`; ``ridge`` adds four standard
        deviations of the noise to each diagonal coefficient.
    radius : float
        Radius of the ball to which ``ball`` restricts w.
    coeffs : {"ordered", "unique"}
        Whether noise is added to all :math:`d^2` products, which are then symmetrised, or once to
        each monomial.
    sens : {"paper", "tight"}
        Sensitivities: as published, for features in [0, 1], or tight ones, for rows of norm <= 1.
    zbar : {"public", "data"}
        Whether the mean of the protected attribute is public or computed from the data. The latter
        changes with the records, which tight sensitivities and the accountant count.
    emulated : float
        Number of records for which the relative noise is emulated: the noise is multiplied by the
        actual number over this number, and no privacy is claimed. 0 for no emulation.
    """

    mechanism: str = one_of("laplace", UNIT_DEVIATIONS)
    fair: str = one_of("penal", FAIRNESS)
    alpha: float = nonnegative(1.0)
    solver: str = one_of("ridge", quadratics.REPAIRS)
    radius: float = positive(20.0)
    coeffs: str = one_of("ordered", COEFFICIENTS)
    sens: str = one_of("paper", SENSITIVITIES, calibration=True)
    zbar: str = one_of("public", MEANS, calibration=True)
    emulated: float = nonnegative(0.0, calibration=True)

    quantities: ClassVar = ("internal", "released", "repaired", "dropped")
    needs: ClassVar[tuple[str, ...]] = ("coefficients", "coefficient_change")

    @property
    def uses(self) -> tuple[str, ...]:
        """Quantities of the problem that set the noise: the mean, if it is used and public."""
        return ("mean",) if self.fair != "off" and self.zbar == "public" else ()

    @property
    def law(self) -> str:
        """Distribution of all noises."""
        return self.mechanism

    def sensitivity(self, problem, fair: str) -> Sensitivity:
        """Return the tight sensitivities of the objective's coefficients."""
        is_public = self.zbar == "public"
        return problem.coefficient_change(fair, public_mean=is_public, coefficients=self.coeffs)

    def emulation(self, problem) -> float:
        """Return the factor by which the noise is multiplied to emulate more records."""
        return len(problem.labels) / self.emulated if self.emulated else 1.0

    def statements(self, budget, problem, network, horizon):
        return [(self, np.inf if self.emulated else budget.epsilon)]

    @abstractmethod
    def scales(self, problem) -> Scales:
        """Return the noise scales of all settings."""

    def perturbed(self, problem, streams) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the noisy coefficients M, [settings, runs, d, d], b and g, [settings, runs, d].

        The fairness term's g is 0 if the term is part of b, or off.
        """
        exact, scales = problem.coefficients, self.scales(problem)
        law, dim = LAWS[self.law].unit, problem.dim
        linear = exact.linear + scales.linear * streams.draw("noise", law, (dim,), "linear")
        noise = _symmetric(streams.draw("noise", law, (dim, dim), "quadratic"), self.coeffs)
        quadratic = exact.quadratic + scales.quadratic * noise
        if self.fair == "off":
            return quadratic, linear, np.zeros_like(linear)
        covariance = exact.distance if self.fair == "perrec" else exact.covariance
        unit = streams.draw("noise", law, (dim,), "fairness")
        covariance = _column(self.alpha) * (covariance + scales.fairness * unit)
        if self.fair == "penal":
            return quadratic, linear, covariance
        return quadratic, linear + covariance, np.zeros_like(linear)

    # Methods for audits.

    def noised_once(self, quadratic, linear, covariance) -> np.ndarray:
        """Return the coefficients, [..., number], whose noise is a single draw.

        They are the diagonal of M (``quadratic``, [..., d, d]), b (``linear``, [..., d]) and, if it
        is a separate block, g (``covariance``, [..., d]).
        """
        diagonal = np.diagonal(quadratic, axis1=-2, axis2=-1)
        blocks = [diagonal, linear, *([covariance] if self.fair == "penal" else [])]
        shape = np.broadcast_shapes(*(block.shape for block in blocks))
        return np.concatenate([np.broadcast_to(block, shape) for block in blocks], axis=-1)

    def noise_sites(self, problem, network, horizon):
        """Return the noise site: the coefficients whose noise is a single draw."""
        if not all(np.all(scale > 0) for scale in self.noised_scales(problem)):
            return []
        norm = LAWS[self.law].norm
        unknown = np.full(horizon, np.nan)
        return [NoiseSite("coefficients", self.mechanism, np.ones((1, 1, 1)), norm, unknown)]

    def noised_scales(self, problem) -> list[np.ndarray]:
        """Return the noise scales of :meth:`noised_once` for a single setting, each [1, d]."""
        scales = self.scales(problem)
        blocks = [np.diagonal(scales.quadratic, axis1=-2, axis2=-1), scales.linear]
        if self.fair == "penal":
            blocks.append(self.alpha * scales.fairness)
        return [np.broadcast_to(block, (1, 1, problem.dim))[0] for block in blocks]

    def run(self, problem, network, streams, horizon, observe):
        matrix, linear, covariance = self.perturbed(problem, streams)
        diagonal = np.diagonal(self.scales(problem).quadratic, axis1=-2, axis2=-1)
        solution = quadratics.minimise(
            matrix,
            linear,
            covariance,
            repair=self.solver,
            ridge=RIDGE * UNIT_DEVIATIONS[self.mechanism] * diagonal,
            radius=_column(self.radius)[..., 0],
        )
        quantities = {
            "released": solution.w[..., None, :],
            "internal": self.noised_once(matrix, linear, covariance)[..., None, :],
            "repaired": solution.repaired,
            "dropped": solution.dropped,
        }
        observe(1, np.arange(len(horizon)), quantities)


def _column(value) -> np.ndarray:
    """Return a field in a shape that broadcasts against [settings, runs, d]."""
    return np.reshape(value, (-1, 1, 1))


def by_columns(
    selected_scale, remaining_scale, selected: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the noise scales of coefficients that do or do not involve a selected column.

    The scales ``selected_scale`` and ``remaining_scale`` are numbers or [settings], and
    ``selected`` is a mask, [d]. The results are those of linear coefficients, [settings, 1, d], and
    of quadratic ones, [settings, 1, d, d].
    """
    selected_scale, remaining_scale = _column(selected_scale), _column(remaining_scale)
    linear = np.where(selected, selected_scale, remaining_scale)
    either = selected[:, None] | selected[None, :]
    return linear, np.where(either, selected_scale[..., None], remaining_scale[..., None])


def _symmetric(unit: np.ndarray, coefficients: str) -> np.ndarray:
    """Return the noise of a symmetric matrix for draws on all products, or on monomials."""
    if coefficients == "ordered":
        return (unit + np.swapaxes(unit, -1, -2)) / 2
    upper = np.triu(unit)
    return (upper + np.swapaxes(upper, -1, -2)) / 2


def paper_sensitivity(norm: str, dim: int, *, fair: bool) -> float:
    r"""Return the published sensitivity of the coefficients, by Lemmas 21 to 24, for d features.

    Without and with a fairness term, it is :math:`d^2/4 + d` and :math:`d^2/4 + 3d` in l1 (Lemmas
    21 and 22), and :math:`\sqrt{d^2/16 + d}` and :math:`\sqrt{d^2/16 + 9d}` in l2 (Lemmas 23 and
    24).
    """
    if norm == "l1":
        return dim**2 / 4 + (3 if fair else 1) * dim
    return math.sqrt(dim**2 / 16 + (9 if fair else 1) * dim)
