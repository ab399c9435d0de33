"""ADMM with approximate minimisations, noise in each minimisation and noise on each message.

This module is not an algorithm. PP-ADMM, its proven variant and IPP-ADMM share it. One of
:data:`.approximate_minimisers.CHARGES` states the privacy cost of a message.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from private_consensus.common.errors import require
from private_consensus.privacy import CONVERSIONS, calibrate

from ..base import column, per_agent
from ..noise import Noise
from ..parameters import fraction, noise_field, nonnegative, one_of, only, positive
from .admm import ADMMFamily, Draw, Noises
from .approximate_minimisers import CHARGES, NO_NOISE, Charge

RULES = ("literal", "sharp")


@dataclass(frozen=True, kw_only=True)
class ApproximateADMM(ADMMFamily):
    r"""ADMM that adds ``noise`` to the dual and ``output_noise`` to the messages.

    Parameters
    ----------
    noise : float
        :math:`\sigma_1`.
    beta : float
        :math:`\beta`, a gradient norm in the units of :math:`f_i`, verified at every solve. A
        solve begins at the last :math:`\hat x_i`, which a large :math:`\beta` accepts
        unchanged.
    splits : float
        Fraction of an iteration's budget for the approximation: :math:`\rho_2`.
    e3 : float
        :math:`\epsilon_3/\epsilon_1`.
    lam_rule : {"literal", "sharp"}
        Condition on :math:`\hat\lambda`: as published, or as the proof needs it, with
        :math:`\hat\lambda/N + 2\eta|V_i|` on the left. The ridge of the problem is the
        minimum.
    delta_1 : float
        :math:`\delta_{i1}`.
    step_conversion : {"safe", "shortcut"}
        Conversion between :math:`\rho_1` and :math:`\epsilon_1`: that of the experiments, or
        that of Theorem 6.
    perturbed : {"objective", "output"}
        Noise that hides the data: both noises as published, or the output noise only.
    ridge : float
        :math:`\hat\lambda/N`; a ridge of the problem is part of it and is not added again.
    output_noise : float
        :math:`\sigma_2` times the curvature, :math:`\beta/\sqrt{2\rho_2}`.
    """

    law: str = one_of("gaussian", ("gaussian",))
    growth: float = only(1.0)
    penalty_growth: float = only(1.0)
    calibration: str = "formula"
    rho_conversion: str | None = "shortcut"
    beta: float = positive(10.0**-3.5)
    splits: float = fraction(0.001)
    e3: float = fraction(0.99, expected="above 0 and below 1: epsilon_i3 < epsilon_i1")
    lam_rule: str = one_of("sharp", RULES)
    delta_1: float = fraction(1e-4)
    step_conversion: str = one_of("safe", CONVERSIONS[:2])
    perturbed: str = one_of("objective", CHARGES)
    ridge: float = nonnegative(0.0)
    output_noise: Noise = noise_field("output")

    where: ClassVar[str] = "dual"

    def __post_init__(self):
        super().__post_init__()
        has_conversion = self.rho_conversion is not None
        require(
            has_conversion, "algorithm.rho_conversion", None, f"one of {', '.join(CONVERSIONS)}"
        )
        if self.perturbed == "output":
            first = self.noise.scale
            expected = "0, since only the output is perturbed"
            require(not np.any(first), "algorithm.noise", first, expected)
        else:
            inner, output = self.noise.scale, self.output_noise.scale
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

    def draws(self, problem, streams) -> Iterator[Draw]:
        """Yield the unit noises of dual and output of each iteration.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        streams : Streams
            Random streams of all runs.

        Yields
        ------
        Draw
            ``noise`` is a pair of arrays [runs, agents, dim].
        """
        shape = (problem.n_agents, problem.dim)
        output = streams.sequence("noise", "normal", shape, "output")
        for unit in self.noise.units(problem, streams):
            yield Draw((unit, next(output)))

    def noises(self, unit, network, t):
        """Return the noise on the dual and on the output.

        Parameters
        ----------
        unit : tuple of ndarray
            Unit draws of dual and output, [runs, agents, dim] each.
        network : Network
            Communication graph with its mixing matrix.
        t : int
            Iteration, counted from 1.

        Returns
        -------
        Noises
            The output noise is ``output_noise`` over the curvature.
        """
        inner, output = unit
        scale = column(self.output_noise.scale) / (column(self.ridge) + self.penalty(network, t))
        return Noises(dual=self.scale(t) * inner, output=scale * output)

    # Privacy.

    def charge(self, problem, network=None) -> Charge:
        """Return the privacy cost of a message, which also gives the noise for a cost.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network, optional
            Not needed for :meth:`.Charge.rhos`.

        Returns
        -------
        Charge
            Privacy cost according to ``perturbed``.
        """
        return CHARGES[self.perturbed](self, problem, network)

    def silent(self):
        return replace(self, **NO_NOISE._asdict())

    def spending(self, budget, problem, network, horizon):
        """Return a copy whose noises meet a finite budget, by the formula or by the accountant.

        The accountant scales both noises of the formula by the same factor.

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
        ApproximateADMM
            Copy with calibrated noises and ridge.
        """
        published = self.for_all(self.rho_of(budget), problem, network, horizon)
        if self.calibration == "formula":
            return published

        def scaled(factor: float) -> Self:
            both = {"noise": published.noise.scale, "output_noise": published.output_noise.scale}
            return replace(published, **{name: factor * noise for name, noise in both.items()})

        factor_of_budget = calibrate(
            lambda k: scaled(k).releases(problem, network, horizon), budget
        )
        return scaled(factor_of_budget)

    def for_all(self, rho: float, problem, network, horizon: int) -> Self:
        """Return a copy whose noises make the whole run cost rho.

        Parameters
        ----------
        rho : float
            Cost of the whole run, in zCDP.
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        horizon : int
            Number of iterations.

        Returns
        -------
        ApproximateADMM
            Copy with calibrated noises and ridge.
        """
        return self.for_one(rho / horizon, problem, network)

    def for_one(self, rho: float, problem, network) -> Self:
        """Return a copy with the noises and the ridge for one message that costs rho.

        Parameters
        ----------
        rho : float
            Cost of one message, in zCDP.
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.

        Returns
        -------
        ApproximateADMM
            Copy with calibrated noises and ridge.
        """
        return replace(self, **self.charge(problem, network).noise_for(rho)._asdict())

    def loss_by_formula(self, problem, network, t):
        """Compute the privacy loss of a message by the paper's formula, in zCDP.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        t : int
            Iteration, counted from 1.

        Returns
        -------
        ndarray
            Broadcastable against [settings, runs, agents, 1].
        """
        return np.ones((1, 1, 1, 1)) * sum(self.charge(problem).rhos())

    def rho_by_formula(self, problem, network, horizon):
        r"""Return the total zCDP cost of Theorem 6: :math:`T(\rho_1 + \rho_2)`.

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
        float
            Total cost, equal for all agents.
        """
        return float(horizon * sum(self.charge(problem).rhos()))

    def releases(self, problem, network, horizon):
        """Return the releases of all messages; an exact release without noise.

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
            Releases of the agent with the largest privacy loss.
        """
        if not self.noisy:
            return super().releases(problem, network, horizon)
        return self.charge(problem, network).releases(horizon)

    # Methods for audits.

    def noise_sites(self, problem, network, horizon):
        """Return the sites of the noise: in the minimisation, if it has noise, and on the message.

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
            Sites ``minimisation`` and ``message``; empty without noise.
        """
        if not self.noisy:
            return []
        curvature = np.reshape(self.ridge + self.penalty(network, 1), (1, -1, 1))
        curvatures = np.broadcast_to(curvature, (horizon, *curvature.shape[1:]))
        hidden = self.charge(problem, network).releases(1)[-1]
        last = np.full(horizon, float(np.max(hidden.losses())))
        output = self.output_noise.site(self.output_noise.scale / curvatures, last)
        if not self.noise:
            return [output]
        scale = np.broadcast_to(np.reshape(self.noise.scale, (1, 1, 1)), (horizon, 1, 1))
        moved = np.full(horizon, problem.record_change("l2") / self.noise.scale)
        return [self.noise.site(scale, moved, "minimisation"), output]
