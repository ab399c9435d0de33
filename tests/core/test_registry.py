"""Test that entry points of other packages neither replace nor break registered algorithms."""

import sys
from importlib.metadata import EntryPoint

import pytest

from private_consensus import algorithms
from private_consensus.cli import main
from private_consensus.cli.output import OUT
from private_consensus.core.algorithms.gradient_descent import GradientDescent

WORKING = (
    "from private_consensus.core.algorithms.gradient_descent import GradientDescent as ALGORITHM\n"
)
BROKEN_STEP = """
from private_consensus.core.algorithms.gradient_descent import GradientDescent

class ALGORITHM(GradientDescent):
    def step(self, state, problem, network, draw, t):
        return state[9]
"""
FILES = {
    "other_working": WORKING,
    "other_step": BROKEN_STEP + "\nEXAMPLE = 'mean_estimation'\n",
}


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Return a function that installs entry points, given as pairs of name and module."""
    for name, text in FILES.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(OUT, "_width", 200)

    def install(*pairs):
        points = [EntryPoint(name, value, algorithms.GROUP) for name, value in pairs]
        monkeypatch.setattr(algorithms, "entry_points", lambda group: points)
        forget()

    def forget():
        algorithms._modules.cache_clear()

    yield install
    monkeypatch.undo()
    forget()
    for name in FILES:
        sys.modules.pop(name, None)


def test_an_entry_point_of_another_package_registers_an_algorithm(installed):
    installed(("newcomer", "other_working"))
    assert "newcomer" in algorithms.names() and algorithms.collisions() == {}
    assert algorithms.load("newcomer") is GradientDescent


def test_a_built_in_algorithm_is_not_replaced_and_the_error_names_both(installed, capsys):
    built_in = algorithms.load("d_zoa")
    installed(("d_zoa", "other_working"))
    assert algorithms.load("d_zoa") is built_in
    assert algorithms.module_of("d_zoa") == "private_consensus.core.algorithms.d_zoa"
    assert main(["list"]) == 1
    error = capsys.readouterr().err
    assert "private_consensus.core.algorithms.d_zoa" in error and "other_working" in error
    assert len(error.splitlines()) == 1


def test_an_error_in_a_step_names_the_line_of_the_module(installed, capsys):
    installed(("newcomer", "other_step"))
    assert main(["run", "newcomer", "--problem", "mean_estimation"]) == 2
    error = capsys.readouterr().err
    assert "IndexError in other_step.py, line 6" in error


@pytest.mark.parametrize(
    ("text", "line", "error"),
    [
        ("import numpy\n\nclas Wrong:\n", 3, "SyntaxError"),
        ("import numpy\nimport no_such_module\n", 2, "ModuleNotFoundError"),
        ("class ALGORITHM:\n    rate = 1 / 0\n", 2, "ZeroDivisionError"),
        (
            "from dataclasses import dataclass\n\n@dataclass\nclass ALGORITHM:\n    x: list = []\n",
            3,
            "ValueError",
        ),
    ],
)
def test_an_error_at_the_import_of_a_module_names_its_file_and_line(
    installed, tmp_path, capsys, text, line, error
):
    file = tmp_path / f"other_{error.lower()}.py"
    file.write_text(text)
    installed(("newcomer", file.stem))
    for command in ("run", "audit"):
        assert main([command, "newcomer"]) == 2
        (message,) = capsys.readouterr().err.splitlines()
        assert f"{file}, line {line}: {error}" in message
