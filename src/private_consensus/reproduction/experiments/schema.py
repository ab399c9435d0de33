"""Define the keys and values of the configuration; unknown keys are errors.

A file of ``config/papers`` names its shared parts, and its experiments, figures and claims refer to
these names. The classes ``...Entry`` describe what a file may contain. :func:`.files.read_paper`
replaces each name by the part that it stands for. The result has the same keys. The classes
:class:`Experiment`, :class:`Figure`, :class:`Table` and :class:`.Claim` describe it: they refine
the entries by the keys that have to be present.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from private_consensus.common import yamls
from private_consensus.common.errors import Refused as ConfigurationError
from private_consensus.common.errors import require
from private_consensus.common.fields import (
    BatchSize,
    Entry,
    Flag,
    Grid,
    Interpretation,
    Measure,
    Name,
    Number,
    Open,
    Positive,
    Reference,
    References,
    Selection,
    Slug,
    Strict,
    Values,
    Whole,
    present,
    split_measure,
)
from private_consensus.common.secrets import redacted
from private_consensus.core import algorithms, problems
from private_consensus.core.networks import GRAPHS, MIXINGS

from ..claims import Claim
from ..claims.schema import ClaimEntry, TestedVariantEntry
from ..datasets import PREPARATIONS
from .citations import cited

M = TypeVar("M", bound=BaseModel)
TOPOLOGIES = (*GRAPHS, "single")
SMOKE = "smoke"
SCALES = ("paper", SMOKE)
"""Scales that always exist; a study may declare others. ``results/reference`` belongs to none of
them: only publishing writes there."""
MAX_ITERATIONS = 100_000


def one_of(names: Sequence[str] | Callable[[], Sequence[str]]) -> Callable[[str], str]:
    """Return a check that refuses all other names.

    Parameters
    ----------
    names : sequence of str or callable
        Allowed names. A callable is called by each check, because the modules that it imports may
        import this module.

    Returns
    -------
    callable
        Returns an allowed name, and raises ``ValueError`` for another.
    """

    def check(name: str) -> str:
        allowed = names() if callable(names) else names
        if name not in allowed:
            raise ValueError(f"expected one of {', '.join(allowed)}")
        return name

    return check


Algorithm = Annotated[Slug, AfterValidator(one_of(algorithms.names))]
PreparedName = Annotated[str, AfterValidator(one_of(tuple(PREPARATIONS)))]
Stream = Literal["data", "graph", "noise", "sampling"]
Statistic = Literal["mean", "median"]


class RecordsPower(Strict):
    """delta as a power of the number of all agents' records."""

    records_power: Number = Field(lt=0)


class BudgetConfig(Strict):
    epsilon: Number = Field(gt=0, description="total epsilon of a run; .inf for no privacy")
    delta: Number | RecordsPower = Field(description="in [0, 1); 0 means pure DP")

    @field_validator("delta")
    @classmethod
    def _probability(cls, delta):
        if not isinstance(delta, RecordsPower) and not 0 <= delta < 1:
            raise ValueError("expected a number in [0, 1)")
        return delta


class ProblemConfig(Open):
    name: Annotated[str, AfterValidator(one_of(problems.names()))]
    prepared: PreparedName | None = None


class NetworkConfig(Open):
    name: Annotated[str, AfterValidator(one_of(TOPOLOGIES))]
    agents: Positive
    weights: Annotated[str, AfterValidator(one_of(tuple(MIXINGS)))] = "laplacian"
    probability: Number | None = Field(default=None, gt=0, le=1)

    @field_validator("agents")
    @classmethod
    def _one_agent_or_several(cls, agents, info):
        single = info.data.get("name") == "single"
        if single != (agents == 1):
            raise ValueError("expected 1 for single" if single else "expected 2 or more")
        return agents


# --- Experiments ----------------------------------------------------------------------------------


