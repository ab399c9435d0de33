"""Test that budgets and relations refuse invalid values and name the key."""

import numpy as np
import pytest

from private_consensus.common.errors import InvalidInput
from private_consensus.privacy import Budget, Relation


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), -float("inf"), "1", None, True])
def test_an_epsilon_that_is_not_a_positive_number_is_refused(epsilon):
    with pytest.raises(InvalidInput, match=r"budget\.epsilon"):
        Budget(epsilon, 1e-5)


@pytest.mark.parametrize("delta", [-1e-9, 1, 2, float("nan"), "0", None])
def test_a_delta_outside_the_unit_interval_is_refused(delta):
    with pytest.raises(InvalidInput, match=r"budget\.delta"):
        Budget(1.0, delta)


def test_infinite_epsilon_means_no_privacy():
    assert not Budget(np.inf, 0).private
    assert Budget(np.float64(3), 0).private


@pytest.mark.parametrize(
    ("unit", "change", "key"),
    [("row", "replace", r"relation\.unit"), ("record", "swap", r"relation\.change")],
)
def test_unknown_relations_are_refused(unit, change, key):
    with pytest.raises(InvalidInput, match=key):
        Relation(unit, change)
