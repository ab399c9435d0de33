"""Define the keys of a file of ``config/papers``, which ``config/README.md`` explains."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from private_consensus.common.fields import Flag, Number, Whole
from private_consensus.core import algorithms

from ...claims import Kind, Quantifier
from ..schema import Name, Open, PaperInfo, Partition, Reading, Slug, Strict, one_of

Measure = Annotated[str, Field(pattern=r"^[a-z]\w*(\.[a-z]\w*)?$")]
"""``quantity.metric``; the name alone for a quantity that is a number."""
Ref = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)?$")]
"""``algorithm.variant``, or one of both if the other key states the rest."""
Where = dict[str, Any]
Grid = dict[Slug, Annotated[list[Number | Whole | str], Field(min_length=1)]]


Algorithm = Annotated[Slug, AfterValidator(one_of(algorithms.names))]


Refs = Annotated[list[Ref], Field(min_length=1)]
Words = Annotated[list[str], Field(min_length=1)]
MOST_ITERATIONS = 100_000


def _said(value: Any) -> Any:
    if value is None:
        raise ValueError("expected a value, or no such key")
    return value


class StrictEntry(Strict):
    """Mapping with known keys; an absent key has no value."""

    _each_says_something = field_validator("*", mode="before")(_said)


class AxisEntry(StrictEntry):
    """Grid of values, or changes of a named grid."""

    set: str | None = Field(default=None, description="dotted path of the value that the axis sets")
    values: list[Number | Whole | str] | None = Field(
        default=None, min_length=1, description="values of the grid"
    )
    because: str | None = Field(
        default=None, description="reason for these values, if the paper does not state them"
    )


class UnspecifiedDetail(StrictEntry):
    """Detail that a paper omits or contradicts, with its literal and its resolved form."""

    literal: str = Field(default="not given", description="text of the paper")
    resolved: str = Field(description="what this reproduction does")
    because: str = Field(description="reason for the resolution")


class TuningEntry(StrictEntry):
    """Parameters selected on a grid of the same algorithm, in an experiment with separate runs."""

    experiment: str | None = Field(default=None, description="experiment that runs the grid")
    variant: str | None = Field(default=None, description="variant of the algorithm on the grid")
    measure: Measure | None = Field(default=None, description="measure that is minimised")
    criterion: Literal["last", "mean"] | None = Field(
        default=None, description="measure at the last iteration, or its mean over all iterations"
    )
    axes: dict[str, str] | None = Field(
        default=None, description="axes of the grid, each with the path of the value that it sets"
    )


class VariantEntry(Open):
    """Variant of an algorithm; keys that are not listed are parameters of the algorithm."""

    _each_says_something = field_validator("*", mode="before")(_said)

    extends: Ref | None = Field(
        default=None, description="variant whose parameters this one changes"
    )
    interpretation: Reading | None = Field(
        default=None, description="default: resolved, or ablation if the variant extends another"
    )
    because: str | None = Field(default=None, description="reason for the variant")
    set: dict[str, Any] | None = Field(
        default=None, description="values outside the algorithm, by dotted path"
    )
    tuned: TuningEntry | None = Field(default=None, description="parameters selected on a grid")


class Span(StrictEntry):
    """Range of iterations with a step."""

    from_: Whole = Field(alias="from", ge=1, description="first iteration")
    to: Whole = Field(ge=1, description="last iteration")
    by: Whole = Field(default=1, ge=1, description="step")

    @model_validator(mode="after")
    def _some(self):
        if not 0 < len(range(self.from_, self.to + 1, self.by)) <= MOST_ITERATIONS:
            raise ValueError(f"expected 1 to {MOST_ITERATIONS} iterations")
        return self


class Scale(StrictEntry):
    """Changes of an experiment at a smaller scale."""

    runs: Whole | None = Field(default=None, ge=1, description="number of Monte-Carlo runs")
    runs_per_batch: Whole | None = Field(
        default=None, ge=1, description="runs computed together; the last batch is filled up"
    )
    axes: dict[str, list[Number | Whole | str]] | None = Field(
        default=None, description="values of axes"
    )
    set: dict[str, Any] | None = Field(default=None, description="values by dotted path")


class IntermediateMeasures(StrictEntry):
    """Restriction of the measurements before the last iteration."""

    where: dict[str, Any] | None = Field(
        default=None,
        description="values of axes; other settings are measured at the last iteration only",
    )
    measures: list[Measure] | None = Field(
        default=None, min_length=1, description="measures at intermediate iterations"
    )


class ExperimentEntry(StrictEntry):
    """Experiment: its keys override the defaults of the file or the extended experiment."""

    extends: str | None = Field(
        default=None,
        description="experiment of this file whose keys are inherited, except title, location and "
        "unspecified_details",
    )
    title: str | None = Field(default=None, description="what the experiment computes")
    location: str | None = Field(default=None, description="location in the paper")
    problem: dict[str, Any] | None = Field(default=None, description="name and parameters")
    network: dict[str, Any] | None = Field(default=None, description="name and parameters")
    budget: dict[str, Any] | None = Field(default=None, description="epsilon and delta")
    horizon: Whole | None = Field(default=None, ge=1, description="number of iterations")
    runs: Whole | None = Field(default=None, ge=1, description="number of Monte-Carlo runs")
    runs_per_batch: Whole | None = Field(default=None, ge=1, description="runs computed together")
    axes: list[Slug] | dict[Slug, AxisEntry | None] | None = Field(
        default=None, description="names of grids, or grids by name"
    )
    algorithms: dict[Algorithm, list[Slug] | dict[Slug, VariantEntry | None]] | None = Field(
        default=None, description="variants of each algorithm"
    )
    measures: list[Measure] | None = Field(
        default=None, min_length=1, description="recorded measures"
    )
    iterations: list[Whole | Span] | Literal["all"] | None = Field(
        default=None, description="recorded iterations in addition to the last"
    )
    intermediate_measures: IntermediateMeasures | None = Field(
        default=None, description="restriction of the measurements before the last iteration"
    )
    averages: list[Measure] | None = Field(
        default=None, description="measures recorded as their mean over all iterations"
    )
    divergence: Literal["raise", "record"] | None = Field(
        default=None, description="treatment of runs whose values become infinite"
    )
    groups: (
        dict[Literal["data", "graph", "noise", "sampling"], str | dict[str, str] | None] | None
    ) = Field(
        default=None,
        description="names of random streams that experiments share, for all algorithms or each",
    )
    unspecified_details: list[str] | dict[str, UnspecifiedDetail | None] | None = Field(
        default=None, description="details that the paper omits, by topic"
    )
    unaccounted_data_use: list[str] | None = Field(
        default=None, description="choices made with private outcomes and outside the budget"
    )
    scales: dict[str, Scale] | None = Field(default=None, description="smaller scales by name")


class CurveKeys(StrictEntry):
    """Keys of a curve, which a panel or a figure may set for all of its curves."""

    experiment: str | None = Field(default=None, description="experiment with the measurements")
    variant: str | None = Field(
        default=None, description="variant, if `method` names an algorithm only"
    )
    measure: Measure | None = Field(default=None, description="plotted measure")
    quantity: str | None = Field(default=None, description="replaces the quantity of the measure")
    metric: str | None = Field(default=None, description="replaces the metric of the measure")
    interpretation: Reading | None = Field(
        default=None, description="replaces the interpretation of the variant"
    )
    last_iteration_only: Flag | None = Field(
        default=None, description="true: use the last iteration only"
    )
    interval: Literal["standard error", "standard deviation", "range"] | None = Field(
        default=None, description="band around the curve"
    )
    x: str | None = Field(default=None, description="axis or measure on the horizontal axis")
    statistic: Literal["mean", "median"] | None = Field(
        default=None, description="mean with standard error, or median with quartiles"
    )


class CurveEntry(CurveKeys):
    """Curve, or the product of several variants, measures and values of axes."""

    method: Ref | Refs | Annotated[dict[Ref, str | list[Slug]], Field(min_length=1)] = Field(
        description="algorithm.variant; several; each with its part of the label; or algorithms "
        "with lists of variants"
    )
    style: Slug | None = Field(
        default=None, description="name of the style, if it is not the name of the variant"
    )
    label: str | None = Field(default=None, description="replaces the label of the style")
    measures: dict[Measure, str] | None = Field(
        default=None, description="several measures, each with its part of the label"
    )
    grid: Grid | None = Field(default=None, description="values of axes, one curve per point")
    where: Where | None = Field(default=None, description="values of axes to plot")
    low: Measure | None = Field(default=None, description="measure at the lower end of the band")
    high: Measure | None = Field(default=None, description="measure at the upper end of the band")
    band: str | None = Field(default=None, description="meaning of the band, in words")
    by: str | None = Field(default=None, description="axis with one curve per value")
    by_title: str | None = Field(default=None, description="title of that axis in the legend")


class PanelKeys(CurveKeys):
    """Keys of a panel, which a figure may set for all of its panels."""

    experiments: dict[Algorithm, str] | None = Field(
        default=None, description="experiments of single algorithms, instead of `experiment`"
    )
    where: Where | None = Field(default=None, description="values of axes for all curves")
    grid: Grid | None = Field(default=None, description="values of axes, one panel per point")
    x_title: str | None = Field(default=None, description="title of the horizontal axis")
    y_title: str | None = Field(default=None, description="title of the vertical axis")
    log_x: Flag | None = Field(default=None, description="true: logarithmic horizontal axis")
    log_y: Flag | None = Field(default=None, description="true: logarithmic vertical axis")
    y_domain: tuple[Number, Number] | None = Field(
        default=None, description="range of the vertical axis"
    )
    goals: list[Number] | None = Field(
        default=None,
        description="values of the measure; the figure shows the smallest x that keeps each",
    )
    curves: str | list[str | CurveEntry] | CurveEntry | None = Field(
        default=None, description="names of sets, algorithm.variant, or curves"
    )


class PanelEntry(PanelKeys):
    """Panel with curves, a communication graph, a partition, or views of observers."""

    title: str = Field(default="", description="may contain {axis} of the grid")
    graph: Flag | None = Field(default=None, description="true: draw the communication graph")
    partition: Partition | None = Field(
        default=None, description="distribution of the records to the agents"
    )
    views: dict[str, Any] | None = Field(
        default=None, description="privacy loss to observers; merged with that of the figure"
    )


class FigureEntry(PanelKeys):
    """Figure: panels and their common keys."""

    extends: str | None = Field(
        default=None,
        description="figure of this file whose keys are inherited, except title, caption and note",
    )
    title: str = Field(description="quantity of which method against what")
    caption: str = Field(description="complete description that can be read without the text")
    note: str | None = Field(default=None, description="remark on the data, below the title")
    columns: Whole | None = Field(default=None, ge=1, description="panels per row")
    panel_title: str | None = Field(
        default=None, description="title of each panel; may contain {title} and {axis}"
    )
    graph: Flag | None = Field(default=None, description="true: draw the communication graph")
    views: dict[str, Any] | None = Field(
        default=None, description="privacy loss to observers, common keys of all panels"
    )
    panels: list[PanelEntry] | None = Field(
        default=None, min_length=1, description="list of panels"
    )


class MethodEntry(StrictEntry):
    """Method of a table, with the published values."""

    label: str = Field(description="name in the table")
    method: Ref = Field(description="algorithm.variant")
    interpretation: Reading | None = Field(
        default=None, description="replaces the interpretation of the variant"
    )
    where: Where | None = Field(default=None, description="values of axes")
    published: list[tuple[Number, Number, Number]] | None = Field(
        default=None, description="value of the rows' axis, mean and standard deviation"
    )


class BlockEntry(StrictEntry):
    """Rows of a table that share an experiment."""

    label: str = Field(description="title of the block")
    experiment: str = Field(description="experiment with the measurements")
    methods: list[MethodEntry] = Field(min_length=1, description="methods of the block")


class TableEntry(StrictEntry):
    """Table of measurements next to the published values."""

    title: str = Field(description="title of the table")
    caption: str = Field(description="complete description that can be read without the text")
    rows: str = Field(description="axis with one row per value")
    row_title: str = Field(description="title of that axis")
    values: list[Number] | None = Field(default=None, description="values of that axis")
    measure: Measure = Field(description="tabulated measure")
    extra_columns: dict[str, Measure] | None = Field(
        default=None, description="measures of further columns, by title"
    )
    published_runs: Whole | None = Field(
        default=None, ge=1, description="number of runs behind the published values"
    )
    blocks: list[BlockEntry] = Field(min_length=1, description="blocks of rows")


class Other(StrictEntry):
    """Second series of a comparison; absent keys are those of the first series."""

    experiment: str | None = Field(default=None, description="experiment with the measurements")
    method: Ref | None = Field(default=None, description="algorithm.variant, or the algorithm")
    variant: str | None = Field(
        default=None, description="variant, if `method` names an algorithm only"
    )
    measure: Measure | None = Field(default=None, description="measure of the series")
    where: Where | None = Field(default=None, description="values of axes")
    last_iteration_only: Flag | None = Field(
        default=None, description="true: use the last iteration only"
    )


class SeriesEntry(StrictEntry):
    """Measurements of a variant; lists give one test per entry."""

    experiment: str | Words | None = Field(
        default=None, description="experiment with the measurements"
    )
    method: Ref | Refs | None = Field(
        default=None, description="algorithm.variant, or the algorithm"
    )
    variant: str | Words | None = Field(
        default=None, description="variant, if `method` names an algorithm only"
    )
    measure: Measure | Annotated[list[Measure], Field(min_length=1)] | None = Field(
        default=None, description="measure of the series"
    )
    where: Where | None = Field(default=None, description="values of axes")
    last_iteration_only: Flag | None = Field(
        default=None, description="true: use the last iteration only"
    )


Against = Ref | Other | Annotated[list[Ref | Other], Field(min_length=1)]


class TestEntry(SeriesEntry):
    """Statement about one series or two; lists and grids are products of statements."""

    __test__ = False

    kind: Kind | None = Field(default=None, description="kind of the statement")
    best_at: Number | Whole | None = Field(
        default=None, description="value of x at which the measure is best"
    )
    quantifier: Quantifier | None = Field(
        default=None, description="number of points that must agree: each, all, most or some"
    )
    part: str | None = Field(
        default=None, description="part of a compound claim, whose points are counted together"
    )
    x: str | None = Field(default=None, description="axis with one point per value")
    each: list[str] | None = Field(
        default=None, description="further axes with one point per combination of values"
    )
    grid: Grid | None = Field(default=None, description="values of axes, one test per point")
    expected: Number | None = Field(default=None, description="expected value")
    goal: Number | Annotated[list[Number], Field(min_length=1)] | None = Field(
        default=None, description="value of the measure that has to be reached"
    )
    tolerance: Number | None = Field(default=None, ge=0, description="allowed difference")
    at_least: Number | None = Field(default=None, description="lower bound")
    at_most: Number | None = Field(default=None, description="upper bound")
    series: SeriesEntry | None = Field(default=None, description="tested series, as a mapping")
    against: Against | None = Field(default=None, description="second series")


class StatementEntry(StrictEntry):
    """Tests and their common keys."""

    test: TestEntry | None = Field(
        default=None, description="common keys of all tests; the only test without `tests`"
    )
    series: SeriesEntry | None = Field(default=None, description="tested series of all tests")
    against: Against | None = Field(default=None, description="second series of all tests")
    tests: list[TestEntry] | None = Field(default=None, min_length=1, description="list of tests")


class ClaimVariant(TestEntry):
    """Changes of a claim's tests in one variant."""

    claim: str | None = Field(
        default=None, description="sentence that this variant tests, if it differs from the claim's"
    )
    interpretation: Reading | None = Field(
        default=None, description="literal, resolved or ablation"
    )
    for_each_variant_of: Slug | None = Field(
        default=None, description="set of claim variants; gives one variant `that_this` for each"
    )
    tests: list[TestEntry] | None = Field(default=None, min_length=1, description="list of tests")


