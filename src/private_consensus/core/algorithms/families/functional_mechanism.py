"""Common base of classifiers by the functional mechanism."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from private_consensus.privacy.functional import Sensitivity

from ...parameters import CALIBRATION, NonNegative
from ...solvers import quadratics
from ..base import Algorithm, Iterates

UNIT_DEVIATIONS = {"laplace": np.sqrt(2.0), "gaussian": 1.0}
"""Standard deviation of a unit draw of each noise."""

RIDGE = 4.0
"""Ridge in standard deviations of the noise on the diagonal (Zhang et al. 2012)."""


@dataclass(frozen=True, kw_only=True)
class FunctionalMechanism(Algorithm):
    r"""Minimiser of a quadratic objective with noisy coefficients.

    The classifier is a function of the noisy objective, and has no further privacy cost. There is a
    single iteration. Noise is added to all :math:`d^2` products of two features, which are then
    symmetrised.

    Parameters
    ----------
    mechanism : {"laplace", "gaussian"}
        Distribution of the noise.
    fair : {"off", "penal"}
        Fairness term. ``penal``: :math:`|g^T w|`, with noise on the covariance g of the protected
        attribute and the features. ``off``: none.
    alpha : float
        Weight :math:`\alpha_1` of the fairness term. With 0, there is no fairness term, but the
        noise is that of an objective with one.
    sens : {"paper", "tight"}
        Sensitivities: as published, for features in [0, 1], or tight ones, for rows of norm <= 1.
    zbar : {"public", "data"}
        Whether the mean of the protected attribute is public or computed from the data. The latter
        changes with the records, which tight sensitivities and the accountant count.
    emulated : float
        Number of records for which the relative noise is emulated: the noise is multiplied by the
        actual number over this number, and no privacy is claimed. 0 for no emulation.
    """

    mechanism: Literal["laplace", "gaussian"] = "laplace"
    fair: Literal["off", "penal"] = "penal"
    alpha: NonNegative = 1.0
    sens: Annotated[Literal["paper", "tight"], CALIBRATION] = "paper"
    zbar: Annotated[Literal["public", "data"], CALIBRATION] = "public"
    emulated: Annotated[NonNegative, CALIBRATION] = 0.0

    needs = ("coefficients", "coefficient_change")

    def __post_init__(self):
        super().__post_init__()
        if self.fair != "off" and self.zbar == "public":
            object.__setattr__(self, "needs", (*type(self).needs, "mean"))

    def sensitivity(self, problem, fair: str) -> Sensitivity:
        """Return the tight sensitivities of an objective with the fairness term ``fair``."""
        return problem.coefficient_change(fair, public_mean=self.zbar == "public")

    def emulation(self, problem) -> float:
        """Return the factor by which the noise is multiplied to emulate more records."""
        return len(problem.labels) / self.emulated if self.emulated else 1.0

    @abstractmethod
    def scales(self, problem) -> dict[str, np.ndarray]:
        """Return the noise scales of the blocks of coefficients, broadcastable to the blocks."""

    @abstractmethod
    def perturbed(self, problem, release) -> tuple[np.ndarray, np.ndarray, Any]:
        """Return the noisy coefficients M [settings, runs, d, d], b and g [settings, runs, d]."""

    def step(self, state, problem, network, release, t):
        matrix, linear, covariance = self.perturbed(problem, release)
        # Noise may make the matrix indefinite; a ridge of four deviations makes this rare.
        diagonal = np.diagonal(self.scales(problem)["quadratic"], axis1=-2, axis2=-1)
        ridge = RIDGE * UNIT_DEVIATIONS[self.mechanism] * diagonal
        w = quadratics.minimise(matrix, linear, covariance, ridge=ridge)
        return Iterates(w[..., None, :])


def column_of_settings(value) -> np.ndarray:
    """Return a field in a shape that broadcasts against [settings, runs, d]."""
    return np.reshape(value, (-1, 1, 1))


def paper_sensitivity(norm: str, dim: int, *, fair: bool) -> float:
    r"""Return the published sensitivity of the coefficients of d = ``dim`` features.

    Without and with a fairness term, it is :math:`d^2/4 + d` and :math:`d^2/4 + 3d` in l1 (Lemmas
    21 and 22), and :math:`\sqrt{d^2/16 + d}` and :math:`\sqrt{d^2/16 + 9d}` in l2 (Lemmas 23 and
    24).
    """
    if norm == "l1":
        return dim**2 / 4 + (3 if fair else 1) * dim
    return math.sqrt(dim**2 / 16 + (9 if fair else 1) * dim)
