"""Define the configuration of claims: measured series, and the kind of statement that is tested."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from private_consensus.common.fields import Flag, Number

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
    """Measurements of one algorithm, run variant, quantity and metric."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    experiment: str
    algorithm: str
    run: str
    quantity: str = ""
    metric: str = ""
    where: dict[str, Any] = Field(default_factory=dict)
    last: Flag = Field(default=False, description="at each point only the last iteration")


class Test(BaseModel):
    """Statement of one kind about one series or about two.

    ``decreasing``, ``increasing``: each mean along ``x`` against the previous mean, strictly, or
    with a relative ``tolerance`` in the wrong direction. ``falls``: the last mean is at most
    ``expected`` times the first. ``slope``: the slope of ln mean on ln x is ``expected`` within
    ``tolerance``. If ``at_least`` or ``at_most`` is set, it lies between these instead. ``trend``:
    like ``slope``, for the slope of the mean on ``x``, without logarithms. ``steady``: in the first
    and in the second half of the grid, the trend is at least ``1 - tolerance`` of that over the
    entire grid, in the direction of ``expected``. ``largest``, ``smallest``: the mean at x = ``at``
    is strictly larger (smaller) than every other mean. With a ``tolerance``, no other mean is
    better by more than that, relatively. ``below``: the mean of the series is at most ``expected``
    times that of ``against``. If ``expected`` is 1, it is strictly less. ``lower``: like ``below``,
    for the geometric mean along ``x``. ``steadier``: like ``below``, for the standard deviation
    over runs. ``ratio``: series over ``against`` is ``expected`` within a relative ``tolerance``.
    ``differs``: the two series differ, in either direction, by more than a relative ``tolerance``.
    ``difference``: series minus ``against`` lies between ``at_least`` and ``at_most``.
    ``reaches_earlier``: along ``x``, the series reaches its goal permanently before ``against``
    reaches its goal. The goal is ``goal``, or ``expected`` times the last mean of the respective
    series. ``level``: the means lie between ``at_least`` and ``at_most``. ``private``: the true
    epsilon is at most the claimed one, relatively within ``tolerance``. The true epsilon lies
    between a proven lower bound and the accountant's. ``tight``: like ``private``, and the
    accountant's epsilon is not less than the claimed one either.

    The ``quantifier`` determines what is stated about the points of a test. ``each``: every point
    is a part of a compound claim, which may therefore hold in part. ``universal``: the test is one
    statement, a theorem or a bound, which a single point contradicts; equality is allowed.
    ``most``: the statement holds for more than half of the points. ``some``: it holds for at least
    one. Both count the points of all tests of the claim with the same quantifier and the same
    ``part``.

    If one of two series is exact, with a single run, it is compared with every run of the other.
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
    """Statement of a paper, in our words, with the tests of each of its variants."""

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
