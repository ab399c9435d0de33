"""Define the keys and values of the configuration; unknown keys are errors.

A file of ``config/papers`` names its shared parts, and its experiments, figures and claims refer to
these names. The classes ``...Entry`` describe what a file may contain. :func:`.files.read_paper`
replaces each name by the part that it stands for. The result has the same keys. The classes
:class:`Experiment`, :class:`Figure`, :class:`Table` and :class:`.Claim` describe it: they refine
the entries by the keys that have to be present.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

from private_consensus.common import yamls
from private_consensus.common.errors import InvalidInput, Refused, arguments, require
from private_consensus.common.fields import (
    TEXT_NUMBER,
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
    quoted,
    split_measure,
)
from private_consensus.core import algorithms, problems
from private_consensus.core.graphs import GRAPHS
from private_consensus.core.networks import MIXINGS

from ..claims import Claim
from ..claims.schema import ClaimEntry, TestedVariantEntry
from ..datasets import PREPARATIONS

ConfigurationError = Refused
"""Error with one line per invalid key."""
TOPOLOGIES = (*GRAPHS, "single")
SMOKE = "smoke"
SCALES = ("paper", SMOKE)
"""Scales that always exist; a study may declare others. ``results/reference`` belongs to none of
them: only publishing writes there."""
MAX_ITERATIONS = 100_000


def one_of(names: Sequence[str] | Callable[[], Sequence[str]]) -> Callable[[str], str]:
    """Return a check that refuses all other names by a ``ValueError``.

    A callable ``names`` is called by each check, because the modules that it imports may import
    this module.
    """

    def check(name: str) -> str:
        allowed = names if isinstance(names, Sequence) else names()
        if name not in allowed:
            raise ValueError(f"expected one of {', '.join(allowed)}")
        return name

    return check


Algorithm = Annotated[Slug, AfterValidator(one_of(algorithms.names))]
PreparedName = Annotated[str, AfterValidator(one_of(tuple(PREPARATIONS)))]
Stream = Literal["data", "graph", "noise", "sampling"]
Statistic = Literal["mean", "median"]


class RecordsPower(Strict):
    """Budget's delta as a power of the total number of records."""

    records_power: Number = Field(lt=0)
    """Exponent k in delta = (agents x records per agent)^k."""


class BudgetConfig(Open):
    """Privacy budget (epsilon, delta) of a run."""

    model_config = ConfigDict(extra="forbid")

    epsilon: Number = Field(gt=0)
    """Total epsilon of a run; .inf for no privacy."""
    delta: Number | RecordsPower
    """Total delta of a run, in [0, 1); 0 means pure DP."""

    @field_validator("delta", mode="before")
    @classmethod
    def _probability(cls, delta):
        is_probability = isinstance(delta, int | float) and 0 <= delta < 1
        if not is_probability and not isinstance(delta, Mapping | RecordsPower):
            raise ValueError(f"expected a number in [0, 1) ({TEXT_NUMBER})")
        return delta


class ProblemConfig(Open):
    """Optimisation problem; keys that are not listed are parameters of the problem."""

    name: Annotated[str, AfterValidator(one_of(problems.names()))]
    """Name of the problem, as `private-consensus list` shows it."""
    prepared: PreparedName | None = None
    """Prepared data set, such as adult-onehot104; absent if the data are synthetic."""


class NetworkConfig(Open):
    """Communication network; keys that are not listed are parameters of its graph or weights."""

    name: Annotated[str, AfterValidator(one_of(TOPOLOGIES))]
    """Family of the graph, such as ring or erdos_renyi."""
    agents: Positive
    """Number of agents."""
    weights: Annotated[str, AfterValidator(one_of(tuple(MIXINGS)))] = "laplacian"
    """Rule for the weights of the mixing matrix."""
    probability: Number | None = Field(default=None, gt=0, le=1)
    """Probability of each edge of an Erdos-Renyi graph."""

    @field_validator("agents")
    @classmethod
    def _one_agent_or_several(cls, agents, info):
        single = info.data.get("name") == "single"
        if single != (agents == 1):
            raise ValueError("expected 1 for single" if single else "expected 2 or more")
        return agents


