"""Test the rules of parameters: valid and invalid values, in subclasses and batches."""

from dataclasses import MISSING, dataclass, fields, replace

import numpy as np
import pytest

from private_consensus import Streams, algorithms, networks
from private_consensus.audits.examples import example_names, examples
from private_consensus.common.errors import InvalidInput
from private_consensus.core.algorithms.base import parameters, stack, structure
from private_consensus.core.algorithms.local_training import LocalTraining
from private_consensus.core.algorithms.parameters import (
    check_parameters,
    fraction,
    nonnegative,
    one_of,
    only,
    positive,
    positive_integer,
    rules,
    unit_interval,
)
from private_consensus.privacy import account

TAKEN = [
    (positive(1.0), (1e-300, np.array([1.0, 2.0])), (0.0, np.nan, np.array([1.0, 0.0]))),
    (nonnegative(1.0), (0.0, 3), (-1e-300, np.nan)),
    (fraction(0.5), (0.5, np.float64(0.5)), (0.0, 1.0, np.nan, [0.5], (0.5,))),
    (fraction(None, below=0.5), (None, 0.4), (0.5, 0.7)),
    (unit_interval(0.5), (0.5, 1.0), (0.0, 1.0 + 1e-9)),
    (positive_integer(1), (1, 3.0), (0, 1.5, np.array([1, 2.5]))),
    (positive_integer(1, max_value=2), (1, np.array([1, 2])), (3, np.array([2, 3]))),
    (only(1.0), (1.0, np.ones(3)), (1.0 + 1e-9, np.array([1.0, 2.0]))),
    (one_of("a", ("a", "b")), ("a", "b"), ("c", None)),
]


@pytest.mark.parametrize(("rule_field", "valid_values", "refused"), TAKEN)
def test_a_rule_accepts_its_values_and_refuses_all_others(rule_field, valid_values, refused):
    @dataclass(frozen=True, kw_only=True)
    class Ruled:
        x: object = rule_field

        def __post_init__(self):
            check_parameters(self)

    for value in valid_values:
        Ruled(x=value)
    for value in refused:
        with pytest.raises(InvalidInput, match=r"algorithm\.x: (found .*|missing), expected .+"):
            Ruled(x=value)


@dataclass(frozen=True, kw_only=True)
class Parent:
    rate: float = positive(1.0)
    clip: float | None = positive(None)

    def __post_init__(self):
        check_parameters(self)


@dataclass(frozen=True, kw_only=True)
class Child(Parent):
    rate: float = 2.0
    clip: float | None = 3.0


def test_a_parameter_without_default_is_required_and_checked():
    @dataclass(frozen=True, kw_only=True)
    class Demanding:
        level: float = fraction()

        def __post_init__(self):
            check_parameters(self)

    Demanding(level=0.9)
    with pytest.raises(TypeError, match="level"):
        Demanding()
    with pytest.raises(InvalidInput, match=r"algorithm\.level"):
        Demanding(level=None)


def test_a_subclass_with_another_default_keeps_the_rules_of_its_parent():
    assert rules(Child).keys() == {"rate", "clip"}
    Child(clip=None)
    with pytest.raises(InvalidInput, match=r"algorithm\.rate"):
        Child(rate=-1.0)
    with pytest.raises(InvalidInput, match=r"algorithm\.rate"):
        Parent(rate=None)


@pytest.mark.parametrize("name", algorithms.names())
def test_default_parameters_of_each_algorithm_satisfy_its_rules(name):
    field_rules = rules(algorithms.load(name))
    defaults = {
        field.name: field.default
        for field in algorithms.load(name).__dataclass_fields__.values()
        if field.name in field_rules
    }
    for key, (rule, optional) in field_rules.items():
        assert rule.expected
        has_default = defaults[key] is not MISSING
        assert not has_default or (optional and defaults[key] is None) or rule.holds(defaults[key])


