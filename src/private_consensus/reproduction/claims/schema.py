"""Define the configuration of claims: measured series, and the kind of statement that is tested."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import numpy as np
from pydantic import AfterValidator, Field

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
    "decreasing", "increasing", "falls", "slope", "below", "lower", "steadier", "ratio",
    "difference", "differs", "reaches_earlier", "level", "trend", "steady", "largest", "smallest",
    "private", "tight",
]  # fmt: skip

COMPARISONS = ("below", "lower", "steadier", "ratio", "difference", "differs", "reaches_earlier")

Quantifier = Literal["each", "universal", "most", "some"]

MAX_WORDS = 40
"""Largest number of words of a quotation."""


def _short(quotation: str) -> str:
    if len(quotation.split()) > MAX_WORDS:
        raise ValueError(f"expected at most {MAX_WORDS} words")
    return quotation


class SeriesEntry(FileEntry):
    """Measurements of a variant in a file; lists give one test per entry."""

    experiment: str | Names | None = None
    """Experiment whose measurements are tested."""
    method: Reference | References | None = None
    """Tested method: algorithm.variant, or an algorithm together with the key `variant`."""
    variant: str | Names | None = None
    """Variant of the algorithm, if `method` names an algorithm only."""
    measure: Measure | Annotated[list[Measure], Field(min_length=1)] | None = None
    """Tested measure, a quantity.metric such as released.normalised_error."""
    where: Selection = {}
    """Value or range [low, high] of each axis, of t or of run; other measurements are omitted."""
    last_iteration_only: Flag = False
    """True: use only the last iteration of each setting."""


class Series(SeriesEntry):
    """Measurements of one variant of an algorithm in an experiment."""

    experiment: str
    """Experiment whose measurements are tested."""
    method: str
    """Name of the algorithm."""
    variant: str
    """Variant of the algorithm."""
    measure: Measure | None = None
    """Tested measure; absent for tests of the privacy table."""


class TestFields(FileEntry):
    """Fields of a test that are equal in the configuration file and after its expansion."""

    best_at: Number | None = None
    """Value of x at which the mean is largest (kind: largest) or smallest (kind: smallest)."""
    quantifier: Quantifier = "each"
    """Points at which the statement has to hold. each: all points, and a claim that holds at some
    of them holds in part; universal: all points, and one exception contradicts the claim; most:
    more than half of the points; some: at least one point."""
    part: str = ""
    """Name of a part of a compound claim. With the quantifiers most and some, the points of all
    tests with the same name are counted together."""
    x: str | None = None
    """Axis of the experiment, or t, along which the series is tested."""
    other_axes: list[str] = []
    """Further axes; the statement is tested for each combination of their values."""
    expected: Number = 1.0
    """Factor, ratio or slope that the statement predicts; its meaning depends on `kind`."""
    tolerance: Number = Field(default=0.0, ge=0)
    """Accepted deviation from the statement: absolute for slopes, relative for all other kinds."""
    at_least: Number = -np.inf
    """Smallest accepted mean, difference or slope."""
    at_most: Number = np.inf
    """Largest accepted mean, difference or slope."""


class Test(TestFields):
    """Statement of one kind about one series or about two.

    ``decreasing``, ``increasing``: along ``x``, the last mean is strictly below (above) the first
    one, so is the mean change of all pairs of points, and no step goes significantly in the wrong
    direction by more than :data:`.statements.PLATEAU`, which is equal for all claims. A
    ``tolerance`` allows ends and trend to be worse, relatively. ``falls``: the last mean is at most
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
    """Kind of the statement."""
    series: Series
    """Tested series."""
    against: Series | None = None
    """Second series of a comparison."""
    goal: Number | None = None
    """Value of the measure that the series has to reach."""

    @property
    def all_series(self) -> list[Series]:
        """The tested series, and the second series of a comparison."""
        return [self.series, self.against] if self.against else [self.series]


Against = Reference | SeriesEntry | Annotated[list[Reference | SeriesEntry], Field(min_length=1)]


