"""Test algorithms of the papers as linear systems of partial views, against their execution."""

import re
from dataclasses import replace

import numpy as np
import pytest

from private_consensus import algorithms, networks, problems
from private_consensus.audits.views import (
    epsilon_by_observer,
    epsilon_for,
    epsilons,
    observation,
    observed_system,
)
from private_consensus.cli import main
from private_consensus.common.errors import InvalidInput
from private_consensus.core.algorithms.gradient_descent import GradientDescentState
from private_consensus.privacy import Budget, account, gaussian_epsilon, gaussian_mu
from private_consensus.privacy.observers import Coalition, Eavesdropper, SecureSums, agent
from private_consensus.privacy.observers.linear_view import linear_view, noise_matrix


@pytest.fixture
def averaging(streams):
    """Return the setting of Showkatbakhsh et al. with five agents on a path and three rounds."""
    network = networks.build(streams, "path", 5)
    module = problems.load("mean_estimation")
    problem = module.build(streams, 5, records=4, dim=1, box=1e6)
    built = algorithms.load("gradient_descent")(noise=0.7)
    return built, problem, network


def one_run(algorithm, problem, network, horizon, noise):
    """Return the messages [horizon, agents] of the algorithm for its unit noise, one coordinate."""

    messages = []
    zero = np.zeros((1, 1, problem.n_agents, 1))

    state = GradientDescentState(zero, zero, zero)
    for t in range(1, horizon + 1):
        draw = noise[t - 1][None, :, None]
        state = algorithm.step(state, problem, network, draw, t)
        messages.append(state.y[0, 0, :, 0])
    return np.array(messages)


def test_the_linear_system_of_gradient_descent_matches_its_execution(averaging):
    """Compare the responses to each unit noise and to a changed record with the execution."""
    algorithm, problem, network = averaging
    system = observed_system(algorithm, problem, network, 3).channels[0]
    problem = replace(problem, means=np.zeros((1, 5, 1)))
    columns = []
    for k in range(15):
        unit = np.zeros(15)
        unit[k] = 1
        columns.append(one_run(algorithm, problem, network, 3, unit.reshape(3, 5)).ravel())
    measured = np.array(columns).T
    B = noise_matrix(system, Eavesdropper())
    assert np.allclose(B @ B.T, measured @ measured.T, atol=1e-12)
    means = np.zeros((1, 5, 1))
    means[0, 3] = 0.5  # two of four records moved by one
    moved = one_run(algorithm, replace(problem, means=means), network, 3, np.zeros((3, 5)))
    response = linear_view(system, Eavesdropper(), 2 * np.ones((3, 1)), [3]).response[:, 0, 0]
    assert np.allclose(response, moved.ravel(), atol=1e-12)


def test_the_loss_to_the_eavesdropper_equals_the_accounted_loss(averaging):
    algorithm, problem, network = averaging
    delta = 1e-3
    (release,) = algorithm.releases(problem, network, 6)
    mu = np.sqrt((release.losses() ** 2).sum())
    loss = epsilon_for(observation(algorithm, problem, network, 6), Eavesdropper(), 2, delta)
    assert loss.rule == "adaptive"
    assert loss.guarantee == pytest.approx(gaussian_epsilon(mu, delta), rel=1e-6)


def test_last_states_raise_mu_at_distance_two_to_most_of_the_local_value(averaging):
    """Without last states, mu^2 is 0.03 of the local value for five agents and T = 3."""
    algorithm, problem, network = averaging
    observed = observation(algorithm, problem, network, 3)
    assert observed.last_states
    bare = epsilon_for(observed, agent(0), 2, 1e-3)
    with_last_states = epsilon_for(observed, Coalition((0,), last_states=True), 2, 1e-3)
    eavesdropper_loss = epsilon_for(observed, Eavesdropper(), 2, 1e-3)
    local = gaussian_mu(eavesdropper_loss.guarantee, 1e-3) ** 2
    assert gaussian_mu(bare.formula, 1e-3) ** 2 < 0.05 * local
    assert gaussian_mu(with_last_states.formula, 1e-3) ** 2 > 0.7 * local
    assert bare.formula <= bare.guarantee <= eavesdropper_loss.guarantee * (1 + 1e-6)


def test_rows_of_the_observer_table_are_ordered(averaging):
    algorithm, problem, network = averaging
    calibrated = algorithm.calibrate(Budget(4.0, 1e-3), problem, network, 4)
    rows = epsilon_by_observer(observation(calibrated, problem, network, 4), 1e-3)
    by = {(row["observer"], row["pair"]): row for row in rows if row["distance"] in (None, 1)}
    assert by["eavesdropper", "worst"]["guarantee"] <= 4.0
    for kind in ("agent", "secure sums"):
        worst, median = by[kind, "worst"], by[kind, "median"]
        assert median["guarantee"] <= worst["guarantee"]
        assert worst["guarantee"] <= by["eavesdropper", "worst"]["guarantee"] * (1 + 1e-6)
        assert worst["formula"] <= worst["guarantee"] * (1 + 1e-6)


