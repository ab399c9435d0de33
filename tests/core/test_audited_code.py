"""Test that the provenance of audits covers the modules that audits load by name."""

from private_consensus import algorithms, problems
from private_consensus.common import provenance


def test_audit_provenance_covers_the_algorithms_and_problem_of_an_experiment(plan):
    reached = provenance.imported_modules
    for name, algorithm in plan.cells():
        modules = plan.modules(name, algorithm)
        problem = plan.experiments[name].problem.name
        assert algorithms.load(algorithm).__module__ in set().union(*map(reached, modules))
        assert problems.module_of(problem) in modules