class AxisEntry(Entry):
    """Grid of values, or changes of a named grid."""

    set: str | None = Field(
        default=None, description="dotted path of the value that the axis sets: budget.epsilon"
    )
    values: Values | None = Field(default=None, description="values of the grid")
    because: str = Field(
        default="", description="reason for these values, if the paper does not state them"
    )


class Axis(AxisEntry):
    """Grid of values of one parameter."""

    set: str
    values: Values

    @field_validator("values")
    @classmethod
    def _each_once(cls, values):
        if len(set(values)) < len(values):
            raise ValueError("expected each value once")
        return values


class UnspecifiedDetail(Entry):
    """Detail that a paper omits or contradicts, with its literal and its resolved form."""

    literal: str = Field(default="not given", description="text of the paper")
    resolved: str = Field(description="what this reproduction does")
    because: str = Field(description="reason for the resolution")


class TuningEntry(Entry):
    """Parameters selected on a grid of the same algorithm, in an experiment with separate runs.

    For each point of the axes that both experiments have, the grid point with the smallest mean
    error is selected. If the criterion is ``mean``, the measure is among the grid's ``averages``.
    """

    experiment: str | None = Field(default=None, description="experiment that runs the grid")
    variant: str | None = Field(default=None, description="variant of the algorithm on the grid")
    measure: Measure | None = Field(default=None, description="measure that is minimised")
    criterion: Literal["last", "mean"] | None = Field(
        default=None, description="measure at the last iteration, or its mean over all iterations"
    )
    axes: dict[str, str] | None = Field(
        default=None, description="axes of the grid, each with the path of the value that it sets"
    )


class Tuning(TuningEntry):
    """Complete selection of parameters on a grid."""

    experiment: str
    variant: str
    measure: Measure
    criterion: Literal["last", "mean"]
    axes: Annotated[dict[str, str], Field(min_length=1)]


class VariantEntry(Open):
    """Variant of an algorithm; keys that are not listed are parameters of the algorithm."""

    _each_key_has_a_value = field_validator("*", mode="before")(present)

    extends: Reference | None = Field(
        default=None, description="variant whose parameters this one changes"
    )
    interpretation: Interpretation | None = Field(
        default=None, description="default: resolved, or ablation if the variant extends another"
    )
    because: str | None = Field(default=None, description="reason for the variant")
    set: dict[str, Any] = Field(default={}, description="values outside the algorithm, by path")
    tuned: TuningEntry | None = Field(default=None, description="parameters selected on a grid")


class Variant(VariantEntry):
    """Complete variant: ``set`` has the parameters of the algorithm, too."""

    model_config = ConfigDict(extra="forbid")

    interpretation: Interpretation
    because: str
    tuned: Tuning | None = None


class Span(Entry):
    """Range of iterations with a step."""

    from_: Positive = Field(alias="from", description="first iteration")
    to: Positive = Field(description="last iteration")
    by: Positive = Field(default=1, description="step")

    @model_validator(mode="after")
    def _not_empty(self):
        if not 0 < len(range(self.from_, self.to + 1, self.by)) <= MAX_ITERATIONS:
            raise ValueError(f"expected 1 to {MAX_ITERATIONS} iterations")
        return self


class Scale(Entry):
    """Changes of an experiment at a smaller scale."""

    runs: Positive | None = Field(default=None, description="number of Monte-Carlo runs")
    runs_per_batch: BatchSize | None = Field(
        default=None, description="runs computed together; the last batch is filled up"
    )
    axes: dict[str, list[Number | Whole | str]] = Field(default={}, description="values of axes")
    set: dict[str, Any] = Field(default={}, description="values by dotted path")


class IntermediateMeasures(Entry):
    """Restriction of the measurements before the last iteration."""

    where: Selection = Field(
        default={},
        description="values of axes; other settings are measured at the last iteration only",
    )
    measures: Annotated[list[Measure], Field(min_length=1)] | None = Field(
        default=None, description="measures at intermediate iterations; default: all"
    )