class TestEntry(TestFields, SeriesEntry):
    """Statement about one series or two in a file; lists and grids are products of statements."""

    __test__ = False

    kind: Kind | None = None
    """Kind of the statement, such as decreasing (means fall along x),
    below (the mean is below that of `against`) or slope (of ln mean on ln x)."""
    grid: Grid = {}
    """Mapping from axes to lists of values; there is one test per combination of values."""
    goal: Number | Annotated[list[Number], Field(min_length=1)] | None = None
    """Value of the measure that both series have to reach (kind: reaches_earlier)."""
    series: SeriesEntry | None = None
    """Tested series: its experiment, method, measure and selection."""
    against: Against | None = None
    """Second series of a comparison: an algorithm.variant, or only the keys in which it differs
    from the first series."""


class TestedVariant(FileEntry):
    """Tests of one variant of a claim."""

    __test__ = False

    interpretation: Interpretation = "resolved"
    """literal, resolved or ablation."""
    claim: str = ""
    """Sentence that this variant tests, if it differs from the sentence of the claim."""
    tests: list[Test]
    """Tests of the variant."""


class TestedVariantEntry(TestEntry):
    """Changes of a claim's tests in one variant."""

    claim: str | None = None
    """Sentence that this variant tests, if it differs from the sentence of the claim."""
    interpretation: Interpretation | None = None
    """literal (as the paper states it), resolved (corrected or completed; the default) or ablation
    (one component changed)."""
    for_each_variant_of: Slug | None = None
    """Set in `claim_variants`. This variant is combined with each member; the combination is called
    <member>_<variant>."""
    tests: Annotated[list[TestEntry], Field(min_length=1)] | None = None
    """Tests of the variant, each with the keys in which it differs."""


class ClaimFields(FileEntry):
    """Fields of a claim that are equal in the configuration file and after its expansion."""

    claim: str
    """Claim of the paper, paraphrased in one sentence."""
    location: str
    """Page or section of the paper that states the claim, with its theorem or figure."""
    quotation: Annotated[str, AfterValidator(_short)] = ""
    """Sentence of the paper, verbatim, with at most 40 words; " ... " marks omitted words. Without
    a quotation, the claim is an addition of this project, which no total counts."""
    figure: str
    """Figure or table that shows the tested measurements."""
    because: str
    """Reason for the form of the test and for its tolerance."""
    caveat: str = ""
    """Restriction that a reader needs next to the verdict on the primary variant, such as a test
    that cannot fail or a run that is not private."""
    theorems: list[str] = []
    """Numbered statements of the paper, such as Theorem 2, that are the claim: their verdict is
    that of the claim, and its runs are an illustration."""
    untestable: str = ""
    """Reason why no number of runs can decide the claim."""
    untested: str = ""
    """Runs that would decide the claim, and are not part of this study."""

    @property
    def addition(self) -> bool:
        """True if no sentence of the paper states the claim."""
        return not self.quotation


class Claim(ClaimFields):
    """Complete claim, with the tests of each of its variants."""

    setting: str = ""
    """Data, budget, network and iterations of the primary variant; derived from the plan."""
    differences: str = ""
    """Parameters without a test at the value of the paper; derived from the plan."""
    primary_variant: str
    """Variant whose result is the verdict of the claim."""
    variants: dict[str, TestedVariant]
    """Variants of the test, by name."""

    def series(self) -> Iterator[tuple[Test, Series]]:
        """Yield each test of each variant with each of its series."""
        for variant in self.variants.values():
            for test in variant.tests:
                for series in test.all_series:
                    yield test, series


class ClaimEntry(ClaimFields):
    """Claim of a paper in a file, and its test in each variant."""

    primary_variant: str | None = None
    """Variant whose result is the verdict of the claim; default: the first variant."""
    test: TestEntry | None = None
    """Keys that all tests of the claim share. Without `tests`, it is the only test of the claim."""
    series: SeriesEntry | None = None
    """Series that all tests of the claim examine."""
    against: Against | None = None
    """Second series of all comparisons of the claim: an algorithm.variant, or only the keys in
    which it differs from the first series."""
    tests: Annotated[list[TestEntry], Field(min_length=1)] | None = None
    """Tests of the claim, each with the keys in which it differs from `test`."""
    variants: str | dict[str, TestedVariantEntry | None] = {}
    """Variants of the test by name, each with the keys that it changes; or the name of a set in
    `claim_variants`."""