# --- Experiments ----------------------------------------------------------------------------------


def each_once(values: list[Any]) -> list[Any]:
    """Return a list; raise ``ValueError`` for a value that occurs twice."""
    if len(set(values)) < len(values):
        raise ValueError("expected each value once")
    return values


class AxisEntry(FileEntry):
    """Grid of values, or changes of a named grid."""

    set: str | None = None
    """Parameter that the axis varies, as a dotted path such as budget.epsilon."""
    values: Values | None = None
    """Values of the parameter, one setting per value."""
    because: str = ""
    """Reason for these values, if the paper does not state them."""


class Axis(AxisEntry):
    """Grid of values of one parameter."""

    set: str
    values: Values

    _different_values = field_validator("values")(each_once)


class UnspecifiedDetail(FileEntry):
    """Detail that a paper omits or contradicts, with its literal and its resolved form."""

    literal: str = "not given"
    """Detail as the paper states it."""
    resolved: str
    """Detail as this reproduction implements it."""
    because: str
    """Reason for the resolved form."""


class TuningEntry(FileEntry):
    """Parameters selected on a grid of the same algorithm, in an experiment with separate runs.

    For each point of the axes that both experiments have, the grid point with the smallest mean
    error is selected. If the criterion is ``mean``, the measure is among the grid's ``averages``.
    """

    experiment: str | None = None
    """Experiment that runs the tuning grid."""
    variant: str | None = None
    """Variant of the algorithm that runs on the tuning grid."""
    measure: Measure | None = None
    """Measure that the selected parameters minimise."""
    criterion: Literal["last", "mean"] | None = None
    """Minimise the measure at the last iteration (last) or its mean over all iterations (mean)."""
    axes: dict[str, str] | None = None
    """Axes of the tuning grid, each with the dotted path of the parameter that it tunes."""


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
    """Variant whose parameters this variant inherits and changes."""
    interpretation: Interpretation | None = None
    """literal (as the paper states it), resolved (corrected or completed) or ablation (with one
    component changed). Default: resolved; ablation if the variant extends another."""
    because: str | None = None
    """Reason for the variant."""
    set: dict[str, Any] = {}
    """Values outside the algorithm by dotted path, such as {budget.epsilon: .inf}."""
    tuned: TuningEntry | None = None
    """Parameters that are selected by their error on a tuning grid."""


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
    """Difference between consecutive iterations."""

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
    """Number of runs that are computed together."""
    axes: dict[str, list[Number | Whole | str]] = {}
    """Values of axes at this scale, by axis."""
    set: dict[str, Any] = {}
    """Other values at this scale by dotted path, such as {horizon: 100}."""


class IntermediateMeasures(FileEntry):
    """Restriction of the measurements before the last iteration."""

    where: Selection = {}
    """Value of each axis for which intermediate iterations are measured; all other settings are
    measured at the last iteration only."""
    measures: Annotated[list[Measure], Field(min_length=1)] | None = None
    """Measures recorded at intermediate iterations; default: all."""