class ExperimentEntry(Entry):
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
    horizon: Positive | None = Field(default=None, description="number of iterations")
    runs: Positive | None = Field(default=None, description="number of Monte-Carlo runs")
    runs_per_batch: BatchSize = Field(
        default=10, description="runs computed together; more if there are few settings"
    )
    axes: list[Slug] | dict[Slug, AxisEntry | None] = Field(
        default={}, description="names of grids, or grids by name"
    )
    algorithms: dict[Algorithm, list[Slug] | dict[Slug, VariantEntry | None]] | None = Field(
        default=None, description="variants of each algorithm"
    )
    measures: Annotated[list[Measure], Field(min_length=1)] | None = Field(
        default=None, description="recorded measures"
    )
    iterations: list[Whole | Span] | Literal["all"] = Field(
        default=[], description="recorded iterations in addition to the last"
    )
    intermediate_measures: IntermediateMeasures | None = Field(
        default=None, description="restriction of the measurements before the last iteration"
    )
    averages: list[Measure] = Field(
        default=[], description="measures recorded as their mean over all iterations"
    )
    divergence: Literal["raise", "record"] = Field(
        default="raise", description="treatment of runs whose values become infinite"
    )
    groups: dict[Stream, str | dict[str, str] | None] = Field(
        default={},
        description="names of random streams that experiments share, for all algorithms or each",
    )
    unspecified_details: list[str] | dict[str, UnspecifiedDetail | None] = Field(
        default={}, description="details that the paper omits, by topic"
    )
    unaccounted_data_use: list[str] = Field(
        default=[], description="choices made with private outcomes and outside the budget"
    )
    scales: dict[str, Scale] = Field(default={}, description="smaller scales by name")


class Experiment(ExperimentEntry):
    """Complete experiment."""

    title: str
    location: str
    problem: ProblemConfig
    network: NetworkConfig
    budget: BudgetConfig
    horizon: Positive
    runs: Positive
    axes: dict[Slug, Axis]
    algorithms: dict[Algorithm, dict[Slug, Variant]]
    measures: Annotated[list[Measure], Field(min_length=1)]
    iterations: list[Whole] | Literal["all"] = Field(default=[])
    groups: dict[Stream, str | dict[str, str]] = Field(default={})
    unspecified_details: dict[str, UnspecifiedDetail] = Field(default={})


# --- Figures --------------------------------------------------------------------------------------


class CurveKeys(Entry):
    """Keys of a curve, which a panel or a figure may set for all of its curves."""

    experiment: str = Field(default="", description="experiment with the measurements")
    variant: str | None = Field(
        default=None, description="variant, if `method` names an algorithm only"
    )
    measure: Measure | None = Field(default=None, description="plotted measure")
    interpretation: Interpretation | None = Field(
        default=None, description="replaces the interpretation of the variant"
    )
    last_iteration_only: Flag = Field(
        default=False, description="true: use the last iteration only"
    )
    interval: Literal["standard error", "standard deviation", "range"] = Field(
        default="standard error", description="band around the curve"
    )


class MeasureParts(Entry):
    """Changes of a measure."""

    quantity: str | None = Field(default=None, description="replaces the quantity of the measure")
    metric: str | None = Field(default=None, description="replaces the metric of the measure")


class Curve(CurveKeys):
    """Complete curve: a variant of an algorithm, its measure, and the displayed name."""

    method: Slug = Field(description="algorithm")
    variant: str
    measure: Measure
    interpretation: Interpretation
    style: Slug
    label: str = Field(default="", description="replaces the label of the style")
    where: Selection = Field(default={}, description="values of axes to plot")
    x: str = Field(default="", description="axis or measure on the horizontal axis")
    statistic: Statistic | None = Field(
        default=None, description="mean with standard error, or median with quartiles"
    )
    low: Measure | None = Field(default=None, description="measure at the lower end of the band")
    high: Measure | None = Field(default=None, description="measure at the upper end of the band")
    band: str = Field(default="", description="meaning of the band, in words")
    by: str | None = Field(default=None, description="axis with one curve per value")
    by_title: str = Field(default="", description="title of that axis in the legend")


