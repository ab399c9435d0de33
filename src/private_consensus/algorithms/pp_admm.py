r"""PP-ADMM: private although the local problems are solved approximately (paper 004, section 3.4).

.. math::
    \hat x_i &\approx \arg\min_x f_i(x) + (a_i + b_{i1})^Tx + \tfrac{D_i}2\|x - c_i\|_2^2,
        \qquad \|\nabla\|_2 \le \beta \\
    x_i &= \hat x_i + b_{i2}, \qquad b_{i1} \sim N(0, \sigma_1^2 I), \quad
        b_{i2} \sim N(0, \sigma_2^2 I)

    \sigma_1 = \frac{2C\sqrt{2\ln(1.25/\delta_1)}}{|D_i|\epsilon_3}, \qquad
    \sigma_2 = \frac{\beta}{\sqrt{2\rho_2}\,(\hat\lambda/N + 2\eta|V_i|)}, \qquad
    \hat\lambda \ge \frac{2.8\,N C c_1}{(\epsilon_1-\epsilon_3)|D_i|}

Every iteration is charged :math:`\rho_1 + \rho_2` in zCDP, with :math:`\rho_1` from
:math:`\epsilon_1` (Theorem 6). What does not hold, as printed: a bound in (epsilon, delta) gives
none in zCDP (errata E4.3), and two approximate minimisers are :math:`2\beta/m` apart, not
:math:`\beta/m` (E4.4). Both are kept; an accountant is told :math:`2\beta/m`, and that the loss of
the perturbed objective is not proven.

The repair, ``perturbed: output``, has :math:`b_{i2}` alone. With curvature m, and gradients that a
record moves by at most :math:`\Delta_2`, two points with gradient norms of at most :math:`\beta` on
neighbouring data are at most :math:`(\Delta_2 + 2\beta)/m` apart: a Gaussian mechanism, nothing of
which is open.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from ..errors import require
from ..privacy import CONVERSIONS, calibrate
from .base import per_agent
from .families.approximate_minimisers import CHARGES
from .families.two_noises import TwoNoises
from .parameters import fraction, one_of, only, positive

RULES = ("literal", "sharp")


@dataclass(frozen=True, kw_only=True)
class PlausiblyPrivateADMM(TwoNoises):
    r"""PP-ADMM; ``noise`` is :math:`\sigma_1`.

    Parameters
    ----------
    beta : float
        :math:`\beta`, a gradient norm in the units of :math:`f_i`, verified at every solve. A
        solve begins at the last :math:`\hat x_i`, which a large one accepts as it is.
    splits : float
        Share of an iteration's budget that pays for the approximation: :math:`\rho_2`.
    e3 : float
        :math:`\epsilon_3/\epsilon_1`.
    lam_rule : {"literal", "sharp"}
        The printed condition on :math:`\hat\lambda`, or what its proof needs:
        :math:`\hat\lambda/N + 2\eta|V_i|` on the left. The problem's own ridge is the least.
    delta_1 : float
        :math:`\delta_{i1}`.
    step_conversion : {"safe", "shortcut"}
        Between :math:`\rho_1` and :math:`\epsilon_1`: as the experiments say, or Theorem 6.
    perturbed : {"objective", "output"}
        What hides the data: both noises as printed, or the output's alone.
    ridge : float
        :math:`\hat\lambda/N`; what the problem has already is not added again.
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

    source: ClassVar[str] = "Paper 004, section 3.4, Algorithm 2, Theorem 6"

    def __post_init__(self):
        super().__post_init__()
        given = self.rho_conversion is not None
        require(given, "algorithm.rho_conversion", None, f"one of {', '.join(CONVERSIONS)}")
        if self.perturbed == "output":
            first = self.noise.scale
            expected = "0 where the output alone is perturbed"
            require(not np.any(first), "algorithm.noise", first, expected)
        else:
            inner, output = self.noise.scale, self.output_noise.scale
            both = np.all((np.asarray(inner) > 0) == (np.asarray(output) > 0))
            expected = "above 0 where there is noise, and only there"
            require(bool(both), "algorithm.output_noise", output, expected)

    # Algorithm 2.

    @property
    def tolerance(self):
        return per_agent(self.beta)

    # Privacy.

    def charge(self, problem, network=None):
        return CHARGES[self.perturbed](self, problem, network)

    def spending(self, budget, problem, network, horizon):
        printed = self.for_all(self.rho_of(budget), problem, network, horizon)
        if self.calibration == "formula":
            return printed

        def scaled(factor: float) -> Self:
            both = {"noise": printed.noise.scale, "output_noise": printed.output_noise.scale}
            return replace(printed, **{name: factor * noise for name, noise in both.items()})

        found = calibrate(lambda k: scaled(k).releases(problem, network, horizon), budget)
        return scaled(found)

    def for_all(self, rho: float, problem, network, horizon: int) -> Self:
        """A copy with its noise set such that the whole run costs rho."""
        return self.for_one(rho / horizon, problem, network)

    def rho_by_formula(self, problem, network, horizon):
        r"""Theorem 6: :math:`T(\rho_1 + \rho_2)`."""
        return float(horizon * sum(self.charge(problem).rhos()))


ALGORITHM = PlausiblyPrivateADMM
