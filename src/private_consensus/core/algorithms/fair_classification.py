r"""Private and fair classification by the functional mechanism (paper 004, Algorithms 6 to 8).

.. math:: \hat w = \arg\min_w \sum_{\phi} \hat\lambda_\phi\, \phi(w), \quad
    \hat\lambda_\phi = \sum_i \bar\lambda_{\phi t_i} + \text{noise}

with the coefficients of eq. (102). Coefficients of monomials that involve a selected attribute
:math:`x_s` are noised for a budget :math:`\epsilon_s`, the others for :math:`\epsilon_n`:
:math:`\epsilon = \frac{k}{d}\epsilon_s + \frac{d-k}{d}\epsilon_n` (Theorems 18 and 20, which have
one column, k = 1). The switches make

- No-Privacy: no budget, ``fair: off``; FM: ``fair: off``; relaxed FM: ``mechanism: gaussian`` too;
- PDFC (Algorithm 6): ``fair: penal``, ``selected``, ``mechanism: laplace``;
- ADFC (Algorithm 8): the same with ``mechanism: gaussian``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from private_consensus.common.errors import require
from private_consensus.privacy import (
    Budget,
    Release,
    analytic_gaussian_scale,
    extended_gaussian_scale,
    laplace_scale,
)

from .families.functional_mechanism import (
    FunctionalMechanism,
    Scales,
    by_columns,
    paper_sensitivity,
)
from .noise import Noise
from .parameters import noise_field, one_of, positive

CHARGES = ("average", "max")
GAUSSIANS = {"extended": extended_gaussian_scale, "analytic": analytic_gaussian_scale}


@dataclass(frozen=True, kw_only=True)
class FairClassification(FunctionalMechanism):
    r"""Functional mechanism for fair classification: FM, relaxed FM, PDFC, ADFC and No-Privacy.

    Parameters
    ----------
    selected : str
        :math:`x_s`: names of attributes, joined by ``+``; empty for one budget for all.
    split : float
        :math:`\epsilon_s/\epsilon_n`; below 1 there is more noise on :math:`x_s`.
    charge : {"average", "max"}
        The average of Theorems 18 and 20, whose proofs are wrong but whose statements hold for the
        printed sensitivities, by their slack; or the larger of the two budgets. Tight
        sensitivities have no slack and take ``max`` only.
    gaussian : {"extended", "analytic"}
        Theorem 19, or the exact calibration of one Gaussian release.
    noise_selected, noise_rest : float
        Laplace b or standard deviation; set by the calibration.
    """

    selected: str = ""
    split: float = positive(1.0, calibration=True)
    charge: str = one_of("average", CHARGES, calibration=True)
    gaussian: str = one_of("extended", GAUSSIANS, calibration=True)
    noise_selected: Noise = noise_field("coefficients", law=None)
    noise_rest: Noise = noise_field("coefficients", law=None)

    source: ClassVar[str] = "Paper 004, sections 5-6: Algorithms 6-8, Lemmas 21-24, Theorems 18-20"
    lower_bound_because: ClassVar[str] = (
        "two stated records change the coefficients by the stated lengths before noise is added"
    )

    def __post_init__(self):
        super().__post_init__()
        require(
            self.fair == "penal" or bool(np.all(np.asarray(self.alpha) == 1)),
            "algorithm.alpha",
            self.alpha,
            "1: where the fairness term is no block of its own, the sensitivity is for that",
        )
        require(
            self.charge == "max" or self.sens == "paper" or not self.selected,
            "algorithm.charge",
            self.charge,
            "max: the average of Theorems 18 and 20 holds with the printed sensitivities only",
        )

    def calibrate(self, budget, problem, network, horizon):
        """Return a copy whose two noises meet the two parts of the budget.

        Parameters
        ----------
        budget : Budget
            Privacy budget of the whole run.
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        horizon : int
            Has to be 1, since all coefficients are released simultaneously.

        Returns
        -------
        Algorithm
            Copy with calibrated noise.
        """
        require(horizon == 1, "horizon", horizon, "1: everything is released at once")
        columns = self._columns(problem)
        if not budget.private:
            return replace(self, noise_selected=0.0, noise_rest=0.0)
        split_budgets = self.budgets(budget, columns, problem.dim)
        selected_scale, other_scale = (
            self._scale(part_budget, problem) * self.emulation(problem)
            for part_budget in split_budgets
        )
        return replace(self, noise_selected=selected_scale, noise_rest=other_scale)

    def _columns(self, problem) -> int:
        count = len(problem.columns_of(self.selected))
        require(
            count < problem.dim, "algorithm.selected", self.selected, "not all of the attributes"
        )
        return count

    def budgets(self, budget: Budget, columns: int, dim: int) -> tuple[Budget, Budget]:
        r"""Return the budgets (:math:`\epsilon_s, \delta_s`) and (:math:`\epsilon_n, \delta_n`).

        With ``average``, :math:`\delta_s = \delta_n = 1 - \sqrt{1-\delta}`. With ``max`` both parts
        are one Gaussian release, and delta is charged once.

        Parameters
        ----------
        budget : Budget
            Privacy budget of the whole run.
        columns : int
            Number of selected columns, k.
        dim : int
            Number of columns, d.

        Returns
        -------
        (Budget, Budget)
            Budgets of the selected and of the other columns.
        """
        if columns == 0:
            return budget, budget
        if self.charge == "max":
            unit, delta = budget.epsilon / max(self.split, 1.0), budget.delta
        else:
            share = columns / dim
            unit = budget.epsilon / (share * self.split + 1 - share)
            delta = -np.expm1(0.5 * np.log1p(-budget.delta))
        return Budget(self.split * unit, delta), Budget(unit, delta)

    def _assumed(self, problem) -> float:
        """Return the sensitivity that the calibration uses."""
        norm = "l1" if self.mechanism == "laplace" else "l2"
        if self.sens == "tight":
            return getattr(self.sensitivity(problem, self.fair), norm)
        return paper_sensitivity(norm, problem.dim, fair=self.fair != "off")

    def _scale(self, budget: Budget, problem) -> float:
        if self.mechanism == "laplace":
            return laplace_scale(budget, self._assumed(problem))
        return GAUSSIANS[self.gaussian](budget, self._assumed(problem))

    def releases(self, problem, network, horizon):
        """Return one release, scaled so that all of its noise has scale 1.

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
        list of Release
            Mechanisms whose composition bounds the privacy loss.
        """
        if not self.noise_rest:
            return [Release("exact", scale=0.0)]
        columns = self._columns(problem)
        tight = self.sensitivity(problem, self.fair)
        loss = tight.laplace_loss if self.mechanism == "laplace" else tight.gaussian_loss
        noises = self.noise_selected.scale, self.noise_rest.scale, columns
        worst = loss(*noises)
        used = tight if np.all(self.alpha) else self.sensitivity(problem, "off")
        attained_loss = self._known(used, noises, worst, problem.dim)
        return [Release(self.mechanism, sensitivity=worst, scale=1.0, **attained_loss)]

    def _known(self, tight, noises, worst: float, dim: int) -> dict[str, float]:
        """Return the fraction of the loss that pairs of records attain.

        It refers to the noised coefficients that are used. Gaussian noise: if two or more columns
        have less noise, rows within these columns attain the whole l2 change. Otherwise only the
        change that two records with the same row make is counted. A fairness term that is left out
        after its noise reveals nothing.
        """
        if not tight.known:
            return {}
        selected_scale, other_scale, columns = noises
        if self.mechanism == "laplace":
            return {"reached": min(tight.reached_laplace_loss(*noises) / worst, 1.0)}
        quiet = columns if columns and selected_scale < other_scale else dim - columns
        moved = tight.l2 if quiet >= 2 else tight.same_row_l2
        loss = moved / (min(selected_scale, other_scale) if columns else other_scale)
        return {"attained": min(loss / worst, 1.0)}

    def epsilon_by_formula(self, delta, problem, network, horizon):
        """Return the epsilon of Lemma 21 or 22, or Theorem 18, 19 or 20, at the set noise.

        Parameters
        ----------
        delta : float
            Delta at which epsilon is stated.
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        horizon : int
            Number of iterations.

        Returns
        -------
        float
            Infinite without noise.
        """
        if not self.noise_rest:
            return float("inf")
        columns, fair = self._columns(problem), self.fair != "off"
        norm = "l1" if self.mechanism == "laplace" else "l2"
        assumed = paper_sensitivity(norm, problem.dim, fair=fair)
        terms = [assumed / noise.scale for noise in (self.noise_selected, self.noise_rest)]
        if self.mechanism == "gaussian":
            part_delta = -np.expm1(0.5 * np.log1p(-delta)) if columns else delta
            terms = [extended_gaussian_epsilon(ratio, part_delta) for ratio in terms]
        share = columns / problem.dim
        return float(share * terms[0] + (1 - share) * terms[1])

    def scales(self, problem):
        selected = np.isin(np.arange(problem.dim), problem.columns_of(self.selected))
        linear, quadratic = by_columns(self.noise_selected.scale, self.noise_rest.scale, selected)
        # Without a separate block, the fairness term is part of the linear coefficients.
        return Scales(linear, linear if self.fair == "penal" else 0.0 * linear, quadratic)


ALGORITHM = FairClassification


def extended_gaussian_epsilon(ratio: float, delta: float) -> float:
    r"""Solve Theorem 19 for epsilon, for a ratio :math:`\Delta_2/\sigma`.

    :math:`q\epsilon - \sqrt L = \sqrt{L+\epsilon}` with :math:`q = \sqrt2\,\sigma/\Delta_2` has the
    root :math:`\epsilon = (1 + 2q\sqrt L)/q^2`.

    Parameters
    ----------
    ratio : float
        :math:`\Delta_2/\sigma`, l2 sensitivity over standard deviation.
    delta : float
        Delta of the guarantee.

    Returns
    -------
    float
        Epsilon of the guarantee.
    """
    q = np.sqrt(2.0) / ratio
    tail = np.log(np.sqrt(2.0 / np.pi) / delta)
    return float((1.0 + 2.0 * q * np.sqrt(tail)) / q**2)