class CurveEntry(Curve, MeasureParts):
    """Curve, or the product of several variants, measures and values of axes."""

    method: (
        Reference | References | Annotated[dict[Reference, str | list[Slug]], Field(min_length=1)]
    ) = Field(
        description="algorithm.variant; several; each with its part of the label; or algorithms "
        "with lists of variants"
    )
    variant: str | None = Field(
        default=None, description="variant, if `method` names an algorithm only"
    )
    measure: Measure | None = Field(default=None, description="plotted measure")
    interpretation: Interpretation | None = Field(
        default=None, description="replaces the interpretation of the variant"
    )
    style: Slug | None = Field(
        default=None, description="name of the style, if it is not the name of the variant"
    )
    measures: dict[str, str] = Field(
        default={}, description="several measures, each with its part of the label"
    )
    grid: Grid = Field(default={}, description="values of axes, one curve per point")

    @field_validator("measures")
    @classmethod
    def _of_measures(cls, measures):
        return {measure: label for measure, label in measures.items() if split_measure(measure)}


class Partition(Strict):
    """A partition of prepared data to agents."""

    prepared: PreparedName
    kind: Literal["iid", "dirichlet", "unequal"]
    agents: Whole = Field(ge=2)
    records: Positive = Field(description="mean number of records per agent")
    concentration: Number | None = Field(
        default=None, gt=0, description="concentration of the labels (dirichlet) or sizes (unequal)"
    )

    @model_validator(mode="after")
    def _concentrated_or_not(self):
        if (self.kind == "iid") != (self.concentration is None):
            raise ValueError("expected a concentration for dirichlet and unequal, and only there")
        return self


class AlgorithmConfig(Open):
    name: Annotated[str, AfterValidator(one_of(algorithms.names))]


class ReducedViews(Strict):
    """Replacements of parts of views at a smaller scale."""

    network: NetworkConfig | None = None
    horizon: Whole | None = Field(default=None, ge=1)
    rounds: list[Whole] | None = None


class Views(Strict):
    """Knowledge of observers about agents, at noise calibrated for the eavesdropper."""

    show: Literal["graph", "map", "distance", "rounds", "coalitions"]
    problem: ProblemConfig
    network: NetworkConfig
    algorithm: AlgorithmConfig
    budget: BudgetConfig
    horizon: Whole = Field(ge=1, description="rounds of messages")
    observer: Literal["agent", "secure sums"] = Field(
        default="agent", description="graph, map and distance: messages that an agent receives"
    )
    watcher: Whole = Field(
        default=1, ge=1, description="graph: observing agent, from 1; coalitions: target agent"
    )
    rounds: list[Whole] = Field(
        default_factory=list, description="rounds: the rounds that are shown"
    )
    scales: dict[str, ReducedViews] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _within(self):
        if self.watcher > self.network.agents:
            raise ValueError(f"watcher: expected 1 to {self.network.agents}")
        if (self.show == "rounds") != bool(self.rounds):
            raise ValueError("expected rounds for show: rounds, and only there")
        if not all(1 <= t <= self.horizon for t in self.rounds):
            raise ValueError(f"rounds: expected 1 to {self.horizon}, the horizon")
        return self

    @model_validator(mode="after")
    def _within_at_each_scale(self):
        for scale in self.scales:
            self.at(scale)
        return self

    def at(self, scale: str) -> Views:
        """Return the views at a scale, without further scales."""
        changed = self.scales.get(scale, ReducedViews()).model_dump(exclude_none=True)
        return Views(**{**self.model_dump(exclude={"scales"}), **changed})

    def asked(self) -> dict[str, Any]:
        """Return the request as plain JSON, without parameters that are None."""
        request = self.model_dump(mode="json", exclude={"scales"})
        for section in ("problem", "network", "algorithm"):
            request[section] = {
                k: value for k, value in request[section].items() if value is not None
            }
        return request