class ExperimentEntry(FileEntry):
    """Experiment: its keys override the defaults of the file or the extended experiment."""

    extends: str | None = None
    """Experiment of this file whose keys are inherited, except title, location and
    unspecified_details."""
    title: str | None = None
    """Quantity that the experiment computes, and what it is compared against."""
    location: str | None = None
    """Figure, table or section of the paper that the experiment reproduces."""
    problem: Open | None = None
    """Optimisation problem: its name and parameters."""
    network: Open | None = None
    """Communication network: graph family, number of agents, weights and parameters."""
    budget: Open | None = None
    """Privacy budget: epsilon and delta."""
    horizon: Positive | None = None
    """Number of iterations."""
    runs: Positive | None = None
    """Number of Monte-Carlo runs."""
    runs_per_batch: BatchSize = 10
    """Number of runs that are computed together; the last batch is filled up with further runs,
    which are discarded."""
    axes: list[Slug] | Mapping[Slug, AxisEntry | None] = {}
    """Varied parameters: names of the file's axes, or axes by name. The experiment runs every
    combination of their values."""
    algorithms: Mapping[Algorithm, list[Slug] | Mapping[Slug, VariantEntry | None]] | None = None
    """Algorithms, each with its variants: names of the file's variants, or variants by name."""
    measures: Annotated[list[Measure], Field(min_length=1)] | None = None
    """Recorded measures, each a quantity.metric such as released.normalised_error."""
    iterations: Sequence[Whole | Span] | Literal["all"] = []
    """Iterations at which measures are recorded, in addition to the last iteration."""
    intermediate_measures: IntermediateMeasures | None = None
    """Settings and measures that are recorded before the last iteration; default: all."""
    averages: list[Measure] = []
    """Measures of which the mean over all iterations is recorded, too."""
    divergence: Literal["raise", "record"] = "raise"
    """Treatment of runs whose values become infinite: an error (raise), or a result (record)."""
    shared_streams: Mapping[Stream, str | dict[str, str] | None] = {}
    """Names of the random streams for data, graph, noise and sampling: one name for all algorithms,
    or one per algorithm. Experiments with equal names use the same random numbers. Default: streams
    of the experiment."""
    unspecified_details: list[str] | Mapping[str, UnspecifiedDetail | None] = {}
    """Details that the paper omits or contradicts, by topic, each with its resolution."""
    unaccounted_data_use: list[str] = []
    """Decisions that used private data and whose privacy cost is not part of the budget."""
    paper_values: dict[str, Any] = {}
    """Values that the paper states for parameters, by dotted path, such as {network.agents: 10};
    ~ for none. Claims name each parameter that was tested at other values only."""
    scales: dict[str, Scale] = {}
    """Reductions of the experiment by name of the smaller scale, such as smoke."""


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
    shared_streams: dict[Stream, str | dict[str, str]] = {}
    unspecified_details: dict[str, UnspecifiedDetail] = {}


# --- Figures --------------------------------------------------------------------------------------


class CurveKeys(FileEntry):
    """Keys of a curve, which a panel or a figure may set for all of its curves."""

    experiment: str = ""
    """Experiment whose measurements are plotted."""
    variant: str | None = None
    """Variant of the algorithm, if `method` names an algorithm only."""
    measure: Measure | None = None
    """Plotted measure, a quantity.metric such as released.test_error."""
    interpretation: Interpretation | None = None
    """literal (as the paper states it), resolved (corrected or completed) or ablation (with one
    component changed); default: that of the variant."""
    last_iteration_only: Flag = False
    """True: plot measurements of the last iteration only."""
    interval: Literal["standard error", "standard deviation", "range"] = "standard error"
    """Meaning of the band around the mean; range: smallest to largest run."""


class MeasureParts(FileEntry):
    """Changes of a measure."""

    quantity: str | None = None
    """Replacement for the quantity in `measure`, such as released in released.test_error."""
    metric: str | None = None
    """Replacement for the metric in `measure`, such as test_error in released.test_error."""


class CurveFields(CurveKeys):
    """Curve, whose method may be several in a file."""

    method: (
        Reference | References | Annotated[dict[Reference, str | list[Slug]], Field(min_length=1)]
    )
    """Plotted method: algorithm.variant. Several methods have one curve each; they are a list, a
    mapping from algorithm.variant to a text that is appended to the label of its curve, or a
    mapping from algorithms to lists of variants."""
    style: Slug | None = None
    """Name of the style in styles.yaml; default: the name of the variant."""
    label: str = ""
    """Label in the legend, instead of the label of the style."""
    where: Selection = {}
    """Value or range [low, high] of each axis, of t or of run; other measurements are omitted."""
    low: Measure | None = None
    """Measure that is drawn as the lower end of the band."""
    high: Measure | None = None
    """Measure that is drawn as the upper end of the band."""
    band: str = ""
    """Meaning of the band from `low` to `high`, in words."""
    by: str | None = None
    """Axis of the experiment; one curve is drawn per value."""
    by_title: str = ""
    """Title in the legend of the axis that `by` names."""


