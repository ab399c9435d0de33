"""Test the command-line interface."""

import re

import pytest

from private_consensus import algorithms
from private_consensus.cli.parser import build_parser

ELSEWHERE = {"check", "compare", "init", "reproduce"}
"""Commands on a run or a new study, which the tests of publishing and of studies execute."""


def test_the_example_of_each_command_runs(call, monkeypatch, tmp_path):
    (actions,) = build_parser()._subparsers._group_actions
    monkeypatch.chdir(tmp_path)
    for name, command in actions.choices.items():
        words = command.epilog.removeprefix("Example: private-consensus ").split()
        assert words[0] == name
        if name not in ELSEWHERE:
            assert call(*words)[0] == 0, command.epilog


def test_run_prints_a_table_and_four_values_of_epsilon(call):
    code, out, _ = call(
        "run", "gradient_descent", "--horizon", "20", "--runs", "5", "--epsilon", "2"
    )
    assert code == 0
    for term in ("normalised_error", "standard error", "claimed", "formula", "accountant"):
        assert term in out
    epsilons = {
        key: float(re.search(rf"│[^│\n]*{key}[^│\n]*│ *([\d.]+)", out)[1])
        for key in ("claimed", "formula", "accountant", "attack")
    }
    assert epsilons["claimed"] == 2
    assert float(re.search(r"noise=([\d.]+)", out)[1]) > 0  # calibrated for the budget
    assert epsilons["attack"] <= epsilons["accountant"] < epsilons["formula"] < epsilons["claimed"]


@pytest.mark.parametrize("name", algorithms.names())
def test_run_needs_only_the_name_of_an_algorithm(call, name):
    code, out, err = call("run", name, "--runs", "2")
    assert (code, err) == (0, "")
    assert "claimed" in out and "by the accountant" in out


def test_command_line_options_override_the_example(call):
    _, out, _ = call("run", "d_zoa", "--runs", "2", "--epsilon", "0.5", "--delta", "1e-3")
    assert "delta = 0.001" in out
    code, _, err = call("run", "zip_dl", "--runs", "2", "--set", "algorithm.clip=-1")
    assert code == 2 and "algorithm.clip: found -1" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "nothing"], "algorithm.name: found 'nothing', expected one of"),
        (["run", "gradient_descent", "--delta", "1"], "budget.delta: found 1"),
        (["run", "gradient_descent", "--metric", "beauty"], "--metric: found 'beauty'"),
        (["run", "gradient_descent", "--set", "algorithm"], "--set: found 'algorithm'"),
        (["run", "gradient_descent", "--set", "network.name={}"], "network.name: found {}"),
        (["run", "gradient_descent", "--epsilon", "1e-320"], "the noise is infinite"),
        (["run", "gradient_descent", "--network", "grid"], "--set network.rows=VALUE"),
        (["audit", "gradient_descent", "--pairs", "0"], "pairs: found 0"),
    ],
)
def test_invalid_input_gives_a_one_line_error_and_exit_code_2(call, arguments, message):
    code, _, err = call(*arguments)
    assert code == 2
    assert message in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize("command", [
    ["compare", "http://user:password@host/run"],
    ["compare", "results/reference", "--reference", "http://user:password@host/run"],
    ["run", "https://user:password@host"],
])  # fmt: skip
def test_no_command_prints_a_password(call, command):
    code, out, err = call(*command)
    assert code == 2 and "password" not in out + err and len(err.splitlines()) == 1
