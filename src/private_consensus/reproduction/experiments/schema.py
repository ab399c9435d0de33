"""Define the keys and values that a configuration may contain; unknown keys are errors."""

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
from private_consensus.common.fields import Flag, Number, Whole
from private_consensus.common.secrets import redacted
from private_consensus.core import algorithms, problems
from private_consensus.core.networks import GRAPHS, MIXINGS

from ..claims import Claim
from ..datasets import PREPARATIONS
from .citations import cited

Reading = Literal["resolved", "literal", "ablation"]
Slug = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,99}$")]
"""Of a figure, a table or a claim: of a file, a target and a place on a page too."""
M = TypeVar("M", bound=BaseModel)
TOPOLOGIES = (*GRAPHS, "single")
SMOKE = "smoke"
SCALES = ("paper", SMOKE)
"""Scales that there always are; a study may declare others. ``results/reference`` is none of them:
only publishing writes there."""


def one_of(names: Sequence[str] | Callable[[], Sequence[str]]):
    """Return a check that refuses all other names.

    Parameters
    ----------
    names : sequence of str or callable
        Allowed names. A callable is called by each check, because the modules that it imports may
        import this module.
    """

    def check(name: str) -> str:
        allowed = names() if callable(names) else names
        if name not in allowed:
            raise ValueError(f"expected one of {', '.join(allowed)}")
        return name

    return check


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Open(BaseModel):
    """A named thing whose further keys are parameters of what the name stands for."""

    model_config = ConfigDict(extra="allow", frozen=True)


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
    prepared: Annotated[str, AfterValidator(one_of(tuple(PREPARATIONS)))] | None = None


class NetworkConfig(Open):
    name: Annotated[str, AfterValidator(one_of(TOPOLOGIES))]
    agents: Whole = Field(ge=1)
    weights: Annotated[str, AfterValidator(one_of(tuple(MIXINGS)))] = "laplacian"
    probability: Number | None = Field(default=None, gt=0, le=1)

    @field_validator("agents")
    @classmethod
    def _alone_or_not(cls, agents, info):
        single = info.data.get("name") == "single"
        if single != (agents == 1):
            raise ValueError("expected 1 for single" if single else "expected 2 or more")
        return agents


class Axis(Strict):
    """A grid: what the columns of a figure's numbers are."""

    set: str = Field(description="dotted path of the value that the axis sets, e.g. budget.epsilon")
    values: list[Number | Whole | str] = Field(min_length=1)
    source: Literal["printed", "chosen"]
    because: str = ""

    @model_validator(mode="after")
    def _chosen_for_a_reason(self):
        if self.source == "chosen" and not self.because:
            raise ValueError("because: a chosen grid needs a reason")
        return self

    @field_validator("values")
    @classmethod
    def _each_once(cls, values):
        if len(set(values)) < len(values):
            raise ValueError("expected each value once")
        return values


class Tuned(Strict):
    """Parameters selected by a grid search of the same algorithm in another experiment.

    For each point of the axes that both experiments have, the grid point with the smallest mean
    error is selected. The error is that of the last iteration, or its mean over all iterations. The
    grid then has this mean among its ``averages``.
    """

    experiment: str
    run: str = Field(description="variant of that experiment")
    quantity: str
    metric: str
    criterion: Literal["last", "mean"]
    over: dict[str, str] = Field(
        min_length=1, description="axes of the grid, each with the path of the value that it sets"
    )


class Variant(Strict):
    """Named combination of an algorithm's parameters, with its interpretation of the paper."""

    reading: Reading
    because: str
    set: dict[str, Any] = Field(default_factory=dict)
    tuned: Tuned | None = None


class Reduced(Strict):
    """Changes of an experiment at a smaller scale."""

    runs: Whole | None = Field(default=None, ge=1)
    block: Whole | None = Field(default=None, ge=1, le=10_000)
    axes: dict[str, list[Number | Whole | str]] = Field(default_factory=dict)
    set: dict[str, Any] = Field(default_factory=dict)


class Choice(Strict):
    """Unspecified or contradictory detail of a paper: its text, and the resolution used here."""

    about: str
    literal: str
    resolved: str
    because: str


class Courses(Strict):
    """Measures and settings that are recorded at intermediate iterations of an experiment."""

    where: dict[str, Any] = Field(
        default_factory=dict,
        description="values of axes; other settings are measured at the last iteration only",
    )
    measures: list[tuple[str, str]] = Field(
        default_factory=list, description="(quantity, metric) pairs; default: all"
    )


class Experiment(Strict):
    title: str
    place: str = Field(description="location in the paper")
    problem: ProblemConfig
    network: NetworkConfig
    budget: BudgetConfig
    horizon: Whole = Field(ge=1)
    runs: Whole = Field(ge=1)
    block: Whole = Field(
        default=10,
        ge=1,
        le=10_000,
        description="runs computed together; more if there are few settings",
    )
    axes: dict[Slug, Axis]
    algorithms: dict[Annotated[str, AfterValidator(one_of(algorithms.names))], dict[Slug, Variant]]
    measures: list[tuple[str, str]] = Field(min_length=1, description="(quantity, metric) pairs")
    iterations: list[Whole] | Literal["all"] = Field(
        default_factory=list, description="recorded iterations in addition to the last"
    )
    courses: Courses | None = Field(
        default=None, description="restriction of the measurements before the last iteration"
    )
    averages: list[tuple[str, str]] = Field(
        default_factory=list,
        description="(quantity, metric) pairs measured as their mean over all iterations",
    )
    divergence: Literal["raise", "record"] = Field(
        default="raise", description="treatment of runs whose values become infinite"
    )
    groups: dict[Literal["data", "graph", "noise", "sampling"], str | dict[str, str]] = Field(
        default_factory=dict, description="names of random streams, for all algorithms or for each"
    )
    choices: list[Choice] = Field(default_factory=list)
    oracles: list[str] = Field(
        default_factory=list,
        description="choices made with private outcomes and outside the budget",
    )
    scales: dict[str, Reduced] = Field(default_factory=dict)