class PanelFields(Entry):
    """Axes and curves of a panel."""

    experiment: str = Field(default="", description="experiment with the measurements")
    where: Selection = Field(default={}, description="values of axes for all curves")
    x: str = Field(
        default="", description="an axis, t, a column of the privacy table, or a measure"
    )
    x_title: str = Field(default="", description="title of the horizontal axis")
    y_title: str = Field(default="", description="title of the vertical axis")
    log_x: Flag = Field(default=True, description="true: logarithmic horizontal axis")
    log_y: Flag = Field(default=True, description="true: logarithmic vertical axis")
    y_domain: tuple[Number, Number] | None = Field(
        default=None, description="range of the vertical axis"
    )
    statistic: Statistic = Field(
        default="mean", description="mean with standard error, or median with quartiles"
    )
    goals: list[Number] = Field(
        default=[],
        description="values of the measure; the figure shows the smallest x from which the curve "
        "stays at or below each",
    )


class Panel(PanelFields):
    """Complete panel: curves, a communication graph, a partition, or views of observers."""

    title: str
    graph: Flag = False
    partition: Partition | None = None
    views: Views | None = None
    curves: list[Curve] = Field(default=[])

    @model_validator(mode="after")
    def _one_of_four(self):
        without_experiment = (self.partition is not None) + (self.views is not None)
        drawn = self.graph + without_experiment
        if drawn > 1 or bool(drawn) == bool(self.curves) or bool(drawn) == bool(self.x):
            kinds = "graph: true, or partition, or views"
            raise ValueError(f"expected either x and at least one curve, or {kinds}")
        if bool(self.experiment) == bool(without_experiment):
            raise ValueError("expected an experiment for curves and graphs, and none for others")
        return self


class PanelKeys(PanelFields, CurveKeys, MeasureParts):
    """Keys of a panel, which a figure may set for all of its panels."""

    experiments: dict[Algorithm, str] = Field(
        default={}, description="experiments of single algorithms, instead of `experiment`"
    )
    grid: Grid = Field(default={}, description="values of axes, one panel per point")
    curves: str | list[str | CurveEntry] | CurveEntry = Field(
        default=[], description="names of sets, algorithm.variant, or curves"
    )


class PanelEntry(PanelKeys):
    """Panel with curves, a communication graph, a partition, or views of observers."""

    title: str = Field(default="", description="may contain {axis} of the grid")
    graph: Flag = Field(default=False, description="true: draw the communication graph")
    partition: Partition | None = Field(
        default=None, description="distribution of the records to the agents"
    )
    views: dict[str, Any] = Field(
        default={}, description="privacy loss to observers; merged with that of the figure"
    )


class FigureFields(Entry):
    """Description of a figure."""

    title: str = Field(description="quantity of which method against what")
    caption: str = Field(description="complete description that can be read without the text")
    columns: Positive | None = Field(default=None, description="panels per row")
    note: str = Field(default="", description="remark on the data, below the title")


class Figure(FigureFields):
    """Complete figure."""

    panels: Annotated[list[Panel], Field(min_length=1)]
    added: Flag = Field(default=False, description="true: not a figure of the paper")

    @model_validator(mode="after")
    def _titles_differ(self):
        titles = [panel.title for panel in self.panels]
        if repeated := sorted({title for title in titles if titles.count(title) > 1}):
            raise ValueError(f"expected another title for each panel, found twice: {repeated}")
        return self


