"""Test the simulation: blocks of runs, batches of settings, horizons and divergence."""

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

from observed import simulated
from private_consensus import Streams, algorithms, networks
from private_consensus.api import results
from private_consensus.audits.examples import examples
from private_consensus.common.errors import Diverged, InvalidInput
from private_consensus.core.algorithms.base import Algorithm, column, stack, structure
from private_consensus.core.algorithms.gradient_descent import GradientDescent
from private_consensus.core.algorithms.pr_admm import ALGORITHM as PRADMM
from private_consensus.core.networks import Network
from private_consensus.core.problems import logistic_regression, mean_estimation
from private_consensus.core.problems.fair_classification import FairLogisticRegression
from private_consensus.core.problems.mean_estimation import MeanEstimation
from private_consensus.core.problems.perceptron import Perceptron
from private_consensus.core.simulation import MeasurementPlan, Setting
from private_consensus.privacy import Budget

GROUPS = {"data": "e", "graph": "e", "noise": "e a"}
WATCH = MeasurementPlan(
    (("released", "normalised_error"), ("internal", "node_error")), frozenset({2, 5})
)
FREE = Budget(np.inf, 0.5)


def problem(streams):
    return mean_estimation.build(streams, 5, records=20, dim=2, box=5.0)


def network(streams):
    return networks.build(streams, "erdos_renyi", 5, probability=0.7)


environment = problem, network


def settings():
    return [
        Setting(GradientDescent(), Budget(epsilon, 1e-3), horizon)
        for epsilon, horizon in ((0.5, 5), (2.0, 9))
    ]


def records_of(runs, block=4, **changes):
    options = {"root": 3, "groups": GROUPS, "runs": runs, "watch": WATCH, "block": block}
    return simulated(settings(), *environment, **{**options, **changes})


def test_adding_runs_changes_no_byte_of_earlier_runs():
    few, many = records_of(6), records_of(11)
    for setting_few, setting_many in zip(few, many, strict=True):
        for key, values in setting_few.items():
            assert values.tobytes() == setting_many[key][:6].tobytes()
            assert len(setting_many[key]) == 11


def fair(protected):
    rows = np.full((6, 2), 0.1)
    return FairLogisticRegression(rows, np.arange(6) % 2, protected, np.array([[0]]), _no_columns)


def _no_columns(*names):
    return np.array([], int)


def perceptron(hidden):
    rows = np.random.default_rng(0).random((60, 3))
    agent_rows = np.arange(54).reshape(1, 3, 18)
    return Perceptron(rows, np.arange(60) % 10, agent_rows, np.arange(54, 60), hidden)


def means(**changes):
    options = {"records": 20, "box": 5.0} | changes
    return MeanEstimation(np.zeros((1, 3, 2)), **options)


