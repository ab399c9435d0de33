"""Design of the comparison, ``config/comparison.yaml``: the cells and the methods.

There is one base cell per problem. Every other axis is varied separately about it, at every budget.
A space-filling sample of further cells covers interactions: a scrambled Sobol sequence over all
axes, determined by its seed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from typing import Any, Literal

import numpy as np
from pydantic import Field, model_validator

from private_consensus.common.errors import require
from private_consensus.common.fields import Open, Strict, validate
from private_consensus.core.networks import require_buildable
from private_consensus.privacy import Relation

from .schema import ANYONE, OBSERVERS, require_known

BASE, SAMPLE = "base", "sample"
MIN_RATIO = 20
"""Smallest number of records of all agents per public record."""
MAX_SAMPLED_CELLS = 60
"""Maximum number of cells of the sample."""


@dataclass(frozen=True)
class CellConditions:
    """Conditions of a cell, except its budget.

    Parameters
    ----------
    problem : str
        Name of the problem.
    agents : int
        Number of agents.
    graph, partition : str
        Names of the communication graph and of the partition of records to agents.
    missing : float
        Probability that an agent is missing in a round.
    links : float
        Probability that an edge of the graph fails in a round.
    """

    problem: str
    agents: int
    graph: str
    partition: str
    missing: float
    links: float

    @property
    def faulty(self) -> bool:
        """Return True if agents or edges may fail."""
        return bool(self.missing or self.links)


@dataclass(frozen=True)
class Cell:
    """Cell of the comparison: conditions of the agents, and privacy budget.

    Parameters
    ----------
    environment : CellConditions
        Problem, agents, graph, partition and faults.
    epsilon : float
        Budget.
    axis : str
        ``base``, the axis that is varied about the base cell, or ``sample``.
    """

    environment: CellConditions
    epsilon: float
    axis: str

    def row(self) -> dict[str, Any]:
        """Return the cell as a flat mapping."""
        return {**asdict(self.environment), "epsilon": self.epsilon, "axis": self.axis}

    @property
    def key(self) -> tuple[Any, ...]:
        """Values of the columns :data:`.schema.CELL`."""
        return *astuple(self.environment), self.epsilon


class Axes(Strict):
    """Values of each axis; the first value of each is that of the base cell."""

    agents: list[int] = Field(min_length=1)
    """Numbers of agents."""
    graph: list[str] = Field(min_length=1)
    """Communication graphs, by name in `graphs`."""
    partition: list[str] = Field(min_length=1)
    """Partitions of records to agents, by name in `partitions`."""
    missing: list[float] = Field(min_length=1)
    """Probabilities that an agent is missing in a round."""
    links: list[float] = Field(min_length=1)
    """Probabilities that an edge of the graph fails in a round."""


class Titled(Open):
    """Title in the report; keys that are not listed are parameters."""

    title: str = Field(min_length=1)
    """Title in the report."""


class Limits(Strict):
    """Search range of a tuned parameter, in a unit of :class:`.Range`.

    The range of a problem replaces those ranges of algorithms that have its unit: a step and a
    penalty may have the same name. ``natural`` names the reason why no value beyond an end of the
    range is of use.
    """

    unit: Literal["", "step", "curvature", "gradient"] = ""
    """Unit of the range: step (1/L), curvature (L), gradient (G) or none."""
    low: float = Field(gt=0)
    """Smallest value of the search."""
    high: float = Field(gt=0)
    """Largest value of the search."""
    default: float = Field(gt=0)
    """Value if the parameter is not tuned."""
    natural: dict[Literal["low", "high"], str] = Field(default_factory=dict)
    """Reason why values beyond low or beyond high are useless, by limit."""


class ProblemDesign(Titled):
    """Records, number of iterations and search ranges of a problem."""

    records: int = Field(ge=1)
    """Number of records of all agents together."""
    horizon: int = Field(ge=1)
    """Number of iterations of methods whose horizon is not tuned."""
    ranges: dict[str, Limits] = Field(default_factory=dict)
    """Search range of each tuned parameter, in place of that of the algorithm."""


class MethodDesign(Strict):
    """Algorithm or baseline of the comparison, with its tuned and fixed parameters."""

    title: str = Field(min_length=1)
    """Name of the method in the report."""
    observer: str = "eavesdropper"
    """Observer against whom the guarantee holds: eavesdropper, outsider, sums, neighbour, or anyone
    for methods without private records."""
    algorithm: dict[str, Any] = Field(default_factory=dict)
    """Name and fixed parameters of the algorithm."""
    baseline: Literal["", "data_free", "majority", "public_minimiser"] = ""
    """Model without privacy cost, in place of an algorithm."""
    public_start: bool = True
    """True if tuning may start the algorithm at the public model."""
    ranges: dict[str, Limits] = Field(default_factory=dict)
    """Search range of each tuned parameter, in place of the problem's range."""
    per_problem: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Further parameters of the algorithm, by problem or group of problems."""
    horizon: int | None = Field(default=None, ge=1)
    """Number of iterations; default: tuned, or the problem's."""
    tuned: bool = True
    """True if parameters of the method are tuned."""
    proven: bool = True
    """False for a method without a proven guarantee, which has the noise of its paper and no
    rank."""
    problems: list[str] | None = None
    """Problems that the method can solve, or the name of a group; default: all."""
    because: str = ""
    """Version of the method, and reason for excluded problems."""

    @model_validator(mode="before")
    @classmethod
    def _has_known_keys(cls, raw: Any) -> Any:
        require_known("key", raw if isinstance(raw, dict) else (), cls.model_fields)
        return raw

    @model_validator(mode="after")
    def _is_algorithm_or_baseline(self) -> MethodDesign:
        expected = "an algorithm with a name, or a baseline"
        require(
            bool(self.baseline) != bool(self.algorithm), "methods.algorithm",
            dict(self.algorithm), expected,
        )  # fmt: skip
        anyone = "anyone: no record of an agent is used"
        require(
            not self.baseline or self.observer == ANYONE, "methods.observer", self.observer, anyone
        )
        return self

    def among(self, problems: Collection[str]) -> MethodDesign:
        """Return the method restricted to some problems."""
        remaining_problems = self.problems and [name for name in self.problems if name in problems]
        parameters = {name: value for name, value in self.per_problem.items() if name in problems}
        return self.model_copy(update={"problems": remaining_problems, "per_problem": parameters})


