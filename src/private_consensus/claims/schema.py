"""Claims as they are configured: what is measured, and which kind of statement is tested."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from ..fields import Flag, Number

Kind = Literal[
    "decreasing",
    "increasing",
    "falls",
    "slope",
    "below",
    "lower",
    "steadier",
    "ratio",
    "difference",
    "differs",
    "reaches_earlier",
    "level",
    "trend",
    "steady",
    "largest",
    "smallest",
    "private",
    "tight",
]

COMPARISONS = ("below", "lower", "steadier", "ratio", "difference", "differs", "reaches_earlier")

Quantifier = Literal["each", "universal", "most", "some"]


class Series(BaseModel):
    """The measurements of one algorithm, run variant, quantity and metric."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    experiment: str
    algorithm: str
    run: str
    quantity: str = ""
    metric: str = ""
    where: dict[str, Any] = Field(default_factory=dict)
    last: Flag = Field(default=False, description="at each point only the last iteration")


class Test(BaseModel):
    """A kind of statement about one series, or about two.

    ``decreasing``, ``increasing``: along ``x``, each mean against the one before, strictly, or
    allowing a relative ``tolerance`` in the wrong direction. ``falls``: the last mean is at most
    ``expected`` times the first. ``slope``: of ln mean on ln x, ``expected`` within ``tolerance``,
    or between ``at_least`` and ``at_most`` where one of these is given; so is ``trend``, the slope
    of the mean on ``x``, without logarithms. ``steady``: in the first and in the second half of the
    grid the trend is at least ``1 - tolerance`` of that over all of it, in the direction of
    ``expected``. ``largest``, ``smallest``: the mean at x = ``at`` is strictly larger (smaller)
    than each other; with a ``tolerance``, none is better by more than that, relatively. ``below``:
    mean of the series at most ``expected`` times that of ``against``, where ``expected`` is 1
    strictly less; ``lower``: so on the geometric average along ``x``; ``steadier``: so its standard
    deviation over runs. ``ratio``: series over ``against`` is ``expected`` within a relative
    ``tolerance``. ``differs``: the two differ, in whichever direction, by more than a relative
    ``tolerance``. ``difference``: series minus ``against`` lies between ``at_least`` and
    ``at_most``. ``reaches_earlier``: along ``x``, the series comes down for good to its goal before
    that of ``against`` does to its own; the goal is ``goal``, or ``expected`` times a series' own
    last mean. ``level``: the means lie between ``at_least`` and ``at_most``. ``private``: the true
    epsilon, which lies between a proven lower bound and the accountant's, is at most the claimed
    one, relatively within ``tolerance``; ``tight``: the accountant's is not less than the claimed
    one either.

    ``quantifier``: what is said of the points of a test. ``each``: every point is a part of a
    compound claim, so that it may hold in part. ``universal``: the test is one statement, a
    theorem or a bound, which one point contradicts; equality is allowed. ``most``: more than half
    of the points, ``some``: one at least, of all tests of the claim that say so and that have the
    same ``part``.

    Where one of two series is exact, having one run only, it is compared with every run of the
    other.
    """

    __test__ = False
    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Kind
    series: Series
    against: Series | None = None
    x: str | None = None
    each: list[str] = Field(default_factory=list)
    quantifier: Quantifier = "each"
    part: str = Field(default="", description="of a compound claim, where points are counted")
    at: Number | None = None
    expected: Number = 1.0
    goal: Number | None = None
    tolerance: Number = Field(default=0.0, ge=0)
    at_least: Number = -np.inf
    at_most: Number = np.inf


class Claim(BaseModel):
    """A statement of a paper, in our words, and how it is put to the test in each variant."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    claim: str
    place: str
    figure: str
    because: str = Field(description="where the tolerance comes from")
    headline: str = Field(description="the variant whose verdict counts")
    variants: dict[str, list[Test]]
    reading: dict[str, str] = Field(default_factory=dict)
    sentences: dict[str, str] = Field(
        default_factory=dict, description="what a variant tests, if it is not the claim itself"
    )
    untestable: str = Field(
        default="", description="why the headline cannot be tested, however many runs there are"
    )
