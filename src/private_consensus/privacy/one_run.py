r"""Lower bound of epsilon from one run: an auditor guesses which of many records were used.

m records are included by independent fair coins, the algorithm runs once, and an auditor guesses r
of the coins. Under :math:`(\epsilon,\delta)`-DP for changing one of these records, v or more right
guesses have at most the probability

.. math:: f(v) + 2m\delta\,\max_{1\le i\le m} \frac{f(v-i)-f(v)}{i}, \qquad
    f(v) = P\Bigl[\mathrm{Bin}\Bigl(r, \frac{e^\epsilon}{1+e^\epsilon}\Bigr) \ge v\Bigr]

(Steinke, Nasr, Jagielski, "Privacy auditing with one (1) training run", NeurIPS 2023, Theorem 5.2).
"""

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

_LARGEST = 60.0


def one_run_pvalue(
    epsilon: float, right: int, guesses: int, records: int, *, delta: float
) -> float:
    """Return an upper bound on the probability of ``right`` or more right guesses.

    v right ones of r guesses are made about m records that are included at random.
    """
    from scipy.stats import binom  # slow to import, and reading a plan loads every algorithm

    chance = float(expit(epsilon))
    tail = binom.sf(right - 1, guesses, chance)
    i = np.arange(1, min(right, records) + 1)
    steps = (binom.sf(right - 1 - i, guesses, chance) - tail) / i
    return float(min(1.0, tail + 2 * records * delta * steps.max(initial=0.0)))


def one_run_epsilon(
    right: int, guesses: int, records: int, *, delta: float, confidence: float
) -> float:
    """Return the largest epsilon that the number of right guesses contradicts; 0 for none.

    The number of guesses must be chosen without knowledge of the coins. ``right`` of ``guesses``
    guesses are right, about ``records`` that are included at random. The result is at most the true
    epsilon with the probability ``confidence``.
    """

    def excess(epsilon: float) -> float:
        return one_run_pvalue(epsilon, right, guesses, records, delta=delta) - (1 - confidence)

    if excess(0.0) >= 0:
        return 0.0
    return float(brentq(excess, 0.0, _LARGEST, xtol=1e-9)) if excess(_LARGEST) > 0 else _LARGEST
