"""Test Holm's method against its definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from private_consensus.common.multiplicity import ALPHA, holm


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_adjusted_p_values_agree_with_the_step_down_procedure_of_holm(p):
    adjusted, levels = holm(p)
    rejected = set()
    for rank, index in enumerate(sorted(range(len(p)), key=lambda i: (p[i], i))):
        level = ALPHA / (len(p) - rank)
        assert levels[index] == pytest.approx(level)
        if p[index] > level:
            break
        rejected.add(index)
    away = [i for i in range(len(p)) if not np.isclose(adjusted[i], ALPHA)]
    assert {i for i in away if adjusted[i] <= ALPHA} == {i for i in away if i in rejected}


def test_a_known_example_of_holm():
    assert holm([0.01, 0.04, 0.03])[0] == pytest.approx([0.03, 0.06, 0.06])