class Curve(CurveFields):
    """Complete curve: a variant of an algorithm, its measure, and the displayed name."""

    method: Slug
    """Name of the algorithm."""
    variant: str
    measure: Measure
    interpretation: Interpretation
    style: Slug
    """Name of the style in styles.yaml, after the name of the algorithm."""


class CurveEntry(CurveFields, MeasureParts):
    """Curve, or the product of several variants, measures and values of axes."""

    measures: dict[str, str] = {}
    """Plotted measures, one curve each: a mapping from the measure to the text that is appended to
    the label of its curve."""
    grid: Grid = {}
    """Mapping from axes to lists of values; one curve is drawn per combination of values."""

    @field_validator("measures")
    @classmethod
    def _of_measures(cls, measures):
        for measure in measures:
            split_measure(measure)
        return measures


class PanelFields(FileEntry):
    """Axes and curves of a panel."""

    experiment: str = ""
    """Experiment whose measurements are plotted."""
    where: Selection = {}
    """Value or range [low, high] of each axis, of t or of run for all curves; other measurements
    are omitted."""
    x: str = ""
    """Quantity on the horizontal axis: an axis of the experiment, t, a measure, or a column of the
    privacy table."""
    x_title: str = ""
    """Title of the horizontal axis."""
    y_title: str = ""
    """Title of the vertical axis."""
    log_x: Flag = True
    """True: logarithmic horizontal axis."""
    log_y: Flag = True
    """True: logarithmic vertical axis."""
    y_domain: tuple[Number, Number] | None = None
    """Smallest and largest value of the vertical axis."""
    statistic: Statistic = "mean"
    """Statistic over the runs: mean with standard error, or median with quartiles."""
    goals: list[Number] = []
    """Target values of the measure. The panel shows, for each target, the smallest x from which the
    curve stays at or below it."""


class FigurePanel(PanelFields):
    """Complete panel: curves or a communication graph."""

    title: str
    """Title of the panel."""
    graph: Flag = False
    """True: draw the communication graph of the experiment."""
    curves: list[Curve] = []
    """Curves of the panel."""

    @model_validator(mode="after")
    def _curves_or_graph(self):
        if not self.experiment or self.graph == bool(self.curves) or self.graph == bool(self.x):
            raise ValueError("expected an experiment, and either x and curves, or graph: true")
        return self


class PanelKeys(PanelFields, CurveKeys, MeasureParts):
    """Keys of a panel, which a figure may set for all of its panels."""

    experiments: dict[Algorithm, str] = {}
    """Experiment per algorithm, for algorithms whose measurements `experiment` does not have."""
    grid: Grid = {}
    """Mapping from axes to lists of values; one panel is drawn per combination of values."""
    curves: str | list[str | CurveEntry] | CurveEntry = []
    """Curves of the panel. Each is the name of a set in the file's `curves`, an algorithm.variant,
    or a mapping with the keys of a curve."""


class PanelEntry(PanelKeys):
    """Panel of a figure."""

    title: str = ""
    """Title of the panel; {axis} is replaced by the value of an axis of the grid."""


class FigureFields(FileEntry):
    """Description of a figure."""

    title: str
    """Title: which quantity of which method is plotted against what."""
    caption: str
    """Description of quantity, method, data and curves that is clear without the paper; {name} is
    replaced by a sentence of the file."""
    columns: Positive | None = None
    """Number of panels per row."""
    note: str = ""
    """Remark on the data, shown below the title."""


class Figure(FigureFields):
    """Figure whose panels and curves are resolved."""

    panels: Annotated[list[FigurePanel], Field(min_length=1)]
    """Panels of the figure."""
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
    """Title of each panel, in which {title} is replaced by the title of the panel and {axis} by the
    value of an axis of the grid."""
    graph: Flag = False
    """True: draw the communication graph of the experiment instead of curves."""
    panels: Annotated[list[PanelEntry], Field(min_length=1)] | None = None
    """Panels of the figure; default: one panel with the keys of the figure."""


