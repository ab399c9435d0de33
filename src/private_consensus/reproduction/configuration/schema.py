"""Define the keys and values of the configuration; unknown keys are errors.

A file of ``config/papers`` is a :class:`Paper`, or a :class:`Part` of one. Its entries refer to
shared entries by anchors and merge keys of YAML. :func:`read_paper` validates each file, and then
replaces products and defaults: a complete figure has one panel per point of its
grid, and each of its curves names its experiment.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    field_validator,
    model_serializer,
    model_validator,
)

from private_consensus.common import yamls
from private_consensus.common.errors import InvalidInput, Refused, arguments, require
from private_consensus.common.fields import (
    BatchSize,
    FileEntry,
    Flag,
    Interpretation,
    Measure,
    Name,
    Number,
    Positive,
    Product,
    Reference,
    Selection,
    Slug,
    Strict,
    Values,
    Whole,
    formatted,
    measure_text,
    split_method,
    validate,
)
from private_consensus.core import algorithms, problems
from private_consensus.core.graphs import GRAPHS
from private_consensus.core.simulation import MAX_RUNS

from ..claims import Claim
from ..data import PREPARATIONS
from ..data.acquisition import Acquisition

ConfigurationError = Refused
"""Error with one line per invalid key."""
ADDED = "_extra_"
"""Part of the name of figures that are not figures of the paper."""
SECTIONS = ("experiments", "figures", "tables", "claims")
TARGETS = ("figures", "tables")
"""Sections whose names are targets of the workflow."""
DRAFT = "https://json-schema.org/draft/2020-12/schema"


def _one_of(names: Callable[[], Iterable[str]]) -> AfterValidator:
    """Refuse all other names; ``names`` is called later, because it may import this module."""
    return AfterValidator(lambda name: arguments.choice("", name, list(names())))


Algorithm = Annotated[Slug, _one_of(algorithms.names)]
PreparedName = Annotated[str, _one_of(lambda: PREPARATIONS)]
Scale = Literal["paper", "smoke"]
Stream = Literal["data", "graph", "noise", "sampling"]
Statistic = Literal["mean", "median"]


class RecordsPower(FileEntry):
    """Budget's delta as a power of the total number of records."""

    records_power: Number = Field(lt=0)
    """Exponent k in delta = (agents x records per agent)^k."""


class BudgetConfig(FileEntry):
    """Privacy budget (epsilon, delta) of a run."""

    epsilon: Number = Field(gt=0)
    """Total epsilon of a run; .inf for no privacy."""
    delta: Number | RecordsPower
    """Total delta of a run, in [0, 1); 0 means pure DP."""


class ProblemConfig(FileEntry, extra="allow"):
    """Optimisation problem; keys that are not listed are parameters of the problem."""

    name: Annotated[str, _one_of(problems.names)]
    """Name of the problem, as `private-consensus list` shows it."""
    prepared: PreparedName | None = None
    """Prepared data set, such as adult-onehot104; absent if the data are synthetic."""


class NetworkConfig(FileEntry, extra="allow"):
    """Communication network; keys that are not listed are parameters of its graph or weights."""

    name: Annotated[str, _one_of(lambda: GRAPHS)]
    """Family of the graph, such as ring or erdos_renyi."""
    agents: Positive
    weights: str = "laplacian"
    """Rule for the weights of the mixing matrix."""
    probability: Number | None = None
    """Probability of each edge of an Erdos-Renyi graph."""


# --- Experiments ----------------------------------------------------------------------------------


def each_once(values: list[Any]) -> list[Any]:
    """Return a list; refuse a value that occurs twice."""
    require(len(set(values)) == len(values), "", values, "each value once")
    return values


class Axis(FileEntry):
    """Grid of values of one parameter."""

    set: str
    """Parameter that the axis varies, as a dotted path such as budget.epsilon."""
    values: Values
    """Values of the parameter, one setting per value."""
    because: str = ""
    """Reason for these values, if the paper does not state them."""

    _different_values = field_validator("values")(each_once)


class UnspecifiedDetail(FileEntry):
    """Detail that a paper omits or contradicts, with its literal and its resolved form."""

    literal: str = "not given"
    """Detail as the paper states it."""
    resolved: str
    """Detail as this reproduction implements it."""
    because: str


