"""Ranges, ticks and tick labels of axes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil, floor, isfinite, log10
from typing import Any

MAX_POINT_TICKS = 9
"""Largest number of computed points for which each point has a tick."""
MARGIN = 0.04
"""Margin of an axis beyond its smallest and largest point, as a fraction of its length."""
STRIP = 0.11
"""Length of the strip for values beyond an axis, as a fraction of the length of the axis."""
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

    def axis(self, values: Sequence[float] = ()) -> dict[str, Any]:
        """Return the ticks and labels of the axis as Vega-Lite options.

        A logarithmic axis with few points has one tick per point.
        """
        points = sorted(set(values)) if self.log else []
        if self.log and not 0 < len(points) <= MAX_POINT_TICKS:
            points = log_ticks(self.low, self.high)
        if points:
            # Vega's options ``tickCount`` and ``format`` would omit some of the labels.
            label = "format(datum.value, datum.value < 1e-4 ? '~e' : '~g')"
            ticks: dict[str, Any] = {"values": points, "labelExpr": label}
        else:
            # Strips have no labels.
            label = f"inrange(datum.value, [{self.low}, {self.high}]) ? datum.label : ''"
            ticks = {"tickCount": 7, "labelExpr": label}
        return {"labelOverlap": "greedy", "labelSeparation": LABEL_DISTANCE, **ticks}

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
    """Return the ticks of a logarithmic axis: at most seven powers of ten, or none.

    Axes of fewer than three powers of ten have multiples of powers of ten. Without three of these,
    Vega sets the ticks.
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
    return []