class Sample(Strict):
    """Space-filling sample of cells."""

    cells: int = Field(ge=0, le=MAX_SAMPLED_CELLS)
    """Number of sampled cells."""
    seed: int = Field(ge=0)
    """Seed of the sample."""


class Tuning(Strict):
    """Number and seeds of the tuning trials of each method on each problem."""

    trials: int = Field(ge=1)
    """Number of trials per method and problem."""
    seed: int = Field(ge=0)
    """Seed of the search."""
    public_records: int = Field(ge=1)
    """Number of records that no agent holds, for start and selection."""
    checked: list[str] = Field(default_factory=list)
    """Methods whose tuning is compared with a fine grid."""
    checked_on: str = ""
    """Problem on which tuning is compared with a fine grid."""


class Unit(Strict):
    """Neighbouring relation of the comparison."""

    unit: str
    """Protected unit: record or agent."""
    change: str
    """Difference of neighbouring data sets: replace or add_remove."""


class Reduced(Strict):
    """Problems, cells and numbers of runs of the comparison at a smaller scale."""

    problems: list[str] = Field(min_length=1)
    """Problems at this scale."""
    epsilons: list[float] = Field(min_length=1)
    """Total epsilons at this scale."""
    runs: int = Field(ge=1)
    """Number of runs per cell at this scale."""
    records: int | None = Field(default=None, ge=1)
    """Number of records of each problem at this scale."""
    sample: int = Field(ge=0)
    """Number of sampled cells at this scale."""
    trials: int = Field(ge=1)
    """Number of tuning trials at this scale."""
    axes: Axes
    """Values of each axis at this scale."""


