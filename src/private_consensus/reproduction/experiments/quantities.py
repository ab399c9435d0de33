"""List the quantities that each algorithm can record, for the validation of the configuration.

Results do not depend on this list: a cell records the quantities that its algorithm returns.
"""

from __future__ import annotations

from private_consensus.core import algorithms

ITERATES = ("internal", "released")
"""Iterates before the noise, and after it."""
PRIVACY_LOSS = ("worst_case",)
"""Privacy loss that a run has accumulated."""
AMPLIFIED_LOSSES = ("realised", "realised_all", "realised_share", "unamplified", "worst_all")
"""Privacy losses of a run with hidden random weights (Xiao et al. 2019)."""
ROUND = ("seconds", "bits", "saturated")
"""Simulated time and sent bits of a round, and the number of coordinates outside the grid."""
REPAIRED_MINIMUM = ("repaired", "dropped")
"""Corrections of a noisy objective that has no minimum."""
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

QUANTITIES: dict[str, tuple[str, ...]] = {
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
    "dvp": (*ITERATES, *PRIVACY_LOSS),
    "exact_admm": ("released", "total_printed", "total_exact"),
    "fair_classification": (*ITERATES, *REPAIRED_MINIMUM),
    "gradient_descent": (*ITERATES, "consensus", "reconstruction", "bound", "expected"),
    "ipp_admm": (*ITERATES, *PRIVACY_LOSS, "messages"),
    "ldp_admm": (*ITERATES, *PRIVACY_LOSS, *AMPLIFIED_LOSSES),
    "ldp_gradient_descent": ("released", *PRIVACY_LOSS, *AMPLIFIED_LOSSES),
    "ldp_subgradient": ("released", "averaged", *PRIVACY_LOSS, *AMPLIFIED_LOSSES),
    "local_training": ("released",),
    "logistic": ("released",),
    "m_admm": (*ITERATES, *PRIVACY_LOSS),
    "mafalda_sgd": ("released",),
    "muffliato": ("released",),
    "muffliato_gd": ("released",),
    "one_shot_averaging": ("released",),
    "p_admm": (*ITERATES, *PRIVACY_LOSS),
    "pdop": ("released", *PRIVACY_LOSS),
    "pflr": (*ITERATES, *REPAIRED_MINIMUM),
    "pp_admm": (*ITERATES, *PRIVACY_LOSS),
    "pp_admm_renyi": (*ITERATES, *PRIVACY_LOSS),
    "pr_admm": (*ITERATES, *PRIVACY_LOSS, "replaced"),
    "q_dpsgd_1": (*ITERATES, *ROUND),
    "q_dpsgd_2": (*ITERATES, *ROUND),
    "r_admm": (*ITERATES, *PRIVACY_LOSS),
    "random_aggregation": ("exact", "bound", "excess", "limit", "sampled", "worst", "released"),
    "release_audit": OF_A_RELEASE,
    "sdm_dsgd": (*ITERATES, *ROUND),
    "secure_aggregation": ("released",),
    "zip_dl": (*ITERATES, "links"),
}
"""Quantities of each algorithm of this package, for all values of its parameters."""


def quantities_of(algorithm: str) -> tuple[str, ...]:
    """Return the quantities that an algorithm can record.

    They are declared by the class of the algorithm, or listed in this module; by default, the
    iterates before and after the noise.
    """
    declared = getattr(algorithms.load(algorithm), "quantities", None)
    return QUANTITIES.get(algorithm, ITERATES) if declared is None else tuple(declared)
