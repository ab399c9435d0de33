r"""Holm's step-down method, which controls the familywise error rate of many tests.

The method tests the i-th smallest of m p-values at level :math:`\alpha / (m - i + 1)` and stops at
the first that exceeds its level. The probability of any false rejection is at most :math:`\alpha`,
for every dependence between the tests.
"""

from collections.abc import Sequence

import numpy as np

ALPHA = 0.05


def holm(p: Sequence[float], alpha: float = ALPHA) -> tuple[np.ndarray, np.ndarray]:
    """Compute Holm-adjusted p-values and the level of each test, in the order of ``p``.

    ``alpha`` is the familywise error rate.
    """
    values = np.asarray(p, float)
    order = np.argsort(values, kind="stable")
    factors = len(values) - np.arange(len(values))
    adjusted, levels = np.empty_like(values), np.empty_like(values)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(values[order] * factors))
    levels[order] = alpha / factors
    return adjusted, levels
