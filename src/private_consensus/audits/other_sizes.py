"""Check of a problem of another size: more agents on an irregular graph, and a smaller budget.

A guarantee is one for every problem, graph and budget that an algorithm accepts. A branch on the
number of agents or a factor that depends on degrees has no effect on a small complete graph. This
check calibrates the algorithm for another problem and computes the exact cost of the most distant
records of every agent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from private_consensus.core.algorithms.base import Algorithm
from private_consensus.core.networks import Network, metropolis_mixing
from private_consensus.privacy import Budget

from .exact_costs import exact_costs
from .finders import universe_of
from .judging import DeclaredSetting, against_accountant
from .neighbours import Attack, attacks
from .result import CheckReport, Untested

EDGES = (*((0, agent) for agent in range(1, 8)), (1, 2), (2, 3), (1, 3), (4, 5), (7, 8))
"""Edges of a graph with degrees 1, 2, 3 and 7."""
DIM, HORIZON = 5, 4
FRACTION = 0.25
"""Fraction of the audited epsilon."""


def irregular_graph() -> Network:
    """Return the graph of :data:`EDGES` with Metropolis weights."""
    adjacency = np.zeros((1 + max(map(max, EDGES)),) * 2, bool)
    adjacency[tuple(np.transpose(EDGES))] = True
    adjacency |= adjacency.T
    return Network(adjacency, metropolis_mixing(adjacency))


def audit_other_size(
    algorithm: Algorithm, problem: Any, budget: Budget, horizon: int, delta: float, *, seed: int
) -> CheckReport:
    """Test the exact costs and the account of an algorithm on a problem of another size.

    The kind of the problem, its number of records and its bounds are retained, and the horizon is
    at most :data:`HORIZON`. The report has no decisive parts: an algorithm need not run on every
    problem.
    """
    universe, network = universe_of(problem), irregular_graph()
    resized = None
    if universe is not None:
        resized = universe.resized(network.n_agents, DIM, np.random.default_rng(seed))
    if resized is None:
        return CheckReport()
    smaller = Budget(FRACTION * budget.epsilon, budget.delta)
    setting = resized, network, min(horizon, HORIZON)
    size = (
        f"{network.n_agents} agents on an irregular graph of degrees 1 to 7, {DIM} coordinates, "
        f"epsilon {smaller.epsilon:g}"
    )
    try:
        noisy, claimed = algorithm.calibrate(smaller, *setting).statements(smaller, *setting)[0]
        declared_setting = DeclaredSetting(noisy, *setting, delta)
        pairs = list(_pairs(noisy, resized, network))
        exact = exact_costs(declared_setting, pairs, seed=seed)
        account_findings = against_accountant(declared_setting.declared, claimed)
    except Exception as error:  # code from outside may raise anything
        return CheckReport(untested=(Untested(size, f"{type(error).__name__}: {error}", False),))
    findings = (*account_findings, *exact.findings)
    return _at_size(size, replace(exact, findings=findings), decisive=False)


def audit_requested_horizon(
    setting: DeclaredSetting, attacks: Sequence[Attack], *, seed: int
) -> CheckReport:
    """Compute exact costs for the requested horizon, if the audit executes a longer one.

    Some faults depend on the horizon, for example a last message without noise.
    """
    exact = exact_costs(setting, attacks, seed=seed)
    return _at_size(f"{setting.horizon} iterations", exact, decisive=True)


def _at_size(size: str, exact: CheckReport, *, decisive: bool) -> CheckReport:
    """Name the size in the findings and in the decisive untested parts of exact costs."""
    findings = tuple(
        replace(finding, text=f"with {size}: {finding.text}") for finding in exact.findings
    )
    untested = tuple(
        Untested(f"{size}: {gap.item}", gap.reason, decisive)
        for gap in exact.untested
        if gap.decisive
    )
    return CheckReport(findings, sites=exact.sites and (size,), untested=untested)


def _pairs(algorithm: Algorithm, problem: Any, network: Network) -> Iterator[Attack]:
    """Yield attacks on every agent: replace one record, or all records if the unit is an agent."""
    universe = universe_of(problem)
    for agent in range(network.n_agents):
        if universe is not None and algorithm.relation.unit == "agent":
            yield from universe.agent_data(network, agent, np.random.default_rng(0))
        else:
            options = {"nearby": False, "agents": [agent], "compressed": False}
            yield from attacks(problem, network, algorithm, **options)
