"""Test that problems refuse data outside their universe, for which sensitivities do not hold."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import private_consensus as pc
from private_consensus.audits.examples import (
    census,
    examples,
    huber_regression,
    logistic_regression,
    mean_estimation,
    observations,
    perceptron,
)
from private_consensus.common.errors import InvalidInput
from private_consensus.core.graphs import metropolis_mixing
from private_consensus.core.networks import Network
from private_consensus.core.problems.mean_estimation import MeanEstimation

MAKERS = {
    "mean_estimation": mean_estimation,
    "logistic_regression": logistic_regression,
    "lasso": huber_regression,
    "linear_observation": observations,
    "fair_classification": census,
    "perceptron": perceptron,
}
ARRAYS = {
    "mean_estimation": ("means",),
    "logistic_regression": ("features", "labels", "test_features"),
    "lasso": ("features", "responses"),
    "linear_observation": ("theta", "constant", "sine", "cosine", "initial"),
    "fair_classification": ("features", "labels", "protected", "test"),
    "perceptron": ("features", "labels", "agent_rows", "test"),
}
PLACES = [(name, array) for name, arrays in ARRAYS.items() for array in arrays]
MAY_BE_EMPTY = [("logistic_regression", "test_features"), ("perceptron", "test")]  # test sets


def changed(name, array, at, value):
    """Return a problem in which one entry of an array, by flat index, has another value."""
    problem = MAKERS[name]()
    values = np.array(getattr(problem, array))
    kind = values.dtype if values.dtype.kind == "f" or isinstance(value, int) else float
    values = values.astype(kind)
    values.flat[at % values.size] = value
    return replace(problem, **{array: values})


@pytest.mark.parametrize("name", MAKERS)
def test_a_printed_problem_contains_no_records(name):
    problem = MAKERS[name]()
    assert repr(problem).startswith(f"{type(problem).__name__}(n_agents={problem.n_agents}, dim=")
    for array in ARRAYS[name]:
        assert array not in repr(problem)
    assert "array" not in repr(problem)


# --- Data outside the universe --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "array", "value", "message"),
    [
        ("logistic_regression", "labels", 7.0, "problem.labels[agent 0, record 2]: found 7.0, expe"
         "cted -1 or 1"),
        ("logistic_regression", "labels", 0.0, "found 0.0, expected -1 or 1; labels 0 and 1 need"),
        ("logistic_regression", "features", 50.0, "norm of problem.features[agent 0, record 1]: f"
         "ound 50.0"),
        ("mean_estimation", "means", 100.0, "problem.means[run 0, agent 1, coordinate 0]: found 1"
         "00.0, expected a number in [-1, 1], the box"),
        ("fair_classification", "labels", 2, "problem.labels[row 2]: found 2, expected 0 or 1"),
        ("fair_classification", "features", -0.1, "problem.features[row 0, coordinate 2]: foun"
         "d -0.1, expected a number >= 0"),
        ("fair_classification", "test", 36, "expected different rows"),
        ("perceptron", "agent_rows", 10**6, "problem.agent_rows[run 0, agent 0, record 2]: found"),
        ("perceptron", "agent_rows", 0, "one agent has a record"),
        ("linear_observation", "theta", np.nan, "problem.theta[coordinate 0]: found nan"),
    ],
)  # fmt: skip
def test_one_error_names_agent_record_value_and_bound(name, array, value, message):
    with pytest.raises(InvalidInput, match=re.escape(message)):
        changed(name, array, 2, value)


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("mean_estimation", "records", 0), ("mean_estimation", "box", -1.0),
        ("mean_estimation", "box", np.nan), ("logistic_regression", "weight", -1.0),
        ("logistic_regression", "ridge", np.inf), ("logistic_regression", "box", 0.0),
        ("logistic_regression", "coding", "other"), ("lasso", "weight", np.nan),
        ("lasso", "penalty", -1.0), ("lasso", "gradient_bound", 0.0), ("lasso", "row_bound", "1"),
        ("linear_observation", "noise", -0.1), ("perceptron", "hidden", 0),
    ],
)  # fmt: skip
def test_out_of_range_parameters_of_a_problem_are_refused(name, field, value):
    with pytest.raises(InvalidInput, match=f"problem.{field}: found"):
        replace(MAKERS[name](), **{field: value})


@pytest.mark.parametrize(("name", "array"), PLACES)
@pytest.mark.parametrize(
    "spoil",
    [
        lambda a: a[None, None, None], lambda a: a.astype(complex),
        lambda a: a.astype(str), lambda a: a.astype(object), lambda a: a.tolist(), lambda a: None,
    ],
    ids=["axes", "complex", "text", "objects", "list", "nothing"],
)  # fmt: skip
def test_arrays_of_invalid_shape_or_type_are_refused(name, array, spoil):
    problem = MAKERS[name]()
    with pytest.raises(InvalidInput, match=rf"problem\.{array}"):
        replace(problem, **{array: spoil(getattr(problem, array))})


@pytest.mark.parametrize(("name", "array"), [p for p in PLACES if p not in MAY_BE_EMPTY])
def test_empty_arrays_are_refused(name, array):
    problem = MAKERS[name]()
    with pytest.raises(InvalidInput, match=rf"problem\.{array}"):
        replace(problem, **{array: getattr(problem, array)[..., :0]})


# --- Malformed data -------------------------------------------------------------------------------


@given(location=st.sampled_from(PLACES), at=st.integers(0, 10**6), value=st.floats())
def test_an_arbitrary_entry_is_refused_or_lies_in_the_data_universe(location, at, value):
    """Accepted data are in the universe for which the sensitivities hold."""
    try:
        problem = changed(*location, at, value)
    except InvalidInput as error:
        assert str(error).startswith(("problem.", "norm of problem."))
        return
    name = location[0]
    assert all(np.isfinite(getattr(problem, array)).all() for array in ARRAYS[name])
    if name == "mean_estimation":
        assert np.abs(problem.means).max() <= problem.box * (1 + 1e-8)
    if name in ("logistic_regression", "lasso", "fair_classification"):
        assert np.linalg.norm(problem.features, axis=-1).max() <= 1 + 1e-8
    if name == "logistic_regression":
        assert set(problem.labels.ravel()) <= {-1.0, 1.0}
    if name == "fair_classification":
        assert problem.features.min() >= 0 and problem.test.max() < len(problem.features)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_data_on_the_boundary_are_accepted(kind):
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(3, 200, 7)).astype(kind)
    rows /= np.linalg.norm(rows, axis=-1, keepdims=True)
    assert (np.linalg.norm(rows.astype(float), axis=-1) > 1).any()
    labels = np.sign(rows[..., 0])
    problem = replace(logistic_regression(), features=rows, labels=labels,
                      test_features=rows[0], test_labels=labels[0])  # fmt: skip
    assert problem.n_agents == 3
    means = np.full((1, 3, 2), kind(0.1)) * kind(10)
    assert replace(mean_estimation(), means=means, box=1.0).n_agents == 3
    with pytest.raises(InvalidInput, match=r"norm of problem\.features"):
        replace(problem, features=(rows * (1 + 1e-5)).astype(kind))


def test_labels_0_and_1_require_the_zero_one_coding():
    signed = logistic_regression()
    labels = np.maximum(signed.labels, 0.0)
    tests = {"test_labels": labels[0]}
    coded = replace(signed, labels=labels, coding="zero_one", **tests)
    assert coded.attained_gradient_share("l2") is None
    with pytest.raises(InvalidInput, match="expected 0 or 1"):
        replace(signed, coding="zero_one")
    all_positive = replace(signed, labels=np.ones_like(labels), features=np.abs(signed.features))
    assert all_positive.record_change("l2") == 2 * all_positive.weight
    of_zeros = replace(all_positive, coding="zero_one")
    # Sensitivities depend on the declared bounds only, not on the records.
    assert of_zeros.record_change("l2") == 2 * all_positive.weight
    declared = replace(of_zeros, nonnegative=True)
    assert declared.record_change("l2") == pytest.approx(np.sqrt(2) * all_positive.weight)
    with pytest.raises(InvalidInput, match="the problem is nonnegative"):
        replace(signed, nonnegative=True)


# --- Number of agents -----------------------------------------------------------------------------


def ring(agents):
    return pc.networks.build(pc.Streams(0, (0,)), "ring", agents)


WORLDS = [
    examples(name)[0].setting for name in ("gradient_descent", "dvp", "p_admm", "dsgd", "dp_ci")
]


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: type(world[0]).__name__)
@pytest.mark.parametrize("agents", [3, 64])
def test_a_problem_and_a_network_with_different_numbers_of_agents_are_refused(world, agents):
    algorithm, problem, network, budget, horizon = world
    other_network = ring(agents) if agents != problem.n_agents else ring(agents + 1)
    message = (
        f"problem: found '{problem.n_agents} agents', expected {other_network.n_agents} agents"
    )
    ready = algorithm.calibrate(budget, problem, network, horizon)
    with pytest.raises(InvalidInput, match=message):
        pc.simulate(algorithm, problem, other_network, budget, horizon, runs=1)
    with pytest.raises(InvalidInput, match=message):
        ready.releases(problem, other_network, horizon)
    with pytest.raises(InvalidInput, match=message):
        ready.run(
            problem,
            other_network,
            pc.Streams(0, (0,)),
            np.array([horizon]),
            lambda *arguments: None,
        )
    with pytest.raises(InvalidInput, match=message):
        pc.audit(algorithm, problem, other_network, budget, horizon)


def test_data_or_graphs_for_another_number_of_runs_are_refused():
    algorithm, problem, network, budget, horizon = WORLDS[0]
    several = replace(problem, means=np.repeat(problem.means, 3, axis=0))
    with pytest.raises(InvalidInput, match="runs of the problem: found 3"):
        pc.simulate(algorithm, several, network, budget, horizon, runs=3)
    adjacency = np.repeat(network.adjacency[None], 3, axis=0)
    graphs = Network(adjacency, metropolis_mixing(adjacency))
    with pytest.raises(InvalidInput, match="graphs of the network: found 3"):
        pc.simulate(algorithm, problem, graphs, budget, horizon, runs=3)


def test_all_problems_are_covered():
    assert set(MAKERS) == set(pc.problems.names())


def test_the_smallest_integer_is_outside_of_the_box():
    """Its absolute value is the same negative number."""
    means = np.full((1, 3, 2), -128, np.int8)
    with pytest.raises(InvalidInput, match="the box"):
        MeanEstimation(means, 5, box=1.0)