class TunedParameters(FileEntry):
    """Parameters selected on a grid of the same algorithm, in an experiment with separate runs.

    For each point of the axes that both experiments have, the grid point with the smallest mean
    error is selected. If the criterion is ``mean``, the measure is among the grid's ``averages``.
    """

    experiment: str
    """Experiment that runs the tuning grid."""
    variant: str
    """Variant of the algorithm that runs on the tuning grid."""
    measure: Measure
    """Measure that the selected parameters minimise."""
    criterion: Literal["last", "mean"]
    """Minimise the measure at the last iteration (last) or its mean over all iterations (mean)."""
    axes: Annotated[dict[str, str], Field(min_length=1)]
    """Axes of the tuning grid, each with the dotted path of the parameter that it tunes."""


class Variant(FileEntry):
    """Variant of an algorithm; keys that are not listed are parameters of the algorithm."""

    model_config = ConfigDict(json_schema_extra={"additionalProperties": True})

    interpretation: Interpretation = "resolved"
    """literal (as the paper states it), resolved (corrected or completed) or ablation (with one
    component changed)."""
    because: str
    set: dict[str, Any] = {}
    """Changed values by dotted path, such as {budget.epsilon: .inf}, including the parameters of
    the algorithm."""
    tuned: TunedParameters | None = None
    """Parameters that are selected by their error on a tuning grid."""

    @model_validator(mode="before")
    @classmethod
    def _set_parameters(cls, content):
        if not isinstance(content, Mapping) or not isinstance(content.get("set", {}), Mapping):
            return content
        names = [key for key in content if key not in cls.model_fields]
        for name in names:
            require(content[name] is not None, "", content, f"a value of {name}, or no such key")
        parameters = {f"algorithm.{name}": content[name] for name in names}
        keys = {key: value for key, value in content.items() if key not in names}
        return {**keys, "set": {**parameters, **content.get("set", {})}}


Variants = Annotated[dict[Slug, Variant], Field(min_length=1)]


class Smoke(FileEntry):
    """Changes of an experiment at the smoke scale."""

    runs: Positive | None = None
    runs_per_batch: BatchSize | None = None
    axes: dict[str, list[Number | Whole | str]] = {}
    """Values of axes, by axis."""
    set: dict[str, Any] = {}
    """Other values by dotted path, such as {horizon: 100}."""


class Experiment(FileEntry):
    """Experiment: what is run, and what is measured."""

    title: str
    """Quantity that the experiment computes, and what it is compared against."""
    location: str
    """Figure, table or section of the paper that the experiment reproduces."""
    problem: ProblemConfig
    network: NetworkConfig
    budget: BudgetConfig
    horizon: Positive
    """Number of iterations."""
    runs: Annotated[Positive, Field(le=MAX_RUNS)]
    """Number of Monte-Carlo runs."""
    runs_per_batch: BatchSize = 10
    """Number of runs that are computed together; the last batch is filled up with further runs,
    which are discarded."""
    axes: dict[Slug, Axis] = {}
    """Varied parameters by name. The experiment runs every combination of their values."""
    algorithms: Annotated[dict[Algorithm, Variants], Field(min_length=1)]
    """Algorithms, each with its variants by name."""
    measures: Annotated[list[Measure], Field(min_length=1)]
    """Recorded measures, each a quantity.metric such as released.normalised_error."""
    iterations: list[Positive] | Literal["all"] = []
    """Iterations at which measures are recorded, in addition to the last iteration."""
    intermediate_settings: Selection = {}
    """Value of each axis for which these iterations are measured; other settings are measured at
    the last iteration only. Default: all settings."""
    averages: list[Measure] = []
    """Measures of which the mean over all iterations is recorded, too."""
    lower_bounds: Flag = True
    """False: privacy rows have no lower bound on epsilon, whose computation may take longer than
    the runs."""
    divergence: Literal["raise", "record"] = "raise"
    """Treatment of runs whose values become infinite: an error (raise), or a result (record)."""
    shared_streams: dict[Stream, str | dict[str, str]] = {}
    """Names of the random streams for data, graph, noise and sampling: one name for all algorithms,
    or one per algorithm. Experiments with equal names use the same random numbers. Default: streams
    of the experiment."""
    unspecified_details: dict[str, UnspecifiedDetail] = {}
    """Details that the paper omits or contradicts, by topic, each with its resolution."""
    unaccounted_data_use: list[str] = []
    """Decisions that used private data and whose privacy cost is not part of the budget."""
    paper_values: dict[str, Any] = {}
    """Values that the paper states for parameters, by dotted path, such as {network.agents: 10}.
    Claims name each parameter that was tested at other values only."""
    smoke: Smoke = Smoke()


