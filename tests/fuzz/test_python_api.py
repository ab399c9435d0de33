"""Fuzz the Python API: any argument gives a result or one error that names the argument."""

from __future__ import annotations

import inspect
import itertools
import math
import warnings
from dataclasses import fields
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from limits import cases, soon

import private_consensus as pc
from private_consensus import algorithms, privacy, problems
from private_consensus.audits.examples import examples
from private_consensus.common.errors import InvalidInput
from private_consensus.core.algorithms.base import stack
from private_consensus.core.problems.mean_estimation import MeanEstimation
from private_consensus.core.randomness import Streams
from private_consensus.privacy import (
    Answers,
    Batches,
    Budget,
    Guarantee,
    Relation,
    Release,
    SampledNoise,
    Sampling,
    SparseVector,
)

NUMBERS = [0, 1, -1, 2, 0.5, 1.5, 1e-300, 1e300, 10**12, 10**30, 10**5000, math.inf, -math.inf,
           math.nan, True, np.float32(0.5), np.int64(3), Fraction(1, 3), 1 + 2j, 0.99]  # fmt: skip
TEXTS = ["", "1", "nope", "gaussian", "released", "poisson", "x" * 100_000, "a\x1b[31m\n", "é"]
SERIES = [[], (), [1.0, 2.0], [0.0], [1, "2"], [[1.0], [2.0, 3.0]], [None], {"a": 1}, b"1",
          np.zeros(0), np.ones(3), np.ones((2, 3)), np.array(["1"]), np.array([math.nan]),
          np.array([1 + 1j]), np.array([True]), np.array([None, 1], object)]  # fmt: skip
OBJECTS = [None, object(), print, Budget, Budget(1.0, 1e-5), Relation("record", "replace"),
           Release("gaussian", 1.0, 1.0), [Release("laplace", 1.0, 1.0)], Sampling("poisson", 0.1),
           Streams(0, (0,)), np.random.default_rng(0)]  # fmt: skip
ANYTHING = st.sampled_from([*NUMBERS, *TEXTS, *SERIES, *OBJECTS])
BUDGET = Budget(1.0, 1e-5)
BATCHES = Batches((1, 2), (0.5, 0.5))
PURE = [Release("laplace", 1.0, 2.0)]
SVT = SparseVector(1.0, 2, 0.5, 0.5)
NOISE = SampledNoise(BATCHES, 10, (1.0, 0.5))
GUARANTEE = Guarantee(1.0, 1e-5, "pure")
MEANS = MeanEstimation(np.full((1, 3, 2), 0.1), 10, 1.0)
RING = pc.networks.build(Streams(0, (0,)), "ring", 3)
ALGORITHM = algorithms.load("gradient_descent")(calibration="gaussian_dp")

