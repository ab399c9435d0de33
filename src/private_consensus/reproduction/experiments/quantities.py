"""List the quantities that each algorithm shows, before it runs.

Results do not depend on this list, because a cell records what the algorithm shows. The list
belongs to the validation of the configuration, so that a new entry makes no result out of date.
"""

from __future__ import annotations

from private_consensus.core import algorithms

ITERATES = ("internal", "released")
"""Before and after the noise."""
PAID = ("worst_case",)
"""What a run has spent so far."""
LOSSES = ("realised", "realised_all", "realised_share", "unamplified", "worst_all")
"""What it has lost with hidden random weights, paper 001."""
ROUND = ("seconds", "bits", "saturated")
"""What a round costs, and how many coordinates leave the grid."""
MINIMUM = ("repaired", "dropped")
"""What was done to an objective whose noise left it without a minimum."""
MOMENTS = (
    "mean", "target", "expected", "expected_low", "expected_high", "squared_error", "disagreement",
    "internal_expected_low", "internal_expected_high", "internal_squared_error",
    "internal_disagreement", "least_eigenvalue", "printed_b0", "least_factor", "largest_factor",
    "theorem_4_16",
)  # fmt: skip
OF_A_RELEASE = (
    "epsilon_bound", "epsilon_ceiling", "epsilon_claimed", "mu_bound", "bound_p_value",
    "bound_delta", "bound_confidence", "deviation_ratio", "deviation_along", "anisotropy",
    "bias_ratio", "bias_relative", "kurtosis", "distance_to_normal", "sensitivity_ratio",
    "diverged",
)  # fmt: skip
OF_CANARIES = (
    *(f"{kind}_{view}" for kind in ("bound", "p_value", "right")
      for view in ("gradients", "messages")),
    "accountant", "formula", "bound_delta", "bound_confidence",
)  # fmt: skip

SHOWN: dict[str, tuple[str, ...]] = {
    "admm": ITERATES,
    "canary_audit": OF_CANARIES,
    "coordinate_descent": ("released", "gap", "bound"),
    "d_zoa": ("released",),
    "decor": ("released",),
    "dgd": ("released",),
    "dp_admm": (*ITERATES, "rho", "eta_0"),
    "dp_ci": ITERATES,
    "dp_ci_moments": MOMENTS,
    "dsgd": (*ITERATES, *ROUND),
    "dvp": (*ITERATES, *PAID),
    "exact_admm": ("released", "total_printed", "total_exact"),
    "fair_classification": (*ITERATES, *MINIMUM),
    "gradient_descent": (*ITERATES, "consensus", "reconstruction", "bound", "expected"),
    "ipp_admm": (*ITERATES, *PAID, "messages"),
    "ldp_admm": (*ITERATES, *PAID, *LOSSES),
    "ldp_gradient_descent": ("released", *PAID, *LOSSES),
    "ldp_subgradient": ("released", "averaged", *PAID, *LOSSES),
    "local_training": ("released",),
    "logistic": ("released",),
    "m_admm": (*ITERATES, *PAID),
    "mafalda_sgd": ("released",),
    "muffliato": ("released",),
    "muffliato_gd": ("released",),
    "one_shot_averaging": ("released",),
    "p_admm": (*ITERATES, *PAID),
    "pdop": ("released", *PAID),
    "pflr": (*ITERATES, *MINIMUM),
    "pp_admm": (*ITERATES, *PAID),
    "pp_admm_renyi": (*ITERATES, *PAID),
    "pr_admm": (*ITERATES, *PAID, "replaced"),
    "q_dpsgd_1": (*ITERATES, *ROUND),
    "q_dpsgd_2": (*ITERATES, *ROUND),
    "r_admm": (*ITERATES, *PAID),
    "random_aggregation": ("exact", "bound", "excess", "limit", "sampled", "worst", "released"),
    "release_audit": OF_A_RELEASE,
    "sdm_dsgd": (*ITERATES, *ROUND),
    "secure_aggregation": ("released",),
    "zip_dl": (*ITERATES, "links"),
}
"""Of each algorithm of this package, with any of its switches."""


def quantities_of(algorithm: str) -> tuple[str, ...]:
    """Return the quantities that an algorithm shows: declared by its class, listed in this
    module, or its iterates.
    """
    declared = getattr(algorithms.load(algorithm), "quantities", None)
    return SHOWN.get(algorithm, ITERATES) if declared is None else tuple(declared)