class ComparisonDesign(Strict):
    """Content of ``config/comparison.yaml``."""

    delta: float = Field(gt=0, lt=1)
    """Total delta of every method."""
    relation: Unit
    """Neighbouring relation of every guarantee."""
    seed: int = Field(ge=0)
    """Root seed of the random streams."""
    runs: int = Field(ge=1)
    """Number of runs per cell."""
    epsilons: list[float] = Field(min_length=1)
    """Total epsilons of the cells."""
    axes: Axes
    """Conditions that differ between cells."""
    sample: Sample
    """Cells that combine values of several axes."""
    graphs: dict[str, Titled]
    """Communication graphs by name."""
    partitions: dict[str, Titled]
    """Partitions of records to agents by name."""
    problems: dict[str, ProblemDesign]
    """Problems by name."""
    groups: dict[str, list[str]] = Field(default_factory=dict)
    """Groups of problems by name, to which methods refer."""
    tuning: Tuning
    """Selection of the parameters of the methods."""
    jobs: int = Field(default=6, ge=1)
    """Number of workflow jobs among which the methods are divided."""
    methods: dict[str, MethodDesign]
    """Compared methods by name."""
    scales: dict[str, Reduced] = Field(default_factory=dict)
    """Reduced designs by name of the smaller scale."""

    @model_validator(mode="before")
    @classmethod
    def _expand_groups(cls, raw: Any) -> Any:
        if not (isinstance(raw, dict) and isinstance(raw.get("methods"), dict)):
            return raw
        groups = raw.get("groups") or {}
        return {
            **raw,
            "methods": {k: _expanded(k, v, groups) for k, v in raw["methods"].items()},
        }

    @model_validator(mode="after")
    def _has_valid_references(self) -> ComparisonDesign:
        Relation(self.relation.unit, self.relation.change)
        for epsilon in self.epsilons:
            require(0 < epsilon < np.inf, "epsilons", epsilon, "finite numbers above 0")
        _require_axes("axes", self.axes, self)
        for name, group in self.groups.items():
            require_known(f"groups.{name}", group, self.problems)
        for name, method in self.methods.items():
            require_known(f"methods.{name}.observer", [method.observer], OBSERVERS)
            require_known(f"methods.{name}.problems", method.problems or [], self.problems)
            require_known(f"methods.{name}.per_problem", method.per_problem, self.problems)
        min_records = MIN_RATIO * self.tuning.public_records
        expected = f"at least {min_records}: {MIN_RATIO} per public record"
        for name, problem in self.problems.items():
            records = problem.records
            require(records >= min_records, f"problems.{name}.records", records, expected)
        for scale, reduced in self.scales.items():
            require_known(f"scales.{scale}.problems", reduced.problems, self.problems)
            _require_axes(f"scales.{scale}.axes", reduced.axes, self)
        for graph in self.graphs:
            for agents in self.axes.agents:
                name, parameters = network_of(self.graphs[graph], graph, agents)
                require_buildable(name, agents, **parameters)
        return self

    def at(self, scale: str) -> ComparisonDesign:
        """Return the design at a scale; without a declared reduction it is this design."""
        reduced = self.scales.get(scale)
        if reduced is None:
            return self.model_copy(update={"scales": {}})
        methods = {
            name: method.among(reduced.problems)
            for name, method in self.methods.items()
            if method.problems is None or {*method.problems} & {*reduced.problems}
        }
        problems = {}
        for name in reduced.problems:
            records = reduced.records or self.problems[name].records
            problems[name] = self.problems[name].model_copy(update={"records": records})
        tuning = {"trials": reduced.trials, "checked": [], "checked_on": ""}
        return self.model_copy(
            update={
                "problems": problems,
                "groups": {},
                "methods": methods,
                "jobs": 1,
                "scales": {},
                "epsilons": reduced.epsilons,
                "runs": reduced.runs,
                "axes": reduced.axes,
                "sample": self.sample.model_copy(update={"cells": reduced.sample}),
                "tuning": self.tuning.model_copy(update=tuning),
            }
        )

    def methods_of(self, problem: str) -> list[str]:
        """Return the methods that are defined on a problem."""
        return [
            name
            for name, method in self.methods.items()
            if method.problems is None or problem in method.problems
        ]

    @property
    def prepared(self) -> list[str]:
        """Names of the prepared data that the problems read."""
        names = ((p.model_extra or {}).get("prepared") for p in self.problems.values())
        return sorted({name for name in names if name})

    def part(self, job: int) -> dict[str, Any]:
        """Return the design of one job as values for JSON; a job has every ``jobs``-th method."""
        names = list(self.methods)[job :: self.jobs]
        methods = {name: self.methods[name] for name in names}
        checked = [name for name in self.tuning.checked if name in methods]
        tuning = self.tuning.model_copy(update={"checked": checked})
        return self.model_copy(update={"methods": methods, "tuning": tuning}).model_dump(
            mode="json"
        )

    def algorithms_of(self, job: int) -> list[str]:
        """Return the names of the algorithms of one job."""
        methods = self.part(job)["methods"].values()
        return sorted({method["algorithm"]["name"] for method in methods if method["algorithm"]})


