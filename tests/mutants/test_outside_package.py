"""Test that audits flag the broken algorithms of another package and none of its correct ones."""

import pytest

from private_consensus.audits.result import INCONCLUSIVE

from . import outsiders
from .auditing import audited
from .outside.catalogue import BROKEN, CORRECT

INCONCLUSIVE_FAULTS = {"uniform_noise_gossip", "one_coin_signs"}
"""Faults in noise with a distribution that audits cannot recover."""


@pytest.fixture(autouse=True, scope="module")
def registry():
    """Uninstall the package after the tests."""
    yield
    outsiders.uninstall()


@pytest.mark.parametrize("module", BROKEN)
def test_a_broken_algorithm_is_flagged(module):
    example = outsiders.example_of(module)
    result = audited(example, example.budget.delta)
    assert result.flagged is (module not in INCONCLUSIVE_FAULTS), result.lines()
    assert result.flagged or result.verdict == INCONCLUSIVE


@pytest.mark.parametrize("module", CORRECT)
def test_a_correct_algorithm_is_not_flagged(module):
    example = outsiders.example_of(module)
    assert not audited(example, example.budget.delta).flagged


STOPS = {
    "released_stop_descent": False,
    "private_stop_descent": True,
    "censored_descent": True,
    "accepting_descent": True,
    "half_noise_descent": True,
}
"""Algorithms that stop or repeat messages, or lack noise, and whether they have a fault."""


@pytest.mark.parametrize(("module", "is_broken"), STOPS.items())
def test_a_stop_is_a_fault_only_if_it_depends_on_private_data(module, is_broken):
    example = outsiders.example_of(module, by_name=True)
    assert audited(example, example.budget.delta).flagged is is_broken
