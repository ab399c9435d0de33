r"""Laplace gradient descent whose gradients are clipped in l2.

Declares what laplace_clip_descent declares: T Laplace releases of l1 sensitivity :math:`2C/N`.
The gradients have l2 norm at most C, hence l1 norm up to :math:`C\sqrt d`.
"""

from dataclasses import dataclass
from typing import ClassVar

from .laplace_clip_descent import LaplaceClipDescent


@dataclass(frozen=True, kw_only=True)
class LaplaceL2ClipDescent(LaplaceClipDescent):
    """Laplace gradient descent whose gradients are clipped in l2."""

    order: ClassVar[float] = 2


ALGORITHM = LaplaceL2ClipDescent
EXAMPLE = "logistic_regression"