ROWS = {"a": np.linspace(0, 1, 12), "y": np.arange(12) % 2}
CALLS = {
    Budget: {"epsilon": 1.0, "delta": 1e-5},
    Relation: {"unit": "record", "change": "replace"},
    Guarantee: {
        "epsilon": 1.0, "delta": 0.0, "method": "pure", "proven": True, "note": "",
    },
    GUARANTEE.within: {"budget": BUDGET},
    Release: {
        "mechanism": "gaussian", "sensitivity": 1.0, "scale": [1.0, 2.0], "norm": "l2", "count": 2,
        "sampling": None, "proven": True, "note": "", "epsilon": None, "profile": None, "dim": None,
        "attained": 1.0, "reached": None, "attack": None, "log_tolerance": 0.0,
    },
    Sampling: {"kind": "poisson", "rate": 0.1},
    Streams: {"root": 0, "runs": (0, 1), "groups": {"data": "a"}},
    Streams(0, (0,)).generators: {"purpose": "data", "name": ""},
    Streams(0, (0,)).shared: {"purpose": "data", "name": ""},
    Streams(0, (0,)).draw: {"purpose": "noise", "law": "normal", "shape": (2,), "name": ""},
    Batches: {"sizes": (1, 2), "probabilities": (0.5, 0.5)},
    SampledNoise: {
        "batches": BATCHES, "records": 10, "losses": (1.0, 0.5), "sampling": "poisson",
        "gaussian": True,
    },
    NOISE.sigma: {"budget": BUDGET, "count": 2},
    NOISE.releases: {"sigma": 1.0, "count": 2},
    SparseVector: {
        "sensitivity": 1.0, "count": 1, "epsilon_threshold": 0.5, "epsilon_queries": 0.5,
        "epsilon_numbers": 0.0, "monotonic": False,
    },
    SparseVector.split: {
        "epsilon": 1.0, "sensitivity": 1.0, "count": 1, "monotonic": False, "equal": False,
    },
    SVT.above: {"query": 1.0, "noisy_threshold": 0.0, "unit": 0.5},
    SVT.run: {
        "queries": np.ones(3), "threshold": 0.0, "unit_threshold": 0.0,
        "unit_queries": np.zeros(3), "unit_numbers": None,
    },
    Answers: {
        "answered": np.ones(2, bool), "above": np.ones(2, bool), "values": np.zeros(2),
    },
    privacy.account: {"releases": PURE, "delta": 1e-5},
    privacy.epsilon: {"releases": PURE, "delta": 1e-5, "method": "zcdp", "conversion": "cks"},
    privacy.zcdp: {"releases": PURE},
    privacy.gaussian_dp: {"releases": PURE},
    privacy.dp_events: {"releases": PURE},
    privacy.analytic_gaussian_scale: {"budget": BUDGET, "sensitivity": 1.0},
    privacy.classical_gaussian_scale: {"budget": Budget(0.5, 1e-5), "sensitivity": 1.0},
    privacy.extended_gaussian_scale: {"budget": BUDGET, "sensitivity": 1.0},
    privacy.gaussian_noise_multiplier: {"budget": BUDGET, "count": 2},
    privacy.laplace_scale: {"budget": BUDGET, "sensitivity": 1.0, "count": 2},
    pc.calibrate: {
        "make_releases": lambda scale: [Release("gaussian", 1.0, scale)], "budget": BUDGET,
        "method": "best", "tolerance": 1e-6,
    },
    privacy.gaussian_delta: {"mu": 1.0, "epsilon": 1.0},
    privacy.gaussian_log_delta: {"mu": 1.0, "epsilon": 1.0},
    privacy.gaussian_epsilon: {"mu": 1.0, "delta": 1e-5},
    privacy.gaussian_mu: {"epsilon": 1.0, "delta": 1e-5},
    privacy.gaussian_rho: {"mu": 1.0},
    privacy.laplace_rho: {"epsilon": 1.0},
    privacy.pure_rho: {"epsilon": 1.0, "form": "tight"},
    privacy.zcdp_epsilon: {"rho": 1.0, "delta": 1e-5, "conversion": "cks"},
    privacy.zcdp_rho: {"epsilon": 1.0, "delta": 1e-5, "conversion": "cks"},
    privacy.discrete_gaussian_pmf: {"k": np.arange(3), "variance": 2.0},
    privacy.gamma_norm_noise: {"direction": np.ones((2, 3)), "radius": np.ones(2), "scale": 1.0},
    privacy.exact: {"sensitivity": 1.0},
    privacy.pure: {"epsilon": 1.0, "count": 2},
    privacy.deadline_batches: {"deadline": 0.4, "slowest": 10.0, "fastest": 90.0},
    privacy.fixed_batches: {"size": 3},
    privacy.noisy_mean: {"batches": BATCHES, "records": 10, "sampling": "poisson"},
    privacy.noisy_sum: {"batches": BATCHES, "records": 10, "sampling": "poisson"},
    privacy.noisy_message: {
        "batches": BATCHES, "records": 10, "step": 0.1, "resolution": 0.1, "dim": 2, "clip": 1.0,
        "sampling": "poisson",
    },
    privacy.sparse_vector_release: {
        "sensitivity": 1.0, "threshold_scale": 1.0, "query_scale": 1.0, "count": 1, "tests": 3,
        "redrawn": "once",
    },
    algorithms.load: {"name": "dgd"},
    algorithms.module_of: {"name": "dgd"},
    problems.load: {"name": "lasso"},
    problems.module_of: {"name": "lasso"},
    problems.class_of: {"name": "lasso"},
    problems.shared_by_runs: {"module": problems.load("lasso"), "parameters": {}},
    pc.simulate: {
        "algorithm": ALGORITHM, "problem": MEANS, "network": RING, "budget": BUDGET, "horizon": 2,
        "runs": 2, "seed": 0, "measures": [("released", "normalised_error")], "iterations": [1],
    },
    pc.split: {
        "data": ROWS, "label": "y", "agent": 3, "labels": (0, 1),
        "features": ["a"], "categories": None, "bounds": (0.0, 1.0), "bound": None, "clip": None,
        "test": 0.25, "seed": 0,
    },
    pc.audit: {
        "algorithm": ALGORITHM, "problem": MEANS, "network": RING, "budget": BUDGET, "horizon": 1,
        "runs": 40, "confidence": 0.9, "delta": 1e-5, "relation": None, "observer": "global",
        "calibrated": None, "attack": None, "seed": 0, "progress": print,
    },
}  # fmt: skip
"""Public functions and constructors, each with arguments that it accepts."""
SLOW = {pc.audit, pc.simulate}
COVERED_ELSEWHERE = {
    "audit_verdict", "verdict", "verdict_of",  # words of verdicts: tests/privacy/test_verdicts.py
    "Result", "Shares", "AuditResult",  # returned by simulate, split and audit
}  # fmt: skip
EXAMPLES = {example.name: example for example in examples()}


