"""Test the formatting of numbers, intervals, durations and code as text."""

from __future__ import annotations

import math

import pytest

from private_consensus.report import formats


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (math.nan, "–"),
        (math.inf, "∞"),
        (-math.inf, "−∞"),
        (0, "0"),
        (45222, "45,222"),
        (4.0, "4"),
        (-2.0, "−2"),
        (0.12345, "0.123"),
        (1e-9, "10⁻⁹"),
        (2.5e-7, "2.5×10⁻⁷"),
        (-1.5e12, "−1.5×10¹²"),
    ],
)
def test_number(value, text):
    assert formats.number(value) == text


def test_exponential_does_not_overflow():
    assert formats.exponential(1e6) == math.inf
    assert formats.exponential(-math.inf) == 0.0
