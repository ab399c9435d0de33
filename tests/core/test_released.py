"""Test that the utility is measured on released values, which the accountant covers.

All iterations except the last are fixed. In the last iteration, either the data or the noise change
slightly. An observer has all messages up to this iteration and the tested quantity. For every
change of these values by the data, some change of the noise must have the same effect. Otherwise,
these values reveal a part of the data that no noise hides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from private_consensus import algorithms, networks
from private_consensus.common.errors import InvalidInput
from private_consensus.core.algorithms.base import stack
from private_consensus.core.algorithms.families.decentralized_sgd import KEYS
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
NOISED_FIRST = {"muffliato": 1, "one_shot_averaging": 1}
"""Number of initial iterations, the only ones in which these algorithms use data and noise."""
ROUNDS = {"B": 5, "K": 1.0, "sigma_rule": "accountant"}
QUANTISED = {**ROUNDS, "a0": 1.0, "e0": 1.0, "eta": 1e-3, "grid": "open"}
WITH_KEYS = {
    "q_dpsgd_1": QUANTISED,
    "q_dpsgd_2": {**QUANTISED, "own": "broadcast"},
    "sdm_dsgd": {**ROUNDS, "c": 1.0},
    "dsgd": {**ROUNDS, "gradients": "private"},
}
AT_ONCE = ("fair_classification", "pflr")
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


# --- Noise that is sampled in advance -----------------------------------------------------------


@dataclass
class LastIteration:
    """Algorithm in its last iteration, with the observables as functions of data and noise."""

    name: str

    def __post_init__(self):
        self.make, budget, options = WITH_DRAWS[self.name]
        calibrated = algorithms.load(self.name)(**options).calibrate(
            budget, self.make(0.0), NETWORK, HORIZON
        )
        self.algorithm = stack([calibrated])
        draws = self.algorithm.draws(self.make(0.0), STREAMS)
        self.state = self.algorithm.start(self.make(0.0), NETWORK, STREAMS, 1)
        self.last = NOISED_FIRST.get(self.name, HORIZON)
        for t in range(1, self.last):
            self.state = self.algorithm.step(self.state, self.make(0.0), NETWORK, next(draws), t)
        self.draw = next(draws)

    def observed_values(self, quantities, *, change: float = 0.0, draw=None) -> np.ndarray:
        problem = self.make(change)
        draw = self.draw if draw is None else draw
        state = self.algorithm.step(self.state, problem, NETWORK, draw, self.last)
        observables = self.algorithm.observables(state, problem, self.last)
        return np.concatenate([np.ravel(observables[quantity]) for quantity in quantities])

    def moved_by_noise(self, quantities) -> np.ndarray:
        """Return one column per coordinate of the noise."""
        base = self.observed_values(quantities)
        return np.stack(
            [
                (self.observed_values(quantities, draw=draw) - base) / STEP
                for draw in louder(self.draw)
            ],
            -1,
        )

    def unhidden(self, *quantities: str) -> float:
        """Return the fraction of the change by data that no change of the noise can compensate."""
        change = (
            self.observed_values(quantities, change=STEP) - self.observed_values(quantities)
        ) / STEP
        columns = self.moved_by_noise(quantities)
        answer = np.linalg.lstsq(columns, change, rcond=1e-9)[0]
        return float(np.linalg.norm(change - columns @ answer) / np.linalg.norm(change))


def louder(draw):
    """Return the draws in which one coordinate of the noise is changed, for each coordinate."""
    noise = getattr(draw, "noise", draw)
    arrays = noise if isinstance(noise, tuple) else (noise,)
    for i, array in enumerate(arrays):
        for where in np.ndindex(array.shape):
            moved = array.copy()
            moved[where] += STEP
            changed = (*arrays[:i], moved, *arrays[i + 1 :])
            replaced = changed if isinstance(noise, tuple) else moved
            yield draw._replace(noise=replaced) if hasattr(draw, "noise") else replaced


@pytest.mark.parametrize("name", WITH_DRAWS)
def test_noise_can_compensate_every_change_of_released_values_by_data(name):
    assert LastIteration(name).unhidden("released") < 1e-3


@pytest.mark.parametrize(
    "name", ["gradient_descent", "dp_ci", "p_admm", "pr_admm", "dp_admm", "zip_dl"]
)
def test_noise_cannot_compensate_the_change_of_internal_values_by_data(name):
    assert LastIteration(name).unhidden("released", "internal") > 0.1


# --- Noise of counter-based random generators ---------------------------------------------------


def last_round(name: str, **options):
    """Return the observables of the last round: unchanged, for other data, and for other keys."""
    problem = trained(0.0)
    calibrated = algorithms.load(name)(**{**WITH_KEYS[name], **options}).calibrate(
        BUDGET, problem, NETWORK, HORIZON
    )
    algorithm = stack([calibrated])
    if hasattr(algorithm, "T"):
        algorithm = replace(algorithm, T=np.array([float(HORIZON)]))
    draws = algorithm.draws(problem, STREAMS)
    state = algorithm.start(problem, NETWORK, STREAMS, 1)
    for t in range(1, HORIZON):
        state = algorithm.step(state, problem, NETWORK, next(draws), t)
    draw = next(draws)

    def observables_of(data, keys):
        state_copy = type(state)(*(np.array(array) for array in state))
        after = algorithm.step(state_copy, data, NETWORK, draw._replace(keys=keys), HORIZON)
        return algorithm.observables(after, data, HORIZON)

    changed_keys = {name: {**draw.keys, name: draw.keys[name] + np.uint32(1)} for name in KEYS}
    return (
        observables_of(problem, draw.keys),
        observables_of(trained(0.1), draw.keys),
        {name: observables_of(problem, keys) for name, keys in changed_keys.items()},
    )


def unhidden(quantity: str, base, data, noised) -> np.ndarray:
    """Return coordinates that depend on the data, but on no noise that keeps the messages equal."""
    if quantity == "released":
        free = [observables[quantity] for observables in noised.values()]
    else:
        same = [
            np.array_equal(observables["released"], base["released"])
            for observables in noised.values()
        ]
        free = [
            observables[quantity]
            for observables, keep in zip(noised.values(), same, strict=True)
            if keep
        ]
    by_noise = np.any([observables != base[quantity] for observables in free], axis=0)
    return (data[quantity] != base[quantity]) & ~by_noise


@pytest.mark.parametrize("name", WITH_KEYS)
def test_counter_based_noise_changes_every_released_value_that_depends_on_data(name):
    base, data, noised = last_round(name)
    assert np.any(data["internal"] != base["internal"])
    assert not unhidden("released", base, data, noised).any()


@pytest.mark.parametrize("own_model", ["broadcast", "exact"])
def test_the_internal_model_of_q_dpsgd_2_depends_on_data_without_noise(own_model):
    rule = {"sigma_rule": "thm11"} if own_model == "exact" else {}
    base, data, noised = last_round("q_dpsgd_2", own=own_model, **rule)
    assert unhidden("internal", base, data, noised).any()


@pytest.mark.parametrize("name", ["q_dpsgd_1", "sdm_dsgd", "dsgd"])
def test_algorithms_with_noise_in_the_model_release_the_model(name):
    base, *_ = last_round(name)
    assert base["released"] is base["internal"]


def test_the_message_of_q_dpsgd_2_is_on_the_grid_and_noisy():
    base, _, noised = last_round("q_dpsgd_2")
    steps = base["released"] / QUANTISED["eta"]
    assert np.allclose(steps, np.round(steps), atol=1e-6)
    assert np.any(base["internal"] / QUANTISED["eta"] % 1 > 1e-3)
    assert np.any(noised["discrete"]["released"] != base["released"])


# --- Algorithms with one release ----------------------------------------------------------------


@pytest.mark.parametrize("name", AT_ONCE)
def test_the_minimiser_depends_on_data_only_through_noisy_coefficients(name, monkeypatch):
    algorithm, network = algorithms.load(name)(fair="penal"), networks.build(STREAMS, "single", 1)
    noisy = stack([algorithm.calibrate(Budget(1.0, 0.0), fitted(0.0), network, 1)])
    coefficients = noisy.perturbed(fitted(0.0), STREAMS)

    def released(problem):
        recorded = {}
        noisy.run(
            problem,
            network,
            STREAMS,
            np.array([1]),
            lambda t, a, observables: recorded.update(observables),
        )
        return recorded["released"]

    free = released(fitted(0.1))
    monkeypatch.setattr(type(noisy), "perturbed", lambda *arguments: coefficients)
    assert np.array_equal(released(fitted(0.0)), released(fitted(0.1)))
    assert not np.array_equal(released(fitted(0.0)), free)


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
