"""Privacy losses of all agents to all observers, for ``config/observers.yaml``."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pydantic import Field, model_validator

from private_consensus.audits.views.causal import Observation, observation
from private_consensus.audits.views.epsilon import epsilons
from private_consensus.audits.views.table import kinds
from private_consensus.common.errors import InvalidInput, require
from private_consensus.common.fields import Strict, validate
from private_consensus.core import algorithms, networks
from private_consensus.core.randomness import Streams
from private_consensus.kernels.forks import map_in_forks
from private_consensus.privacy import Budget, account, gaussian_mu

from ..experiments.cells import environment_of


class Graph(Strict):
    """Communication graph with its title."""

    title: str
    """Name of the graph in the report."""
    network: dict[str, Any]
    """Graph family, number of agents and weights."""


class ObservedMethod(Strict):
    """Observed algorithm with its parameters."""

    title: str
    """Name of the algorithm in the report."""
    algorithm: dict[str, Any]
    """Name and parameters of the algorithm."""
    problem: dict[str, Any] | None = None
    """Problem of this algorithm; default: the common problem."""


class ReducedObservers(Strict):
    """Budgets, graphs and rounds of a smaller scale."""

    epsilons: list[float] = Field(min_length=1)
    """Total epsilons at this scale."""
    graphs: list[str] = Field(min_length=1)
    """Names of graphs at this scale."""
    horizon: int | None = Field(default=None, ge=1)
    """Number of rounds at this scale; default: unchanged."""


class Observed(Strict):
    """Content of ``config/observers.yaml``."""

    delta: float = Field(gt=0, lt=1)
    """Delta of every guarantee."""
    horizon: int = Field(ge=1)
    """Number of rounds of messages."""
    epsilons: list[float] = Field(min_length=1)
    """Total epsilons against the eavesdropper, for which noise is calibrated."""
    problem: dict[str, Any]
    """Name and parameters of the common problem."""
    graphs: dict[str, Graph]
    """Communication graphs by name."""
    algorithms: dict[str, ObservedMethod]
    """Observed algorithms by name."""
    scales: dict[str, ReducedObservers] = Field(default_factory=dict)
    """Reductions by name of the smaller scale."""

    @model_validator(mode="after")
    def _require_known_values(self) -> Observed:
        """Raise an error if a smaller scale has values that the configuration lacks."""
        for scale, reduced in self.scales.items():
            for key, values, allowed in (
                ("epsilons", reduced.epsilons, self.epsilons),
                ("graphs", reduced.graphs, list(self.graphs)),
            ):
                for value in values:
                    require(value in allowed, f"scales.{scale}.{key}", value, f"one of {allowed}")
            rounds = reduced.horizon or self.horizon
            expected = f"at most {self.horizon}"
            require(rounds <= self.horizon, f"scales.{scale}.horizon", rounds, expected)
        return self

    def at(self, scale: str) -> dict[str, Any]:
        """Return the configuration at a scale, as plain values."""
        configuration = self.model_dump(mode="json", exclude={"scales"})
        if reduced := self.scales.get(scale):
            configuration["epsilons"] = reduced.epsilons
            configuration["horizon"] = reduced.horizon or self.horizon
            configuration["graphs"] = {
                name: configuration["graphs"][name] for name in reduced.graphs
            }
        return configuration


def read_observed(raw: Mapping[str, Any]) -> Observed:
    """Return the checked configuration of observers.

    Raises
    ------
    ConfigurationError
        With one line for each invalid key.
    """
    return validate(Observed, raw)


def pair_rows(configuration: Mapping[str, Any], processes: int = 1) -> list[dict[str, Any]]:
    """Compute the privacy loss per graph, algorithm, epsilon, observer and target agent.

    Parameters
    ----------
    configuration : mapping
        Result of :meth:`Observed.at`.
    processes : int, default 1
        Number of forked processes for algorithms on graphs. The rows do not depend on it.

    Returns
    -------
    list of dict
        ``graph``, ``algorithm``, ``epsilon`` (the budget), ``accounted`` (the accountant's epsilon
        at the calibrated noise), ``kind`` and ``members`` of the observer, ``target_agent``,
        ``distance`` (edges to the nearest member; null without members), ``lower`` and ``formula``
        for fixed inputs, ``guarantee``, ``rule``, ``label``, and ``reason`` if there is no formula.
    """
    pairs = list(itertools.product(configuration["graphs"], configuration["algorithms"]))

    def rows_of(pair: tuple[str, str]) -> list[dict[str, Any]]:
        graph, name = pair
        return [
            {"graph": graph, "algorithm": name, "epsilon": epsilon, **row}
            for epsilon in configuration["epsilons"]
            for row in _rows_of(
                observed_in(configuration, graph, name, epsilon), configuration["delta"]
            )
        ]

    return list(itertools.chain.from_iterable(map_in_forks(rows_of, pairs, processes)))


def observed_in(
    configuration: Mapping[str, Any], graph: str, name: str, epsilon: float
) -> Observation:
    """Calibrate an algorithm of the configuration on one graph, for an analysis of its messages.

    Parameters
    ----------
    configuration : mapping
        Result of :meth:`Observed.at`.
    graph : str
        Name of the graph.
    name : str
        Name of the algorithm.
    epsilon : float
        Total epsilon against the eavesdropper.

    Returns
    -------
    Observation
    """
    method = configuration["algorithms"][name]
    problem = method.get("problem") or configuration["problem"]
    streams = Streams(0, (0,), dict.fromkeys(("data", "graph", "noise", "sampling"), "observers"))
    try:
        algorithm, problem, network = calibrated(
            problem, configuration["graphs"][graph]["network"], method["algorithm"], streams,
            epsilon=epsilon, delta=configuration["delta"], horizon=configuration["horizon"],
        )  # fmt: skip
        return observation(algorithm, problem, network, configuration["horizon"])
    except InvalidInput as error:
        raise InvalidInput(f"observers.{name} on {graph}", error.value, error.expected) from error


def calibrated(
    problem: Mapping[str, Any], network: Mapping[str, Any], algorithm: Mapping[str, Any],
    streams: Streams, *, epsilon: float, delta: float, horizon: int,
) -> tuple[Any, Any, networks.Network]:  # fmt: skip
    """Build a graph, a problem and an algorithm with calibrated noise, from their parameters.

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
    environment = environment_of({"problem": problem, "network": network}, {})
    graph: Any = environment.network(streams).of_run(0)
    instance = environment.problem(streams)
    parameters = dict(algorithm)
    unscaled = algorithms.load(parameters.pop("name"))(**parameters)
    return _calibrated(unscaled, epsilon, delta, (instance, graph, horizon)), instance, graph