def test_members_of_an_observer_are_not_target_agents(averaging):
    observables = observation(*averaging, 3)
    for observer in (agent(2), Eavesdropper(), agent(0)):
        losses = epsilons(observables, observer, 1e-5)
        assert list(losses) == [u for u in range(5) if u not in observer.members]


def test_the_loss_of_dp_ci_measurements_decreases_with_distance(streams):
    """A linear program computes the loss of DP-CI with Laplace noise on a path exactly."""
    network = networks.build(streams, "path", 4)
    module = problems.load("linear_observation")
    rows = [[[1.0, 0.5]]] * 4
    problem = module.LinearObservation(
        np.ones(2), np.array(rows), np.zeros((4, 1, 2)), np.zeros((4, 1, 2)), np.zeros((4, 2)), 0.1
    )
    algorithm = algorithms.load("dp_ci")(noise=2.0)
    losses_by_horizon = {
        t: [epsilon_for(observation(algorithm, problem, network, t), agent(0), u, 0.0)
            for u in (1, 2, 3)]
        for t in (2, 4)
    }  # fmt: skip
    (release,) = algorithm.releases(problem, network, 4)
    max_loss = float(release.losses()[0])
    values = [loss.guarantee for loss in losses_by_horizon[4]]
    assert values[0] <= max_loss * (1 + 1e-6) and values[2] <= values[1] <= values[0]
    assert losses_by_horizon[2][2].guarantee == 0 and values[2] > 0
    sums = epsilon_for(observation(algorithm, problem, network, 4), SecureSums((1,)), 3, 0.0)
    single = epsilon_for(observation(algorithm, problem, network, 4), agent(1), 3, 0.0)
    assert sums.guarantee <= single.guarantee * (1 + 1e-6)


def test_a_stream_of_dp_ci_loses_the_sum_of_the_most_costly_number_of_each_round(streams):
    """The two numbers of a measurement cost |sin t| and |cos t|, so that the larger one changes."""
    zeros = np.zeros((3, 2, 1))
    sine, cosine = zeros + np.eye(2)[:, :1], zeros + np.eye(2)[:, 1:]
    module = problems.load("linear_observation")
    problem = module.LinearObservation(np.ones(1), zeros, sine, cosine, zeros[:, 0], 0.0)
    network = networks.build(streams, "complete", 3)
    options = {"unit": "stream", "hmax": "time_varying"}
    algorithm = algorithms.load("dp_ci")(**options).calibrate(Budget(3.0), problem, network, 6)
    observed = observation(algorithm, problem, network, 6)
    for observer in (Eavesdropper(), agent(1)):
        assert epsilon_for(observed, observer, 0, 0.0).formula == pytest.approx(3.0)


@pytest.mark.parametrize("name", ["muffliato", "decor"])
def test_an_edge_of_weight_0_carries_messages(name):
    """The agent at an edge of weight 0 has the largest privacy loss of a neighbour."""
    adjacency = ~np.eye(3, dtype=bool)
    mixing = np.array([[0.5, 0.5, 0.0], [0.5, 0.25, 0.25], [0.0, 0.25, 0.75]])
    network = networks.Network(adjacency, mixing)
    problem = problems.class_of("mean_estimation")(np.zeros((1, 3, 1)), records=10, box=1.0)
    for options in ({}, {"acceleration": "none"}) if name == "muffliato" else ({},):
        algorithm = algorithms.load(name)(**options)
        noisy = algorithm.calibrate(Budget(1.0, 1e-5), problem, network, 1)
        losses = epsilons(observation(noisy, problem, network, 1), agent(2), 1e-5)
        assert losses[0].lower == pytest.approx(losses[1].lower) and losses[0].lower > 0.9


def test_settings_without_a_linear_system_are_refused(streams, averaging):
    algorithm, problem, network = averaging
    with pytest.raises(InvalidInput, match="quantised"):
        observed_system(algorithms.load("q_dpsgd_1")(), problem, network, 3)
    with pytest.raises(InvalidInput) as error:
        observed_system(replace(algorithm, noise=0.0), problem, network, 3)
    assert error.value.key == "algorithm.noise"
    with pytest.raises(InvalidInput) as error:
        observed_system(replace(algorithm, stage_two="literal"), problem, network, 3)
    assert error.value.key == "algorithm.stage_two"
    changing = networks.build(streams, "erdos_renyi", 5, probability=0.6)
    with pytest.raises(InvalidInput) as error:
        observed_system(algorithm, problem, changing, 3)
    assert error.value.key == "network"


def test_the_loss_of_pdop_sums_the_rounds_that_reach_the_observer(streams):
    network = networks.build(streams, "path", 4)
    module = problems.load("mean_estimation")
    problem = module.build(streams, 4, records=4, dim=1, box=1.0)
    algorithm = algorithms.load("pdop")(noise=3.0, eta=0.1, decay=0.9)
    observed = observation(algorithm, problem, network, 5)
    change = problem.record_change("l1")
    losses = 0.1 * 0.9 ** np.arange(1, 6) * change / algorithm.noise.scales(5)
    for distance in (1, 2, 3):
        distant_loss = epsilon_for(observed, agent(0), distance, 0.0)
        assert distant_loss.rule == "light_cone"
        assert distant_loss.guarantee == pytest.approx(losses[: 6 - distance].sum(), rel=1e-6)


