r"""Renyi divergence of a Gaussian mechanism on a Poisson sample, accurate for small divergences.

References
----------
Mironov, Talwar, Zhang, "Renyi differential privacy of the sampled Gaussian mechanism", 2019.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln, logsumexp, xlog1py


def log_moment(order: float, rate: float, mu: float) -> float:
    r"""Return :math:`(\alpha-1)` times the Renyi divergence, or an upper bound for other orders.

    At integer orders (Mironov et al., section 3.3)

    .. math:: \ln\Big(1 + \sum_{i=2}^\alpha\tbinom\alpha i\gamma^i(1-\gamma)^{\alpha-i}
        \big(e^{i(i-1)\mu^2/2}-1\big)\Big),

    a sum of positive terms, so that small values keep their relative accuracy. The function is
    convex in the order :math:`\alpha > 1`; between integers it is bounded by linear interpolation.
    ``rate`` is the probability :math:`\gamma` of each record. ``mu`` is sensitivity over standard
    deviation, for adding or removing a record.
    """
    below, above = math.floor(order), math.ceil(order)
    if below != above:
        fraction = order - below
        ends = log_moment(below, rate, mu), log_moment(above, rate, mu)
        return (1 - fraction) * ends[0] + fraction * ends[1]
    i = np.arange(2, above + 1)
    if i.size == 0:
        return 0.0
    exponent = i * (i - 1) * mu**2 / 2
    with np.errstate(divide="ignore"):  # underflow of mu^2
        growth = exponent + np.log(-np.expm1(-exponent))
    log_binomial = gammaln(above + 1) - gammaln(i + 1) - gammaln(above - i + 1)
    terms = log_binomial + i * math.log(rate) + xlog1py(above - i, -rate) + growth
    return float(np.logaddexp(0.0, logsumexp(terms)))
