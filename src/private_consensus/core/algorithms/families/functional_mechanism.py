"""Common base of classifiers by the functional mechanism.

This module is not an algorithm. Noise perturbs the coefficients of the quadratic
objective. The classifier is the minimiser of the noisy objective, which has no further
privacy cost. Everything is released in one iteration, t = 1.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from private_consensus.privacy.functional import COEFFICIENTS, FAIRNESS, Sensitivity

from ...solvers import quadratics
from ..base import Algorithm, NoiseSite
from ..parameters import nonnegative, one_of, positive

MEANS = ("public", "data")
SENSITIVITIES = ("paper", "tight")
LAWS = {"laplace": ("laplace", np.sqrt(2.0)), "gaussian": ("normal", 1.0)}
"""Unit distribution of each noise, and the standard deviation of a unit draw."""

RIDGE = 4.0
"""Standard deviations of the noise that ``ridge`` adds to the diagonal (Zhang et al. 2012)."""


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
        Fairness term. ``penal``: :math:`|g^T w|` itself, with g a separate block of noisy
        coefficients. ``plus``: :math:`g^T w`, one sign. ``perrec``: :math:`\sum_i |z_i - \bar
        z| x_i^T w`, which the proofs of Lemmas 22 and 24 have in place of the absolute value.
        ``off``: none.
    alpha : float
        :math:`\alpha_1`, the factor of the noisy covariance, without a privacy cost. 0 leaves
        the fairness term out and keeps its noise, which gives a control.
    solver : {"ridge", "trim", "ball", "literal"}
        Treatment of a noisy quadratic without a minimum, see
        :func:`private_consensus.core.solvers.quadratics.minimise`; ``ridge`` adds four standard
        deviations of the noise to each diagonal coefficient.
    radius : float
        R of ``ball``.
    coeffs : {"ordered", "unique"}
        Noise on all :math:`d^2` products (then symmetrised), or on each monomial once.
    sens : {"paper", "tight"}
        Sensitivities: as published, for features in [0, 1], or those for rows of norm <= 1.
    zbar : {"public", "data"}
        Whether the mean of the protected attribute is public. If not, its change is counted
        in the result of the accountant and in tight sensitivities.
    emulated : float
        Number of records whose relative noise is emulated. The noise is multiplied by n over
        this number, and nothing is claimed for the actual n. 0 for none.
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
        """Quantities of the problem that set the noise: a public mean, if it is used.

        The change of a mean that is not public is counted instead.
        """
        return ("mean",) if self.fair != "off" and self.zbar == "public" else ()

    @property
    def law(self) -> str:
        """Distribution of all noises."""
        return self.mechanism

    def sensitivity(self, problem, fair: str) -> Sensitivity:
        """Return the tight sensitivities of the problem's coefficients.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        fair : {"off", "perrec", "plus", "penal"}
            Fairness term.

        Returns
        -------
        Sensitivity
            Sensitivities of the blocks of coefficients.
        """
        public = self.zbar == "public"
        return problem.coefficient_change(fair, public_mean=public, coefficients=self.coeffs)

    def emulation(self, problem) -> float:
        """Return the factor of the noise for the emulated number of records."""
        return len(problem.labels) / self.emulated if self.emulated else 1.0

    def statements(self, budget, problem, network, horizon):
        """Return one privacy statement; epsilon is infinite for noise that emulates more records.

        Parameters
        ----------
        budget : Budget
            Privacy budget of the whole run.
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        horizon : int
            Number of iterations.

        Returns
        -------
        list of (FunctionalMechanism, float)
            One pair.
        """
        return [(self, np.inf if self.emulated else budget.epsilon)]

    @abstractmethod
    def scales(self, problem) -> Scales:
        """Return the noise scales of all settings."""

    def perturbed(self, problem, streams) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sample the noisy coefficients M, b and g.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        streams : Streams
            Random streams of all runs.

        Returns
        -------
        ndarray, shape (settings, runs, d, d)
            M.
        ndarray, shape (settings, runs, d)
            b.
        ndarray, shape (settings, runs, d)
            g; 0 if the fairness term is part of b, or off.
        """
        exact, scales = problem.coefficients, self.scales(problem)
        law, dim = LAWS[self.mechanism][0], problem.dim
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
        """Return the coefficients that have one draw each.

        These are the diagonal of M, b and, if it is a separate block, g.

        Parameters
        ----------
        quadratic : ndarray, shape (..., d, d)
            M.
        linear : ndarray, shape (..., d)
            b.
        covariance : ndarray, shape (..., d)
            g.

        Returns
        -------
        ndarray, shape (..., number)
            Concatenated coefficients.
        """
        diagonal = np.diagonal(quadratic, axis1=-2, axis2=-1)
        blocks = [diagonal, linear, *([covariance] if self.fair == "penal" else [])]
        shape = np.broadcast_shapes(*(block.shape for block in blocks))
        return np.concatenate([np.broadcast_to(block, shape) for block in blocks], axis=-1)

    def noise_sites(self, problem, network, horizon):
        """Return the site of the noise on the coefficients that have one draw each.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        horizon : int
            Number of iterations.

        Returns
        -------
        list of NoiseSite
            One site, ``coefficients``; empty if some scale is 0.
        """
        if not all(np.all(scale > 0) for scale in self.noised_scales(problem)):
            return []
        norm = "l1" if self.mechanism == "laplace" else "l2"
        unknown = np.full(horizon, np.nan)
        return [NoiseSite("coefficients", self.mechanism, np.ones((1, 1, 1)), norm, unknown)]

    def noised_scales(self, problem) -> list[np.ndarray]:
        """Return the scales of :meth:`noised_once` for a single setting, each [1, d]."""
        scales = self.scales(problem)
        block_scales = [np.diagonal(scales.quadratic, axis1=-2, axis2=-1), scales.linear]
        if self.fair == "penal":
            block_scales.append(self.alpha * scales.fairness)
        return [
            np.broadcast_to(block_scale, (1, 1, problem.dim))[0] for block_scale in block_scales
        ]

    def run(self, problem, network, streams, horizon, observe):
        """Observe the classifiers of all settings at iteration 1.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        streams : Streams
            Random streams of all runs.
        horizon : ndarray of int, shape (settings,)
            Number of iterations of each setting.
        observe : Observe
            Callback that receives the observables of each iteration.
        """
        matrix, linear, covariance = self.perturbed(problem, streams)
        diagonal = np.diagonal(self.scales(problem).quadratic, axis1=-2, axis2=-1)
        solution = quadratics.minimise(
            matrix,
            linear,
            covariance,
            repair=self.solver,
            ridge=RIDGE * LAWS[self.mechanism][1] * diagonal,
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
    """Reshape a field so that it broadcasts against [settings, runs, d]."""
    return np.reshape(value, (-1, 1, 1))


def by_columns(
    selected_scale, remaining_scale, selected: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the scales of coefficients, with a separate scale for those of selected columns.

    Parameters
    ----------
    selected_scale : float or ndarray, shape (settings,)
        Scale of coefficients that involve a selected column.
    remaining_scale : float or ndarray, shape (settings,)
        Scale of all other coefficients.
    selected : ndarray of bool, shape (d,)
        Selected columns.

    Returns
    -------
    ndarray, shape (settings, 1, d)
        Scales of linear coefficients.
    ndarray, shape (settings, 1, d, d)
        Scales of quadratic coefficients.
    """
    selected_scale, remaining_scale = _column(selected_scale), _column(remaining_scale)
    linear = np.where(selected, selected_scale, remaining_scale)
    either = selected[:, None] | selected[None, :]
    return linear, np.where(either, selected_scale[..., None], remaining_scale[..., None])


def _symmetric(unit: np.ndarray, coefficients: str) -> np.ndarray:
    """Build the noise of a symmetric matrix from draws on all products or on monomials.

    Draws on monomials are those of the upper half.
    """
    if coefficients == "ordered":
        return (unit + np.swapaxes(unit, -1, -2)) / 2
    upper = np.triu(unit)
    return (upper + np.swapaxes(upper, -1, -2)) / 2


def paper_sensitivity(norm: str, dim: int, *, fair: bool) -> float:
    r"""Return the published sensitivity of the coefficients.

    Lemmas 21 and 22 (l1) state :math:`d^2/4 + d` and :math:`d^2/4 + 3d`. Lemmas 23 and 24
    (l2) state :math:`\sqrt{d^2/16 + d}` and :math:`\sqrt{d^2/16 + 9d}`.

    Parameters
    ----------
    norm : {"l1", "l2"}
        Norm of the change.
    dim : int
        d.
    fair : bool
        Whether the objective has a fairness term.

    Returns
    -------
    float
        Sensitivity.
    """
    if norm == "l1":
        return dim**2 / 4 + (3 if fair else 1) * dim
    return math.sqrt(dim**2 / 16 + (9 if fair else 1) * dim)
