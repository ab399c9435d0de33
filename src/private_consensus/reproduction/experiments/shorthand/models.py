"""Define the keys of a file of ``config/papers``, which ``config/README.md`` explains."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from private_consensus.common.fields import Flag, Number, Whole
from private_consensus.core import algorithms

from ...claims import Kind, Quantifier
from ..schema import Name, Open, PaperInfo, Partition, Reading, Slug, one_of
from ..schema import Strict as Exact

Measure = Annotated[str, Field(pattern=r"^[a-z]\w*(\.[a-z]\w*)?$")]
"""``quantity.metric``; of a quantity that is a number already its name alone."""
Ref = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)?$")]
"""``algorithm.variant``, or one of the two where the other is said elsewhere."""
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


class Strict(Exact):
    """A mapping whose keys are known; what it does not say it leaves out."""

    _each_says_something = field_validator("*", mode="before")(_said)


class Axis(Strict):
    """A grid, or what an experiment changes of a grid that has a name."""

    set: str | None = Field(default=None, description="dotted path of what it sets")
    values: list[Number | Whole | str] | None = Field(default=None, min_length=1)
    because: str | None = Field(
        default=None, description="why these values, where the paper does not print them"
    )


class Choice(Strict):
    """Where a text is silent or contradicts itself: what it says and what we do."""

    literal: str = "not given"
    resolved: str
    because: str


class Tuning(Strict):
    """Parameters found by a grid of the same algorithm in an experiment on runs of its own."""

    experiment: str | None = None
    run: str | None = Field(default=None, description="variant of that experiment")
    measure: Measure | None = None
    criterion: Literal["last", "mean"] | None = None
    over: dict[str, str] | None = Field(
        default=None, description="axes of the grid, each with the path of what it sets here"
    )


class Variant(Open):
    """One combination of switches, or what it changes of another; further keys are parameters."""

    _each_says_something = field_validator("*", mode="before")(_said)

    of: Ref | None = Field(default=None, description="the variant that this one changes")
    reading: Reading | None = Field(
        default=None, description="resolved; of one that changes another: ablation"
    )
    because: str | None = None
    set: dict[str, Any] | None = Field(
        default=None, description="by dotted path, what is no parameter of the algorithm"
    )
    tuned: Tuning | None = None


class Span(Strict):
    """Iterations from one to another, in steps."""

    from_: Whole = Field(alias="from", ge=1)
    to: Whole = Field(ge=1)
    by: Whole = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _some(self):
        if not 0 < len(range(self.from_, self.to + 1, self.by)) <= MOST_ITERATIONS:
            raise ValueError(f"expected 1 to {MOST_ITERATIONS} iterations")
        return self


class Scale(Strict):
    """What a smaller scale changes."""

    runs: Whole | None = Field(default=None, ge=1)
    block: Whole | None = Field(
        default=None, ge=1, description="runs computed together: a last block is filled up"
    )
    axes: dict[str, list[Number | Whole | str]] | None = None
    set: dict[str, Any] | None = None


class Courses(Strict):
    """What of the iterations besides the last is measured, if not all of it."""

    where: dict[str, Any] | None = Field(
        default=None, description="values of axes; other settings are measured at their end alone"
    )
    measures: list[Measure] | None = Field(default=None, min_length=1)


class Experiment(Strict):
    """What an experiment says over the defaults of its file, or over another experiment."""

    like: str | None = Field(
        default=None, description="an experiment of this file, all of it but its words"
    )
    title: str | None = None
    place: str | None = Field(default=None, description="where in the paper")
    problem: dict[str, Any] | None = None
    network: dict[str, Any] | None = None
    budget: dict[str, Any] | None = None
    horizon: Whole | None = Field(default=None, ge=1)
    runs: Whole | None = Field(default=None, ge=1)
    block: Whole | None = Field(default=None, ge=1, description="runs computed together")
    axes: list[Slug] | dict[Slug, Axis | None] | None = None
    algorithms: dict[Algorithm, list[Slug] | dict[Slug, Variant | None]] | None = None
    measures: list[Measure] | None = Field(default=None, min_length=1)
    iterations: list[Whole | Span] | Literal["all"] | None = Field(
        default=None, description="measured besides the last"
    )
    courses: Courses | None = Field(
        default=None, description="what is measured before the end, if not everything"
    )
    averages: list[Measure] | None = Field(
        default=None, description="measured as their mean over all iterations"
    )
    divergence: Literal["raise", "record"] | None = None
    groups: (
        dict[Literal["data", "graph", "noise", "sampling"], str | dict[str, str] | None] | None
    ) = Field(default=None, description="names of streams, or these by algorithm")
    choices: list[str] | dict[str, Choice | None] | None = Field(
        default=None, description="by what they are about"
    )
    oracles: list[str] | None = Field(
        default=None, description="choices that were made by looking at outcomes"
    )
    scales: dict[str, Scale] | None = None


class CurveKeys(Strict):
    """What a curve has; a panel or a figure may say it for all of its curves."""

    experiment: str | None = None
    run: str | None = Field(default=None, description="variant, where `of` names an algorithm")
    measure: Measure | None = None
    quantity: str | None = Field(default=None, description="instead of the measure's")
    metric: str | None = Field(default=None, description="instead of the measure's")
    reading: Reading | None = Field(default=None, description="instead of the variant's")
    last: Flag | None = Field(default=None, description="of all iterations only the last")
    interval: Literal["standard error", "standard deviation", "range"] | None = None
    x: str | None = None
    statistic: Literal["mean", "median"] | None = None


class Curve(CurveKeys):
    """One curve, or the product of several variants, measures and values of axes."""

    of: Ref | Refs | Annotated[dict[Ref, str | list[Slug]], Field(min_length=1)] = Field(
        description="algorithm.variant: one, several, or each with its part of the label; or "
        "algorithms with their variants"
    )
    as_: Slug | None = Field(
        default=None, alias="as", description="name of its style, if not the variant's"
    )
    label: str | None = Field(default=None, description="instead of that of its style")
    measures: dict[Measure, str] | None = Field(
        default=None, description="several, each with its part of the label"
    )
    grid: Grid | None = Field(default=None, description="values of axes, a curve for each")
    where: Where | None = None
    low: Measure | None = Field(default=None, description="of the band, with high and band")
    high: Measure | None = None
    band: str | None = Field(default=None, description="what low and high are, in words")
    by: str | None = Field(default=None, description="axis with one curve a value")
    by_title: str | None = None


class PanelKeys(CurveKeys):
    """What a panel has; a figure may say it for all of its panels."""

    experiments: dict[Algorithm, str] | None = Field(
        default=None, description="of some algorithms, instead of `experiment`"
    )
    where: Where | None = Field(default=None, description="for all curves")
    grid: Grid | None = Field(default=None, description="values of axes, a panel for each")
    x_title: str | None = None
    y_title: str | None = None
    log_x: Flag | None = None
    log_y: Flag | None = None
    y_domain: tuple[Number, Number] | None = None
    goals: list[Number] | None = Field(
        default=None, description="the least x that reaches each of these for good"
    )
    curves: str | list[str | Curve] | Curve | None = Field(
        default=None, description="names of sets, algorithm.variant, or curves"
    )


class Panel(PanelKeys):
    """Curves, or a communication graph, or what agents hold or learn."""

    title: str = Field(default="", description="may contain {axis} of the grid")
    graph: Flag | None = None
    partition: Partition | None = None
    views: dict[str, Any] | None = Field(
        default=None, description="what observers learn; what the figure says of it is for all"
    )


class Figure(PanelKeys):
    """Panels, and what they have in common."""

    like: str | None = Field(
        default=None, description="a figure of this file, all of it but its words"
    )
    title: str
    caption: str
    note: str | None = Field(default=None, description="of the data, below the figure's title")
    columns: Whole | None = Field(default=None, ge=1, description="panels beside each other")
    panel: str | None = Field(
        default=None, description="what a panel is called; may contain {title} and {axis}"
    )
    graph: Flag | None = None
    views: dict[str, Any] | None = Field(
        default=None, description="of what observers learn what all panels have in common"
    )
    panels: list[Panel] | None = Field(default=None, min_length=1)


class Method(Strict):
    """One method of a table, with what the paper prints for it."""

    label: str
    of: Ref
    reading: Reading | None = None
    where: Where | None = None
    printed: list[tuple[Number, Number, Number]] | None = Field(
        default=None, description="(value of the rows' axis, mean, spread)"
    )


class Block(Strict):
    """Rows of a table that share an experiment."""

    label: str
    experiment: str
    methods: list[Method] = Field(min_length=1)


class Table(Strict):
    """Measurements beside printed ones."""

    title: str
    caption: str
    rows: str = Field(description="axis whose values are rows")
    row_title: str
    values: list[Number] | None = None
    measure: Measure
    beside: dict[str, Measure] | None = Field(default=None, description="further columns")
    printed_runs: Whole | None = Field(default=None, ge=1)
    blocks: list[Block] = Field(min_length=1)


class Other(Strict):
    """The series that another is compared with: what is not said is the first one's."""

    experiment: str | None = None
    of: Ref | None = None
    run: str | None = None
    measure: Measure | None = None
    where: Where | None = None
    last: Flag | None = None


