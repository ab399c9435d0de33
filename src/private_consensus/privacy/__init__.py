"""Privacy: what is promised, what is let out, and what it costs."""

from .accounting import Guarantee, account, epsilon
from .budget import Budget, Relation
from .conversions import gaussian_delta, gaussian_epsilon, gaussian_mu, zcdp_epsilon, zcdp_rho
from .releases import Release, Sampling

__all__ = [
    "Budget",
    "Guarantee",
    "Relation",
    "Release",
    "Sampling",
    "account",
    "epsilon",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "zcdp_epsilon",
    "zcdp_rho",
]
