r"""Differential privacy: budgets, releases, accounting, calibration, and statistical audits.

Conventions
-----------
Relation
    Protected unit: one record of one agent, or all that an agent holds, by replacement or by
    adding and removing (:class:`Relation`). A sensitivity is the largest change of an answer over
    all pairs of neighbours of *that* relation, given everything released earlier. The accountants
    use only the ratio of sensitivity to scale. A list of releases and its epsilon refer to one
    relation. Replacing has up to twice the sensitivity of adding or removing.
Norm and scale
    Those of each mechanism are stated by :class:`Release`, over all coordinates of one release.
Budget
    (epsilon, delta) for everything that one agent releases. Agents hold disjoint data;
    therefore the network's guarantee is that of its weakest agent.
Proven
    A :class:`Guarantee` is ``proven`` if the sensitivity of every release is proven. Composition
    and conversion are always proven, except for ``shortcut``, which exists for papers that use it.
    Epsilon does not cover hyper-parameters, bounds and reference values that are computed from
    private data.
Numbers
    Rounding and searches are conservative up to floating-point errors: epsilon and scale are
    rounded up, mu and rho of a budget are rounded down.

Computed lower bounds are in :mod:`private_consensus.privacy.brackets`. Lower bounds from outcomes
are in :mod:`private_consensus.privacy.event_bounds` and :mod:`private_consensus.privacy.one_run`.
"""

from .accounting import Guarantee, account
from .budget import Budget, Relation
from .calibration import (
    analytic_gaussian_scale,
    calibrate,
    extended_gaussian_scale,
    gaussian_noise_multiplier,
)
from .conversions import (
    CONVERSIONS,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    zcdp_epsilon,
    zcdp_rho,
)
from .releases import Release
from .sparse_vector import sparse_vector_scales
from .subsampling import (
    Batches,
    deadline_batches,
    fixed_batches,
    noisy_mean,
)

__all__ = [
    "CONVERSIONS",
    "Batches",
    "Budget",
    "Guarantee",
    "Relation",
    "Release",
    "account",
    "analytic_gaussian_scale",
    "calibrate",
    "deadline_batches",
    "extended_gaussian_scale",
    "fixed_batches",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "gaussian_noise_multiplier",
    "noisy_mean",
    "sparse_vector_scales",
    "zcdp_epsilon",
    "zcdp_rho",
]