def named(call) -> str:
    return getattr(call, "__qualname__", str(call))


def refused_or_made(call, arguments) -> object:
    """Return the result; None if the call is refused with one short line."""
    with soon(), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return call(**arguments)
        except InvalidInput as error:
            assert str(error).isprintable(), str(error)
            assert len(str(error)) < 1000
            return None


def test_every_exported_function_and_constructor_is_fuzzed():
    covered = {getattr(call, "__func__", call) for call in CALLS}
    for module in (pc, privacy):
        for name in set(module.__all__) - COVERED_ELSEWHERE:
            value = getattr(module, name)
            abstract = inspect.isabstract(value) or value in (InvalidInput, pc.Network)
            if inspect.isroutine(value) or (inspect.isclass(value) and not abstract):
                assert value in covered, name


@pytest.mark.parametrize("call", CALLS, ids=named)
def test_the_unchanged_example_arguments_are_accepted(call):
    assert refused_or_made(call, CALLS[call]) is not None


@cases(120)
@given(st.sampled_from([call for call in CALLS if call not in SLOW]), st.data())
def test_arbitrary_arguments_are_accepted_or_refused(call, data):
    names = st.sampled_from([*CALLS[call]])
    changes = data.draw(st.dictionaries(names, ANYTHING, min_size=1, max_size=2))
    returned = refused_or_made(call, {**CALLS[call], **changes})
    for number in numbers_in(returned):
        assert number == number, (named(call), changes)
    if isinstance(returned, Guarantee) and returned.epsilon == 0 and call is privacy.account:
        if "releases" in changes:
            assert all(np.all(release.losses() == 0) for release in changes["releases"])
        else:  # epsilon = 0 needs delta >= 1 - exp(-loss / 2), the total variation distance
            (release,) = PURE
            assert returned.delta >= -np.expm1(-release.losses().item() / 2)


def numbers_in(returned) -> list[float]:
    """Return the privacy losses and scales of a result, none of which may be NaN."""
    if isinstance(returned, float):
        return [returned]
    return [returned.epsilon, returned.delta] if isinstance(returned, Guarantee | Budget) else []


@cases(20)
@given(st.data())
def test_arbitrary_arguments_of_a_simulation_are_accepted_or_refused(data):
    names = st.sampled_from([*CALLS[pc.simulate]])
    changes = data.draw(st.dictionaries(names, ANYTHING, min_size=1, max_size=2))
    simulation = refused_or_made(pc.simulate, {**CALLS[pc.simulate], **changes})
    if simulation is not None:
        assert simulation.measurements.height > 0
        assert simulation.measurements["t"].max() <= changes.get("horizon", 2)


@cases(10)
@given(st.data())
def test_arbitrary_arguments_of_an_audit_are_accepted_or_refused(data):
    names = st.sampled_from([*CALLS[pc.audit]])
    changes = data.draw(st.dictionaries(names, ANYTHING, min_size=1, max_size=2))
    audit_result = refused_or_made(pc.audit, {**CALLS[pc.audit], **changes})
    assert audit_result is None or 0 <= audit_result.lower < math.inf


