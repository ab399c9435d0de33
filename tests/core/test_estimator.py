"""Test the estimator: the checks of scikit-learn without privacy, and the privacy guarantee."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator

import private_consensus as pc
from private_consensus import DecentralizedLogisticRegression as Estimator
from private_consensus.common.errors import InvalidInput

FEATURES, LABELS = make_classification(400, 5, random_state=0)
PRIVATE = {"bound": 5.0, "classes": (0, 1), "agents": 4, "horizon": 20, "random_state": 0}
SKIPPED = {"check_array_api_input": "SCIPY_ARRAY_API is not set"}
"""Checks of scikit-learn that are skipped, with the beginning of the reason."""


def test_the_checks_of_scikit_learn_pass_without_privacy():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        checks = check_estimator(Estimator(epsilon=np.inf, agents=2, horizon=60), on_fail=None)
    failed = {c["check_name"]: c["exception"] for c in checks if c["status"] == "failed"}
    assert failed == {} and len(checks) > 50
    skipped = {c["check_name"]: str(c["exception"]) for c in checks if c["status"] == "skipped"}
    assert all(reason.startswith(SKIPPED.get(name, "?")) for name, reason in skipped.items())
    assert all(c["status"] in ("passed", "skipped") for c in checks)


def test_without_privacy_the_model_is_close_to_that_of_scikit_learn():
    """The objective is the mean loss plus half the ridge times the squared norm."""
    ours = Estimator(epsilon=np.inf, agents=3, network="complete", horizon=3000, ridge=0.01)
    ours.fit(FEATURES, LABELS)
    bound = np.linalg.norm(FEATURES, axis=1).max()
    rows = np.c_[FEATURES / bound, np.ones(len(FEATURES))] / np.sqrt(2)
    reference = LogisticRegression(C=1 / (0.01 * len(rows)), fit_intercept=False, tol=1e-10)
    slopes = reference.fit(rows, LABELS).coef_[0]
    # steps of constant length end near the optimum, at a distance of the order of the step
    expected = slopes[:-1] / bound / np.sqrt(2)
    np.testing.assert_allclose(ours.coef_[0], expected, rtol=0.05, atol=0.01)
    assert ours.score(FEATURES, LABELS) == pytest.approx(reference.score(rows, LABELS), abs=0.02)


def test_one_fit_has_a_proven_epsilon_equal_to_the_budget():
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # fit has no argument that bounds columns
        fitted = Estimator(epsilon=1.0, **PRIVATE).fit(FEATURES, LABELS)
    guarantee = fitted.result_.guarantee
    assert guarantee.epsilon == pytest.approx(1.0, rel=1e-6) and guarantee.proven
    assert len(fitted.result_.models.average) == 1
    np.testing.assert_array_equal(fitted.classes_, [0, 1])
    probabilities = fitted.predict_proba(FEATURES)
    np.testing.assert_allclose(probabilities.sum(1), 1.0)
    np.testing.assert_array_equal(probabilities[:, 1] > 0.5, fitted.predict(FEATURES) == 1)
    again = clone(fitted).fit(FEATURES, LABELS)
    np.testing.assert_array_equal(fitted.coef_, again.coef_)


@pytest.mark.parametrize("algorithm", ["dp_admm", "q_dpsgd_2"])
def test_an_algorithm_whose_guarantee_is_weaker_than_the_budget_is_refused(algorithm):
    """The noise of these algorithms covers one iteration, or ignores that records are reused."""
    with pytest.raises(InvalidInput, match="algorithm with a proven guarantee"):
        Estimator(algorithm, **PRIVATE).fit(FEATURES, LABELS)


def test_models_without_a_random_state_do_not_share_noise():
    options = PRIVATE | {"random_state": None}
    first, second = (Estimator(**options).fit(FEATURES, LABELS).coef_ for _ in range(2))
    assert np.abs(first - second).min() > 0


@pytest.mark.parametrize("missing", ["bound", "classes"])
def test_with_privacy_the_bound_and_the_classes_are_required(missing):
    with pytest.raises(InvalidInput, match=f"{missing}: missing.*epsilon=inf only"):
        Estimator(**PRIVATE | {missing: None}).fit(FEATURES, LABELS)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"agents": None}, "agents: missing, expected a whole number"),
        ({"classes": (0,)}, "classes: found .0,., expected two different labels"),
        ({"classes": 1}, "classes: found 1, expected two different labels"),
        ({"parameters": 3}, "parameters: found 3, expected a mapping"),
        ({"parameters": {"a": 1}}, "parameters: found 'a', expected a parameter of"),
        ({"ridge": Fraction(1, 3)}, "problem.ridge: found 'Fraction', expected a finite number"),
        ({"ridge": 10**400}, "problem.ridge: found 1000.*expected a finite number >= 0"),
        ({"algorithm": "nothing"}, "algorithm.name: found 'nothing'"),
    ],
)
def test_invalid_parameters_are_named_in_the_error(options, message):
    with pytest.raises(InvalidInput, match=message):
        Estimator(**PRIVATE | options).fit(FEATURES, LABELS)


def test_the_estimator_accepts_an_algorithm_a_network_and_parameters():
    network = pc.networks.build(pc.Streams(0, (0,)), "complete", 4)
    options = {**PRIVATE, "network": network, "horizon": 5}
    for name in ("dvp", "one_shot_averaging", "secure_aggregation"):
        fitted = Estimator(name, **options).fit(FEATURES, LABELS)
        assert fitted.result_.guarantee.epsilon <= 1.0 + 1e-6
    stated = Estimator(parameters={"eta": 0.5}, **options).fit(FEATURES, LABELS)
    assert stated.result_.algorithm.eta == 0.5