def test_noise_is_a_number_and_an_array_in_a_batch():
    algorithm = algorithms.load("dvp")(noise=0.5, law="gamma_norm")
    assert parameters(algorithm)["noise"] == 0.5
    assert structure(algorithm) == structure(replace(algorithm, noise=1))
    batch = stack([algorithm, replace(algorithm, noise=0.0)])
    assert batch.noise.tolist() == [0.5, 0.0] and not batch.noisy
    with pytest.raises(InvalidInput, match=r"algorithm\.noise: found -1"):
        replace(algorithm, noise=-1.0)


@pytest.mark.parametrize("name", example_names())
def test_calibrated_algorithms_have_noise_and_an_infinite_loss_without_it(name):
    """A calibrated algorithm has a nonzero noise; if all noises are 0, epsilon is infinite."""
    _, problem, network, budget, horizon = examples(name)[0].world
    private = examples(name)[0].algorithm.calibrate(budget, problem, network, horizon)
    values = {field.name: getattr(private, field.name) for field in fields(private)}
    numbers = [name for name, value in values.items() if type(value) is float]
    names = [name for name in numbers if "noise" in name or name == "sigma"]
    assert any(getattr(private, name) for name in names)
    bare = replace(private, **dict.fromkeys(names, 0.0))
    releases = bare.releases(problem, network, horizon)
    assert account(releases, budget.delta).epsilon == np.inf


@pytest.mark.parametrize("name", ["omega", "change"])
def test_empty_parameter_lists_of_random_aggregation_are_refused(name):
    with pytest.raises(InvalidInput, match=rf"algorithm\.{name}: found \[\]"):
        algorithms.load("random_aggregation")(**{name: []})


def test_a_default_that_no_field_declares_is_refused():
    class Undecorated(LocalTraining):
        eta: float = positive(8.0)

    class Unannotated(LocalTraining):
        eta = 8.0

    @dataclass(frozen=True, kw_only=True)
    class Declared(LocalTraining):
        eta: float = 8.0

    for kind in (Undecorated, Unannotated, dataclass(frozen=True, kw_only=True)(Unannotated)):
        with pytest.raises(InvalidInput, match=rf"{kind.__name__}\.eta: .*expected an annotated"):
            kind()
    assert Declared().eta == 8.0


@pytest.mark.parametrize(
    ("algorithm", "name", "value"),
    [
        ("p_admm", "penalty_growth", 2),
        ("p_admm", "penalty_growth", np.int8(2)),
        ("pdop", "growth", np.float16(2)),
        ("pdop", "decay", np.float16(0.9)),
        ("gradient_descent", "decay", -64),
        ("gradient_descent", "decay", np.uint8(1)),
        ("gradient_descent", "decay", np.array(1)),
        ("pr_admm", "R_P", np.float16(0.9)),
        ("muffliato", "noise", np.float16(2)),
    ],
)
def test_a_float_field_becomes_a_python_float(algorithm, name, value):
    stored = parameters(algorithms.load(algorithm)(**{name: value}))[name]
    assert type(stored) is float
    assert stored == value


def test_fields_of_short_or_integer_types_are_stored_in_64_bits():
    assert type(algorithms.load("pr_admm")(T_p=np.int8(2)).T_p) is int
    batch = stack([algorithms.load("p_admm")(penalty_growth=growth) for growth in (2, 3)])
    assert batch.penalty_growth.dtype == np.float64
    pair = np.array([2, 3], np.int8)
    assert replace(batch, penalty_growth=pair).penalty_growth.dtype == np.float64
    assert stack([algorithms.load("pr_admm")(T_p=np.int8(2))]).T_p.dtype == np.int64


@pytest.mark.parametrize("growth", [2, np.int8(2), np.float16(2)])
def test_penalties_of_a_batch_are_those_of_the_releases(growth):
    network = networks.build(Streams(0, (0,)), "complete", 3)
    algorithm = algorithms.load("p_admm")(penalty_growth=growth)
    batch = stack([algorithm])
    for t in (1, 31, 63, 64, 100):
        expected = np.full(3, 2.0**t * algorithm.eta * 2 * 2)
        assert np.ravel(algorithm.penalty(network, t)) == pytest.approx(expected, rel=1e-12)
        assert np.ravel(batch.penalty(network, t)) == pytest.approx(expected, rel=1e-12)
