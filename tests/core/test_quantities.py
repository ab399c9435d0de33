"""Test that declared observables of algorithms equal those of a run."""

import numpy as np
import pytest

from private_consensus import algorithms
from private_consensus.core.algorithms.base import Algorithm, stack
from private_consensus.core.randomness import Streams
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


@pytest.mark.parametrize("name", sorted(algorithms.names()))
def test_declared_quantities_equal_the_observables_of_a_run(name):
    assert sorted(algorithms.load(name).quantities) == sorted(observable_names(name))


def test_the_interface_has_at_most_six_attributes_and_eight_methods():
    public = {name: value for name, value in vars(Algorithm).items() if not name.startswith("_")}
    methods = {
        name
        for name, value in public.items()
        if callable(value) and not hasattr(value, "__final__")
    }
    attributes = {n for n, v in public.items() if not callable(v) and not isinstance(v, property)}
    assert len(attributes) <= 6 and len(methods) <= 8
