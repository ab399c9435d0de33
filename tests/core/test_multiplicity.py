"""Holm's method against its definition, and intervals at other levels against the normal law."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from private_consensus.claims import Element, judge
from private_consensus.multiplicity import ALPHA, holm, p_of, widened


def element(value, low, high, accept=(-np.inf, 0.0)):
    return Element("below", "x", value, low, high, accept)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_rejects_step_by_step_as_it_is_defined(p):
    adjusted, levels = holm(p)
    rejected = set()
    for rank, place in enumerate(sorted(range(len(p)), key=lambda i: (p[i], i))):
        level = ALPHA / (len(p) - rank)
        assert levels[place] == pytest.approx(level)
        if p[place] > level:
            break
        rejected.add(place)
    away = [i for i in range(len(p)) if not np.isclose(adjusted[i], ALPHA)]
    assert {i for i in away if adjusted[i] <= ALPHA} == {i for i in away if i in rejected}


def test_a_known_example_of_holm():
    assert holm([0.01, 0.04, 0.03])[0] == pytest.approx([0.03, 0.06, 0.06])


@pytest.mark.parametrize("parts", [1, 7])
def test_an_interval_of_a_normal_estimate_is_carried_to_the_normal_quantile(parts):
    half = norm.isf(ALPHA / (2 * parts))
    low, high = widened(1.0, 1.0 - half, 1.0 + 2 * half, 0.001, parts)
    wanted = norm.isf(0.001 / (2 * parts))
    assert (low, high) == (pytest.approx(1 - wanted), pytest.approx(1 + 2 * wanted))


@pytest.mark.parametrize(
    "states",
    [
        [(-1.0, -1.5, -0.4)],
        [(-1.0, -1.5, -0.4), (-0.3, -0.5, -0.1)],
        [(-1.0, -1.5, -0.4), (0.3, 0.2, 0.5)],
        [(1.0, 0.2, 1.5), (0.1, -0.5, 0.6)],
    ],
)
def test_a_verdict_stands_down_to_its_p_and_no_further(states):
    elements = [element(*state) for state in states]
    p, k = p_of(elements), len(elements)
    assert 0 < p < ALPHA

    def verdict(alpha):
        carried = [element(e.value, *widened(e.value, e.low, e.high, alpha, k)) for e in elements]
        return judge(carried, 10).verdict

    original = judge(elements, 10).verdict
    assert verdict(p * 1.001) == original
    assert verdict(p * 0.999) != original


def test_what_is_exact_needs_no_level_and_what_is_open_has_none():
    assert p_of([element(-1.0, -1.0, -1.0)]) == 0.0
    assert p_of([element(0.0, -1.0, 1.0)]) == 1.0
    assert p_of([]) == 1.0