# --- Figures --------------------------------------------------------------------------------------


class CurveKeys(FileEntry):
    """Keys of a curve, which a panel or a figure may set for all of its curves."""

    variant: str = ""
    """Variant of the algorithm, if `method` names an algorithm only."""
    measure: Measure | None = None
    """Plotted measure, a quantity.metric such as released.test_error."""
    interpretation: Interpretation | None = None
    """literal (as the paper states it), resolved (corrected or completed) or ablation (with one
    component changed); default: that of the variant."""
    last_iteration_only: Flag = False
    """True: plot measurements of the last iteration only."""
    interval: Literal["standard error", "standard deviation", "range", "none"] = "standard error"
    """Meaning of the band around the mean; range: smallest to largest run; none: runs are equal."""


class Curve(CurveKeys, Product):
    """Curve: a variant of an algorithm, its measure, and the displayed name."""

    experiment: str = ""
    """Experiment whose measurements are plotted; default: that of the panel."""
    method: Reference = ""
    """Plotted method: algorithm.variant."""
    quantity: str = Field(default="", exclude=True)
    """Replacement for the quantity in `measure`, such as released in released.test_error."""
    metric: str = Field(default="", exclude=True)
    """Replacement for the metric in `measure`, such as test_error in released.test_error."""
    style: str = ""
    """Name of the style in styles.yaml; default: the name of the variant."""
    label: str = ""
    """Label in the legend, instead of the label of the style; {key} is replaced by a value of the
    grid."""
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

    _variant_of_method = model_validator(mode="before")(split_method)

    def complete(self, panel: PanelKeys, file: Part, key_path: str) -> Iterator[Curve]:
        """Yield one complete curve per point of the grid."""
        for point in self.product(key_path):
            curve = point.inherit(panel, {*CurveKeys.model_fields, "where"})
            measure = curve.measure
            if measure and "measure" not in point.model_fields_set:
                measure = (curve.quantity or measure[0], curve.metric or measure[1])
            default = panel.experiments.get(curve.method, panel.experiment)
            experiment = curve.experiment or default
            yield curve.model_copy(update={
                "measure": measure,
                "experiment": experiment,
                "interpretation": curve.interpretation or file.interpretation(experiment, curve),
                "style": curve.style or curve.variant,
            })  # fmt: skip


def listed(content: Any) -> Any:
    """Return a list of curves; an entry may be a list itself, and a single curve needs no list."""
    if not isinstance(content, list):
        return [content]
    return [curve for entry in content for curve in (entry if isinstance(entry, list) else [entry])]


CurveOrMethod = Curve | Reference
Curves = Annotated[
    list[Curve],
    BeforeValidator(
        listed,
        json_schema_input_type=CurveOrMethod | list[CurveOrMethod | list[CurveOrMethod]],
    ),
]


class PanelKeys(CurveKeys):
    """Keys of a panel, which a figure may set for all of its panels."""

    experiment: str = ""
    """Experiment whose measurements are plotted; default: the experiment with the name of the
    figure."""
    experiments: dict[Algorithm, str] = {}
    """Experiment per algorithm, for algorithms whose measurements `experiment` does not have."""
    where: Selection = {}
    """Value or range [low, high] of each axis, of t or of run for all curves; other measurements
    are omitted."""
    x: str = ""
    """Quantity on the horizontal axis: an axis of the experiment, t, a measure, or a column of the
    privacy table."""
    x_title: str = ""
    """Title of the horizontal axis; default: the one in `titles`."""
    y_title: str = ""
    """Title of the vertical axis; default: the one in `titles`."""
    log_x: Flag = True
    """True: logarithmic horizontal axis."""
    log_y: Flag = True
    """True: logarithmic vertical axis."""
    y_domain: tuple[Number, Number] | None = None
    """Smallest and largest value of the vertical axis."""
    statistic: Statistic = "mean"
    """Statistic over the runs: mean with standard error, or median with quartiles."""
    goals: Annotated[list[Number], AfterValidator(each_once)] = []
    """Target values of the measure. The panel shows, for each target, the smallest x from which the
    curve stays at or below it."""
    graph: Flag = False
    """True: draw the communication graph of the experiment instead of curves."""
    curves: Curves = []
    """Curves of the panel. Each is an algorithm.variant, or a mapping with the keys of a curve."""


