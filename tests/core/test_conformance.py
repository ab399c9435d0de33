"""Test general properties of every algorithm of the registry, on its small example."""

from __future__ import annotations

from functools import cache

import pytest

from private_consensus import algorithms, problems
from private_consensus.audits import conformance
from private_consensus.common.errors import InvalidInput
from private_consensus.core.algorithms.base import AUDIT, Algorithm, Iterative
from private_consensus.reproduction.experiments.checks import wrong_settings
from worlds import MORE, CalibratedRun, world

NAMES = [name for name in algorithms.names() if algorithms.load(name).kind != AUDIT]
"""Names of all algorithms except audits, which only judge the output of another algorithm."""
PROBLEMS = [problems.class_of(name) for name in problems.names()]
ONE_LENGTH = {"d_zoa"}
"""Algorithms whose inner-loop draws are numbered by the longest loop of the batch."""
EXACT = {"gradient_descent", "dp_ci"}


@cache
def prepared(name: str) -> CalibratedRun:
    return world(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_batch_of_settings_equals_the_settings_one_by_one(name):
    """The settings of the batch differ in numbers and in horizons."""
    calibrated_run = prepared(name)
    variant = calibrated_run.algorithm if name in ONE_LENGTH else None
    conformance.batch_equals_its_settings(calibrated_run, variant=variant, exact=name in EXACT)


@pytest.mark.parametrize("name", NAMES)
def test_additional_runs_do_not_change_earlier_runs(name):
    conformance.more_runs_change_nothing(prepared(name))


@pytest.mark.parametrize("name", NAMES)
def test_the_seed_is_the_only_source_of_randomness(name):
    conformance.seeds_are_all_randomness(prepared(name), noisy=name not in MORE)


@pytest.mark.parametrize("name", sorted(algorithms.names()))
def test_an_algorithm_refuses_a_problem_that_lacks_a_required_attribute(name):
    algorithm_class = algorithms.load(name)
    algorithm = object.__new__(algorithm_class)
    assert all(
        any(problem_class.offers(need) for problem_class in PROBLEMS)
        for need in algorithm_class.needs
    )
    for problem_class in PROBLEMS:
        lacking = [need for need in algorithm_class.needs if not problem_class.offers(need)]
        if lacking:
            with pytest.raises(InvalidInput, match=f"problem.name.*{lacking[0]}"):
                algorithm.check_needs(object.__new__(problem_class))
        else:
            algorithm.check_needs(object.__new__(problem_class))


def test_a_cell_with_a_problem_that_lacks_a_required_attribute_is_refused():
    setting = {
        "problem": {"name": "mean_estimation", "records": 100, "dim": 2, "box": 1.0},
        "network": {"name": "ring", "agents": 4, "weights": "metropolis"},
        "budget": {"epsilon": 1.0, "delta": 1e-5}, "horizon": 20, "algorithm": {},
    }  # fmt: skip
    cell = {
        "algorithm": "ipp_admm", "seed": 0, "runs": 1, "iterations": [],
        "measures": [["released", "normalised_error"]], "settings": [setting],
    }  # fmt: skip
    messages = list(wrong_settings(cell))
    expected = "expected a problem with clipped_loss"
    assert messages == [f"problem.name: found 'mean_estimation', {expected}"]
    assert not list(wrong_settings({**cell, "algorithm": "p_admm"}))


def test_an_algorithm_overrides_at_most_ten_methods():
    methods = {
        name: method
        for kind in (Algorithm, Iterative)
        for name, method in vars(kind).items()
        if not name.startswith("_") and callable(method)
    }
    derived = {name for name, method in methods.items() if getattr(method, "__final__", False)}
    interface = methods.keys() - derived
    # An algorithm overrides either ``run`` or the methods that the loop of ``Iterative`` calls.
    assert len(interface - {"run"}) <= 10
    for kind in map(algorithms.load, algorithms.names()):
        parents = set(kind.__mro__) - set(Iterative.__mro__)
        overridden = {name for parent in parents for name in vars(parent)}
        assert len(interface & overridden) <= 10
        assert not derived & overridden
