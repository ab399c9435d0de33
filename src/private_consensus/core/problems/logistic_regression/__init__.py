r"""Regularised logistic regression on records distributed among agents.

.. math:: f_i(x) = w \sum_{j} \ln\bigl(1 + e^{-y_{ij}\, x^T z_{ij}}\bigr) +
\tfrac{\lambda}{2}\|x\|_2^2

with labels in {-1, +1} and rows :math:`\|z\|_2 \le 1`. With ``w = 1`` it is a sum over the records
(Showkatbakhsh et al.), with ``w = C / N_i`` a scaled mean (Xiao et al., Ding). Xiao et al. state
labels in {0, 1}: a record labelled 0 then has a constant loss and no influence.
"""

from .builder import build, require_records
from .metrics import METRICS
from .objective import CODINGS, LogisticRegression

__all__ = [
    "CODINGS",
    "EXAMPLE",
    "METRICS",
    "LogisticRegression",
    "build",
    "require_records",
]

EXAMPLE = {"prepared": "synthetic", "records": 50, "ridge": 0.001, "weight": "mean"}
