r"""Q-DPSGD-1: noisy gradients, quantised models and a deadline (Ding, section 4.4.1, Algorithm 4).

.. math:: z_j = Q(x_j), \qquad
    x_i \leftarrow (1-e+e w_{ii})x_i + e\sum_{j\ne i} w_{ij} z_j - a e\,(g_i + \zeta_i), \qquad
    \zeta_i \sim N(0, \sigma^2K^2 I)

with constant :math:`a = a_0/T^{1/6}` and :math:`e = e_0/T^{1/2}` in a run of T rounds
(Theorem 13). For strongly convex objectives, :math:`a = a_0/T^{\tilde\delta/2}` and
:math:`e = e_0/T^{3\tilde\delta/2}` (Theorem 12, with a_0 = 2 and e_0 = 1). Before the deadline
:math:`T_d = B/50`, an agent computes :math:`|S| = \lfloor V T_d\rfloor` gradients, 4 to 35 for
B = 20. A round takes :math:`T_d + T_c s/16` seconds. Noise enters the models, so that all later
messages are functions of released values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .families.q_dpsgd import QDPSGD


@dataclass(frozen=True, kw_only=True)
class QDPSGD1(QDPSGD):
    """Q-DPSGD-1: noisy gradients and quantised models, Algorithm 4."""

    source: ClassVar[str] = (
        "Ding, section 4.4.1, Algorithm 4, eqs. (26), (27), Theorem 11, Remark 6"
    )


ALGORITHM = QDPSGD1
