r"""PP-ADMM: private with approximate solutions of the local problems (paper 004, section 3.4).

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
:math:`\beta/m` (E4.4). Both are implemented as published. The declared releases state
:math:`2\beta/m`, and that the loss of the perturbed objective is not proven.

The repair, ``perturbed: output``, has :math:`b_{i2}` alone. With curvature m, and gradients that a
record moves by at most :math:`\Delta_2`, two points with gradient norms of at most :math:`\beta` on
neighbouring data are at most :math:`(\Delta_2 + 2\beta)/m` apart: a Gaussian mechanism, nothing of
which is open.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .families.approximate_admm import ApproximateADMM


@dataclass(frozen=True, kw_only=True)
class PlausiblyPrivateADMM(ApproximateADMM):
    """Plausibly private ADMM (PP-ADMM): all iterations send a message, at equal privacy cost."""

    source: ClassVar[str] = "Paper 004, section 3.4, Algorithm 2, Theorem 6"
    lower_bound_because: ClassVar[str] = (
        "a label flip moves each minimiser by the attained part, up to the solver's tolerance"
    )


ALGORITHM = PlausiblyPrivateADMM
