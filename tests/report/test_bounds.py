"""Test the classes of bounds on epsilon and their counts."""

import math

import pytest

from private_consensus.report.views import bounds


def row(lower, accounted, **changes):
    common = {
        "algorithm": "dp_ci", "epsilon_claimed": 1.0, "proven": True, "bound_gap_reason": "half",
        "epsilon_empirical": None,
    }  # fmt: skip
    return common | {"epsilon_lower": lower, "epsilon_accountant": accounted} | changes


@pytest.mark.parametrize(
    ("low", "high", "closeness"),
    [
        (1.0, 1.05, "within 5 %"), (1.0, 1.06, "within 20 %"), (1.0, 2.0, "within a factor 2"),
        (1.0, 2.01, bounds.WIDER), (0.0, 1.0, bounds.UNKNOWN), (0.0, 0.0, "within 5 %"),
        (3.0, math.inf, bounds.UNKNOWN), (math.inf, math.inf, bounds.INFINITE),
    ],
)  # fmt: skip
def test_closeness_class_follows_the_ratio_of_upper_to_lower_bound(low, high, closeness):
    assert bounds.closeness(low, high) == closeness


def test_lower_bound_uses_the_audit_if_it_is_larger():
    assert bounds.lower(row(0.5, 2.0, epsilon_empirical=0.8)) == 0.8
    assert bounds.lower(row(0.5, 2.0, epsilon_empirical=0.2)) == 0.5
    assert bounds.lower({"epsilon_accountant": 2.0}) == 0.0


def test_every_setting_with_a_finite_claim_is_counted_once():
    rows = [
        row(1.0, 1.0), row(0.6, 1.0), row(0.0, 1.0), row(math.inf, math.inf, proven=False),
        row(1.0, 1.0, proven=False), row(0.0, 1.0, epsilon_claimed=math.inf),
        row(0.2, 1.0, algorithm="dvp"),
    ]  # fmt: skip
    first, second, together = bounds.table(rows)
    assert dict(zip(bounds.CLOSENESS, first["counts"], strict=True)) == {
        "infinite": 1, "within 5 %": 1, "within 20 %": 0, "within a factor 2": 1,
        bounds.WIDER: 0, bounds.UNKNOWN: 2,
    }  # fmt: skip
    assert first["because"] == f"half (3); {bounds.NO_UPPER_BOUND} (1)"
    assert second["counts"][bounds.CLOSENESS.index(bounds.WIDER)] == 1
    assert together["settings"] == sum(together["counts"]) == 6
    assert bounds.table([]) == []


def test_upper_bound_under_an_assumption_is_used_and_the_assumption_reported():
    """Without the assumption no upper bound is proven. Lower bounds also satisfy it."""
    granted = row(1.0, math.inf, proven=False, epsilon_under_assumption=1.02, bound_gap_reason="")
    assert bounds.upper(granted) == 1.02
    unknown = {**granted, "epsilon_under_assumption": math.inf}
    for missing in (None, math.nan):
        same = {**granted, "epsilon_under_assumption": missing}
        assert bounds.upper(unknown) == bounds.upper(same)
    assert bounds.upper(unknown) == math.inf
    first, _ = bounds.table([granted, unknown])
    assert first["counts"][bounds.CLOSENESS.index("within 5 %")] == 1
    assert first["because"] == f"{bounds.ASSUMPTION} (1); {bounds.NO_UPPER_BOUND} (1)"
    proven = {**granted, "proven": True, "epsilon_accountant": 1.5}
    assert bounds.upper(proven) == 1.5
