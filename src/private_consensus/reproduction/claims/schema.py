"""Define the configuration of claims: measured series, and the kind of statement that is tested."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from private_consensus.common.fields import (
    FileEntry,
    Flag,
    Grid,
    Interpretation,
    Measure,
    Names,
    Number,
    Reference,
    References,
    Selection,
    Slug,
)

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


class SeriesEntry(FileEntry):
    """Measurements of a variant in a file; lists give one test per entry."""

    experiment: str | Names | None = None
    """Experiment with the measurements."""
    method: Reference | References | None = None
    """algorithm.variant, or the algorithm."""
    variant: str | Names | None = None
    """Variant, if `method` names an algorithm only."""
    measure: Measure | Annotated[list[Measure], Field(min_length=1)] | None = None
    """Measure of the series."""
    where: Selection = {}
    """Values of axes."""
    last_iteration_only: Flag = False
    """True: use the last iteration of each point only."""


class Series(SeriesEntry):
    """Measurements of one variant of an algorithm in an experiment."""

    experiment: str
    method: str
    variant: str
    measure: Measure | None = None


class TestFields(FileEntry):
    """Fields of a test that are equal in the configuration file and after its expansion."""

    best_at: Number | None = None
    """Value of x at which the measure is best."""
    quantifier: Quantifier = "each"
    """Number of points that must agree: each, all, most or some."""
    part: str = ""
    """Part of a compound claim, whose points are counted together."""
    x: str | None = None
    """Axis with one point per value."""
    each: list[str] = []
    """Further axes with one point per combination of values."""
    expected: Number = 1.0
    """Expected value of the statistic."""
    tolerance: Number = Field(default=0.0, ge=0)
    """Accepted difference from the expected value."""
    at_least: Number = -np.inf
    """Smallest accepted value of the statistic."""
    at_most: Number = np.inf
    """Largest accepted value of the statistic."""


class Test(TestFields):
    """Statement of one kind about one series or about two.

    ``decreasing``, ``increasing``: each mean along ``x`` against the previous mean, strictly, or
    with a relative ``tolerance`` in the wrong direction. ``falls``: the last mean is at most
    ``expected`` times the first. ``slope``: the slope of ln mean on ln x is ``expected`` within
    ``tolerance``. If ``at_least`` or ``at_most`` is set, it lies between these instead. ``trend``:
    like ``slope``, for the slope of the mean on ``x``, without logarithms. ``steady``: in the first
    and in the second half of the grid, the trend is at least ``1 - tolerance`` of that over the
    entire grid, in the direction of ``expected``. ``largest``, ``smallest``: the mean at x =
    ``best_at`` is strictly larger (smaller) than every other mean. With a ``tolerance``, no other
    mean is better by more than that, relatively. ``below``: the mean of the series is at most
    ``expected`` times that of ``against``. If ``expected`` is 1, it is strictly less. ``lower``:
    like ``below``, for the geometric mean along ``x``. ``steadier``: like ``below``, for the
    standard deviation over runs. ``ratio``: series over ``against`` is ``expected`` within a
    relative ``tolerance``. ``differs``: the two series differ, in either direction, by more than a
    relative ``tolerance``. ``difference``: series minus ``against`` lies between ``at_least`` and
    ``at_most``. ``reaches_earlier``: along ``x``, the series reaches its goal permanently before
    ``against`` reaches its goal. The goal is ``goal``, or ``expected`` times the last mean of the
    respective series. ``level``: the means lie between ``at_least`` and ``at_most``. ``private``:
    the true epsilon is at most the claimed one, relatively within ``tolerance``. The true epsilon
    lies between a proven lower bound and the accountant's. ``tight``: like ``private``, and the
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

    kind: Kind
    series: Series
    against: Series | None = None
    goal: Number | None = None


Against = Reference | SeriesEntry | Annotated[list[Reference | SeriesEntry], Field(min_length=1)]


class TestEntry(TestFields, SeriesEntry):
    """Statement about one series or two in a file; lists and grids are products of statements."""

    __test__ = False

    kind: Kind | None = None
    """Kind of the statement."""
    grid: Grid = {}
    """Values of axes, one test per point."""
    goal: Number | Annotated[list[Number], Field(min_length=1)] | None = None
    """Value of the measure that has to be reached."""
    series: SeriesEntry | None = None
    """Tested series, as a mapping."""
    against: Against | None = None
    """Second series; absent keys are those of the first series."""


class TestedVariant(FileEntry):
    """Tests of one variant of a claim."""

    __test__ = False

    interpretation: Interpretation = "resolved"
    claim: str = ""
    """Sentence that this variant tests, if it differs from the claim's."""
    tests: list[Test]


class TestedVariantEntry(TestEntry):
    """Changes of a claim's tests in one variant."""

    claim: str | None = None
    """Sentence that this variant tests, if it differs from the claim's."""
    interpretation: Interpretation | None = None
    """Literal, resolved or ablation."""
    for_each_variant_of: Slug | None = None
    """Set of claim variants; gives one variant `that_this` for each."""
    tests: Annotated[list[TestEntry], Field(min_length=1)] | None = None
    """List of tests."""


class ClaimFields(FileEntry):
    """Fields of a claim that are equal in the configuration file and after its expansion."""

    claim: str
    """Sentence that is tested, in our words."""
    location: str
    """Location in the paper."""
    figure: str
    """Figure that shows the measurements."""
    because: str
    """Origin of the tolerance."""
    untestable: str = ""
    """Reason why no runs can test it."""


class Claim(ClaimFields):
    """Complete claim, with the tests of each of its variants."""

    primary_variant: str
    variants: dict[str, TestedVariant]

    def series(self) -> Iterator[tuple[Test, Series]]:
        """Yield each test of each variant with each of its series."""
        for variant in self.variants.values():
            for test in variant.tests:
                yield test, test.series
                if test.against:
                    yield test, test.against


class ClaimEntry(ClaimFields):
    """Claim of a paper in a file, and its test in each variant."""

    primary_variant: str | None = None
    """Variant that decides the verdict; default: the first."""
    test: TestEntry | None = None
    """Common keys of all tests; the only test without `tests`."""
    series: SeriesEntry | None = None
    """Tested series of all tests."""
    against: Against | None = None
    """Second series of all tests."""
    tests: Annotated[list[TestEntry], Field(min_length=1)] | None = None
    """List of tests."""
    variants: str | dict[str, TestedVariantEntry | None] = {}
    """Variants by name, or the name of a set of variants."""
