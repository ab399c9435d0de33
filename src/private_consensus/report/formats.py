"""Format numbers, intervals and durations for readers, and group the rows of tables."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from markupsafe import Markup, escape

from private_consensus.common.symbols import power_of_ten

NONE = "–"


def number(value: float | int | None, digits: int = 3) -> str:
    """Format a number with significant ``digits``, or with a power of ten; None and NaN as a dash.

    Integers, and integral floats below 10^6, have all digits.
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return NONE
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if isinstance(value, int) or (float(value).is_integer() and abs(value) < 1e6):
        return f"{int(value):,}".replace("-", "−")
    mantissa, _, exponent = f"{value:.{digits}g}".partition("e")
    text = power_of_ten(mantissa, int(exponent)) if exponent else mantissa
    return text.replace("-", "−")


def value_range(values: Iterable[float | None]) -> str:
    """Format the smallest and the largest value, or one number if both have the same format."""
    finite = [value for value in values if value is not None and not math.isnan(value)]
    if not finite:
        return NONE
    low, high = number(min(finite)), number(max(finite))
    return low if low == high else f"{low} to {high}"


def interval(low: float | None, high: float | None, digits: int = 3) -> str:
    """Format an interval as ``[low, high]``; empty if an end is missing."""
    ends = number(low, digits), number(high, digits)
    return "" if NONE in ends else f"[{ends[0]}, {ends[1]}]"


def region(low: float | None, high: float | None, digits: int = 3) -> str:
    """Describe the values for which a claim is true; a dash if an end is missing."""
    first, last = number(low, digits), number(high, digits)
    if NONE in (first, last):
        return NONE
    if low == -math.inf:
        return "any" if high == math.inf else f"at most {last}"
    return f"at least {first}" if high == math.inf else f"{first} to {last}"


def duration(seconds: float) -> str:
    """Format a duration as seconds, or as minutes and seconds."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds // 60)} min {round(seconds % 60):02d} s"


def words(name: str) -> str:
    """Replace the underscores of a name by spaces."""
    return name.replace("_", " ")


def exponential(value: float) -> float:
    """Return exp(value); infinity instead of an overflow."""
    return math.inf if value > 700 else math.exp(value)


def code(text: str) -> Markup:
    """Escape a text for HTML, and mark the parts between backticks as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))


_CODE = re.compile(r"`([^`]+)`")