@cases(50)
@given(st.sampled_from(algorithms.names()), st.data())
def test_arbitrary_hyperparameters_are_accepted_or_refused(name, data):
    kind = algorithms.load(name)
    parameters = {field.name: field for field in fields(kind) if field.init}
    changed = data.draw(st.sampled_from(sorted(parameters)))
    value = data.draw(ANYTHING)
    arguments = {key: 0.5 for key, field in parameters.items() if _is_needed(field)}
    algorithm = refused_or_made(kind, {**arguments, changed: value})
    if algorithm is not None and isinstance(parameters[changed].default, float):
        assert not isinstance(value, str | bytes | bool | complex)


METHODS = {
    "calibrate": {"budget": BUDGET, "problem": MEANS, "network": RING, "horizon": 2},
    "check_needs": {"problem": MEANS},
    "graph_statistics": {"network": RING},
    "releases": {"problem": MEANS, "network": RING, "horizon": 2},
    "lower_bound": {"releases": PURE, "delta": 1e-5},
    "releases_if_assumed": {"problem": MEANS, "network": RING, "horizon": 2},
    "epsilon_by_formula": {"delta": 1e-5, "problem": MEANS, "network": RING, "horizon": 2},
    "statements": {"budget": BUDGET, "problem": MEANS, "network": RING, "horizon": 2},
    "noise_sites": {"problem": MEANS, "network": RING, "horizon": 2},
    "start": {"problem": MEANS, "network": RING, "streams": Streams(0, (0,)), "settings": 1},
    "draws": {"problem": MEANS, "streams": Streams(0, (0,))},
    "run": {
        "problem": MEANS, "network": RING, "streams": Streams(0, (0,)), "horizon": np.array([2]),
        "observe": lambda t, active, observables: None,
    },
}  # fmt: skip
"""Methods of algorithms, each with arguments that it accepts."""
CALIBRATED = ALGORITHM.calibrate(BUDGET, MEANS, RING, 2)


@cases(60)
@given(st.sampled_from([*METHODS]), st.data())
def test_arbitrary_arguments_of_a_method_are_accepted_or_refused(method, data):
    names = st.sampled_from([*METHODS[method]])
    changes = data.draw(st.dictionaries(names, ANYTHING, min_size=1, max_size=2))
    kind = stack([CALIBRATED]) if method in ("start", "draws", "run") else CALIBRATED
    refused_or_made(getattr(kind, method), {**METHODS[method], **changes})


WRONG = {
    "budget": "1", "problem": RING, "network": MEANS, "horizon": 0, "delta": 2.0,
    "releases": "gaussian", "streams": 3, "settings": 0, "observe": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("method", "name"), [(method, name) for method in METHODS for name in METHODS[method]]
)
def test_each_method_argument_is_checked_if_passed_by_name_or_by_position(method, name):
    kind = algorithms.load("dgd")() if method not in ("start", "draws") else CALIBRATED
    given_arguments = {**METHODS[method], name: WRONG[name]}
    for positional in (True, False):
        with pytest.raises(InvalidInput) as error:
            if positional:
                getattr(kind, method)(*given_arguments.values())
            else:
                getattr(kind, method)(**given_arguments)
        assert error.value.key == name
        assert len(str(error.value)) < 400 and str(error.value).isprintable()


@pytest.mark.parametrize("name", ["gradient_descent", "exact_admm", "q_dpsgd_2"])
def test_a_formula_that_divides_by_delta_is_infinite_at_0(name):
    example = EXAMPLES[name]
    setting = example.problem, example.network, example.horizon
    noisy = example.algorithm.calibrate(example.budget, *setting)
    assert noisy.epsilon_by_formula(0.0, *setting) == math.inf
    assert 0 < noisy.epsilon_by_formula(1e-3, *setting) < math.inf