VARIED = {
    "gradient_descent": ({}, means(), means(box=6.0)),
    "fair_classification": ({"sens": "tight"}, fair(np.arange(6) % 2), fair(np.arange(6) // 5)),
    "q_dpsgd_2": (
        {"own": "broadcast", "sigma_rule": "accountant", "B": 5}, perceptron(1), perceptron(50),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", VARIED)
def test_a_run_with_a_larger_privacy_loss_than_the_first_is_refused(name):
    parameters, first, later = VARIED[name]
    algorithm = algorithms.load(name)(**parameters)
    graph, horizon = networks.build(Streams(0, (0,)), "complete", 3), 3
    if first.n_agents == 1:
        graph, horizon = Network(np.zeros((1, 1), bool), np.ones((1, 1))), 1
    setting = Setting(algorithm, Budget(1.0, 1e-5), horizon)

    def run(problems):
        watch = MeasurementPlan((("released", "value"),))
        options = {"root": 3, "groups": GROUPS, "runs": 2, "watch": watch, "block": 1}
        environment = (lambda streams: problems[streams.runs[0]]), lambda streams: graph
        simulated([setting], *environment, **options)

    run([first, replace(first)])
    with pytest.raises(InvalidInput, match="for which noise is calibrated") as caught:
        run([first, later])
    assert caught.value.key == "privacy loss of run 1"


def test_results_do_not_depend_on_the_number_of_processes():
    for processes in (2, 5):
        progress_calls = []
        options = {
            "processes": processes,
            "progress": lambda *now, progress_calls=progress_calls: progress_calls.append(now),
        }
        records = records_of(11, simulation=options)
        assert progress_calls == [(4, 11), (8, 11), (11, 11)]
        for alone, forked in zip(records_of(11), records, strict=True):
            assert list(alone) == list(forked)
            assert all(alone[key].tobytes() == forked[key].tobytes() for key in alone)


def test_the_requested_and_the_last_iterations_are_recorded():
    short, long = records_of(3)
    assert {t for t, *_ in short} == {2, 5}
    assert {t for t, *_ in long} == {2, 5, 9}


def test_averages_cover_all_iterations_including_those_not_recorded():
    r"""The average of :math:`2^t r` for run number r, from 1, is :math:`(2^{T+1} - 2)r/T`."""
    pair = [Setting(Doubling(factor=2.0), FREE, horizon) for horizon in (5, 9)]
    measure = ("internal", "value")
    for recorded in (frozenset(), frozenset({1, 2, 3}), frozenset(range(9))):
        watch = MeasurementPlan((measure,), recorded, averages=(measure,))
        options = {"root": 1, "groups": {}, "runs": 7, "watch": watch, "block": 4}
        values = simulated(pair, numbered, network, **options)
        for T, measurements in zip((5, 9), values, strict=True):
            mean = measurements[T, "internal", "mean_value"]
            assert mean == pytest.approx((2 ** (T + 1) - 2) * (1 + np.arange(7)) / T)
            assert {key for key in measurements if key[2] == "mean_value"} == {
                (T, *measure[:1], "mean_value")
            }


def test_the_average_over_a_diverged_run_is_infinite():
    watch = MeasurementPlan((), averages=(("internal", "value"),))
    wild = [Setting(Doubling(factor=1e200), FREE, 5)]
    options = {"root": 1, "groups": {}, "runs": 3, "watch": watch, "divergence": "record"}
    [measurements] = simulated(wild, numbered, network, **options)
    assert np.isinf(measurements[5, "internal", "mean_value"]).all()


def numbered(streams):
    """Return a problem whose data are the number of the run, from 1."""
    means = np.ones((len(streams.runs), 5, 2)) * (np.reshape(streams.runs, (-1, 1, 1)) + 1)
    return MeanEstimation(means, records=20, box=100.0)


class Position(NamedTuple):
    x: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Explosive(Algorithm):
    """Algorithm that overflows in run 6 of :func:`numbered` if the factor is large."""

    factor: float = 1.0

    def mechanisms(self, problem, network, horizon):
        return {}

    def start(self, problem, network, release):
        x = np.where(problem.means == 7, 1.0, 0.0)
        return Position(np.broadcast_to(x, (release.settings, *x.shape)))

    def step(self, state, problem, network, release, t):
        return Position(state.x * column(self.factor))

    def observables(self, state, problem, t):
        return {"internal": state.x}


@dataclass(frozen=True, kw_only=True)
class Doubling(Explosive):
    """Algorithm that records factor^t (run number + 1) as an array [settings, runs]."""

    def start(self, problem, network, release):
        return Position(np.tile(problem.means[:, 0, 0], (release.settings, 1)))

    def step(self, state, problem, network, release, t):
        return Position(state.x * np.reshape(self.factor, (-1, 1)))


@pytest.mark.parametrize("processes", [1, 2])
def test_a_non_finite_iterate_stops_the_run_with_an_error_that_locates_it(processes):
    pair = [
        Setting(Explosive(factor=1.5), FREE, 40, "calm"),
        Setting(Explosive(factor=1e40), FREE, 40, "wild"),
    ]
    watch = MeasurementPlan((("internal", "node_error"),))
    with np.errstate(over="ignore", invalid="ignore"), pytest.raises(Diverged) as caught:
        simulated(
            pair, numbered, network, root=1, groups={}, runs=8, watch=watch, block=4,
            simulation={"processes": processes},
        )  # fmt: skip
    error = caught.value
    assert (error.algorithm, error.setting, error.iteration, error.run) == (
        "Explosive",
        "wild",
        8,
        6,
    )
    for text in ("Explosive", "iteration 8", "run 6", "wild"):
        assert text in str(error)


def test_settings_with_different_structural_options_cannot_be_stacked():
    repaired, literal = GradientDescent(noise=1.0), GradientDescent(stage_two="literal")
    assert structure(repaired) != structure(literal)
    assert structure(repaired) == structure(GradientDescent(noise=2.0, calibration="gaussian_dp"))
    with pytest.raises(ValueError, match="cannot stack"):
        stack([repaired, literal])


def test_stacked_fields_have_the_settings_axis_first():
    per_agent = np.arange(5.0).reshape(1, 5, 1)
    both = stack([GradientDescent(noise=per_agent), GradientDescent(noise=2.0)])
    assert both.noise.shape == (2, 1, 5, 1)
    assert np.array_equal(both.noise[1], np.full((1, 5, 1), 2.0))
    scalars = stack([GradientDescent(noise=1.0), GradientDescent(noise=2.0)])
    assert column(scalars.noise).shape == (2, 1, 1, 1)
    selected = both.select(np.array([False, True]))
    assert np.array_equal(selected.noise, both.noise[1:])


def test_divergence_can_be_recorded_as_infinite_values():
    """Diverged runs are recorded as infinite per setting; other settings continue."""
    pair = [
        Setting(Explosive(factor=1.0), FREE, 40, "tame"),
        Setting(Explosive(factor=1e40), FREE, 40, "wild"),
    ]
    watch = MeasurementPlan((("internal", "node_error"),))
    options = {"root": 1, "groups": {}, "runs": 8, "watch": watch, "block": 4}
    tame, wild = simulated(pair, numbered, network, divergence="record", **options)
    forked = simulated(
        pair, numbered, network, divergence="record", simulation={"processes": 2}, **options
    )
    assert forked[1][40, "internal", "node_error"].tobytes() == (
        wild[40, "internal", "node_error"].tobytes()
    )
    assert np.isfinite(tame[40, "internal", "node_error"]).all()
    assert np.isinf(wild[40, "internal", "node_error"]).any()


def test_batched_local_solves_are_byte_identical_to_separate_runs():
    """Three structures and two horizons share the batched solver."""
    rng = np.random.default_rng(0)
    rows = rng.random((4000, 25)) / 5
    data = SimpleNamespace(features=rows, labels=rng.choice([-1, 1], 4000))

    def local(streams):
        return logistic_regression.build(
            streams, 3, prepared=data, records=1000, ridge=0.01, weight="mean",
            loss_scale=30.0, partition="per_run",
        )  # fmt: skip

    def ring(streams):
        return networks.build(streams, "ring", 3)

    watch = MeasurementPlan((("released", "own_loss"), ("internal", "own_loss")), frozenset({1, 3}))
    several = [
        Setting(PRADMM(calibration="formula", threshold=threshold), Budget(5.0, 1e-3), horizon)
        for threshold, horizon in (("literal", 6), ("none", 4), ("consistent", 6))
    ]
    how = {"root": 3, "groups": {**GROUPS, "sampling": "e"}, "runs": 3, "watch": watch, "block": 2}
    together = simulated(several, local, ring, **how)
    for batched, setting in zip(together, several, strict=True):
        (alone,) = simulated([setting], local, ring, **how)
        assert all(alone[key].tobytes() == batched[key].tobytes() for key in alone)


def test_an_infinite_bound_does_not_count_as_divergence():
    """Without a box, the bound (74) of coordinate descent is infinite; its iterates are finite."""
    (example,) = examples("coordinate_descent")
    algorithm, problem, network, budget, horizon = example.setting
    done = results.simulate(algorithm, problem, network, budget, horizon, runs=2)
    assert np.isinf(done.algorithm.bound(problem, np.ones((1, 1, 3)))).all()
    assert done.measurements["value"].is_finite().all()
    assert np.isfinite(done.models.released).all()