# --- Tables ---------------------------------------------------------------------------------------


class TabulatedMethod(FileEntry):
    """Method of a table, with the published values."""

    label: str
    """Name of the method in the table."""
    method: Reference
    """Tabulated method: algorithm.variant, or an algorithm together with the key `variant`."""
    variant: str | None = None
    """Variant of the algorithm, if `method` names an algorithm only."""
    interpretation: Interpretation | None = None
    """literal (as the paper states it), resolved (corrected or completed) or ablation (with one
    component changed); default: that of the variant."""
    published: list[tuple[Number, Number, Number]] = []
    """Published numbers, one [row value, mean, standard deviation] per row."""


class Block(FileEntry):
    """Rows of a table that share an experiment."""

    label: str
    """Title of this block of rows."""
    experiment: str
    """Experiment whose measurements the block shows."""
    methods: Annotated[list[TabulatedMethod], Field(min_length=1)]
    """Methods of the block, each with its published numbers."""


class Table(FileEntry):
    """Table of measurements next to the published values."""

    title: str
    """Title of the table."""
    caption: str
    """Description of the table that can be read without the paper; {name} is replaced by a sentence
    of the file."""
    row_axis: str
    """Axis of the experiment; the table has one row per value."""
    row_title: str
    """Title of the column with the values of the row axis."""
    row_values: list[Number] = []
    """Tabulated values of the row axis; default: all."""
    measure: Measure
    """Tabulated measure, a quantity.metric, that is compared with the published values."""
    extra_columns: dict[str, Measure] = {}
    """Further tabulated measures, by title of their column."""
    published_runs: Positive = 1
    """Number of runs over which the published means and standard deviations were computed."""
    blocks: Annotated[list[Block], Field(min_length=1)]
    """Blocks of rows, one experiment each."""


YEAR = re.compile(r"\b(?:19|20)\d\d\b")


class PaperInfo(Strict):
    """Title, authors and source of a paper."""

    key: Slug
    """Name of the file, and start of the names of its experiments, figures and claims."""
    number: str
    """Number of the paper in this project, 000 to 004; empty if the figures belong to no paper."""
    title: str
    """Title of the paper."""
    authors: list[str]
    """Authors, with first and last names."""
    venue: str
    """Journal, conference, preprint server or university, with the year."""
    summary: str = ""
    """Subject of the paper, in one or two sentences."""
    short_title: str = ""
    """Title of two to five words, for navigation and lists."""
    methods: list[str] = []
    """Algorithms that the paper proposes; the others of its experiments are baselines."""

    @property
    def citation(self) -> str:
        """Authors and year, such as "Wang et al. 2022"; without authors the title."""
        return cited(self.model_dump())


def cited(paper: Mapping[str, Any]) -> str:
    """Return a citation, such as "Wang et al. 2022"; without authors the short title."""
    names = [author.split()[-1] for author in paper["authors"]]
    if not names:
        return paper.get("short_title") or paper["title"]
    authors = " and ".join(names) if len(names) < 3 else f"{names[0]} et al."
    return " ".join([authors, *YEAR.findall(paper["venue"])[-1:]])


# --- Files ----------------------------------------------------------------------------------------


class Defaults(FileEntry):
    """Default keys of all experiments and panels of a file."""

    experiment: ExperimentEntry | None = None
    """Values of keys that experiments do not set themselves."""
    panel: PanelKeys | None = None
    """Values of keys that panels of figures do not set themselves."""