def _is_needed(field) -> bool:
    return repr(field.default).startswith("<dataclasses._MISSING") and repr(
        field.default_factory
    ).startswith("<dataclasses._MISSING")


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"sensitivity": 1.0, "scale": []}, "release.scale"),
        ({"sensitivity": [], "scale": 1.0}, "release.sensitivity"),
        ({"sensitivity": "1", "scale": 1.0}, "release.sensitivity"),
        ({"sensitivity": 1.0, "scale": ["1"]}, "release.scale"),
        ({"sensitivity": True, "scale": 1.0}, "release.sensitivity"),
        ({"sensitivity": 1.0, "scale": 1 + 1j}, "release.scale"),
        ({"sensitivity": 1.0, "scale": 1.0, "epsilon": 1.0}, "release.epsilon"),
        ({"sensitivity": 1.0, "scale": 1.0, "proven": "yes"}, "release.proven"),
        ({"sensitivity": 1.0, "scale": 1.0, "sampling": 0.1}, "release.sampling"),
        ({"sensitivity": 1.0, "scale": 1.0, "count": True}, "release.count"),
        ({"sensitivity": 1.0, "scale": 1.0, "count": 10**30}, "release.count"),
    ],
)
@pytest.mark.parametrize("mechanism", ["gaussian", "laplace", "gamma_norm", "discrete_gaussian"])
def test_a_release_with_invalid_parameters_is_refused(mechanism, changes, expected):
    with pytest.raises(InvalidInput, match=expected):
        Release(mechanism, **changes)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"seed": -1}, "seed: found -1"),
        ({"runs": 10**12}, "runs: found 1000000000000"),
        ({"runs": 0}, "runs: found 0"),
        ({"horizon": 2.5}, "horizon: found 2.5"),
        ({"iterations": [3]}, "iterations: found 3, expected a whole number >= 1 and <= 2"),
        ({"iterations": [0]}, "iterations: found 0"),
        ({"iterations": itertools.count(1)}, "iterations: found count"),
        ({"iterations": "12"}, "iterations: found '12'"),
        ({"measures": [("nope", "normalised_error")]}, "measures: found 'nope'"),
        ({"measures": [("released", "nope")]}, "measures: found 'nope'"),
        ({"measures": "released"}, "measures: found 'released'"),
        ({"budget": -1.0}, "budget: found -1.0, expected a Budget"),
        ({"algorithm": type(ALGORITHM)}, "algorithm: found <class"),
        ({"problem": MeanEstimation}, "problem: found <class"),
        ({"problem": lambda streams: 3}, "problem: found 3"),
        ({"network": np.eye(3)}, "network: found array"),
    ],
)
def test_a_simulation_with_invalid_arguments_is_refused(changes, expected):
    with pytest.raises(InvalidInput) as error:
        pc.simulate(**{**CALLS[pc.simulate], **changes})
    assert expected in str(error.value)


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        (privacy.gaussian_epsilon, (-1.0, 1e-5)),
        (privacy.gaussian_epsilon, (math.nan, 1e-5)),
        (privacy.gaussian_mu, (-1.0, 1e-5)),
        (privacy.gaussian_rho, (-1.0,)),
        (privacy.pure_rho, ("1",)),
        (privacy.laplace_rho, (math.nan,)),
        (privacy.zcdp_epsilon, ("1", 1e-5)),
        (privacy.laplace_scale, (BUDGET, -1.0)),
        (privacy.analytic_gaussian_scale, (BUDGET, math.nan)),
        (Budget, (math.nan,)),
        (Guarantee, (-1.0, 0.0, "pure")),
        (Batches, ((), ())),
    ],
)
def test_invalid_privacy_parameters_are_refused(call, arguments):
    with pytest.raises(InvalidInput):
        call(*arguments)


@pytest.mark.parametrize("mechanism", ["laplace", "gamma_norm"])
def test_the_loss_of_10_to_the_12_releases_is_bounded_within_the_time_limit(mechanism):
    """The bound adds up mu^2/2 in zCDP and converts the sum to epsilon."""
    with soon():
        guarantee = privacy.account([Release(mechanism, 1.0, 1e8, count=10**12)], 1e-5)
    rho = 10**12 * privacy.laplace_rho(1e-8)
    assert 0 < guarantee.epsilon <= privacy.zcdp_epsilon(rho, 1e-5) and guarantee.method != "pld"


def test_an_error_message_truncates_a_long_value():
    with pytest.raises(InvalidInput) as error:
        Relation("x" * 100_000, "replace")
    assert len(str(error.value)) < 400 and "(100,002 characters)" in str(error.value)
    assert error.value.value == "x" * 100_000


def test_an_error_message_is_printable_for_unusual_values():
    class Unprintable:
        def __repr__(self):
            raise ValueError

    for value in ("a\x1b[31m\nb", 10**5000, np.ones((3, 3)), Unprintable()):
        assert str(InvalidInput("key\n\x1b", value, "some\nthing")).isprintable()
