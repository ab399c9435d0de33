"""Test that the provenance of audits covers the modules that audits load by name."""

import importlib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from private_consensus import algorithms, problems
from private_consensus.common import provenance
from private_consensus.reproduction.experiments import plan as planning
from private_consensus.reproduction.experiments.schema import read_yaml

CONFIG = Path(__file__).parents[2] / "config"
CACHES = ("imported_modules", "_origin", "_syntax", "_direct_imports")


@pytest.fixture
def borrowed(tmp_path, monkeypatch):
    """Create an external package that adds an algorithm with a helper module."""
    package = tmp_path / "elsewhere"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "helper.py").write_text("RATE = 1.0\n")
    (package / "method.py").write_text(
        "from private_consensus.core.algorithms.gradient_descent import GradientDescent\n"
        "ALGORITHM = GradientDescent\n"
        "from .helper import RATE\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    point = EntryPoint("borrowed", "elsewhere.method", algorithms.GROUP)
    monkeypatch.setattr(algorithms, "entry_points", lambda group: [point])
    algorithms._elsewhere.cache_clear()
    yield package
    monkeypatch.undo()
    algorithms._elsewhere.cache_clear()
    forget()


def forget() -> None:
    for name in CACHES:
        getattr(provenance, name).cache_clear()


@pytest.fixture(scope="module")
def plan():
    config = read_yaml(CONFIG / "config.yaml")
    return planning.load({**config, "papers": ["showkatbakhsh"]}, CONFIG)


def test_audit_provenance_covers_the_algorithms_and_problem_of_an_experiment(plan):
    reached = provenance.imported_modules
    for name, algorithm in plan.cells():
        modules = plan.modules(name, algorithm)
        problem = plan.experiments[name].problem.name
        assert algorithms.load(algorithm).__module__ in set().union(*map(reached, modules))
        assert problems.module_of(problem) in modules
