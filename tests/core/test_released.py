"""Test that the utility is measured on released values, which the accountant covers.

The outputs of all mechanisms are recorded, and replayed on other data. Released values must remain
equal: a value that changes reveals a part of the data that no noise hides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

from private_consensus import algorithms, networks
from private_consensus.common.errors import InvalidInput
from private_consensus.core.algorithms.base import stack
from private_consensus.core.handlers import Recording, Replaying
from private_consensus.core.problems import linear_observation, perceptron
from private_consensus.core.problems.fair_classification import FairLogisticRegression
from private_consensus.core.problems.lasso import Lasso
from private_consensus.core.problems.logistic_regression import LogisticRegression
from private_consensus.core.problems.mean_estimation import MeanEstimation
from private_consensus.core.randomness import Streams
from private_consensus.privacy import Budget
from private_consensus.reproduction.audits.repairs import QUANTITIES
from private_consensus.reproduction.experiments import plan as planning
from private_consensus.reproduction.experiments.schema import read_yaml

CONFIG = Path(__file__).parents[2] / "config"
AGENTS, DIM, RECORDS, HORIZON = 3, 2, 6, 3
STEP = 1e-4
BUDGET = Budget(1.0, 1e-3)
NETWORK = networks.build(Streams(0, (0,)), "complete", AGENTS)
STREAMS = Streams(3, (0,))


def classified(change: float) -> LogisticRegression:
    generator = np.random.default_rng(1)
    features = generator.uniform(-0.5, 0.5, (AGENTS, RECORDS, DIM)) + change
    labels = np.where(generator.random((AGENTS, RECORDS)) < 0.5, -1.0, 1.0)
    return LogisticRegression(features, labels, features[0], labels[0], 1.0 / RECORDS, 1e-2)


def regressed(change: float) -> Lasso:
    generator = np.random.default_rng(1)
    features = generator.uniform(-0.5, 0.5, (1, AGENTS, RECORDS, DIM)) + change
    responses = generator.uniform(-0.5, 0.5, (1, AGENTS, RECORDS))
    return Lasso(features, responses, 1.0 / RECORDS, 1e-2, gradient_bound=1.0)


def averaged(change: float) -> MeanEstimation:
    means = np.random.default_rng(1).uniform(-0.1, 0.1, (1, AGENTS, DIM)) + change
    return MeanEstimation(means, RECORDS, 1.0)


def observed(change: float):
    """Return a measurement problem whose true parameter is scaled by 1 + change."""
    built = linear_observation.build(
        STREAMS, AGENTS, **{**linear_observation.EXAMPLE, "noise": 0.2}
    )
    moved = built.theta * (1 + change)
    return replace(built, theta=moved)


def fitted(change: float) -> FairLogisticRegression:
    generator = np.random.default_rng(1)
    features = generator.uniform(0, 0.5, (8, DIM)) + change
    labels, protected = (generator.integers(0, 2, 8) for _ in range(2))
    none = lambda *names: np.array([], int)  # noqa: E731
    return FairLogisticRegression(features, labels, protected, np.array([[7]]), none)


def trained(change: float):
    generator = np.random.default_rng(1)
    prepared = SimpleNamespace(
        features=generator.random((40, 4)) + change,
        labels=generator.integers(0, 10, 40),
        splits={"train": np.arange(36), "test": np.arange(36, 40)},
    )
    return perceptron.build(
        STREAMS, AGENTS, prepared=prepared, hidden=2, records=36, precision="double"
    )


PURE = Budget(1.0, 0.0)
LOGISTIC = dict.fromkeys(
    ("dvp", "m_admm", "ldp_admm", "ldp_gradient_descent", "ldp_subgradient", "pdop"),
    (classified, PURE, {}),
)
WITH_DRAWS = LOGISTIC | {
    "gradient_descent": (averaged, BUDGET, {}),
    "dp_ci": (observed, PURE, {}),
    "r_admm": (classified, PURE, {"calibration": "accountant"}),
    "p_admm": (classified, BUDGET, {}),
    "pr_admm": (classified, BUDGET, {"calibration": "accountant"}),
    "pp_admm": (classified, BUDGET, {"beta": 1e-11}),
    "pp_admm_renyi": (classified, BUDGET, {"beta": 1e-11}),
    "ipp_admm": (classified, BUDGET, {"beta": 1e-11, "c": HORIZON, "alpha": -9.0}),
    "coordinate_descent": (classified, BUDGET, {"init_std": 0.0}),
    "dp_admm": (regressed, BUDGET, {}),
    "exact_admm": (regressed, BUDGET, {}),
    "muffliato": (averaged, BUDGET, {}),
    "muffliato_gd": (classified, BUDGET, {"rounds": 2}),
    "mafalda_sgd": (classified, BUDGET, {}),
    "decor": (classified, BUDGET, {"clip": 0.1}),
    "zip_dl": (classified, BUDGET, {"clip": 0.1}),
    "secure_aggregation": (classified, BUDGET, {}),
    "local_training": (classified, BUDGET, {}),
    "one_shot_averaging": (classified, BUDGET, {"D": 0.5}),
}
ROUNDS = {"B": 5, "K": 1.0, "sigma_rule": "accountant"}
QUANTISED = {**ROUNDS, "a0": 1.0, "e0": 1.0, "eta": 1e-3, "grid": "open"}
WITH_KEYS = {
    "q_dpsgd_1": QUANTISED,
    "q_dpsgd_2": {**QUANTISED, "own": "broadcast"},
    "sdm_dsgd": {**ROUNDS, "c": 1.0},
    "dsgd": {**ROUNDS, "gradients": "private"},
}
AT_ONCE = ("fair_classification", "pflr")
CASES = (
    WITH_DRAWS
    | {name: (trained, BUDGET, options) for name, options in WITH_KEYS.items()}
    | dict.fromkeys(AT_ONCE, (fitted, PURE, {"fair": "penal"}))
)
NOT_PRIVATE = ("admm", "dgd", "logistic")
"""Algorithms that are not private and refuse a budget."""
OTHERS = {
    "d_zoa": "adds no noise; its accountant treats every message as exact",
    "random_aggregation": "outputs do not contain data",
    "dp_ci_moments": "moments of DP-CI, no iterates",
    "canary_audit": "an audit; shows bounds on epsilon",
    "release_audit": "an audit; shows bounds on epsilon",
}


def test_every_reviewed_algorithm_is_in_exactly_one_list():
    listed = (*WITH_DRAWS, *WITH_KEYS, *AT_ONCE, *NOT_PRIVATE, *OTHERS)
    assert sorted(listed) == sorted(algorithms.names())


@pytest.mark.parametrize("name", NOT_PRIVATE)
def test_a_non_private_algorithm_refuses_a_privacy_budget(name):
    with pytest.raises(InvalidInput, match="not private"):
        algorithms.load(name)().calibrate(BUDGET, classified(0.0), NETWORK, HORIZON)


# --- Replays on other data ----------------------------------------------------------------------


class Replay(NamedTuple):
    """Observables of all iterations: of an execution, and of its replay on other data."""

    recorded: list[Mapping]
    replayed: list[Mapping]

    def is_equal(self, quantity: str) -> bool:
        pairs = zip(self.recorded, self.replayed, strict=True)
        return all(np.array_equal(a[quantity], b[quantity], equal_nan=True) for a, b in pairs)


def replay_of(name: str, **options) -> Replay:
    """Return the observables of an algorithm, and of a replay of its releases on other data."""
    make, budget, parameters = CASES[name]
    network = networks.build(STREAMS, "single", 1) if name in AT_ONCE else NETWORK
    horizon = 1 if name in AT_ONCE else HORIZON
    algorithm = algorithms.load(name)(**{**parameters, **options})
    algorithm = stack([algorithm.calibrate(budget, make(0.0), network, horizon)])

    def observables(problem, handler_type, **releases):
        declared = algorithm.mechanisms(problem, network, horizon)
        handler = handler_type(declared, problem, STREAMS, np.array([horizon]), **releases)
        release = handler.function()
        state, kept = algorithm.start(problem, network, release), []
        for t in range(1, horizon + 1):
            handler.begin(t)
            state = algorithm.step(state, problem, network, release, t)
            kept.append(
                {k: np.array(v) for k, v in algorithm.observables(state, problem, t).items()}
            )
        return handler, kept

    recording, recorded = observables(make(0.0), Recording)
    return Replay(recorded, observables(make(STEP), Replaying, releases=recording.releases)[1])


@pytest.mark.parametrize("name", [*WITH_DRAWS, *WITH_KEYS, *AT_ONCE])
def test_released_values_depend_on_data_only_through_the_outputs_of_mechanisms(name):
    assert replay_of(name).is_equal("released")


@pytest.mark.parametrize(
    "name", ["gradient_descent", "dp_ci", "p_admm", "pr_admm", "dp_admm", "zip_dl"]
)
def test_internal_values_depend_on_data_beside_the_outputs_of_mechanisms(name):
    assert not replay_of(name).is_equal("internal")


@pytest.mark.parametrize("own_model", ["broadcast", "exact"])
def test_the_internal_model_of_q_dpsgd_2_depends_on_data_without_noise(own_model):
    rule = {"sigma_rule": "thm11"} if own_model == "exact" else {}
    assert not replay_of("q_dpsgd_2", own=own_model, **rule).is_equal("internal")


@pytest.mark.parametrize("name", ["q_dpsgd_1", "sdm_dsgd", "dsgd"])
def test_algorithms_with_noise_in_the_model_release_the_model(name):
    for observables in replay_of(name).recorded:
        assert np.array_equal(observables["released"], observables["internal"])


def test_the_message_of_q_dpsgd_2_is_on_the_grid_and_noisy():
    *_, last = replay_of("q_dpsgd_2").recorded
    *_, quiet = replay_of("q_dpsgd_2", sigma_rule="given", sigma=1e-6).recorded
    steps = last["released"] / QUANTISED["eta"]
    assert np.allclose(steps, np.round(steps), atol=1e-6)
    assert np.any(last["internal"] / QUANTISED["eta"] % 1 > 1e-3)
    assert np.any(quiet["released"] != last["released"])


# --- Quantities in the configuration ------------------------------------------------------------


@pytest.fixture(scope="module")
def plan():
    return planning.load(read_yaml(CONFIG / "config.yaml"), CONFIG)


def private(plan, experiment: str, algorithm: str, run: str) -> bool:
    """Return True if a variant claims privacy."""
    experiment_config = plan.experiments[experiment]
    epsilon = experiment_config.algorithms[algorithm][run].set.get(
        "budget.epsilon", experiment_config.budget.epsilon
    )
    return np.isfinite(epsilon)


def is_internal(quantity: str) -> bool:
    return quantity.startswith("internal")


def test_private_curves_of_internal_quantities_are_not_labelled_resolved(plan):
    wrong, curve_count = [], 0
    for figure, spec in plan.figures.items():
        for panel in spec.panels:
            for curve in panel.curves:
                experiment = curve.experiment or panel.experiment
                if is_internal(curve.measure[0]) and private(
                    plan, experiment, curve.method, curve.variant
                ):
                    curve_count += 1
                    if curve.interpretation == "resolved":
                        wrong.append((figure, panel.title, curve.method, curve.variant))
    assert wrong == []
    assert curve_count > 0


def test_utility_claims_of_private_methods_are_judged_by_released_quantities(plan):
    """A published quantity that is not released may be a part, next to the released quantity."""
    wrong, variant_count = [], 0
    for paper in plan.papers.values():
        for name, claim in paper.claims.items():
            for variant, tested in claim.variants.items():
                sides = [s for test in tested.tests for s in (test.series, test.against) if s]
                if not any(
                    s.measure
                    and is_internal(s.measure[0])
                    and private(plan, s.experiment, s.method, s.variant)
                    for s in sides
                ):
                    continue
                variant_count += 1
                if any(s.measure and not is_internal(s.measure[0]) for s in sides):
                    continue
                labelled = tested.interpretation in ("literal", "ablation")
                if variant == claim.primary_variant or not labelled:
                    wrong.append((name, variant))
    assert wrong == []
    assert variant_count > 0


def test_tables_corrected_variants_and_tuning_use_no_internal_quantity(plan):
    tuned = [
        variant.tuned.measure[0]
        for experiment in plan.experiments.values()
        for variants in experiment.algorithms.values()
        for variant in variants.values()
        if variant.tuned
    ]
    tables = [table.measure[0] for table in plan.tables.values()]
    assert tuned and tables
    assert not any(map(is_internal, (*QUANTITIES, *tuned, *tables)))


def test_experiments_with_internal_quantities_also_measure_released_quantities(plan):
    """An internal quantity is accompanied by a released one."""
    for name, experiment in plan.experiments.items():
        quantities = {quantity for quantity, _ in experiment.measures}
        if any(map(is_internal, quantities)):
            sent = {
                quantity.removeprefix("internal_")
                for quantity in quantities
                if is_internal(quantity)
            }
            assert quantities & {*QUANTITIES, *sent - {"internal"}}, name