class FigureEntry(FigureFields, PanelKeys):
    """Figure: panels and their common keys."""

    extends: str | None = Field(
        default=None,
        description="figure of this file whose keys are inherited, except title, caption and note",
    )
    panel_title: str = Field(
        default="{title}", description="title of each panel; may contain {title} and {axis}"
    )
    graph: Flag = Field(default=False, description="true: draw the communication graph")
    views: dict[str, Any] = Field(
        default={}, description="privacy loss to observers, common keys of all panels"
    )
    panels: Annotated[list[PanelEntry], Field(min_length=1)] | None = Field(
        default=None, description="list of panels"
    )


# --- Tables ---------------------------------------------------------------------------------------


class MethodEntry(Entry):
    """Method of a table, with the published values."""

    label: str = Field(description="name in the table")
    method: Reference = Field(description="algorithm.variant")
    variant: str | None = Field(
        default=None, description="variant, if `method` names an algorithm only"
    )
    interpretation: Interpretation | None = Field(
        default=None, description="replaces the interpretation of the variant"
    )
    where: Selection = Field(default={}, description="values of axes")
    published: list[tuple[Number, Number, Number]] = Field(
        default=[], description="value of the rows' axis, mean and standard deviation"
    )


class MethodRows(MethodEntry):
    """Complete method of a table."""

    method: Slug
    variant: str
    interpretation: Interpretation


class BlockEntry(Entry):
    """Rows of a table that share an experiment."""

    label: str = Field(description="title of the block")
    experiment: str = Field(description="experiment with the measurements")
    methods: Annotated[list[MethodEntry], Field(min_length=1)] = Field(
        description="methods of the block"
    )


class Block(BlockEntry):
    """Complete rows of a table that share an experiment."""

    methods: Annotated[list[MethodRows], Field(min_length=1)]


class TableEntry(Entry):
    """Table of measurements next to the published values."""

    title: str = Field(description="title of the table")
    caption: str = Field(description="complete description that can be read without the text")
    rows: str = Field(description="axis with one row per value")
    row_title: str = Field(description="title of that axis")
    values: list[Number] = Field(default=[], description="values of that axis; default: all")
    measure: Measure = Field(description="tabulated measure")
    extra_columns: dict[str, Measure] = Field(
        default={}, description="measures of further columns, by title"
    )
    published_runs: Positive = Field(
        default=1, description="number of runs behind the published values"
    )
    blocks: Annotated[list[BlockEntry], Field(min_length=1)] = Field(description="blocks of rows")


class Table(TableEntry):
    """Complete table."""

    blocks: Annotated[list[Block], Field(min_length=1)]
    added: Flag = Field(default=False, description="true: not a table of the paper")


class PaperInfo(Strict):
    key: Slug
    number: str = Field(description="empty for figures that belong to no paper")
    title: str
    authors: list[str]
    where: str
    summary: str = ""
    short: str = Field(default="", description="name in two to five words")

    @property
    def citation(self) -> str:
        """Authors and year, such as "Wang et al. 2022"; without authors the title."""
        return cited(self.model_dump())


# --- Files ----------------------------------------------------------------------------------------


class Defaults(Entry):
    """Default keys of all experiments and panels of a file."""

    experiment: ExperimentEntry | None = Field(default=None, description="defaults of experiments")
    panel: PanelKeys | None = Field(default=None, description="defaults of panels")


class File(Entry):
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
    curves: dict[Slug, list[Reference | CurveEntry] | CurveEntry] = Field(
        default_factory=dict, description="sets of curves, by name"
    )
    claim_variants: dict[Slug, dict[str, TestedVariantEntry]] = Field(
        default_factory=dict, description="sets of claim variants, by name"
    )
    experiments: dict[Slug, ExperimentEntry] = Field(default_factory=dict, description="by name")
    figures: dict[Name, FigureEntry] = Field(default_factory=dict, description="by name")
    tables: dict[Name, TableEntry] = Field(default_factory=dict, description="by name")
    claims: dict[Name, ClaimEntry] = Field(default_factory=dict, description="by name")


