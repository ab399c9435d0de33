"""Test that the hashes of jobs cover the modules that they load by name."""

import pkgutil

import pytest

from private_consensus import algorithms, problems
from private_consensus.common import provenance
from private_consensus.core import lower_bounds
from private_consensus.report import page, views
from private_consensus.reproduction import statements
from private_consensus.reproduction.statements import table


def test_a_cell_covers_its_algorithm_problem_and_attack(plan):
    reached = provenance.imported_modules
    for name, algorithm in plan.cells():
        covered = set().union(*map(reached, plan.modules(name, algorithm)))
        kind = algorithms.load(algorithm)
        problem = plan.experiments[name].problem.name
        assert {kind.__module__, problems.module_of(problem)} <= covered
        attack = lower_bounds.ATTACKS.get(kind.__name__)
        if attack is not None:
            assert f"{lower_bounds.__name__}.{attack.partition('.')[0]}" in covered


@pytest.mark.parametrize(("start", "package"), [(page, views), (table, statements)])
def test_statements_and_report_cover_all_of_their_modules(start, package):
    names = {f"{package.__name__}.{m.name}" for m in pkgutil.iter_modules(package.__path__)}
    assert names <= provenance.imported_modules(start.__name__)
