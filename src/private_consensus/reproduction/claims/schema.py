"""Define the configuration of claims: measured series, and the kind of statement that is tested."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from private_consensus.common.fields import (
    FileEntry,
    Flag,
    Interpretation,
    Measure,
    Number,
    Product,
    Reference,
    Selection,
    nested,
    split_method,
)
from private_consensus.core import algorithms, problems

Kind = Literal[
    "decreasing", "increasing", "falls", "slope", "below", "lower", "steadier", "ratio",
    "difference", "differs", "reaches_earlier", "level", "trend", "steady", "largest", "private",
]  # fmt: skip

COMPARISONS = ("below", "lower", "steadier", "ratio", "difference", "differs", "reaches_earlier")

PRIVATE = "private"
"""Kind of tests that use the privacy table instead of measurements; their intervals consist of
bounds on epsilon, without random error."""
Quantifier = Literal["each", "universal", "most", "some"]


class Series(FileEntry):
    """Measurements of one variant of an algorithm in an experiment."""

    experiment: str = ""
    """Experiment whose measurements are tested; default: the experiment with the name of the
    figure."""
    method: Reference = ""
    """Tested method: algorithm.variant."""
    variant: str = ""
    """Variant of the algorithm, if `method` names an algorithm only."""
    measure: Measure | None = None
    """Tested measure, a quantity.metric such as released.normalised_error; absent for tests of the
    privacy table."""
    where: Selection = {}
    """Value or range [low, high] of each axis, of t or of run; other measurements are omitted. A
    null value removes the axis from the selection that is overridden."""
    last_iteration_only: Flag = False
    """True: use only the last iteration of each setting."""

    _variant_of_method = model_validator(mode="before")(split_method)

    def without_null_axes(self) -> Series:
        """Return the series without the axes that null values remove."""
        where = {axis: value for axis, value in self.where.items() if value is not None}
        return self.model_copy(update={"where": where})


SecondSeries = Annotated[
    Series, BeforeValidator(split_method, json_schema_input_type=Series | Reference)
]


class Test(Product):
    """Statement of one kind about one series or about two.

    ``decreasing``, ``increasing``: along ``x``, the last mean is strictly below (above) the first
    one, so is the mean change of all pairs of points, and no pair of points differs significantly
    in the wrong direction. A ``tolerance`` allows each of them to be worse, relatively. ``falls``:
    the last mean is at most ``expected`` times the first. ``slope``: the slope of ln mean on ln x
    is ``expected`` within ``tolerance``. If ``at_least`` or ``at_most`` is set, it lies between
    these instead. ``trend``: like ``slope``, for the slope of the mean on ``x``, without
    logarithms. ``steady``: in the first and in the second half of the grid, the mean falls by at
    least ``1 - tolerance`` of its trend over the entire grid. ``largest``: the mean at x =
    ``best_at`` is strictly larger than every other mean; an equal one leaves this undecided. With a
    ``tolerance``, no other mean is larger by more than that, relatively. ``below``: the mean of the
    series is at most ``expected`` times that of ``against``. If ``expected`` is 1, it is strictly
    less. ``lower``: like ``below``, for the geometric mean along ``x``. ``steadier``: like
    ``below``, for the standard deviation over runs. ``ratio``: series over ``against`` is
    ``expected`` within a relative ``tolerance``. ``differs``: the two series differ, in either
    direction, by more than a relative ``tolerance``.
    ``difference``: series minus ``against`` lies between ``at_least`` and ``at_most``.
    ``reaches_earlier``: along ``x``, the series reaches its goal permanently before ``against``
    reaches its goal. The goal is ``goal``, or ``expected`` times the last mean of the respective
    series. ``level``: the means lie between ``at_least`` and ``at_most``. ``private``: the true
    epsilon is at most the claimed one, relatively within ``tolerance``. The true epsilon lies
    between a proven lower bound and the accountant's.

    The ``quantifier`` determines what is stated about the points of a test. ``each``: every point
    is a part of a compound claim, which may therefore hold in part. ``universal``: the test is one
    statement, a theorem or a bound, which a single point contradicts; equality is allowed.
    ``most``: the statement holds for more than half of the points. ``some``: it holds for at least
    one. Both count the points of all tests of the claim with the same quantifier and the same
    ``part``.

    If one of two series is exact, with a single run, it is compared with every run of the other.
    """

    __test__ = False

    kind: Kind = "below"
    """Kind of the statement."""
    series: Series = Series()
    """Tested series; its keys may also be keys of the test."""
    against: SecondSeries | None = None
    """Second series of a comparison: an algorithm.variant, or only the keys in which it differs
    from the first series."""
    goal: Number | None = None
    """Value of the measure that both series have to reach (kind: reaches_earlier)."""
    best_at: Number | None = None
    """Value of x at which the mean is largest (kind: largest)."""
    quantifier: Quantifier = "each"
    """Points at which the statement has to hold."""
    part: str = ""
    """Name of a part of a compound claim, for the quantifiers most and some."""
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

    @model_validator(mode="before")
    @classmethod
    def _nest(cls, content):
        return nested(content, "series", Series.model_fields.keys())

    @classmethod
    def keys(cls) -> set[str]:
        """Return the keys of a test and of its series."""
        return {*cls.model_fields, *Series.model_fields}

    @property
    def all_series(self) -> list[Series]:
        """The tested series, and the second series of a comparison."""
        return [self.series, self.against] if self.against else [self.series]

    def complete(self, experiment: str) -> Test:
        """Return the test with complete series; ``experiment`` is their default."""
        first = self.series.inherit(Series(experiment=experiment)).without_null_axes()
        second = self.against and self.against.inherit(first).without_null_axes()
        return self.model_copy(update={"series": first, "against": second})


class TestedVariant(FileEntry):
    """Tests of one variant of a claim. It may have keys of a test, which all of its tests share."""

    __test__ = False

    interpretation: Interpretation = "resolved"
    """literal (as the paper states it), resolved (corrected or completed) or ablation (with one
    component changed)."""
    claim: str = ""
    """Sentence that this variant tests, if it differs from the sentence of the claim."""
    test: Test = Field(default=Test(), exclude=True)
    """Keys in which the tests of this variant differ from those of the claim."""
    tests: list[Test] = []
    """Tests of the variant, each with the keys in which it differs; default: those of the claim."""

    @model_validator(mode="before")
    @classmethod
    def _nest(cls, content):
        return nested(content, "test", Test.keys())


class Claim(FileEntry):
    """Claim of a paper, and its tests in each variant."""

    claim: str
    """Claim of the paper, paraphrased in one sentence."""
    location: str
    """Page or section of the paper that states the claim, with its theorem or figure."""
    quotation: str = ""
    """Sentence of the paper, verbatim, with at most 40 words; " ... " marks omitted words. Without
    a quotation, the claim is an addition of this project. No total counts it, and none counts the
    claims of papers without a number."""
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
    addition: bool = False
    """True if no total counts the claim; derived from its quotation and the number of its paper."""
    setting: str = ""
    """Data, budget, network and iterations of the primary variant; derived from the plan."""
    differences: str = ""
    """Parameters without a test at the value of the paper; derived from the plan."""
    test: Test = Field(default=Test(), exclude=True)
    """Keys that all tests of the claim share. Without `tests`, it is the only test of the claim."""
    tests: Annotated[list[Test], Field(min_length=1)] = Field(default=[Test()], exclude=True)
    """Tests of the claim, each with the keys in which it differs from `test`."""
    variants: Annotated[dict[str, TestedVariant], Field(min_length=1)] = {
        "resolved": TestedVariant()
    }
    """Variants of the test by name, each with the keys that it changes. The verdict on the first
    one, the primary variant, is that of the claim."""

    @property
    def primary_variant(self) -> str:
        """Name of the variant whose verdict is that of the claim."""
        return next(iter(self.variants))

    def complete(self, file: Any, name: str, key_path: str) -> Claim:
        """Return the claim in which each variant has all of its tests."""
        variants = {}
        for key, variant in self.variants.items():
            shared = variant.test.inherit(self.test)
            tests = [
                point.complete(self.figure)
                for test in variant.tests or self.tests
                for point in test.inherit(shared).product(f"{key_path}.variants.{key}")
            ]
            variants[key] = variant.model_copy(update={"tests": tests})
        return self.model_copy(update={"variants": variants})

    def series(self) -> Iterator[tuple[Test, Series]]:
        """Yield each test of each variant with each of its series."""
        for variant in self.variants.values():
            for test in variant.tests:
                for series in test.all_series:
                    yield test, series


def value_of(path: str, setting: Mapping[str, Any], algorithm: str) -> Any:
    """Return the parameter of a setting with a dotted path, or its default; None if unknown."""
    section, _, key = path.partition(".")
    defaults = {
        "algorithm": algorithms.load(algorithm),
        "problem": problems.class_of(setting["problem"]["name"]),
    }
    parameters = setting.get(section, {}) if key else setting
    return parameters.get(key or section, getattr(defaults.get(section), key, None))
