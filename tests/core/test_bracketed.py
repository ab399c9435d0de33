"""Test that the lower bound on epsilon is at most the accounted epsilon, at every delta.

The tests cover every private algorithm and every way to set its noise. Neither bound grows with
delta.

Losses are rounded to a grid whose spacing depends on epsilon, so a bound may rise by the rounding
error.
"""

from dataclasses import replace
from itertools import pairwise

import pytest

from private_consensus.audits.examples import example_names, examples
from private_consensus.privacy import Budget, account
from private_consensus.privacy.brackets import COARSE, lower_bound

DELTAS = (0.0, 1e-8, 1e-5, 1e-2)
APPROXIMATE = Budget(2.0, 1e-4)
LAWS = [{"law": law} for law in ("laplace", "gaussian", "gamma_norm")]
FORMULA = {"calibration": "formula"}
IN_ZCDP = {**FORMULA, "rho_conversion": "safe"}
TIGHT = {"jacobian": "tight"}
RULES = [{"sigma_rule": rule} for rule in ("thm11", "accountant")]
TESTED = {"perturbed": "objective", "tested": "minimiser", "beta": 1e-6, "c": 2}
SETTINGS = {
    "gradient_descent": [
        {"calibration": how, "spending": spending}
        for how in ("theorem_1", "gaussian_dp", "advanced_composition", "zcdp")
        for spending in ("theorem_2", "whole")
    ],
    "dp_ci": [
        {"unit": "measurement"},
        {"unit": "stream", "hmax": "time_varying"},
        {"unit": "stream", "schedule": "exponential"},
    ],
    "dvp": [*LAWS, {**TIGHT, **IN_ZCDP}],
    "m_admm": [TIGHT, IN_ZCDP],
    "r_admm": [{}, {"law": "gamma_norm", **TIGHT}],
    "p_admm": LAWS[1:],
    "ldp_admm": [*LAWS, {"weights": "fixed"}],
    "ldp_gradient_descent": [{}, {"weights": "fixed"}],
    "ldp_subgradient": [{}, {"weights": "fixed"}],
    "pdop": LAWS[:1],
    "pr_admm": [{"schedule": "iteration"}, FORMULA, {**FORMULA, "sensitivity": "sharp"}],
    "pp_admm": [
        {"perturbed": perturbed, "beta": beta, "calibration": how}
        for perturbed in ("objective", "output")
        for beta in (1e-6, 1e-2)
        for how in ("formula", "accountant")
    ],
    "pp_admm_renyi": [{"beta": beta} for beta in (1e-6, 1e-2)],
    "ipp_admm": [
        {},
        {"decision": "coin"},
        *({**TESTED, "threshold_drawn": how} for how in ("each", "after_release", "once")),
        {**TESTED, "decision": "coin"},
        {**TESTED, "svt_sensitivity": "printed", "threshold_scale": "printed"},
    ],
    "dp_admm": [{}],
    "exact_admm": [{"calibration": how} for how in ("paper", "gaussian_dp")],
    "coordinate_descent": [{}],
    "dsgd": RULES,
    "q_dpsgd_1": [{"sigma_rule": "thm11"}],
    "q_dpsgd_2": [*RULES, {"own": "exact", "sigma_rule": "thm11"}],
    "sdm_dsgd": RULES,
    "muffliato": [{"acceleration": "chebyshev"}],
    "muffliato_gd": [{"clip": 0.05}, {"rounds": 1}],
    "mafalda_sgd": [{"correlation": how} for how in ("optimal", "independent")],
    "decor": [{"ratio": 0.0}, {"clip": 0.05}],
    "zip_dl": [{}, {"clip": 0.05}],
    "secure_aggregation": [{}, {"clip": 0.05}],
    "local_training": [{}, {"clip": 0.05}],
    "one_shot_averaging": [{}, {"D": 0.5}],
    "fair_classification": [
        {"mechanism": law, "sens": sens, "fair": fair, "alpha": alpha}
        for law in ("laplace", "gaussian")
        for sens in ("paper", "tight")
        for fair, alpha in (("off", 1.0), ("penal", 1.0), ("penal", 0.0))
    ],
    "pflr": [{"share": 0.1}, {"share": 0.5, "sens": "paper"}, {"shift": "raw", "zbar": "data"}],
}
"""Parameters that replace those of an algorithm's example; one list entry per test case."""


def test_every_setting_is_of_an_algorithm_with_an_example():
    assert set(SETTINGS) <= set(example_names())


@pytest.mark.parametrize("name", sorted(example_names()))
def test_lower_bounds_are_at_most_the_accounted_epsilon(name):
    (example,) = examples(name)
    for options in SETTINGS.get(name, [{}]):
        algorithm = replace(example.algorithm, **options)
        budget = budget_of(example.budget, options)
        noisy = algorithm.calibrate(budget, example.problem, example.network, example.horizon)
        instance = (example.problem, example.network, example.horizon)
        for releases in filter(
            None, (noisy.releases(*instance), noisy.releases_if_assumed(*instance))
        ):
            lower = [lower_bound(releases, delta).epsilon for delta in DELTAS]
            upper = [account(releases, delta).epsilon for delta in DELTAS]
            for low, high in zip(lower, upper, strict=True):
                assert 0 <= low <= high * (1 + 1e-12), (options, lower, upper)
            for bounds in (lower, upper):
                for bound, next_bound in pairwise(bounds):
                    assert next_bound <= bound * (1 + 2 * COARSE), (options, bounds)


def budget_of(budget: Budget, options) -> Budget:
    """Return a budget with delta > 0 if the noise is Gaussian or the formula is in zCDP."""
    gaussian = {"gaussian"} & {options.get("law"), options.get("mechanism")}
    return APPROXIMATE if gaussian or "rho_conversion" in options else budget
