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
from private_consensus.common.errors import arguments, require
from private_consensus.common.fields import (
    BatchSize,
    FileEntry,
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
    epsilon: Number = Field(gt=0)
    """Total epsilon of a run; .inf for no privacy."""
    delta: Number | RecordsPower
    """In [0, 1); 0 means pure DP."""

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


class AxisEntry(FileEntry):
    """Grid of values, or changes of a named grid."""

    set: str | None = None
    """Dotted path of the value that the axis sets: budget.epsilon."""
    values: Values | None = None
    """Values of the grid."""
    because: str = ""
    """Reason for these values, if the paper does not state them."""


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


class UnspecifiedDetail(FileEntry):
    """Detail that a paper omits or contradicts, with its literal and its resolved form."""

    literal: str = "not given"
    """Text of the paper."""
    resolved: str
    """What this reproduction does."""
    because: str
    """Reason for the resolution."""


class TuningEntry(FileEntry):
    """Parameters selected on a grid of the same algorithm, in an experiment with separate runs.

    For each point of the axes that both experiments have, the grid point with the smallest mean
    error is selected. If the criterion is ``mean``, the measure is among the grid's ``averages``.
    """

    experiment: str | None = None
    """Experiment that runs the grid."""
    variant: str | None = None
    """Variant of the algorithm on the grid."""
    measure: Measure | None = None
    """Measure that is minimised."""
    criterion: Literal["last", "mean"] | None = None
    """Measure at the last iteration, or its mean over all iterations."""
    axes: dict[str, str] | None = None
    """Axes of the grid, each with the path of the value that it sets."""


class TunedParameters(TuningEntry):
    """Complete selection of parameters on a grid."""

    experiment: str
    variant: str
    measure: Measure
    criterion: Literal["last", "mean"]
    axes: Annotated[dict[str, str], Field(min_length=1)]


class VariantEntry(Open):
    """Variant of an algorithm; keys that are not listed are parameters of the algorithm."""

    _each_key_has_a_value = field_validator("*", mode="before")(present)

    extends: Reference | None = None
    """Variant whose parameters this one changes."""
    interpretation: Interpretation | None = None
    """Default: resolved, or ablation if the variant extends another."""
    because: str | None = None
    """Reason for the variant."""
    set: dict[str, Any] = {}
    """Values outside the algorithm, by path."""
    tuned: TuningEntry | None = None
    """Parameters selected on a grid."""


class Variant(VariantEntry):
    """Complete variant: ``set`` has the parameters of the algorithm, too."""

    model_config = ConfigDict(extra="forbid")

    interpretation: Interpretation
    because: str
    tuned: TunedParameters | None = None


class Span(FileEntry):
    """Range of iterations with a step."""

    from_: Positive = Field(alias="from")
    """First iteration."""
    to: Positive
    """Last iteration."""
    by: Positive = 1
    """Step."""

    @model_validator(mode="after")
    def _not_empty(self):
        if not 0 <= (self.to - self.from_) // self.by < MAX_ITERATIONS:
            raise ValueError(f"expected 1 to {MAX_ITERATIONS} iterations")
        return self


class Scale(FileEntry):
    """Changes of an experiment at a smaller scale."""

    runs: Positive | None = None
    """Number of Monte-Carlo runs."""
    runs_per_batch: BatchSize | None = None
    """Runs computed together; the last batch is filled up."""
    axes: dict[str, list[Number | Whole | str]] = {}
    """Values of axes."""
    set: dict[str, Any] = {}
    """Values by dotted path."""


class IntermediateMeasures(FileEntry):
    """Restriction of the measurements before the last iteration."""

    where: Selection = {}
    """Values of axes; other settings are measured at the last iteration only."""
    measures: Annotated[list[Measure], Field(min_length=1)] | None = None
    """Measures at intermediate iterations; default: all."""


class ExperimentEntry(FileEntry):
    """Experiment: its keys override the defaults of the file or the extended experiment."""

    extends: str | None = None
    """Experiment of this file whose keys are inherited, except title, location and
    unspecified_details."""
    title: str | None = None
    """What the experiment computes."""
    location: str | None = None
    """Location in the paper."""
    problem: dict[str, Any] | None = None
    """Name and parameters."""
    network: dict[str, Any] | None = None
    """Name and parameters."""
    budget: dict[str, Any] | None = None
    """Epsilon and delta."""
    horizon: Positive | None = None
    """Number of iterations."""
    runs: Positive | None = None
    """Number of Monte-Carlo runs."""
    runs_per_batch: BatchSize = 10
    """Runs computed together; more if there are few settings."""
    axes: list[Slug] | dict[Slug, AxisEntry | None] = {}
    """Names of grids, or grids by name."""
    algorithms: dict[Algorithm, list[Slug] | dict[Slug, VariantEntry | None]] | None = None
    """Variants of each algorithm."""
    measures: Annotated[list[Measure], Field(min_length=1)] | None = None
    """Recorded measures."""
    iterations: list[Whole | Span] | Literal["all"] = []
    """Recorded iterations in addition to the last."""
    intermediate_measures: IntermediateMeasures | None = None
    """Restriction of the measurements before the last iteration."""
    averages: list[Measure] = []
    """Measures recorded as their mean over all iterations."""
    divergence: Literal["raise", "record"] = "raise"
    """Treatment of runs whose values become infinite."""
    groups: dict[Stream, str | dict[str, str] | None] = {}
    """Names of random streams that experiments share, for all algorithms or each."""
    unspecified_details: list[str] | dict[str, UnspecifiedDetail | None] = {}
    """Details that the paper omits, by topic."""
    unaccounted_data_use: list[str] = []
    """Choices made with private outcomes and outside the budget."""
    scales: dict[str, Scale] = {}
    """Smaller scales by name."""


class Experiment(ExperimentEntry):
    """Experiment whose names are resolved, with the keys that a run needs."""

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
    iterations: list[Whole] | Literal["all"] = []
    groups: dict[Stream, str | dict[str, str]] = {}
    unspecified_details: dict[str, UnspecifiedDetail] = {}


# --- Figures --------------------------------------------------------------------------------------


class CurveKeys(FileEntry):
    """Keys of a curve, which a panel or a figure may set for all of its curves."""

    experiment: str = ""
    """Experiment with the measurements."""
    variant: str | None = None
    """Variant, if `method` names an algorithm only."""
    measure: Measure | None = None
    """Plotted measure."""
    interpretation: Interpretation | None = None
    """Replaces the interpretation of the variant."""
    last_iteration_only: Flag = False
    """True: use the last iteration only."""
    interval: Literal["standard error", "standard deviation", "range"] = "standard error"
    """Band around the curve."""


class MeasureParts(FileEntry):
    """Changes of a measure."""

    quantity: str | None = None
    """Replaces the quantity of the measure."""
    metric: str | None = None
    """Replaces the metric of the measure."""


class Curve(CurveKeys):
    """Complete curve: a variant of an algorithm, its measure, and the displayed name."""

    method: Slug
    """Algorithm."""
    variant: str
    measure: Measure
    interpretation: Interpretation
    style: Slug
    label: str = ""
    """Replaces the label of the style."""
    where: Selection = {}
    """Values of axes to plot."""
    x: str = ""
    """Axis or measure on the horizontal axis."""
    statistic: Statistic | None = None
    """Mean with standard error, or median with quartiles."""
    low: Measure | None = None
    """Measure at the lower end of the band."""
    high: Measure | None = None
    """Measure at the upper end of the band."""
    band: str = ""
    """Meaning of the band, in words."""
    by: str | None = None
    """Axis with one curve per value."""
    by_title: str = ""
    """Title of that axis in the legend."""


class CurveEntry(Curve, MeasureParts):
    """Curve, or the product of several variants, measures and values of axes."""

    method: (
        Reference | References | Annotated[dict[Reference, str | list[Slug]], Field(min_length=1)]
    )
    """An algorithm.variant, a list of them, a mapping from them to their parts of the label, or a
    mapping from algorithms to lists of variants."""
    variant: str | None = None
    """Variant, if `method` names an algorithm only."""
    measure: Measure | None = None
    """Plotted measure."""
    interpretation: Interpretation | None = None
    """Replaces the interpretation of the variant."""
    style: Slug | None = None
    """Name of the style, if it is not the name of the variant."""
    measures: dict[str, str] = {}
    """Several measures, each with its part of the label."""
    grid: Grid = {}
    """Values of axes, one curve per point."""

    @field_validator("measures")
    @classmethod
    def _of_measures(cls, measures):
        return {measure: label for measure, label in measures.items() if split_measure(measure)}


class Partition(Strict):
    """A partition of prepared data to agents."""

    prepared: PreparedName
    kind: Literal["iid", "dirichlet", "unequal"]
    agents: Whole = Field(ge=2)
    records: Positive
    """Mean number of records per agent."""
    concentration: Number | None = Field(default=None, gt=0)
    """Concentration of the labels (dirichlet) or sizes (unequal)."""

    @model_validator(mode="after")
    def _concentrated_or_not(self):
        if (self.kind == "iid") != (self.concentration is None):
            raise ValueError(
                "expected a concentration for dirichlet and unequal, none for other kinds"
            )
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
    horizon: Whole = Field(ge=1)
    """Rounds of messages."""
    observer: Literal["agent", "secure sums"] = "agent"
    """Kind of messages that the observing agent receives (show: graph, map or distance)."""
    watcher: Whole = Field(default=1, ge=1)
    """Observing agent (show: graph) or target agent (show: coalitions), counted from 1."""
    rounds: list[Whole] = []
    """Plotted rounds (show: rounds)."""
    scales: dict[str, ReducedViews] = {}

    @model_validator(mode="after")
    def _within(self):
        if self.watcher > self.network.agents:
            raise ValueError(f"watcher: expected 1 to {self.network.agents}")
        if (self.show == "rounds") != bool(self.rounds):
            raise ValueError("expected rounds for show: rounds, none for other values of show")
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

    def request(self) -> dict[str, Any]:
        """Return the request as plain JSON, without parameters that are None."""
        request = self.model_dump(mode="json", exclude={"scales"})
        for section in ("problem", "network", "algorithm"):
            request[section] = {
                k: value for k, value in request[section].items() if value is not None
            }
        return request


class PanelFields(FileEntry):
    """Axes and curves of a panel."""

    experiment: str = ""
    """Experiment with the measurements."""
    where: Selection = {}
    """Values of axes for all curves."""
    x: str = ""
    """An axis, t, a column of the privacy table, or a measure."""
    x_title: str = ""
    """Title of the horizontal axis."""
    y_title: str = ""
    """Title of the vertical axis."""
    log_x: Flag = True
    """True: logarithmic horizontal axis."""
    log_y: Flag = True
    """True: logarithmic vertical axis."""
    y_domain: tuple[Number, Number] | None = None
    """Range of the vertical axis."""
    statistic: Statistic = "mean"
    """Mean with standard error, or median with quartiles."""
    goals: list[Number] = []
    """Values of the measure; the figure shows the smallest x from which the curve stays at or
    below each."""


class FigurePanel(PanelFields):
    """Complete panel: curves, a communication graph, a partition, or views of observers."""

    title: str
    graph: Flag = False
    partition: Partition | None = None
    views: Views | None = None
    curves: list[Curve] = []

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

    experiments: dict[Algorithm, str] = {}
    """Experiments of single algorithms, instead of `experiment`."""
    grid: Grid = {}
    """Values of axes, one panel per point."""
    curves: str | list[str | CurveEntry] | CurveEntry = []
    """Names of sets, algorithm.variant, or curves."""


class PanelEntry(PanelKeys):
    """Panel with curves, a communication graph, a partition, or views of observers."""

    title: str = ""
    """May contain {axis} of the grid."""
    graph: Flag = False
    """True: draw the communication graph."""
    partition: Partition | None = None
    """Distribution of the records to the agents."""
    views: dict[str, Any] = {}
    """Privacy loss to observers; merged with that of the figure."""


class FigureFields(FileEntry):
    """Description of a figure."""

    title: str
    """Quantity of which method against what."""
    caption: str
    """Complete description that can be read without the text."""
    columns: Positive | None = None
    """Panels per row."""
    note: str = ""
    """Remark on the data, below the title."""


class Figure(FigureFields):
    """Figure whose panels and curves are resolved."""

    panels: Annotated[list[FigurePanel], Field(min_length=1)]
    added: Flag = False
    """True: not a figure of the paper."""

    @model_validator(mode="after")
    def _titles_differ(self):
        titles = [panel.title for panel in self.panels]
        if repeated := sorted({title for title in titles if titles.count(title) > 1}):
            raise ValueError(f"expected a different title for each panel; repeated: {repeated}")
        return self


class FigureEntry(FigureFields, PanelKeys):
    """Figure: panels and their common keys."""

    extends: str | None = None
    """Figure of this file whose keys are inherited, except title, caption and note."""
    panel_title: str = "{title}"
    """Title of each panel; may contain {title} and {axis}."""
    graph: Flag = False
    """True: draw the communication graph."""
    views: dict[str, Any] = {}
    """Privacy loss to observers, common keys of all panels."""
    panels: Annotated[list[PanelEntry], Field(min_length=1)] | None = None
    """List of panels."""


# --- Tables ---------------------------------------------------------------------------------------


class MethodEntry(FileEntry):
    """Method of a table, with the published values."""

    label: str
    """Name in the table."""
    method: Reference
    """algorithm.variant."""
    variant: str | None = None
    """Variant, if `method` names an algorithm only."""
    interpretation: Interpretation | None = None
    """Replaces the interpretation of the variant."""
    where: Selection = {}
    """Values of axes."""
    published: list[tuple[Number, Number, Number]] = []
    """Value of the rows' axis, mean and standard deviation."""


class MethodRows(MethodEntry):
    """Complete method of a table."""

    method: Slug
    variant: str
    interpretation: Interpretation


class BlockEntry(FileEntry):
    """Rows of a table that share an experiment."""

    label: str
    """Title of the block."""
    experiment: str
    """Experiment with the measurements."""
    methods: Annotated[list[MethodEntry], Field(min_length=1)]
    """Methods of the block."""


class Block(BlockEntry):
    """Complete rows of a table that share an experiment."""

    methods: Annotated[list[MethodRows], Field(min_length=1)]


class TableEntry(FileEntry):
    """Table of measurements next to the published values."""

    title: str
    """Title of the table."""
    caption: str
    """Complete description that can be read without the text."""
    rows: str
    """Axis with one row per value."""
    row_title: str
    """Title of that axis."""
    values: list[Number] = []
    """Values of that axis; default: all."""
    measure: Measure
    """Tabulated measure."""
    extra_columns: dict[str, Measure] = {}
    """Measures of further columns, by title."""
    published_runs: Positive = 1
    """Number of runs behind the published values."""
    blocks: Annotated[list[BlockEntry], Field(min_length=1)]
    """Blocks of rows."""


class Table(TableEntry):
    """Table whose methods are resolved."""

    blocks: Annotated[list[Block], Field(min_length=1)]
    added: Flag = False
    """True: not a table of the paper."""


class PaperInfo(Strict):
    key: Slug
    number: str
    """Empty for figures that belong to no paper."""
    title: str
    authors: list[str]
    where: str
    summary: str = ""
    short: str = ""
    """Name in two to five words."""

    @property
    def citation(self) -> str:
        """Authors and year, such as "Wang et al. 2022"; without authors the title."""
        return cited(self.model_dump())


# --- Files ----------------------------------------------------------------------------------------


class Defaults(FileEntry):
    """Default keys of all experiments and panels of a file."""

    experiment: ExperimentEntry | None = None
    """Defaults of experiments."""
    panel: PanelKeys | None = None
    """Defaults of panels."""


class File(FileEntry):
    """File of ``config/papers``: a paper, or a part of one."""

    paper: PaperInfo | None = None
    """Title, authors and source."""
    parts: list[str] | None = None
    """Files of the folder `<key>/`."""
    scales: list[Slug] | None = None
    """Scales of a study in addition to smoke."""
    titles: dict[str, str] = {}
    """Default titles of x axes and measures."""
    defaults: Defaults = Defaults()
    """Defaults of experiments and panels."""
    axes: dict[Slug, AxisEntry] = {}
    """Grids by name."""
    unspecified_details: dict[str, UnspecifiedDetail] = {}
    """Unspecified details of several experiments, by topic."""
    variants: dict[Algorithm, dict[Slug, VariantEntry]] = {}
    """Variants of algorithms, by name."""
    curves: dict[Slug, list[Reference | CurveEntry] | CurveEntry] = {}
    """Sets of curves, by name."""
    claim_variants: dict[Slug, dict[str, TestedVariantEntry]] = {}
    """Sets of claim variants, by name."""
    experiments: dict[Slug, ExperimentEntry] = {}
    """Experiments by name."""
    figures: dict[Name, FigureEntry] = {}
    """Figures by name."""
    tables: dict[Name, TableEntry] = {}
    """Tables by name."""
    claims: dict[Name, ClaimEntry] = {}
    """Claims by name."""


class Paper(Strict):
    """Complete file of ``config/papers``, including its parts."""

    paper: PaperInfo
    scales: list[Slug] = []
    """Scales of a study, which all of its experiments define."""
    experiments: dict[Slug, Experiment]
    figures: dict[Name, Figure]
    tables: dict[Name, Table] = {}
    claims: dict[Name, Claim]


class Style(Strict):
    label: str
    colour: str = Field(pattern=r"^#[0-9A-Fa-f]{6}$")
    dash: list[Whole] = []


class DataConfig(Strict):
    source: Literal["auto", "official", "surrogate"] = "auto"
    mirror: str | None = None
    """Folder or URL with the original data files."""
    cache: str = Field(default=".cache/private-consensus", min_length=1)
    connection_timeout_s: Number = Field(default=5.0, gt=0, le=86400)
    """Seconds to wait for a host to connect, and for its next bytes."""
    surrogate_rows: Whole | None = Field(default=None, ge=1000, le=10_000_000)


class Config(Strict):
    """``config/config.yaml``; ``config/smoke.yaml`` changes the scale."""

    scale: Slug
    seed: Whole = Field(ge=0)
    papers: list[Slug] = Field(min_length=1)
    runs: Positive | None = None
    """Number of runs of all experiments; default: that of each experiment."""
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
        FileEntry of ``ValidationError.errors()``.

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
        require(arguments.is_real(delta), "budget.delta", delta, "a number in [0, 1)")
        return float(delta)
    power = delta.get("records_power")
    for key, value in {"network.agents": agents, "problem.records": records}.items():
        require(arguments.is_whole(value) and value >= 1, key, value, "a whole number >= 1")
    below = arguments.is_real(power) and power < 0
    require(below, "budget.delta.records_power", power, "a number below 0")
    return math.pow(agents * records, power)