class Panel(PanelKeys, Product):
    """Panel of a figure: curves or a communication graph."""

    title: str = ""
    """Title of the panel; {key} is replaced by a value of the grid."""

    @model_serializer(mode="wrap")
    def _without_keys_of_curves(self, dump):
        omitted = {*CurveKeys.model_fields, "experiments"}
        return {key: value for key, value in dump(self).items() if key not in omitted}

    def complete(self, figure: Figure, file: Part, key_path: str) -> Iterator[Panel]:
        """Yield one complete panel per point of the grid, with the keys of its figure."""
        for panel in self.product(key_path):
            panel = panel.inherit(figure, PanelKeys.model_fields)
            expected = "either x and curves, or graph: true"
            is_graph = not panel.curves and not panel.x
            is_curves = bool(panel.curves and panel.x)
            require(is_graph if panel.graph else is_curves, key_path, None, expected)
            curves = [
                complete
                for curve in panel.curves
                for complete in curve.complete(panel, file, f"{key_path}.curves")
            ]
            measure = measure_text(panel.measure) if panel.measure else ""
            yield panel.model_copy(update={
                "curves": curves,
                "x_title": panel.x_title or file.titles.get(panel.x, panel.x),
                "y_title": panel.y_title or file.titles.get(measure, ""),
            })  # fmt: skip


class Figure(PanelKeys):
    """Figure: panels, and keys that all of its panels share."""

    title: str
    """Title: which quantity of which method is plotted against what."""
    caption: str
    """Description of quantity, method, data and curves that is clear without the paper; {name} is
    replaced by a sentence of the file."""
    panels: Annotated[list[Panel], Field(min_length=1)] = [Panel()]
    """Panels of the figure; default: one panel with the keys of the figure."""
    added: Flag = False
    """True: not a figure of the paper."""

    @model_serializer(mode="wrap")
    def _without_keys_of_panels(self, dump):
        return {
            key: value for key, value in dump(self).items() if key not in PanelKeys.model_fields
        }

    def complete(self, file: Part, name: str, key_path: str) -> Figure:
        """Return the figure with complete panels and caption.

        ``name`` is the experiment of a figure that names none.
        """
        figure = self.model_copy(update={"experiment": self.experiment or name})
        panels = [
            panel for entry in self.panels for panel in entry.complete(figure, file, key_path)
        ]
        titles = [panel.title for panel in panels]
        expected = "a different title for each panel"
        require(len({*titles}) == len(titles), f"{key_path}.panels", titles, expected)
        caption = formatted(self.caption, file.sentences, f"{key_path}.caption")
        changes = {"panels": panels, "caption": caption, "added": ADDED in name}
        return figure.model_copy(update=changes)


# --- Tables ---------------------------------------------------------------------------------------


class TabulatedMethod(FileEntry):
    """Method of a table, with the published values."""

    label: str
    method: Reference
    """Tabulated method: algorithm.variant."""
    variant: str = ""
    """Variant of the algorithm, if `method` names an algorithm only."""
    interpretation: Interpretation | None = None
    """Interpretation of the paper; derived from the variant."""
    published: list[tuple[Number, Number, Number]] = []
    """Published numbers, one [row value, mean, standard deviation] per row."""

    _variant_of_method = model_validator(mode="before")(split_method)


class Block(FileEntry):
    """Rows of a table that share an experiment."""

    label: str
    experiment: str
    methods: Annotated[list[TabulatedMethod], Field(min_length=1)]