class File(FileEntry):
    """File of ``config/papers``: a paper, or a part of one."""

    paper: PaperInfo | None = None
    """Title, authors and source."""
    parts: list[str] | None = None
    """Further files of the paper, without extension, in the folder with the paper's key."""
    scales: list[Slug] | None = None
    """Names of scales that a study defines in addition to smoke."""
    titles: dict[str, str] = {}
    """Titles of horizontal axes and measures that figures use by default."""
    defaults: Defaults = Defaults()
    """Values of keys that the experiments and panels of the file do not set themselves."""
    axes: dict[Slug, AxisEntry] = {}
    """Axes by name: a varied parameter and its values, to which experiments refer."""
    unspecified_details: dict[str, UnspecifiedDetail] = {}
    """Details that the paper omits or contradicts, by topic, to which experiments refer."""
    variants: dict[Algorithm, dict[Slug, VariantEntry]] = {}
    """Variants of each algorithm by name, to which experiments refer."""
    sentences: dict[Slug, str] = {}
    """Sentences by name, to which captions refer as {name}."""
    curves: dict[Slug, list[Reference | CurveEntry] | CurveEntry] = {}
    """Sets of curves by name, to which panels refer."""
    claim_variants: dict[Slug, dict[str, TestedVariantEntry]] = {}
    """Sets of claim variants by name, to which claims refer."""
    experiments: dict[Slug, ExperimentEntry] = {}
    """Experiments by name: the computations that are run."""
    figures: dict[Name, FigureEntry] = {}
    """Figures by name, drawn from the measurements of experiments."""
    tables: dict[Name, Table] = {}
    """Tables by name, with measurements of experiments next to published values."""
    claims: dict[Name, ClaimEntry] = {}
    """Claims of the paper by name, each with its test."""


class Paper(Strict):
    """Complete file of ``config/papers``, including its parts."""

    paper: PaperInfo
    """Title, authors and source."""
    scales: list[Slug] = []
    """Names of scales of a study; each of its experiments defines its reduction."""
    experiments: dict[Slug, Experiment]
    """Experiments by name."""
    figures: dict[Name, Figure]
    """Figures by name."""
    tables: dict[Name, Table] = {}
    """Tables by name."""
    claims: dict[Name, Claim]
    """Claims by name."""


class Style(Strict):
    """Style of a curve."""

    label: str
    """Label of the curve in legends."""
    colour: str = Field(pattern=r"^#[0-9A-Fa-f]{6}$")
    """Colour of the curve, as #RRGGBB."""
    dash: list[Whole] = []
    """Alternating lengths of dashes and gaps in pixels; empty for a solid line."""


class DataConfig(Strict):
    """Sources of the data sets."""

    source: Literal["auto", "official", "surrogate"] = "auto"
    """auto: the first available of cache, mirror, publisher and surrogate; official: the same, but
    no surrogate; surrogate: synthetic records sampled from published marginals, not downloaded."""
    mirror: str | None = None
    """Folder or URL with copies of the publishers' files."""
    cache: str = Field(default=".cache/private-consensus", min_length=1)
    """Folder for downloaded files."""
    connection_timeout_s: Number = Field(default=5.0, gt=0, le=86400)
    """Seconds to wait for a host to connect, and for its next bytes."""
    surrogate_rows: Whole | None = Field(default=None, ge=1000, le=10_000_000)
    """Number of records of a surrogate; default: as many as the data set has."""


class Config(Strict):
    """``config/config.yaml``; ``config/smoke.yaml`` changes the scale."""

    scale: Slug
    """Sizes of the experiments: paper (as in the papers), smoke (small), or a scale of a study."""
    seed: Whole = Field(ge=0)
    """Seed from which all random streams are derived."""
    papers: list[Slug] = Field(min_length=1)
    """Keys of the papers to reproduce: names of files in config/papers."""
    _different_papers = field_validator("papers")(each_once)
    runs: Positive | None = None
    """Number of Monte-Carlo runs of every experiment; default: the key `runs` of the experiment."""
    data: DataConfig = DataConfig()
    """Sources of the data sets."""


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML file with keys and values; an empty file gives an empty mapping."""
    content = yamls.read(path) or {}
    if not isinstance(content, dict):
        raise InvalidInput(path.name, quoted(content), "keys and values")
    return content


def resolve_delta(delta: Any, *, agents: int, records: int) -> float:
    """Compute the delta of a budget; ``{"records_power": k}`` means ``(agents * records)**k``.

    A value that is not a number, and an exponent that is not negative raise ``InvalidInput``.
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