def _calibrated(
    algorithm: Any, epsilon: float, delta: float, instance: tuple[Any, Any, int]
) -> Any:
    """Calibrate the noise so that the accountant's epsilon of the run is ``epsilon``."""
    from private_consensus.core.algorithms.dp_ci import ALGORITHM as DPCI
    from private_consensus.core.algorithms.families.consensus_admm import ConsensusADMM

    pure = isinstance(algorithm, DPCI) or getattr(algorithm, "law", "") == "laplace"
    if not isinstance(algorithm, ConsensusADMM):
        return algorithm.calibrate(Budget(epsilon, 0.0 if pure else delta), *instance)
    # The paper's budget is per iteration and at most 1: calibrate for it, then scale the noise.
    per_iteration = algorithm.calibrate(Budget(0.5, delta), *instance)
    factor = gaussian_mu(epsilon_of(per_iteration, delta, *instance), delta) / gaussian_mu(
        epsilon, delta
    )
    return replace(per_iteration, noise=float(per_iteration.noise.scale * factor))


def epsilon_of(
    algorithm: Any, delta: float, problem: Any, network: networks.Network, horizon: int
) -> float:
    """Return the accountant's epsilon of a run.

    Parameters
    ----------
    algorithm : Algorithm
        Algorithm with its noise.
    delta : float
        Delta of the guarantee.
    problem : Problem
        Problem of the run.
    network : Network
        Network of the run.
    horizon : int
        Number of rounds.

    Returns
    -------
    float
    """
    return float(account(algorithm.releases(problem, network, horizon), delta).epsilon)


def _rows_of(observed: Observation, delta: float) -> Iterator[dict[str, Any]]:
    """Yield the rows of all observers of one run."""
    instance = observed.problem, observed.network, observed.horizon
    accounted = epsilon_of(observed.algorithm, delta, *instance)
    for kind, observers in kinds(observed):
        for observer in observers:
            for target, loss in epsilons(observed, observer, delta).items():
                distances = (int(observed.distances[target, v]) for v in observer.members)
                yield {
                    "accounted": accounted,
                    "kind": kind,
                    "members": ", ".join(map(str, observer.members)),
                    "target_agent": target,
                    "distance": min(distances, default=None)
                    if observed.network.n_agents > 1
                    else None,
                    **vars(loss),
                    "label": loss.label,
                    "reason": observed.reason,
                }


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the worst and the median pair per graph, algorithm, epsilon and kind of observer.

    Agents are also grouped by distance. A median is no guarantee for any pair.
    """
    keys = ("graph", "algorithm", "epsilon", "accounted", "kind", "distance")
    groups: dict[tuple, list[dict[str, Any]]] = {}
    for row in rows:
        labelled = {**row, "distance": row["distance"] if row["kind"] == "agent" else None}
        groups.setdefault(tuple(labelled[key] for key in keys), []).append(row)
    columns = ("lower", "formula", "guarantee", "label", "rule")
    return [
        {
            **dict(zip(keys, group, strict=True)),
            "pair": pair,
            **{key: row_of_pair[key] for key in columns},
        }
        for group, members in groups.items()
        for pair, row_of_pair in _worst_and_median(members)
    ]


def _worst_and_median(rows: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """Return the rows with the largest and the median guarantee."""
    ordered = sorted(rows, key=lambda row: (row["guarantee"], _before_numbers(row["formula"])))
    return [("worst", ordered[-1]), ("median", ordered[len(ordered) // 2])]


def _before_numbers(value: float) -> float:
    """Return -1 in place of NaN, for sorting."""
    return -1.0 if math.isnan(value) else value
