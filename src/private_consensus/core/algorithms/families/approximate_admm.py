"""Common base of PP-ADMM, its proven variant and IPP-ADMM: ADMM with approximate minimisations.

This module is not an algorithm. Noise is added to the objective of each minimisation and to each
message, whose privacy cost a class of :data:`.approximate_minimisers.PRIVACY_COSTS` states.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from private_consensus.common.errors import arguments, require
from private_consensus.privacy import CONVERSIONS, calibrate

from ..base import column, per_agent
from ..noise import Noise
from ..parameters import fraction, noise_field, nonnegative, one_of, only, positive
from .admm import ADMMDraw, ADMMFamily, Noises
from .approximate_minimisers import NO_NOISE, PRIVACY_COSTS, MessagePrivacyCost

RULES = ("literal", "sharp")


@dataclass(frozen=True, kw_only=True)
class ApproximateADMM(ADMMFamily):
    r"""ADMM that adds ``noise`` to the dual and ``output_noise`` to the messages.

    Parameters
    ----------
    noise : float
        Standard deviation :math:`\sigma_1` of the noise in the objective.
    beta : float
        Gradient norm :math:`\beta` at which a minimisation ends, in the units of :math:`f_i`. A
        minimisation starts at the previous :math:`\hat x_i`, which a large :math:`\beta` leaves
        unchanged.
    splits : float
        Fraction :math:`\rho_2/(\rho_1 + \rho_2)` of an iteration's budget for the approximation.
    e3 : float
        Ratio :math:`\epsilon_3/\epsilon_1`.
    lam_rule : {"literal", "sharp"}
        Condition on :math:`\hat\lambda`: as published, or the weaker condition that the proof
        needs, on :math:`\hat\lambda/N + 2\eta|V_i|`. The ridge is at least that of the problem.
    delta_1 : float
        Delta of the noise in the objective in one iteration, :math:`\delta_{i1}`.
    perturbed : {"objective", "output"}
        Noise that hides the data: both noises as published, or the output noise only.
    ridge : float
        Ridge :math:`\hat\lambda/N`, which includes the ridge of the problem.
    output_noise : float
        Standard deviation of the output noise times the curvature, :math:`\beta/\sqrt{2\rho_2}`.
    """

    law: str = one_of("gaussian", ("gaussian",))
    growth: float = only(1.0)
    penalty_growth: float = only(1.0)
    calibration: str = "formula"
    rho_conversion: str | None = "shortcut"
    beta: float = positive(10.0**-3.5)
    splits: float = fraction(0.001)
    e3: float = fraction(0.99, expected="in (0, 1), since epsilon_i3 < epsilon_i1")
    lam_rule: str = one_of("sharp", RULES)
    delta_1: float = fraction(1e-4)
    perturbed: str = one_of("objective", PRIVACY_COSTS)
    ridge: float = nonnegative(0.0)
    output_noise: Noise = noise_field("output")

    where: ClassVar[str] = "dual"

    def __post_init__(self):
        super().__post_init__()
        arguments.choice("algorithm.rho_conversion", self.rho_conversion, CONVERSIONS)
        inner, output = self.noise.scale, self.output_noise.scale
        if self.perturbed == "output":
            expected = "0, since only the output is perturbed"
            require(not np.any(inner), "algorithm.noise", inner, expected)
        else:
            both = np.all((np.asarray(inner) > 0) == (np.asarray(output) > 0))
            expected = "above 0 if algorithm.noise is above 0, and 0 otherwise"
            require(bool(both), "algorithm.output_noise", output, expected)

    # Algorithm 2.

    @property
    def tolerance(self):
        return per_agent(self.beta)

    def added_curvature(self, problem):
        return np.maximum(column(self.ridge) - problem.least_convexity, 0.0)

    @property
    def noisy(self) -> bool:
        return bool(self.output_noise)

    def draws(self, problem, streams) -> Iterator[ADMMDraw]:
        shape = (problem.n_agents, problem.dim)
        output = streams.sequence("noise", "normal", shape, "output")
        for unit in self.noise.units(problem, streams):
            yield ADMMDraw((unit, next(output)))

    def noises(self, unit, network, t):
        inner, output = unit
        scale = column(self.output_noise.scale) / (column(self.ridge) + self.penalty(network, t))
        return Noises(dual=self.scale(t) * inner, output=scale * output)

    # Privacy.

    def message_cost(self, problem, network=None) -> MessagePrivacyCost:
        """Return the function of the privacy cost of a message, according to ``perturbed``.

        :meth:`.MessagePrivacyCost.rhos` does not need the network.
        """
        return PRIVACY_COSTS[self.perturbed](self, problem, network)

    def without_noise(self):
        return replace(self, **NO_NOISE._asdict())

    def with_noise_for(self, budget, problem, network, horizon):
        """Return a copy whose noises meet a finite budget, by the formula or by the accountant.

        With the accountant, both noises of the formula are scaled by the same factor.
        """
        published = self.for_run(self.rho_of(budget), problem, network, horizon)
        if self.calibration == "formula":
            return published

        def scaled(factor: float) -> Self:
            both = {"noise": published.noise.scale, "output_noise": published.output_noise.scale}
            return replace(published, **{name: factor * noise for name, noise in both.items()})

        factor_of_budget = calibrate(
            lambda k: scaled(k).releases(problem, network, horizon), budget
        )
        return scaled(factor_of_budget)

    def for_run(self, rho: float, problem, network, horizon: int) -> Self:
        """Return a copy whose noises and ridge meet a zCDP budget of the whole run."""
        return self.for_message(rho / horizon, problem, network)

    def for_message(self, rho: float, problem, network) -> Self:
        """Return a copy whose noises and ridge meet a zCDP budget of one message."""
        return replace(self, **self.message_cost(problem, network).noise_for(rho)._asdict())

    def loss_by_formula(self, problem, network, t):
        return np.ones((1, 1, 1, 1)) * sum(self.message_cost(problem).rhos())

    def rho_by_formula(self, problem, network, horizon):
        r"""Return the total privacy loss of Theorem 6 in zCDP: :math:`T(\rho_1 + \rho_2)`."""
        return float(horizon * sum(self.message_cost(problem).rhos()))

    def releases(self, problem, network, horizon):
        if not self.noisy:
            return super().releases(problem, network, horizon)
        return self.message_cost(problem, network).releases(horizon)

    # Methods for audits.

    def noise_sites(self, problem, network, horizon):
        if not self.noisy:
            return []
        curvature = np.reshape(self.ridge + self.penalty(network, 1), (1, -1, 1))
        curvatures = np.broadcast_to(curvature, (horizon, *curvature.shape[1:]))
        hidden = self.message_cost(problem, network).releases(1)[-1]
        last = np.full(horizon, float(np.max(hidden.losses())))
        output = self.output_noise.site(self.output_noise.scale / curvatures, last)
        if not self.noise:
            return [output]
        scale = np.broadcast_to(np.reshape(self.noise.scale, (1, 1, 1)), (horizon, 1, 1))
        moved = np.full(horizon, problem.record_change("l2") / self.noise.scale)
        return [self.noise.site(scale, moved, "minimisation"), output]