def _expanded(name: str, method: Any, groups: Mapping[str, list[str]]) -> Any:
    if not isinstance(method, dict):
        return method
    changed = dict(method)
    if isinstance(method.get("problems"), str):
        require_known(f"methods.{name}.problems", [method["problems"]], groups)
        changed["problems"] = groups[method["problems"]]
    if isinstance(method.get("per_problem"), dict):
        changed["per_problem"] = {
            problem: values
            for key, values in method["per_problem"].items()
            for problem in groups.get(key, [key])
        }
    return changed


def _require_axes(key: str, axes: Axes, design: ComparisonDesign) -> None:
    require_known(f"{key}.graph", axes.graph, design.graphs)
    require_known(f"{key}.partition", axes.partition, design.partitions)
    for name in ("missing", "links"):
        for value in getattr(axes, name):
            require(0 <= value < 1, f"{key}.{name}", value, "probabilities below 1")


def read_comparison(raw: Mapping[str, Any], name: str = "") -> ComparisonDesign:
    """Return the checked configuration of the comparison.

    Parameters
    ----------
    raw : mapping
        Content of the file.
    name : str, optional
        Name with which error lines start.

    Returns
    -------
    ComparisonDesign

    Raises
    ------
    ConfigurationError
        With one line for each invalid key.
    """
    return validate(ComparisonDesign, raw, prefix=name)


def network_of(declared: Titled, name: str, agents: int) -> tuple[str, dict[str, Any]]:
    """Return name and parameters of a graph with a number of agents.

    Parameters
    ----------
    declared : Titled
        Graph of the design. A parameter may be a mapping from numbers of agents to values.
    name : str
        Name of the graph.
    agents : int
        Number of agents.

    Returns
    -------
    tuple of str and dict

    Raises
    ------
    InvalidInput
        If a parameter that depends on the number of agents has no value for this one.
    """
    parameters = {
        key: _by_agents(f"graphs.{name}.{key}", value, agents) if isinstance(value, dict) else value
        for key, value in (declared.model_extra or {}).items()
    }
    return name, {"weights": "metropolis", **parameters}


def _by_agents(key: str, values: Mapping[Any, Any], agents: int) -> Any:
    # A job reads its design from JSON, whose keys are strings.
    by_agents = {int(number): value for number, value in values.items()}
    require(agents in by_agents, key, sorted(by_agents), f"a key for {agents} agents")
    return by_agents[agents]