class Series(Strict):
    """Measurements of a variant; of lists each."""

    experiment: str | Words | None = None
    of: Ref | Refs | None = None
    run: str | Words | None = Field(
        default=None, description="variant, where `of` names an algorithm"
    )
    measure: Measure | Annotated[list[Measure], Field(min_length=1)] | None = None
    where: Where | None = None
    last: Flag | None = None


Against = Ref | Other | Annotated[list[Ref | Other], Field(min_length=1)]


class Test(Series):
    """A statement about one series or two; lists and grids are products of such statements."""

    __test__ = False

    kind: Kind | None = None
    at: Number | Whole | None = Field(default=None, description="the value of x that is best")
    quantifier: Quantifier | None = Field(
        default=None, description="said of the points: of each, of all at once, of most, of some"
    )
    part: str | None = Field(
        default=None, description="of a compound claim: tests whose points are counted together"
    )
    x: str | None = None
    each: list[str] | None = None
    grid: Grid | None = None
    expected: Number | None = None
    goal: Number | Annotated[list[Number], Field(min_length=1)] | None = None
    tolerance: Number | None = Field(default=None, ge=0)
    at_least: Number | None = None
    at_most: Number | None = None
    series: Series | None = Field(default=None, description="its keys, on a line of their own")
    against: Against | None = None


