"""Format privacy numbers with a few digits, rounded so that no loss appears smaller than it is."""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

SLACK = 1e-9
"""Relative amount below which an excess over the printed digits is a rounding error."""


def rounded_up(value: float, digits: int = 4) -> str:
    """Format an upper bound on epsilon or a noise scale, rounded up; infinity and NaN by name.

    The number is at least ``value``, up to the relative amount :data:`SLACK`.
    """
    return _rounded(value * (1 - SLACK), digits, ROUND_CEILING)


def rounded_down(value: float, digits: int = 4) -> str:
    """Format a lower bound on epsilon, rounded down; infinity and NaN by name.

    The number is at most ``value``, up to the relative amount :data:`SLACK`.
    """
    return _rounded(value * (1 + SLACK), digits, ROUND_FLOOR)


def _rounded(value: float, digits: int, direction: str) -> str:
    if not math.isfinite(value):
        return str(value)
    exact = Context(prec=digits, rounding=direction).create_decimal(Decimal(float(value)))
    return f"{float(exact):.{digits}g}"