class Table(FileEntry):
    """Table of measurements next to the published values."""

    title: str
    caption: str
    """Description of the table that can be read without the paper; {name} is replaced by a sentence
    of the file."""
    row_axis: str
    """Axis of the experiment; the table has one row per value."""
    row_title: str
    """Title of the column with the values of the row axis."""
    measure: Measure
    """Tabulated measure, a quantity.metric, that is compared with the published values."""
    extra_columns: dict[str, Measure] = {}
    """Further tabulated measures, by title of their column."""
    published_runs: Positive = 1
    """Number of runs over which the published means and standard deviations were computed."""
    blocks: Annotated[list[Block], Field(min_length=1)]
    """Blocks of rows, one experiment each."""

    def complete(self, file: Part, name: str, key_path: str) -> Table:
        """Return the table with interpretations of its methods and sentences in its caption."""
        blocks = []
        for block in self.blocks:
            readings = [file.interpretation(block.experiment, row) for row in block.methods]
            rows = [
                row.model_copy(update={"interpretation": interpretation})
                for row, interpretation in zip(block.methods, readings, strict=True)
            ]
            blocks.append(block.model_copy(update={"methods": rows}))
        caption = formatted(self.caption, file.sentences, f"{key_path}.caption")
        return self.model_copy(update={"blocks": blocks, "caption": caption})


YEAR = re.compile(r"\b(?:19|20)\d\d\b")


class PaperInfo(Strict):
    """Title, authors and source of a paper."""

    key: Slug
    """Name of the file, and start of the names of its experiments, figures and claims."""
    number: str
    """Number of the paper in this project, 000 to 004; empty if the figures belong to no paper."""
    title: str
    authors: list[str]
    """First and last names."""
    venue: str
    """Journal, conference, preprint server or university, with the year."""
    summary: str = ""
    """Subject of the paper, in one or two sentences."""
    short_title: str = ""
    """Title of two to five words, for navigation and lists."""
    methods: list[str] = []
    """Algorithms that the paper proposes; the others of its experiments are baselines."""
    controls: list[str] = []
    """Algorithms of its experiments that are not in the paper: controls of this study."""

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

Shared = dict[str, Any]
"""Entries to which other entries of the file refer by anchors; they are not read themselves."""


class Part(FileEntry):
    """File of ``config/papers/<paper>``: experiments, figures, tables and claims."""

    titles: dict[str, str] = Field(default={}, exclude=True)
    """Titles of horizontal axes and measures that figures use by default."""
    sentences: dict[Slug, str] = Field(default={}, exclude=True)
    """Sentences by name, to which captions refer as {name}."""
    defaults: Shared = Field(default={}, exclude=True)
    """Keys that several entries share."""
    axes: Shared = Field(default={}, exclude=True)
    """Axes that several experiments have."""
    unspecified_details: Shared = Field(default={}, exclude=True)
    """Details that concern several experiments."""
    variants: Shared = Field(default={}, exclude=True)
    """Variants of algorithms that several experiments run."""
    curves: Shared = Field(default={}, exclude=True)
    """Curves that several panels show."""
    claim_variants: Shared = Field(default={}, exclude=True)
    """Variants that several claims have."""
    experiments: dict[Slug, Experiment] = {}
    figures: dict[Name, Figure] = {}
    tables: dict[Name, Table] = {}
    claims: dict[Name, Claim] = {}

    def interpretation(self, experiment: str, entry: Curve | TabulatedMethod) -> Interpretation:
        """Return the interpretation of the variant that a figure or table shows.

        The checks of the plan refuse an unknown experiment, algorithm or variant.
        """
        algorithms = (
            self.experiments[experiment].algorithms if experiment in self.experiments else {}
        )
        variant = algorithms.get(entry.method, {}).get(entry.variant)
        return variant.interpretation if variant else "resolved"


class Paper(Part):
    """File of ``config/papers``: a paper."""

    paper: PaperInfo
    parts: list[str] = Field(default=[], exclude=True)
    """Further files of the paper, without extension, in the folder with the paper's key."""


class Style(Strict):
    """Style of a curve."""

    label: str
    """Label of the curve in legends."""
    colour: str = Field(pattern=r"^#[0-9A-Fa-f]{6}$")
    """Colour of the curve, as #RRGGBB."""
    dash: list[Whole] = []
    """Alternating lengths of dashes and gaps in pixels; empty for a solid line."""


class AuditedCell(Strict):
    """Settings of one cell that are audited."""

    experiment: str
    algorithm: str
    variant: str | None = None
    """Audited variant; default: all."""
    where: dict[str, Any] = {}
    """Value of each axis for which settings are audited; default: all."""
    pairs: Positive | None = None
    """Largest number of pairs of data sets, for large data; default: that of the scale."""


