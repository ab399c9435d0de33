"""Test axes: relative positions, non-overlapping labels, strips for infinite and zero values."""

import json
from itertools import pairwise

import pytest

from private_consensus.reproduction.plotting.axes import LETTER, STRIP, Extent


def names_of(axis):
    """Return the labels by value, in the requested order."""
    keyed = json.loads(axis["labelExpr"].rpartition("[")[0])
    return dict(zip(axis["values"], keyed.values(), strict=True))


@pytest.mark.parametrize("log", [True, False])
def test_place_inverts_at_for_relative_positions(log):
    extent = Extent(low=1e-3, high=20.0, log=log)
    for share in (-STRIP, 0.0, 0.3, 1.0):
        assert extent.place(extent.at(share)) == pytest.approx(share, abs=1e-12)


def test_every_value_has_a_tick_and_labels_do_not_overlap():
    extent = Extent(low=8e-5, high=1.1, log=True)
    names = names_of(extent.axis([1e-4, 1e-3, 1e-2, 0.1, 0.5, 0.9]))
    assert len(names) == 6 and names[0.5] and not names[0.9]
    label_extents = [
        (extent.place(value), LETTER * len(name) / 2) for value, name in names.items() if name
    ]
    assert all(
        position + half <= next_position - next_half
        for (position, half), (next_position, next_half) in pairwise(label_extents)
    )
