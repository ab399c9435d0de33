"""Test sums by secret sharing: exact for fixed-point numbers, refused where they would wrap."""

import numpy as np
import pytest

from private_consensus.common.errors import InvalidInput
from private_consensus.core.exchange import MODULUS, RESOLUTION, shared_sum


def test_the_sum_is_that_of_shares_modulo_p():
    """Compare with the algorithm: shares of Python integers, which cannot overflow."""
    rng, agents = np.random.default_rng(11), 5
    x = rng.normal(size=(agents, 3)) * 10.0 ** rng.integers(-6, 7, size=(agents, 3))
    for column, total in zip(x.T, shared_sum(x), strict=True):
        values = [round(value * RESOLUTION) % MODULUS for value in column.tolist()]
        shares = [[int(s) for s in rng.integers(0, MODULUS, agents - 1)] for _ in values]
        for own, value in zip(shares, values, strict=True):
            own.append((value - sum(own)) % MODULUS)
        broadcast = [sum(received) % MODULUS for received in zip(*shares, strict=True)]
        residue = sum(broadcast) % MODULUS
        signed = residue - MODULUS if residue > MODULUS // 2 else residue
        assert total == signed / RESOLUTION


def test_a_sum_that_could_be_confused_with_its_residue_is_refused():
    """The published condition p > |sum| is too weak: p - s and -s are equal modulo p."""
    half = MODULUS / 2 / RESOLUTION
    with pytest.raises(InvalidInput, match="largest sum of values"):
        shared_sum(np.full((2, 1), 0.5 * half))
    assert shared_sum(np.full((2, 1), -0.49 * half)) == pytest.approx(-0.98 * half)