class Paper(Strict):
    """Complete file of ``config/papers``, including its parts."""

    paper: PaperInfo
    scales: list[Slug] = Field(
        default_factory=list, description="scales of a study, which all of its experiments define"
    )
    experiments: dict[Slug, Experiment]
    figures: dict[Name, Figure]
    tables: dict[Name, Table] = Field(default_factory=dict)
    claims: dict[Name, Claim]


class Style(Strict):
    label: str
    colour: str = Field(pattern=r"^#[0-9A-Fa-f]{6}$")
    dash: list[Whole] = Field(default_factory=list)


class DataConfig(Strict):
    source: Literal["auto", "official", "surrogate"] = "auto"
    mirror: str | None = Field(default=None, description="folder or URL")
    cache: str = Field(default=".cache/private-consensus", min_length=1)
    connection_timeout_s: Number = Field(
        default=5.0,
        gt=0,
        le=86_400,
        description="seconds to wait for a host to connect, and for its next bytes",
    )
    surrogate_rows: Whole | None = Field(default=None, ge=1000, le=10_000_000)


class Config(Strict):
    """``config/config.yaml``; ``config/smoke.yaml`` changes the scale."""

    scale: Slug
    seed: Whole = Field(ge=0)
    papers: list[Slug] = Field(min_length=1)
    runs: Positive | None = Field(
        default=None,
        description="number of runs of all experiments; default: that of each experiment",
    )
    data: DataConfig = DataConfig()


def validate(model: type[M], content: Mapping[str, Any], *, where: str = "") -> M:
    """Build a model from a configuration, or raise an error with one line per invalid key.

    Parameters
    ----------
    model : type
        Class of the model.
    content : mapping
        Contents of the configuration.
    where : str, optional
        Key with which each error line starts.

    Returns
    -------
    BaseModel
        Instance of ``model``.

    Raises
    ------
    ConfigurationError
        If the contents do not match the model.
    """
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise ConfigurationError([line_of(where, e) for e in error.errors()]) from None


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML file with keys and values; an empty file gives an empty mapping."""
    content = yamls.read(path) or {}
    require(isinstance(content, dict), path.name, _short(content), "keys and values")
    return content


def line_of(where: str, error: Mapping[str, Any]) -> str:
    """Format a validation error of pydantic as one line.

    Parameters
    ----------
    where : str
        Key with which the line starts.
    error : mapping
        Entry of ``ValidationError.errors()``.

    Returns
    -------
    str
        Key, message and invalid value.
    """
    key = ".".join(str(step) for step in (where, *error["loc"]) if step != "")
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "missing":
        return f"{key}: missing, expected a value"
    if error["type"] == "extra_forbidden":
        return f"{key}: unknown key (found {_short(error['input'])})"
    return f"{key}: {message} (found {_short(error['input'])})"


def _short(value: Any) -> str:
    text = redacted(repr(value))
    return text if len(text) <= 60 else text[:57] + "..."


def resolve_delta(delta: Any, *, agents: int, records: int) -> float:
    """Compute the delta of a budget; ``{"records_power": k}`` means ``(agents * records)**k``.

    Parameters
    ----------
    delta : float or mapping
        Number in [0, 1), or a mapping with the negative exponent ``records_power``.
    agents : int
        Number of agents.
    records : int
        Number of records per agent.

    Returns
    -------
    float
        The resolved delta.

    Raises
    ------
    InvalidInput
        If a value is not a number, or the exponent is not negative.
    """
    if not isinstance(delta, Mapping):
        require(type(delta) in (int, float), "budget.delta", delta, "a number in [0, 1)")
        return float(delta)
    power = delta.get("records_power")
    for key, value in {"network.agents": agents, "problem.records": records}.items():
        require(type(value) is int and value >= 1, key, value, "a whole number >= 1")
    below = type(power) in (int, float) and power < 0
    require(below, "budget.delta.records_power", power, "a number below 0")
    return math.pow(agents * records, power)
