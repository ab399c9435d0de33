"""The audit of one algorithm: it is executed on two neighbouring data sets, and nothing that it
says of itself is believed.

Both data sets are executed from the first line with randomness of their own. Everything that leaves
an agent is looked at by every statistic there is; the noise is recovered where it is said to be
added; and how far the data move what is noised is compared with what is declared.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from ..algorithms.base import Algorithm
from ..errors import InvalidInput, arguments, require
from ..large_networks import SparseNetwork
from ..library import MAX_HORIZON, MAX_RUNS
from ..networks import Network
from ..privacy import Budget, Relation
from ..privacy.audit.sequential import detectable_epsilon, planned_looks
from ..privacy.brackets import lower_bound
from ..privacy.observers import Observer
from ..problems import Problem
from .checks import (
    iterations_declared,
    messages_declared,
    noise_found,
    noise_matters,
    sensitivity_reached,
    sites_and_releases,
)
from .evidence import Evidence, observed
from .judging import ORDERINGS, against_accountant, declaration, judge
from .neighbours import Attack, attacks, one_graph
from .partial import audit_view
from .probing import strongest
from .result import AuditResult
from .sampled_batches import sampled_record_change, sampling_found

OF_BATCHES = 0.1
"""Share of the tests of batches in what the tests of noise may spend."""
OBSERVERS = ("global",)
EARLY = 2
"""The first look is at this part of the runs."""
FEWEST = 40
"""Runs that a statistic can be fitted on and judged by."""


def audit(
    algorithm: Algorithm,
    problem: Any,
    network: Network,
    budget: Budget,
    horizon: int,
    *,
    runs: int,
    confidence: float,
    delta: float,
    relation: Relation | None = None,
    observer: str | Observer = "global",
    calibrated: Algorithm | None = None,
    attack: Attack | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> AuditResult:
    r"""Execute an algorithm on neighbouring data sets and test its claim and its declaration.

    Parameters
    ----------
    algorithm : Algorithm
        Not yet calibrated.
    problem, network
        One record of one agent of the problem is replaced, see :mod:`.neighbours`.
    budget : Budget
        What is to be spent; the claim is the algorithm's statement for it.
    horizon : int
        Iterations.
    runs : int
        On each of two data sets, at most: the audit ends when the question is decided.
    confidence : float
        Of the whole result: with at least this probability a private algorithm that is what it
        declares has no finding.
    delta : float
        At which epsilon is bounded from below; at least the budget's.
    relation : Relation, optional
        Whose statement is tested, of algorithms with several; the first by default.
    observer : "global" or Observer
        Who listens: an eavesdropper who sees every message, whom the statement is for; or one of
        :mod:`private_consensus.privacy.observers`, whose guarantee is tested (:mod:`.partial`).
    calibrated : Algorithm, optional
        The same with its noise set, where that has been done before.
    attack : Attack, optional
        Neighbouring data sets; else those that move the messages most are looked for.
    seed : int
        Another seed executes with other random numbers; the same one gives the same result.
    progress : callable
        Told how many runs are done, and of how many.

    Returns
    -------
    AuditResult

    Raises
    ------
    InvalidInput
        For a number of runs, a level or a delta out of range, an unknown observer or relation, an
        algorithm that claims nothing, or a problem without known neighbours.
    """
    _check_setting(algorithm, problem, network, budget, horizon, seed)
    _check(runs, confidence, delta, budget, observer)
    if relation is not None:
        arguments.instance("relation", relation, Relation, "a Relation or None")
    if calibrated is not None:
        arguments.instance("calibrated", calibrated, Algorithm, "an Algorithm or None")
    if attack is not None:
        arguments.instance("attack", attack, Attack, "an Attack or None")
    arguments.function("progress", progress)
    world = budget, problem, network, horizon
    noisy, claimed = _stated(calibrated or algorithm.calibrate(*world), world, relation)
    require(math.isfinite(claimed), "budget.epsilon", claimed, "a finite claim to be tested")
    chosen = attack or _searched(noisy, problem, network, horizon)
    if isinstance(observer, Observer):
        return audit_view(
            noisy, chosen, horizon, observer,
            runs=runs, confidence=confidence, delta=delta, seed=seed,
        )  # fmt: skip
    declared = declaration(noisy.releases(problem, network, horizon), delta)
    level = (1.0 - confidence) / 2
    looks = planned_looks(runs, first=max(FEWEST, runs // EARLY))
    worlds: list[Evidence] = []
    done = 0
    for look in looks:
        more = look.runs - done
        parts = [observed(noisy, chosen, horizon, done, more, world, seed) for world in (0, 1)]
        worlds = [a.joined(b) for a, b in zip(worlds, parts, strict=True)] if worlds else parts
        done = look.runs
        progress(done, runs)
        spent = 1.0 - level * look.share
        judged = judge(*worlds, claimed, declared, delta=delta, confidence=spent, seed=seed)
        if judged.findings:
            break
    # The declaration is that of the whole problem: an attack may keep only a part of the graph,
    # where agents that are not attacked have fewer neighbours and thus other noise.
    sites = noisy.noise_sites(problem, one_graph(network), horizon)
    of_batches, lower = OF_BATCHES * level, judged.lower
    noise = tuple(noise_found(sites, *worlds, confidence=1.0 - level + of_batches))
    reached, changes = sensitivity_reached(sites, *worlds, declared.epsilon, delta)
    changes += iterations_declared(worlds, horizon)
    changes += messages_declared(sites, worlds)
    changes += noise_matters(noisy, chosen, horizon, seed)
    changes += sites_and_releases(noisy, sites, declared.epsilon, delta)
    releases = noisy.releases(problem, network, horizon)
    assumed = noisy.releases_if_assumed(problem, network, horizon)
    for check in (sampling_found, sampled_record_change):
        test = partial(check, noisy, chosen, horizon, releases)
        changes += test(level=of_batches / 2, seed=seed, runs=runs)
    return AuditResult(
        claimed=claimed, delta=delta, declared=declared.epsilon,
        lower=lower.epsilon, ceiling=lower.ceiling, confidence=confidence,
        relation=str(noisy.relation), observer=observer, runs=done,
        power=detectable_epsilon(
            runs, delta=delta, confidence=1.0 - level * looks[-1].share / len(ORDERINGS)
        ),
        executed=f"{type(noisy).__name__}, {horizon} iterations, {chosen.network.n_agents} agents, "
        f"{chosen.name}",
        statistic=lower.statistic, pvalue=min(1.0, judged.pvalue / look.share),
        bounds=judged.bounds, noise=noise,
        sensitivity=reached, proven=all(release.proven for release in releases),
        computed_lower=lower_bound(releases if assumed is None else assumed, delta).epsilon,
        findings=(
            *judged.findings, *against_accountant(declared, claimed),
            *(finding for one in noise for finding in one.as_findings()), *changes,
        ),
    )  # fmt: skip


def _searched(noisy: Algorithm, problem, network, horizon: int) -> Attack:
    candidates = attacks(problem, one_graph(network), noisy.largest_change, nearby=False)
    return strongest(noisy, candidates, horizon)


def _check(runs, confidence, delta, budget, observer) -> None:
    arguments.whole("runs", runs, FEWEST, MAX_RUNS)
    arguments.number("confidence", confidence, "a number in (0, 1)", lambda v: 0 < v < 1)
    arguments.number("delta", delta, "a number in [0, 1)", lambda v: 0 <= v < 1)
    require(delta >= budget.delta, "delta", delta, f"at least the budget's, {budget.delta:g}")
    known = isinstance(observer, Observer) or (isinstance(observer, str) and observer in OBSERVERS)
    expected = f"one of {', '.join(OBSERVERS)}, or an observer of privacy.observers"
    require(known, "observer", observer, expected)


def _check_setting(algorithm, problem, network, budget, horizon, seed) -> None:
    arguments.instance("algorithm", algorithm, Algorithm, "an Algorithm")
    arguments.instance("problem", problem, Problem, "a Problem")
    arguments.instance("network", network, Network | SparseNetwork, "a Network")
    arguments.instance("budget", budget, Budget, "a Budget")
    arguments.whole("horizon", horizon, 1, MAX_HORIZON)
    arguments.whole("seed", seed, 0)


def _stated(noisy, world, relation) -> tuple[Algorithm, float]:
    statements = noisy.statements(*world)
    if relation is None:
        return statements[0]
    for one, claimed in statements:
        if one.relation == relation:
            return one, claimed
    known = ", ".join(str(one.relation) for one, _ in statements)
    raise InvalidInput("relation", str(relation), f"one of {known}")
