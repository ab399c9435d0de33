"""Test that a new algorithm is generated, tested and added to the design of the comparison."""

import ast
import importlib
import sys
from pathlib import Path

import pytest
import yaml

from private_consensus import algorithms
from private_consensus.common import yamls
from private_consensus.common.errors import InvalidInput
from private_consensus.comparison.design import read_comparison
from private_consensus.comparison.entering import new_algorithm, with_method

ROOT = Path(__file__).parents[2]
DESIGN = (ROOT / "config" / "comparison.yaml").read_text()


@pytest.fixture
def newcomer(tmp_path, monkeypatch):
    """Create a package with a new algorithm and make it importable as if it were installed."""
    files = new_algorithm("toy_descent", tmp_path, package=True)
    monkeypatch.syspath_prepend(tmp_path)
    project = (tmp_path / "pyproject.toml").read_text()
    assert '[project.entry-points."private_consensus.algorithms"]\ntoy_descent' in project
    monkeypatch.setattr(algorithms, "_elsewhere", lambda: {"toy_descent": "toy_descent"})
    yield files
    for name in ("toy_descent", "test_toy_descent"):
        sys.modules.pop(name, None)


def test_a_generated_algorithm_package_passes_its_generated_tests(newcomer):
    tests = importlib.import_module("test_toy_descent")
    assert algorithms.load("toy_descent").__name__ == "ToyDescent"
    ran = [getattr(tests, name)() for name in dir(tests) if name.startswith("test_")]
    assert len(ran) == 3


def test_the_methods_of_the_generated_algorithm_have_fewer_than_ten_statements(newcomer):
    tree = ast.parse(newcomer[0].read_text())
    (kind,) = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "ToyDescent"]
    inside = [
        line for method in kind.body if isinstance(method, ast.FunctionDef) for line in method.body
    ]
    assert 0 < len(inside) < 10


def test_a_new_algorithm_in_the_repository_is_added_to_the_design(tmp_path):
    (tmp_path / "src/private_consensus/core/algorithms").mkdir(parents=True)
    (tmp_path / "config").mkdir()
    (tmp_path / "config/comparison.yaml").write_text(DESIGN)
    files = new_algorithm("toy_descent", tmp_path)
    assert [path.relative_to(tmp_path).as_posix() for path in files] == [
        "src/private_consensus/core/algorithms/toy_descent.py", "tests/core/test_toy_descent.py",
        "config/comparison.yaml",
    ]  # fmt: skip
    assert "from .families.clipped_descent import" in files[0].read_text()
    before, after = (read_comparison(yaml.safe_load(t)) for t in (DESIGN, files[2].read_text()))
    assert list(after.methods) == [*before.methods, "toy_descent"]
    assert after.methods["toy_descent"].algorithm == {"name": "toy_descent"}
    assert after.model_copy(update={"methods": before.methods}) == before
    # All original lines remain, in their order.
    other_lines = [line for line in files[2].read_text().splitlines() if "toy_descent" not in line]
    assert other_lines == DESIGN.splitlines()


@pytest.mark.parametrize("name", ["Toy", "2nd", "to-y", "", "class", "../toy", "toy\n"])
def test_an_invalid_algorithm_name_is_refused(tmp_path, name):
    with pytest.raises(InvalidInput, match="lower-case letters"):
        new_algorithm(name, tmp_path, package=True)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["dgd", "base"])
def test_an_algorithm_name_already_in_use_is_refused(tmp_path, name):
    with pytest.raises(InvalidInput, match="no algorithm has"):
        new_algorithm(name, tmp_path, package=True)


def test_an_existing_file_is_an_error_and_no_other_file_is_written(tmp_path):
    (tmp_path / "test_toy_descent.py").write_text("mine")
    with pytest.raises(InvalidInput, match="no file"):
        new_algorithm("toy_descent", tmp_path, package=True)
    assert [path.name for path in tmp_path.iterdir()] == ["test_toy_descent.py"]
    with pytest.raises(InvalidInput, match="a repository with"):
        new_algorithm("toy_descent", tmp_path)


def test_a_design_without_methods_or_with_the_same_method_is_refused():
    with pytest.raises(InvalidInput, match="exactly one line `methods:`"):
        with_method("problems: {}\n", "toy", "Toy")
    once = with_method("methods:\n  a: {}\n\nscales: {}\n", "toy", "Toy")
    assert yamls.parse(once, "design") == {
        "methods": {"a": {}, "toy": {"title": "Toy", "algorithm": {"name": "toy"}}}, "scales": {}
    }  # fmt: skip
    with pytest.raises(InvalidInput, match="each key once"):
        with_method(once, "toy", "Toy")