def test_the_command_line_lists_every_agent_by_distance(capsys):

    setting = ["--network", "path", "--agents", "4", "--horizon", "3", "--delta", "1e-3"]
    means = ["--problem", "mean_estimation"]
    assert main(["observers", "pdop", *setting, *means, "--set", "algorithm.law=gaussian"]) == 0
    assert "secure sums" in capsys.readouterr().out
    assert main(["observers", "gradient_descent", *setting, "--observer", "0"]) == 0
    output_text = capsys.readouterr().out.replace("│", " ")
    lines = [line.split() for line in output_text.splitlines()]
    assert [line[:2] for line in lines if line and line[0] in "123"] == [
        ["1", "1"], ["2", "2"], ["3", "3"]
    ]  # fmt: skip
    assert main(["observers", "gradient_descent", *setting, "--observer", "9"]) == 2
    assert "agents 0 to 3" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["gradient_descent", "muffliato_gd"])
def test_run_and_observers_analyse_the_same_setting(name, capsys):
    """Parameters are equal, and the eavesdropper's epsilon is the accounted epsilon of the run."""
    setting = [name, "--agents", "6", "--horizon", "4", "--epsilon", "0.9"]
    outputs = []
    for command in (["run", *setting, "--runs", "1"], ["observers", *setting]):
        assert main(command) == 0
        outputs.append(capsys.readouterr())
    parameters = [out.out[out.out.index("algorithm ") :].splitlines()[:4] for out in outputs]
    assert parameters[0] == parameters[1] and "horizon=4" in parameters[0][3]
    (accounted,) = re.findall(r"by the accountant \(\w+\) +│ ([\d.]+)", outputs[0].out)
    (eavesdropper,) = re.findall(
        r"eavesdropper .*worst.* ([\d.]+) +│ (?:adaptive|exact)", outputs[1].out
    )
    assert float(eavesdropper) == pytest.approx(float(accounted), rel=1e-3)
    assert not any("warning" in out.err for out in outputs)


def test_a_step_size_above_the_stability_limit_is_reported(capsys):
    """Mean estimation over 100 records has L = 100."""
    setting = ["--agents", "4", "--horizon", "3", "--set", "algorithm.eta=0.1"]
    for command in (["run", "muffliato_gd", "--runs", "1"], ["observers", "muffliato_gd"]):
        assert main([*command, *setting]) == 0
        assert "eta=0.1 is above 2/L = 0.02" in capsys.readouterr().err


SMALL = ["--network", "path", "--agents", "4", "--horizon", "3"]
MEANS = ["--problem", "mean_estimation"]
DIVIDED = "network.edges=[[1, 2], [3, 4]]"
REFUSED = {
    "beyond": (["gradient_descent", *SMALL, "--observer", "4"], "found (4,), expected agents 0"),
    "negative": (["gradient_descent", *SMALL, "--observer", "-1"], "found (-1,), expected agents"),
    "alone": (["muffliato", *SMALL, "--agents", "1", "--network", "single"], "at least 2 agents"),
    "no noise": (["gradient_descent", *SMALL, "--epsilon", "inf"], "noise is not private"),
    "none to see": (["dgd", *SMALL, *MEANS, "--epsilon", "inf"], "noise is not private"),
    "no views": (["random_aggregation", *SMALL], "one output, which does not depend on data"),
    "unfit": (["coordinate_descent", *SMALL, *MEANS], "expected a problem with objective"),
    "no round": (["gradient_descent", *SMALL, "--horizon", "0"], "horizon: found 0"),
    "in two": (["muffliato", *SMALL, "--network", "edges", "--set", DIVIDED], "a connected graph"),
    "no such graph": (["muffliato", *SMALL, "--network", "moebius"], "moebius"),
    "no delta": (["muffliato", *SMALL, "--delta", "0"], "delta"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_command_line_reports_invalid_input_in_one_line(name, capsys):
    arguments, message = REFUSED[name]
    assert main(["observers", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert message in line


def test_the_command_line_accepts_a_random_graph(capsys):
    random = ["--network", "random_regular", "--set", "network.degree=2", "--agents", "5"]
    assert main(["observers", "muffliato", *random, "--horizon", "3", "--observer", "1"]) == 0
    assert "exact" in capsys.readouterr().out


def test_laplace_messages_that_reach_the_observer_are_composed_by_the_accountant(streams):
    """A neighbour receives all messages, and its epsilon is that of the accountant."""
    network = networks.build(streams, "path", 4)
    problem = problems.load("mean_estimation").build(streams, 4, records=4, dim=1, box=1.0)
    algorithm = algorithms.load("pdop")(noise=3.0, eta=0.1, decay=0.9)
    observed = observation(algorithm, problem, network, 5)
    accounted_epsilon = account(algorithm.releases(problem, network, 5), 1e-3).epsilon
    near, far = (epsilon_for(observed, agent(0), u, 1e-3).guarantee for u in (1, 3))
    assert near == pytest.approx(accounted_epsilon, rel=1e-9) and far < near