class ClaimEntry(StatementEntry):
    """Claim of a paper in our words, and its test in each variant."""

    claim: str = Field(description="sentence that is tested")
    location: str = Field(description="location in the paper")
    figure: str = Field(description="figure that shows the measurements")
    because: str = Field(description="origin of the tolerance")
    primary_variant: str | None = Field(
        default=None, description="variant that decides the verdict; default: the first"
    )
    untestable: str | None = Field(default=None, description="reason why no runs can test it")
    variants: str | dict[str, ClaimVariant | None] | None = Field(
        default=None, description="variants by name, or the name of a set of variants"
    )


class Defaults(StrictEntry):
    """Default keys of all experiments and panels of a file."""

    experiment: ExperimentEntry | None = Field(default=None, description="defaults of experiments")
    panel: PanelKeys | None = Field(default=None, description="defaults of panels")


class File(StrictEntry):
    """File of ``config/papers``: a paper, or a part of one."""

    paper: PaperInfo | None = Field(default=None, description="title, authors and source")
    parts: list[str] | None = Field(default=None, description="files of the folder `<key>/`")
    scales: list[Slug] | None = Field(
        default=None, description="scales of a study in addition to smoke"
    )
    titles: dict[str, str] = Field(
        default_factory=dict, description="default titles of x axes and measures"
    )
    defaults: Defaults = Field(default=Defaults(), description="defaults of experiments and panels")
    axes: dict[Slug, AxisEntry] = Field(default_factory=dict, description="grids by name")
    unspecified_details: dict[str, UnspecifiedDetail] = Field(
        default_factory=dict, description="unspecified details of several experiments, by topic"
    )
    variants: dict[Algorithm, dict[Slug, VariantEntry]] = Field(
        default_factory=dict, description="variants of algorithms, by name"
    )
    curves: dict[Slug, list[Ref | CurveEntry] | CurveEntry] = Field(
        default_factory=dict, description="sets of curves, by name"
    )
    claim_variants: dict[Slug, dict[str, ClaimVariant]] = Field(
        default_factory=dict, description="sets of claim variants, by name"
    )
    experiments: dict[Slug, ExperimentEntry] = Field(default_factory=dict, description="by name")
    figures: dict[Name, FigureEntry] = Field(default_factory=dict, description="by name")
    tables: dict[Name, TableEntry] = Field(default_factory=dict, description="by name")
    claims: dict[Name, ClaimEntry] = Field(default_factory=dict, description="by name")
