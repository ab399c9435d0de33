"""Test that declared observables of algorithms equal those of a run."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from private_consensus import algorithms
from private_consensus.audits.probing import REVIEWED
from private_consensus.core.algorithms.base import stack
from private_consensus.core.randomness import Streams
from private_consensus.reproduction.experiments.quantities import QUANTITIES, quantities_of
from worlds import world


def observable_names(name: str) -> set[str]:
    """Return the names of all observables of an algorithm in a small setting."""
    instance = world(name)
    names: set[str] = set()
    stack([instance.algorithm]).run(
        instance.problem, instance.network, Streams(1, (0,)), np.array([instance.horizon]),
        lambda t, active, observables: names.update(observables),
    )  # fmt: skip
    return names


@pytest.mark.parametrize("name", sorted(REVIEWED))
def test_declared_quantities_equal_the_observables_of_a_run(name):
    assert sorted(quantities_of(name)) == sorted(observable_names(name))


def test_quantities_are_listed_for_exactly_the_reviewed_algorithms():
    assert sorted(QUANTITIES) == sorted(REVIEWED)


@dataclass
class Elsewhere:
    """Algorithm of another package."""


def test_an_algorithm_of_another_package_can_declare_its_quantities(monkeypatch):
    monkeypatch.setattr(algorithms, "import_module", lambda _: SimpleNamespace(ALGORITHM=Elsewhere))
    monkeypatch.setattr(algorithms, "_elsewhere", lambda: {"mine": "theirs.mine"})
    assert quantities_of("mine") == ("internal", "released")
    monkeypatch.setattr(Elsewhere, "quantities", ("released", "steps"), raising=False)
    assert quantities_of("mine") == ("released", "steps")