class Curve(Strict):
    """Specification of one curve: a run variant, its measure, and the displayed name."""

    algorithm: str
    experiment: str = Field(default="", description="replaces that of the panel")
    run: str = Field(description="variant of the experiment")
    variant: str = Field(description="name of the curve's style")
    reading: Reading
    quantity: str
    metric: str
    where: dict[str, Any] = Field(
        default_factory=dict, description="values of axes, t or run to show; a pair is a range"
    )
    last: Flag = Field(default=False, description="true: use the last recorded iteration only")
    series: str = Field(
        default="", description="label that distinguishes the curves of one variant"
    )
    low: tuple[str, str] | None = Field(
        default=None,
        description="(quantity, metric) of the band's lower end; requires high and band",
    )
    high: tuple[str, str] | None = None
    band: str = Field(default="", description="meaning of low and high, in words")
    interval: Literal["standard error", "standard deviation", "range"] = Field(
        default="standard error", description="error of the mean, or smallest and largest run"
    )
    by: str | None = Field(default=None, description="axis with one curve per value")
    by_title: str = Field(default="", description="title of that axis in the legend")
    x: str | None = Field(default=None, description="x axis, replaces that of the panel")
    statistic: Literal["mean", "median"] | None = Field(
        default=None, description="replaces that of the panel"
    )


class Partition(Strict):
    """A partition of prepared data to agents."""

    prepared: Annotated[str, AfterValidator(one_of(tuple(PREPARATIONS)))]
    kind: Literal["iid", "dirichlet", "unequal"]
    agents: Whole = Field(ge=2)
    records: Whole = Field(ge=1, description="mean number of records per agent")
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


class Panel(Strict):
    """Curves of one experiment, or a graph, a data partition, or views of observers."""

    title: str
    experiment: str = ""
    graph: Flag = Field(default=False, description="true: draw the communication graph")
    partition: Partition | None = Field(
        default=None, description="distribution of records to the agents"
    )
    views: Views | None = Field(default=None, description="privacy loss to observers")
    where: dict[str, Any] = Field(default_factory=dict, description="values of axes for all curves")
    x: str = Field(
        default="", description="an axis, t, a column of the privacy table, or a measured quantity"
    )
    x_title: str = ""
    y_title: str = ""
    log_x: Flag = True
    log_y: Flag = True
    y_domain: tuple[Number, Number] | None = None
    statistic: Literal["mean", "median"] = Field(
        default="mean", description="mean with standard error, or median with quartiles"
    )
    goals: list[Number] = Field(
        default_factory=list,
        description="cost to reach a goal: for each of these measurements, the least x that "
        "reaches it for good",
    )
    curves: list[Curve] = Field(default_factory=list)

    @model_validator(mode="after")
    def _one_of_four(self):
        alone = (self.partition is not None) + (self.views is not None)
        drawn = self.graph + alone
        if drawn > 1 or bool(drawn) == bool(self.curves) or bool(drawn) == bool(self.x):
            kinds = "graph: true, or partition, or views"
            raise ValueError(f"expected either x and at least one curve, or {kinds}")
        if bool(self.experiment) == bool(alone):
            raise ValueError("expected an experiment for curves and graphs, and none for others")
        return self


class Figure(Strict):
    title: str
    caption: str
    panels: list[Panel] = Field(min_length=1)
    columns: Whole | None = Field(default=None, ge=1, description="panels per row")
    note: str = Field(default="", description="remark on the data, below the title")
    added: Flag = Field(default=False, description="true: not a figure or table of the paper")

    @model_validator(mode="after")
    def _titles_differ(self):
        titles = [panel.title for panel in self.panels]
        if twice := sorted({title for title in titles if titles.count(title) > 1}):
            raise ValueError(f"expected a title of its own for each panel, found twice: {twice}")
        return self


class Method(Strict):
    """Single method of a table, with the numbers that the paper publishes for it."""

    label: str
    algorithm: str
    run: str = Field(description="variant of the experiment")
    reading: Reading
    where: dict[str, Any] = Field(default_factory=dict, description="values of axes to show")
    printed: list[tuple[Number, Number, Number]] = Field(
        default_factory=list, description="value of the rows' axis, mean and standard deviation"
    )


class Block(Strict):
    """Rows of a table that share an experiment."""

    label: str
    experiment: str
    methods: list[Method] = Field(min_length=1)


class Table(Strict):
    """Computed and published measurements, one row per axis value and method."""

    title: str
    caption: str
    rows: str = Field(description="axis with one row per value")
    row_title: str
    values: list[Number] = Field(
        default_factory=list, description="rows to show; default: all values"
    )
    quantity: str
    metric: str
    beside: dict[str, tuple[str, str]] = Field(
        default_factory=dict, description="(quantity, metric) of further columns, by title"
    )
    printed_runs: Whole = Field(
        default=1, ge=1, description="runs behind a published standard deviation"
    )
    blocks: list[Block] = Field(min_length=1)
    added: Flag = Field(default=False, description="true: not a figure or table of the paper")


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
    runs: Whole | None = Field(
        default=None,
        ge=1,
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
