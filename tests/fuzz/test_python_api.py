"""Fuzz privacy functions and parameters: any argument gives a result or an error that names it."""

import inspect
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
from private_consensus import algorithms, privacy
from private_consensus.common.errors import InvalidInput
from private_consensus.core.randomness import Streams
from private_consensus.privacy import (
    Batches,
    Budget,
    Guarantee,
    Relation,
    Release,
)
from private_consensus.privacy.accounting import gaussian_dp
from private_consensus.privacy.conversions import (
    gaussian_log_delta,
)
from private_consensus.privacy.subsampling import SampledNoise, noisy_sum

NUMBERS = [0, 1, -1, 2, 0.5, 1.5, 1e-300, 1e300, 10**12, 10**30, 10**5000, math.inf, -math.inf,
           math.nan, True, np.float32(0.5), np.int64(3), Fraction(1, 3), 1 + 2j, 0.99]  # fmt: skip
TEXTS = ["", "1", "nope", "gaussian", "released", "poisson", "x" * 100_000, "a\x1b[31m\n", "é"]
SERIES = [[], (), [1.0, 2.0], [0.0], [1, "2"], [[1.0], [2.0, 3.0]], [None], {"a": 1}, b"1",
          np.zeros(0), np.ones(3), np.ones((2, 3)), np.array(["1"]), np.array([math.nan]),
          np.array([1 + 1j]), np.array([True]), np.array([None, 1], object)]  # fmt: skip
OBJECTS = [None, object(), print, Budget, Budget(1.0, 1e-5), Relation("record", "replace"),
           Release("gaussian", 1.0, 1.0), [Release("laplace", 1.0, 1.0)],
           Streams(0, (0,)), np.random.default_rng(0)]  # fmt: skip
ANYTHING = st.sampled_from([*NUMBERS, *TEXTS, *SERIES, *OBJECTS])
BUDGET = Budget(1.0, 1e-5)
BATCHES = Batches((1, 2), (0.5, 0.5))
PURE = [Release("laplace", 1.0, 2.0)]
NOISE = SampledNoise(BATCHES, 10, (1.0, 0.5))


CALLS = {
    Budget: {"epsilon": 1.0, "delta": 1e-5},
    Relation: {"unit": "record", "change": "replace"},
    Release: {
        "mechanism": "gaussian", "sensitivity": 1.0, "scale": [1.0, 2.0], "count": 2,
        "proven": True, "note": "", "epsilon": None, "profile": None,
        "attained": 1.0, "reached": None, "log_tolerance": 0.0,
    },
    Batches: {"sizes": (1, 2), "probabilities": (0.5, 0.5)},
    NOISE.sigma: {"budget": BUDGET, "count": 2},
    NOISE.releases: {"sigma": 1.0, "count": 2},
    privacy.account: {"releases": PURE, "delta": 1e-5},
    gaussian_dp: {"releases": PURE},
    privacy.analytic_gaussian_scale: {"budget": BUDGET, "sensitivity": 1.0},
    privacy.extended_gaussian_scale: {"budget": BUDGET, "sensitivity": 1.0},
    privacy.gaussian_noise_multiplier: {"budget": BUDGET, "count": 2},
    pc.calibrate: {
        "make_releases": lambda scale: [Release("gaussian", 1.0, scale)], "budget": BUDGET,
        "tolerance": 1e-6,
    },
    privacy.gaussian_delta: {"mu": 1.0, "epsilon": 1.0},
    gaussian_log_delta: {"mu": 1.0, "epsilon": 1.0},
    privacy.gaussian_epsilon: {"mu": 1.0, "delta": 1e-5},
    privacy.gaussian_mu: {"epsilon": 1.0, "delta": 1e-5},
    privacy.zcdp_epsilon: {"rho": 1.0, "delta": 1e-5, "conversion": "cks"},
    privacy.zcdp_rho: {"epsilon": 1.0, "delta": 1e-5, "conversion": "cks"},
    privacy.deadline_batches: {"deadline": 0.4},
    privacy.fixed_batches: {"size": 3},
    privacy.noisy_mean: {"batches": BATCHES, "records": 10, "sampling": "poisson"},
    noisy_sum: {"batches": BATCHES, "records": 10, "sampling": "poisson"},
    privacy.sparse_vector_scales: {"epsilon": 1.0, "sensitivity": 1.0, "count": 2},
}  # fmt: skip
"""Functions and constructors for privacy, each with arguments that it accepts."""
NOT_CALLED = {"Guarantee"}
"""Results of functions, which users do not build."""


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
    for name in set(privacy.__all__) - NOT_CALLED:
        value = getattr(privacy, name)
        if inspect.isroutine(value) or (inspect.isclass(value) and not inspect.isabstract(value)):
            assert value in covered, name


@pytest.mark.parametrize("call", CALLS, ids=named)
def test_the_unchanged_example_arguments_are_accepted(call):
    assert refused_or_made(call, CALLS[call]) is not None


@cases(120)
@given(st.sampled_from([*CALLS]), st.data())
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


def _is_needed(field) -> bool:
    return repr(field.default).startswith("<dataclasses._MISSING") and repr(
        field.default_factory
    ).startswith("<dataclasses._MISSING")


@pytest.mark.parametrize("mechanism", ["laplace", "gamma_norm"])
def test_the_loss_of_10_to_the_12_releases_is_bounded_within_the_time_limit(mechanism):
    """The losses are as small as those of Gaussian noise, for which zCDP is nearly exact."""
    with soon():
        guarantee = privacy.account([Release(mechanism, 1.0, 1e8, count=10**12)], 1e-5)
    exact, bound = privacy.gaussian_epsilon(0.01, 1e-5), privacy.zcdp_epsilon(5e-5, 1e-5)
    assert exact < guarantee.epsilon <= bound * (1 + 1e-6)