class Statement(Strict):
    """Tests, and what they have in common."""

    test: Test | None = Field(default=None, description="what all tests have; alone, the only one")
    series: Series | None = Field(default=None, description="of all tests")
    against: Against | None = None
    tests: list[Test] | None = Field(default=None, min_length=1)


class ClaimVariant(Test):
    """What a variant of a claim changes of its tests."""

    claim: str | None = Field(
        default=None,
        description="the sentence that this variant tests, if it is not the sentence of the claim",
    )
    reading: Reading | None = None
    over: Slug | None = Field(
        default=None, description="a set of variants: one of this for each, `that_this`"
    )
    tests: list[Test] | None = Field(default=None, min_length=1)


class Claim(Statement):
    """A statement of a paper, in our words, and how it is put to the test in each variant."""

    claim: str
    place: str
    figure: str
    because: str = Field(description="where the tolerance comes from")
    headline: str | None = Field(
        default=None, description="the variant whose verdict counts; the first, or `resolved`"
    )
    untestable: str | None = Field(default=None, description="why no runs can test it")
    variants: str | dict[str, ClaimVariant | None] | None = Field(
        default=None, description="or the name of a set of them"
    )


class Defaults(Strict):
    """What experiments and panels have that say nothing else."""

    experiment: Experiment | None = None
    panel: PanelKeys | None = None


class File(Strict):
    """One file of ``config/papers``: a paper, or a part of one."""

    paper: PaperInfo | None = None
    parts: list[str] | None = Field(default=None, description="files of the folder `<key>/`")
    scales: list[Slug] | None = Field(default=None, description="of a study, besides smoke")
    titles: dict[str, str] = Field(
        default_factory=dict, description="of x and of measures, where a panel says no other"
    )
    defaults: Defaults = Defaults()
    axes: dict[Slug, Axis] = Field(default_factory=dict, description="grids by name")
    choices: dict[str, Choice] = Field(
        default_factory=dict, description="of several experiments, by what they are about"
    )
    variants: dict[Algorithm, dict[Slug, Variant]] = Field(
        default_factory=dict, description="of algorithms, by name"
    )
    curves: dict[Slug, list[Ref | Curve] | Curve] = Field(
        default_factory=dict, description="sets of curves, by name"
    )
    claim_variants: dict[Slug, dict[str, ClaimVariant]] = Field(
        default_factory=dict, description="sets of variants of claims, by name"
    )
    experiments: dict[Slug, Experiment] = Field(default_factory=dict)
    figures: dict[Name, Figure] = Field(default_factory=dict)
    tables: dict[Name, Table] = Field(default_factory=dict)
    claims: dict[Name, Claim] = Field(default_factory=dict)