def cells(design: ComparisonDesign) -> list[Cell]:
    """Return all distinct cells of a design: base, each axis varied separately, sample."""
    by_key = {(cell.environment, cell.epsilon): cell for cell in _star(design)}
    return [*by_key.values(), *_sample(design, set(by_key))]


def _star(design: ComparisonDesign) -> Iterator[Cell]:
    """Yield the base cells and their neighbours along each axis."""
    axes = {name: getattr(design.axes, name) for name in Axes.model_fields}
    for problem in design.problems:
        base = CellConditions(problem, **{name: values[0] for name, values in axes.items()})
        conditions_by_axis = [(BASE, base)]
        conditions_by_axis += [
            (name, replace(base, **{name: value}))
            for name, values in axes.items()
            for value in values[1:]
        ]
        for axis, environment in conditions_by_axis:
            for epsilon in design.epsilons:
                yield Cell(environment, epsilon, axis)


def _sample(
    design: ComparisonDesign, existing: set[tuple[CellConditions, float]]
) -> Iterator[Cell]:
    """Yield further cells from a scrambled Sobol sequence, without existing cells."""
    from scipy.stats import qmc  # slow to import

    axes: dict[str, list] = {"problem": list(design.problems)}
    axes |= {name: getattr(design.axes, name) for name in Axes.model_fields}
    axes["epsilon"] = design.epsilons
    sequence = qmc.Sobol(len(axes), rng=np.random.default_rng(design.sample.seed))
    total_cells = int(np.prod([len(values) for values in axes.values()]))
    total = min(len(existing) + design.sample.cells, total_cells)
    while len(existing) < total:
        (point,) = sequence.random(1)
        values = {
            name: choices[int(coordinate * len(choices))]
            for (name, choices), coordinate in zip(axes.items(), point, strict=True)
        }
        epsilon = values.pop("epsilon")
        environment = CellConditions(**values)
        if (environment, epsilon) not in existing:
            existing.add((environment, epsilon))
            yield Cell(environment, epsilon, SAMPLE)


def described(
    design: ComparisonDesign,
    absent: list[dict[str, Any]],
    borders: Sequence[Mapping[str, Any]] = (),
    tuning_check: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return the content of ``cells.json``.

    Parameters
    ----------
    design : ComparisonDesign
        Design of the comparison.
    absent : list of dict
        ``method``, ``because`` and the keys of an environment to which the entry applies.
    borders : sequence of mapping
        Positions of the tuned parameters in their ranges.
    tuning_check : sequence of mapping
        Losses after tuning and on a fine grid.

    Returns
    -------
    dict
        ``delta``, ``relation``, ``runs``, ``trials``, ``public_records``, ``records`` (by problem),
        ``epsilons``, ``axes`` (values, base first), ``titles`` (of problems, graphs, partitions),
        ``methods`` (name, title, observer, algorithm, baseline, because), ``cells`` (rows of
        :meth:`Cell.row`), ``absent``, ``borders``, ``tuning_check``.
    """
    return {
        "delta": design.delta,
        "relation": str(Relation(design.relation.unit, design.relation.change)),
        "runs": design.runs,
        "trials": design.tuning.trials,
        "public_records": design.tuning.public_records,
        "records": {name: declared.records for name, declared in design.problems.items()},
        "epsilons": design.epsilons,
        "axes": design.axes.model_dump(),
        "titles": {
            "problem": {name: declared.title for name, declared in design.problems.items()},
            "graph": {name: declared.title for name, declared in design.graphs.items()},
            "partition": {name: declared.title for name, declared in design.partitions.items()},
        },
        "methods": [
            {
                "name": name,
                "title": method.title,
                "observer": method.observer,
                "algorithm": method.algorithm.get("name", ""),
                "baseline": method.baseline,
                "because": method.because,
            }
            for name, method in design.methods.items()
        ],
        "cells": [cell.row() for cell in cells(design)],
        "absent": absent,
        "borders": list(borders),
        "tuning_check": list(tuning_check),
    }
