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


def test_intervals_are_formatted_as_at_most_at_least_or_a_range():
    assert formats.region(-math.inf, 1.0) == "at most 1"
    assert formats.region(2.0, math.inf) == "at least 2"
    assert formats.region(0.5, 1.5) == "0.5 to 1.5"


def test_value_ranges_merge_nearly_equal_ends_and_ignore_missing_values():
    assert formats.value_range([1.0, 1.0000001]) == "1"
    assert formats.value_range([0.5, None, math.nan, 2.0]) == "0.5 to 2"
    assert formats.value_range([]) == "–"


def test_exponential_does_not_overflow():
    assert formats.exponential(1e6) == math.inf
    assert formats.exponential(-math.inf) == 0.0


def test_duration():
    assert formats.duration(5.04) == "5.0 s"
    assert formats.duration(125.0) == "2 min 05 s"


def test_text_in_backticks_becomes_code_and_html_is_escaped():
    markup = formats.code("set `a<b` & `c` or a ` alone")
    assert markup == "set <code>a&lt;b</code> &amp; <code>c</code> or a ` alone"
