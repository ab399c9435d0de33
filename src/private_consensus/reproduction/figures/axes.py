"""Ranges, ticks and tick labels of axes."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, isfinite, log10
from typing import Any

from private_consensus.common.symbols import power_of_ten

MAX_POINT_TICKS = 9
"""Largest number of computed points for which each point has a tick."""
MARGIN = 0.04
"""Margin of an axis beyond its smallest and largest point, as a fraction of its length."""
STRIP = 0.11
"""Length of the strip beyond an axis that shows infinity, or zero on a logarithmic axis, as a
fraction of the length of the axis."""
DECIMAL_RANGE = (1e-2, 1e4)
"""Range of absolute values that are written without a power of ten."""
LABEL_DISTANCE = 4
"""Smallest distance between two labels in pixels."""
MIN_COMMON_FRACTION = 0.4
"""Smallest fraction of a common axis that each of its panels has to fill."""


@dataclass(frozen=True, kw_only=True)
class Extent:
    """Range of an axis, with optional strips for values beyond its ends.

    Attributes
    ----------
    log : bool
        True for a logarithmic axis.
    above, below : bool
        True if there is a strip beyond the upper end, or beyond the lower end.
    """

    low: float
    high: float
    log: bool
    above: bool = False
    below: bool = False

    def at(self, fraction: Any) -> Any:
        """Return the value at a fraction (a number or an expression) of the length of the axis.

        Below 0 or above 1, the value is beyond the ends of the axis.
        """
        if self.log:
            return 10 ** (log10(self.low) + fraction * (log10(self.high) - log10(self.low)))
        return self.low + fraction * (self.high - self.low)

    @property
    def domain(self) -> list[float]:
        """Ends of the scale, including the strips."""
        return [self.at(-STRIP if self.below else 0.0), self.at(1 + STRIP if self.above else 1.0)]

    def scale(self) -> dict[str, Any]:
        """Return the scale of the axis as Vega-Lite options."""
        if self.log:
            return {"type": "log", "domain": self.domain, "nice": False}
        return {"type": "linear", "domain": self.domain, "nice": False, "zero": False}

    def axis(
        self, values: Sequence[float] = (), strip_labels: tuple[str, str] = ("", "")
    ) -> dict[str, Any]:
        """Return the ticks and labels of the axis as Vega-Lite options.

        A logarithmic axis with few points has one tick per point; other axes have regular ticks.
        """
        tick_per_point = self.log and 0 < len(set(values)) <= MAX_POINT_TICKS
        ticks = sorted(set(values)) if tick_per_point else []
        ticks = ticks or (log_ticks if self.log else linear_ticks)(self.low, self.high)
        names = dict(zip(ticks, labels(ticks, log=self.log), strict=True))
        upper = {self.at(1 + STRIP / 2): strip_labels[0]} if self.above else {}
        lower = {self.at(-STRIP / 2): strip_labels[1]} if self.below else {}
        if upper:
            # Of two overlapping labels, the renderer omits the later one, here that of the strip.
            names = {value: name for value, name in names.items() if self.place(value) < 1 - STRIP}
        names = {**lower, **names, **upper}
        keyed = {_key(value): name for value, name in names.items()}
        looked_up = f"{json.dumps(keyed, ensure_ascii=False)}[format(datum.value, '.6e')]"
        # Labels of strips are always shown; overlapping labels of other ticks are omitted.
        overlap = False if upper and lower else "greedy"
        return {
            "values": list(names),
            "labelExpr": looked_up,
            "tickCount": len(names),
            "labelOverlap": overlap,
            "labelSeparation": LABEL_DISTANCE,
        }

    def place(self, value: float) -> float:
        """Return the position of a value as a fraction of the length of the axis."""
        scale = log10 if self.log else float
        return (scale(value) - scale(self.low)) / (scale(self.high) - scale(self.low))


def extent(values: Iterable[float], *, log: bool, ends: Sequence[float] | None = None) -> Extent:
    """Compute the range of an axis that covers all finite values, with a margin.

    A logarithmic axis ignores values that are not positive. ``ends`` replace those of the values.
    """
    if ends is not None:
        return Extent(low=float(ends[0]), high=float(ends[1]), log=log)
    finite = [v for v in values if v is not None and isfinite(v) and (v > 0 or not log)]
    low, high = (min(finite), max(finite)) if finite else (1.0, 1.0)
    if low == high:
        low, high = (low / 2, high * 2) if log else (low - 0.5, high + 0.5)
    tight = Extent(low=low, high=high, log=log)
    return Extent(low=tight.at(-MARGIN), high=tight.at(1 + MARGIN), log=log)


def common(extents: Sequence[Extent]) -> list[Extent]:
    """Return the common range of compared axes, or their own ranges if one would be too short in
    the common range.
    """
    union = replace(
        extents[0], low=min(e.low for e in extents), high=max(e.high for e in extents),
        above=any(e.above for e in extents), below=any(e.below for e in extents),
    )  # fmt: skip
    fractions = [union.place(e.high) - union.place(e.low) for e in extents]
    return [union] * len(extents) if min(fractions) >= MIN_COMMON_FRACTION else list(extents)


def log_ticks(low: float, high: float) -> list[float]:
    """Return the ticks of a logarithmic axis: at most seven powers of ten.

    Axes of fewer than three powers of ten also get ticks at multiples of powers of ten, or
    linear ticks.
    """
    first, last = ceil(log10(low) - 1e-9), floor(log10(high) + 1e-9)
    decades = last - first + 1
    if decades >= 3:
        stride = ceil(decades / 7)
        return [10.0**e for e in range(first, last + 1) if e % stride == 0]
    for digits in ((1, 2, 5), (1, 2, 3, 5, 7), range(1, 10)):
        ticks = [d * 10.0**e for e in range(first - 1, last + 1) for d in digits]
        ticks = [v for v in ticks if low <= v * (1 + 1e-9) and v <= high * (1 + 1e-9)]
        if len(ticks) >= 3:
            return ticks
    return linear_ticks(low, high)


def linear_ticks(low: float, high: float, max_count: int = 7) -> list[float]:
    """Return at most ``max_count`` multiples of 1, 2 or 5 times a power of ten as ticks."""
    power = floor(log10((high - low) / max_count))
    for digit in (1, 2, 5, 10, 20):
        step = digit * 10.0**power
        multiples = range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)
        if len(multiples) <= max_count:
            return [float(f"{k * step:.12g}") for k in multiples]
    return [low, high]


def _short(value: float) -> bool:
    return DECIMAL_RANGE[0] <= abs(value) < DECIMAL_RANGE[1]


def format_number(value: float) -> str:
    """Format a number as a decimal, or as a multiple of a power of ten if that is shorter."""
    return format_tick(value) if _short(value) or value == 0 else _power(value)


def format_tick(value: float) -> str:
    """Format the number of a tick, with thousands separators."""
    if abs(value) >= 1e6:
        return _power(value)
    return f"{value:{',.0f' if abs(value) >= 1000 else '.3g'}}".replace("-", "−")


def labels(ticks: Sequence[float], *, log: bool) -> list[str]:
    """Format the labels of ticks: all of them with powers of ten, or none."""
    decades = len(ticks) > 2 and all(_power(tick).startswith("10") for tick in ticks)
    small = decades and min(ticks) < 1
    if log and (small or any(not _short(tick) for tick in ticks)):
        return [_power(tick) for tick in ticks]
    return [format_tick(tick) for tick in ticks]


def _power(value: float) -> str:
    mantissa, _, exponent = f"{value:.2e}".partition("e")
    return power_of_ten(f"{float(mantissa):g}", int(exponent))


def _key(value: float) -> str:
    """Format a number as Vega does: with a minus sign, and an exponent without leading zeros."""
    mantissa, _, exponent = f"{value:.6e}".partition("e")
    return f"{mantissa}e{int(exponent):+d}".replace("-", "−" if value < 0 else "-", 1)
