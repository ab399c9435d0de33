"""Pairs of every algorithm on every graph at every epsilon, from ``config/observers.yaml``."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from .. import algorithms, networks, problems
from ..errors import InvalidInput, require
from ..experiments.schema import validate
from ..fast.forks import map_in_forks
from ..privacy import Budget, account, gaussian_mu
from ..privacy.observers import Observer
from ..randomness import Streams
from .causal import Observation, observation
from .epsilon import ObservedEpsilon, of_several
from .table import kinds


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Graph(_Strict):
    """Fixed graph with its title."""

    title: str
    network: dict[str, Any]


class Method(_Strict):
    """Algorithm with its parameters."""

    title: str
    algorithm: dict[str, Any]
    problem: dict[str, Any] | None = Field(default=None, description="instead of that of all")


class Reduced(_Strict):
    """Budgets, graphs and rounds of a smaller scale."""

    epsilons: list[float] = Field(min_length=1)
    graphs: list[str] = Field(min_length=1)
    horizon: int | None = Field(default=None, ge=1, description="where it is shorter")


class Observed(_Strict):
    """Content of ``config/observers.yaml``."""

    delta: float = Field(gt=0, lt=1)
    horizon: int = Field(ge=1, description="rounds of messages")
    epsilons: list[float] = Field(min_length=1, description="of the eavesdropper's account")
    problem: dict[str, Any]
    graphs: dict[str, Graph]
    algorithms: dict[str, Method]
    scales: dict[str, Reduced] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _reduces_what_is_there(self) -> Observed:
        for scale, reduced in self.scales.items():
            for key, known in (("epsilons", self.epsilons), ("graphs", list(self.graphs))):
                for value in getattr(reduced, key):
                    require(value in known, f"scales.{scale}.{key}", value, f"one of {known}")
            rounds = reduced.horizon or self.horizon
            expected = f"at most {self.horizon}"
            require(rounds <= self.horizon, f"scales.{scale}.horizon", rounds, expected)
        return self

    def at(self, scale: str) -> dict[str, Any]:
        """Return the configuration at a scale, as plain values."""
        asked = self.model_dump(mode="json", exclude={"scales"})
        if reduced := self.scales.get(scale):
            asked["epsilons"] = reduced.epsilons
            asked["horizon"] = reduced.horizon or self.horizon
            asked["graphs"] = {name: asked["graphs"][name] for name in reduced.graphs}
        return asked


def read_observed(raw: Mapping[str, Any]) -> Observed:
    """Return the checked configuration of observers.

    Raises
    ------
    ConfigurationError
        With one line for each invalid key.
    """
    return validate(Observed, raw)


def pair_rows(asked: Mapping[str, Any], processes: int = 1) -> list[dict[str, Any]]:
    """Compute one row per graph, algorithm, epsilon, observer and target agent.

    Parameters
    ----------
    asked : mapping
        Result of :meth:`Observed.at`.
    processes : int, default 1
        Number of forked processes for algorithms on graphs. The rows do not depend on it.

    Returns
    -------
    list of dict
        ``graph``, ``algorithm``, ``epsilon`` (the budget), ``accounted`` (the accountant's epsilon
        at the calibrated noise), ``kind`` and ``members`` of the observer, ``victim``, ``distance``
        (edges to the nearest member; null without members), ``lower`` and ``formula`` for fixed
        inputs, ``guarantee``, ``rule``, ``label``, and ``reason`` if there is no formula.
    """
    pairs = list(itertools.product(asked["graphs"], asked["algorithms"]))

    def rows_of(pair: tuple[str, str]) -> list[dict[str, Any]]:
        graph, name = pair
        seen = [observed_in(asked, graph, name, epsilon) for epsilon in asked["epsilons"]]
        return [
            {"graph": graph, "algorithm": name, "epsilon": epsilon, **row}
            for epsilon, rows in zip(asked["epsilons"], _rows_of(seen, asked["delta"]), strict=True)
            for row in rows
        ]

    return list(itertools.chain.from_iterable(map_in_forks(rows_of, pairs, processes)))


def observed_in(asked: Mapping[str, Any], graph: str, name: str, epsilon: float) -> Observation:
    """Calibrate an algorithm of the configuration on one of its graphs.

    Parameters
    ----------
    asked : mapping
        Result of :meth:`Observed.at`.
    graph : str
        Name of the graph.
    name : str
        Name of the algorithm.
    epsilon : float
        Budget of the eavesdropper.

    Returns
    -------
    Observation
    """
    method = asked["algorithms"][name]
    problem = method.get("problem") or asked["problem"]
    streams = Streams(0, (0,), dict.fromkeys(("data", "graph", "noise", "sampling"), "observers"))
    try:
        algorithm, problem, network = calibrated(
            problem, asked["graphs"][graph]["network"], method["algorithm"], streams,
            epsilon=epsilon, delta=asked["delta"], horizon=asked["horizon"],
        )  # fmt: skip
        return observation(algorithm, problem, network, asked["horizon"])
    except InvalidInput as error:
        raise InvalidInput(f"observers.{name} on {graph}", error.value, error.expected) from error


def calibrated(
    problem: Mapping[str, Any], network: Mapping[str, Any], algorithm: Mapping[str, Any],
    streams: Streams, *, epsilon: float, delta: float, horizon: int,
) -> tuple[Any, Any, networks.Network]:  # fmt: skip
    """Build an algorithm with its noise, its problem and its graph, from names and parameters.

    If a graph is sampled for each run, the graph of the first run is used.

    Parameters
    ----------
    problem, network, algorithm : mapping
        ``name`` and parameters.
    streams : Streams
        Random streams.
    epsilon, delta : float
        Budget of the whole run.
    horizon : int
        Number of rounds.

    Returns
    -------
    tuple of Algorithm, Problem and Network
    """
    given = dict(network)
    built: Any = networks.build(streams, given.pop("name"), given.pop("agents"), **given).of_run(0)
    given = dict(problem)
    world = problems.load(given.pop("name")).build(streams, built.n_agents, **given)
    given = dict(algorithm)
    made = algorithms.load(given.pop("name"))(**given)
    return _calibrated(made, epsilon, delta, (world, built, horizon)), world, built


def _calibrated(made: Any, epsilon: float, delta: float, world: tuple[Any, Any, int]) -> Any:
    """Return the algorithm at the noise for which its own account of the run is epsilon."""
    from ..algorithms.dp_ci import ALGORITHM as DPCI
    from ..algorithms.families.consensus_admm import ConsensusADMM

    pure = isinstance(made, DPCI) or getattr(made, "law", "") == "laplace"
    if not isinstance(made, ConsensusADMM):
        return made.calibrate(Budget(epsilon, 0.0 if pure else delta), *world)
    # The paper's budget is per iteration and at most 1: calibrate for it, then scale the noise.
    once = made.calibrate(Budget(0.5, delta), *world)
    share = gaussian_mu(_epsilon_of(once, delta, *world), delta) / gaussian_mu(epsilon, delta)
    return replace(once, noise=float(once.noise.scale * share))


def _epsilon_of(
    algorithm: Any, delta: float, problem: Any, network: networks.Network, horizon: int
) -> float:
    return float(account(algorithm.releases(problem, network, horizon), delta).epsilon)


def _rows_of(every: Sequence[Observation], delta: float) -> Iterator[list[dict[str, Any]]]:
    watching = [list(kinds(seen)) for seen in every]
    cases = [
        (seen, observers)
        for seen, named in zip(every, watching, strict=True)
        for _, observers in named
    ]
    learned = iter(of_several(cases, delta))
    for seen, named in zip(every, watching, strict=True):
        everything = _accounted(seen, delta)
        yield [
            {"accounted": everything, "kind": kind, **row}
            for kind, observers in named
            for observer, victims in zip(observers, next(learned), strict=True)
            for row in _rows_of_one(seen, observer, victims)
        ]


def _rows_of_one(
    seen: Observation, observer: Observer, victims: Mapping[int, ObservedEpsilon]
) -> Iterator[dict[str, Any]]:
    for victim, found in victims.items():
        yield {
            "members": ", ".join(map(str, observer.members)),
            "victim": victim,
            "distance": _distance(seen, observer, victim) if seen.network.n_agents > 1 else None,
            **vars(found),
            "label": found.label,
            "reason": seen.reason,
        }


def _accounted(seen: Observation, delta: float) -> float:
    return _epsilon_of(seen.algorithm, delta, seen.problem, seen.network, seen.horizon)


def _distance(seen: Observation, observer: Observer, victim: int) -> int | None:
    apart = [int(seen.distances[victim, v]) for v in observer.members]
    return min(apart) if apart else None


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the worst and the median pair per graph, algorithm, epsilon and kind of observer.

    Agents are also grouped by distance. A median is no guarantee for any pair.
    """
    keys = ("graph", "algorithm", "epsilon", "accounted", "kind", "distance")
    groups: dict[tuple, list[dict[str, Any]]] = {}
    for row in rows:
        place = {**row, "distance": row["distance"] if row["kind"] == "agent" else None}
        groups.setdefault(tuple(place[key] for key in keys), []).append(row)
    shown = ("lower", "formula", "guarantee", "label", "rule")
    return [
        {**dict(zip(keys, group, strict=True)), "pair": pair, **{key: one[key] for key in shown}}
        for group, members in groups.items()
        for pair, one in _worst_and_median(members)
    ]


def _worst_and_median(rows: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    ordered = sorted(rows, key=lambda row: (row["guarantee"], _finite(row["formula"])))
    return [("worst", ordered[-1]), ("median", ordered[len(ordered) // 2])]


def _finite(value: float) -> float:
    return -1.0 if math.isnan(value) else value