class Audits(Strict):
    """Content of ``config/audits.yaml``."""

    level: Number = Field(gt=0, lt=1)
    """Probability that any verdict of a statistical audit is wrong."""
    pairs: Annotated[dict[Scale, Positive], Field(min_length=2)]
    """Number of pairs of data sets of each audit of a setting, by scale."""
    horizon: Positive
    """Largest number of executed iterations of a setting."""
    max_settings: dict[Scale, Positive] = {}
    """Largest number of audited settings per cell, by scale; default: all."""
    settings: list[AuditedCell]
    """Settings of experiments that are audited; those of other papers have no effect."""


class Config(Strict):
    """``config/config.yaml``; ``config/smoke.yaml`` changes the scale."""

    scale: Scale
    """Sizes of the experiments: paper (as in the papers) or smoke (small)."""
    seed: Whole = Field(ge=0)
    """Seed from which all random streams are derived."""
    papers: list[Slug] = Field(min_length=1)
    """Keys of the papers to reproduce: names of files in config/papers."""
    _different_papers = field_validator("papers")(each_once)
    runs: Positive | None = None
    """Number of Monte-Carlo runs of every experiment; default: the key `runs` of the experiment."""
    data: Acquisition = Acquisition()


def read_paper(path: Path, locations: dict[tuple[str, str], str] | None = None) -> Paper:
    """Read the file of a paper and its parts.

    ``parts: [a, b]`` adds the content of ``<key>/a.yaml`` and ``<key>/b.yaml``. Anchors, titles and
    sentences are local to one file. Claims are sorted by name.

    Parameters
    ----------
    locations : dict, optional
        File and key of each entry of the papers that have been read, by section and name; the
        entries of this paper are added.

    Raises
    ------
    InvalidInput
        With one line per mistake, if a part is missing, and for a name that is used twice.
    """
    locations = {} if locations is None else locations
    sections: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    file = os.path.relpath(path)
    paper = validate(Paper, read_yaml(path), f"{file}: ")
    require(paper.paper.key == path.stem, f"{file}: paper.key", paper.paper.key, path.stem)
    parts: dict[str, Part] = {file: paper}
    for name in paper.parts:
        file = os.path.relpath(path.with_suffix("") / f"{name}.yaml")
        parts[file] = validate(Part, read_yaml(Path(file)), f"{file}: ")
    experiments = {name: e for part in parts.values() for name, e in part.experiments.items()}
    for file, part in parts.items():
        file_of_paper = part.model_copy(update={"experiments": experiments})
        for section, entries in sections.items():
            sharing = TARGETS if section in TARGETS else (section,)
            for name, entry in getattr(part, section).items():
                used = [locations[kind, name] for kind in sharing if (kind, name) in locations]
                location = locations[section, name] = f"{file}: {section}.{name}"
                require(not used, location, name, f"another name than that of {', '.join(used)}")
                is_complete = isinstance(entry, Experiment)
                entries[name] = (
                    entry if is_complete else entry.complete(file_of_paper, name, location)
                )
    # Sorted by number, because an earlier part may contain claims with later numbers.
    sections["claims"] = dict(sorted(sections["claims"].items()))
    return paper.model_copy(update=sections)


def schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON schemas of ``config.yaml``, ``papers/*.yaml`` and ``styles.yaml``."""
    models = {"config": Config, "paper": Paper, "styles": dict[str, Style]}
    contents = {name: TypeAdapter(model).json_schema() for name, model in models.items()}
    definitions = contents["paper"]["$defs"]
    # Validators accept keys of a series in a test, and keys of a test in a variant of a claim.
    keys = {name: definitions[name]["properties"] for name in ("Series", "Test")}
    keys["Test"] |= keys["Series"]
    definitions["TestedVariant"]["properties"] |= keys["Test"]
    return {name: {"$schema": DRAFT} | content for name, content in contents.items()}


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML file with keys and values; an empty file gives an empty mapping."""
    content = yamls.read(path) or {}
    if not isinstance(content, dict):
        raise InvalidInput(os.path.relpath(path), content, "keys with values")
    return content


def resolve_delta(delta: Any, *, agents: int, records: int) -> Any:
    """Compute the delta of a budget; ``{"records_power": k}`` means ``(agents * records)**k``."""
    if not isinstance(delta, Mapping):
        return float(delta) if arguments.is_real(delta) else delta
    power = validate(RecordsPower, delta, "budget.delta.").records_power
    arguments.whole("network.agents", agents, 1)
    arguments.whole("problem.records", records, 1)
    return math.pow(agents * records, power)
