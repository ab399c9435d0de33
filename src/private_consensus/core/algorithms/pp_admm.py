r"""PP-ADMM: private ADMM with approximate local minimisations (Ding, section 3.4).

.. math::
    \hat x_i &\approx \arg\min_x f_i(x) + (a_i + b_{i1})^Tx + \tfrac{D_i}2\|x - c_i\|_2^2,
        \qquad \|\nabla\|_2 \le \beta \\
    x_i &= \hat x_i + b_{i2}, \qquad b_{i1} \sim N(0, \sigma_1^2 I), \quad
        b_{i2} \sim N(0, \sigma_2^2 I)

    \sigma_1 = \frac{2C\sqrt{2\ln(1.25/\delta_1)}}{|D_i|\epsilon_3}, \qquad
    \sigma_2 = \frac{\beta}{\sqrt{2\rho_2}\,(\hat\lambda/N + 2\eta|V_i|)}, \qquad
    \hat\lambda \ge \frac{2.8\,N C c_1}{(\epsilon_1-\epsilon_3)|D_i|}

The published privacy cost of an iteration is :math:`\rho_1 + \rho_2` in zCDP, with :math:`\rho_1`
from :math:`\epsilon_1` (Theorem 6). Two steps of its proof do not hold: an (epsilon, delta) bound
implies no zCDP bound (errata E4.3), and the distance of two approximate minimisers is
:math:`2\beta/m`, not :math:`\beta/m` (E4.4). The noise is as published. The mechanisms have
:math:`2\beta/m`, and the loss of the perturbed objective is not proven.

The corrected variant, ``perturbed: output``, has the noise :math:`b_{i2}` only. Let m be the
curvature, and let a record change gradients by at most :math:`\Delta_2`. On neighbouring data sets,
two points with gradient norms of at most :math:`\beta` then have a distance of at most
:math:`(\Delta_2 + 2\beta)/m`. An iteration is a Gaussian mechanism with this sensitivity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .families.approximate_admm import ApproximateADMM


@dataclass(frozen=True, kw_only=True)
class PlausiblyPrivateADMM(ApproximateADMM):
    """Plausibly private ADMM (PP-ADMM), with one message per iteration at equal privacy cost."""

    source: ClassVar[str] = "Ding, section 3.4, Algorithm 2, Theorem 6"


ALGORITHM = PlausiblyPrivateADMM
