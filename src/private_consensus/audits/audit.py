"""The audit of one algorithm: execute it on neighbouring data sets, and test claim and declaration.

Nothing that the algorithm states about itself is relied on. Three kinds of tests share the error
level of the result:

- the exact cost of pairs of data sets of every agent, from the response of all messages to all
  noise draws (:mod:`.exact_costs`);
- statistics of independent executions on both data sets, for at least one agent of each class of
  structurally equal agents, and for the first ten agents of new code;
- the distribution of the noise that is recovered at the declared sites.

Parts that no test covers are listed in the result. If one of them could hide a fault, the verdict
is "inconclusive".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from private_consensus.common.errors import InvalidInput, arguments, require
from private_consensus.core.algorithms.base import Algorithm
from private_consensus.core.networks import Network
from private_consensus.core.problems import Problem
from private_consensus.core.simulation import MAX_HORIZON, MAX_RUNS
from private_consensus.kernels.compiling import threads
from private_consensus.kernels.forks import map_in_forks
from private_consensus.privacy import Budget, Relation, gaussian_epsilon
from private_consensus.privacy.audit.sequential import detectable_epsilon, planned_looks

from .checks import (
    form_of_messages,
    iterations_declared,
    messages_declared,
    noise_found,
    sensitivity_reached,
    silent_messages,
    sites_and_releases,
    source_of_noise,
    unrecovered_noise,
)
from .control_flow import audit_control_flow, branches_not_executed
from .declared_limits import audit_horizon
from .drawn_noise import audit_drawn_noise
from .evidence import FEWER_NOISE_NUMBERS, NOISE_NUMBERS, Evidence, observed
from .exact_costs import exact_costs, size_of_noise_differs
from .floating_point import audit_floating_point
from .hidden_inputs import audit_calibration, kept_variables
from .joint_changes import DERIVED_SITE, JOINT_SITE, has_declared_joint_cost, is_derived
from .judging import (
    ORDERINGS,
    Declaration,
    DeclaredSetting,
    Judged,
    against_accountant,
    changes_per_pair,
    declaration,
    judge,
    releases_of_pairs,
)
from .later_messages import later_messages
from .neighbours import Attack, one_graph
from .noise_recovery import recovers_noise_itself
from .other_sizes import audit_other_size, audit_requested_horizon
from .outputs import audit_outputs, pairs_of_outputs
from .probing import (
    agent_classes,
    coupled_difference,
    is_foreign,
    pairs_of_agents,
    proposed_pairs,
    strongest,
    untried_positions,
)
from .received_state import audit_presence_of_noise, audit_received_state
from .repeated_values import (
    audit_missing_noise,
    audit_repeated_later_values,
    audit_repeated_values,
)
from .replay import executed_lines, source_files
from .result import (
    NOTE,
    AuditResult,
    CheckReport,
    Coverage,
    Finding,
    NoiseFound,
    Untested,
    listed,
)
from .sampled_batches import INCLUSIONS, sampled_record_change, sampling_found
from .supports import audit_supports

OF_CHECKS = 0.1
"""Fraction of the error level of the noise tests that :data:`CHECKS` and outputs share."""
CHECKS: tuple[Callable[..., CheckReport], ...] = (
    sampling_found,
    sampled_record_change,
    later_messages,
    silent_messages,
)
"""Checks of one pair of data sets.

Each is called for every statistically attacked agent as ``check(algorithm, attack, horizon,
releases=..., level=..., runs=..., inclusions=..., seed=...)`` and returns a :class:`.CheckReport`.
"""
EXACT_CHECKS: tuple[Callable[..., CheckReport], ...] = (
    audit_received_state,
    audit_control_flow,
    audit_floating_point,
)
"""Checks without an error level, of one pair of data sets per agent."""
ONE_SIZE = Untested(
    "other graphs and numbers of agents",
    "an audit executes built-in algorithms on the given problem and graph only",
    decisive=False,
)
MAX_ATTACKED = 10
"""Largest number of agents that statistics attack."""
SEEDS = 3
"""Partitions of the runs whose lower bounds are reported."""
EARLY = 2
"""The first look uses the number of runs divided by this number."""
SIZE_AFTER_FAULT = Untested("problems of another size", "the audited size shows a fault", False)
FEWER = 2
"""Runs on an agent that has the graph position of an attacked one are divided by this number: only
code that treats agents differently shows another effect there."""
SMALL = 200
"""Agents times iterations from which an audit uses several processes."""
FEWEST = 40
"""Smallest number of runs: a statistic is fitted on a half of them and tested on the other."""


# Special data, such as records that are all zero, make measures divide by zero.
@np.errstate(divide="ignore", invalid="ignore")
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
    calibrated: Algorithm | None = None,
    attack: Attack | None = None,
    seed: int = 0,
    processes: int | None = None,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> AuditResult:
    r"""Execute an algorithm on neighbouring data sets and test its claim and its declaration.

    Parameters
    ----------
    algorithm : Algorithm
        Not yet calibrated.
    problem, network
        One record of one agent of the problem is replaced, see :mod:`.neighbours`; every agent is
        attacked in turn.
    budget : Budget
        Budget for which the noise is calibrated; the claim is the algorithm's statement for it.
    horizon : int
        Number of iterations.
    runs : int
        Largest number of runs on each of two data sets per attacked agent. The audit of an agent
        ends at the first finding.
    confidence : float
        Probability with which a private algorithm that equals its declaration has no finding.
    delta : float
        Delta at which epsilon is bounded from below; at least that of the budget.
    relation : Relation, optional
        Neighbouring relation of the tested statement. Default: that of the first statement.
    calibrated : Algorithm, optional
        The algorithm with calibrated noise, if it is known.
    attack : Attack, optional
        The only pair of data sets to test; its exact cost is not computed. Default: for each agent
        the pair that changes the messages most.
    seed : int
        Seed of all random numbers.
    processes : int, optional
        Number of forked processes, each for some agents. The result does not depend on it if the
        algorithm keeps no values of earlier executions. Default:
        :func:`.compiling.threads`, or 1 if agents times iterations are fewer than :data:`SMALL`.
    progress : callable
        Called with the number of finished runs and of all runs.

    Returns
    -------
    AuditResult

    Raises
    ------
    InvalidInput
        For a number of runs, a level or a delta out of range, an unknown relation, an
        algorithm without a claim, or a problem without known neighbours.
    """
    _check_setting(algorithm, problem, network, budget, horizon, seed)
    _check(runs, confidence, delta, budget)
    confidence, delta = float(confidence), float(delta)
    if relation is not None:
        arguments.instance("relation", relation, Relation, "a Relation or None")
    if calibrated is not None:
        arguments.instance("calibrated", calibrated, Algorithm, "an Algorithm or None")
    if attack is not None:
        arguments.instance("attack", attack, Attack, "an Attack or None")
    arguments.function("progress", progress)
    if processes is None:
        processes = 1 if network.n_agents * horizon < SMALL else threads()
    arguments.whole("processes", processes, 1)
    setting = budget, problem, network, horizon
    noisy, claimed = _stated(calibrated or algorithm.calibrate(*setting), setting, relation)
    require(math.isfinite(claimed), "budget.epsilon", claimed, "a finite claim to be tested")
    limits: tuple[Untested, ...] = ()
    requested = DeclaredSetting(noisy, problem, network, horizon, delta)
    if calibrated is None and attack is None:
        horizon, limits = audit_horizon(noisy, horizon, problem, network)
        setting = budget, problem, network, horizon
        noisy, claimed = _stated(algorithm.calibrate(*setting), setting, relation)
    stated = DeclaredSetting(noisy, problem, network, horizon, delta)
    releases, declared = stated.releases, stated.declared
    plan = _plan(stated, attack, seed, processes)
    of_pairs = declaration(releases_of_pairs(noisy, releases), delta)
    factor = changes_per_pair(noisy, releases)
    limit = claimed if factor == 1.0 else max(factor * claimed, of_pairs.epsilon)
    level = (1.0 - confidence) / 2
    share = level / len(plan.attacks)
    looks, fewer_looks = (
        planned_looks(count, first=max(FEWEST, count // EARLY))
        for count in (runs, max(FEWEST, runs // FEWER))
    )

    def statistics_of(index: int) -> tuple:
        # Without the pair, whose data may be of a class that a fork cannot return.
        return _tested(
            noisy, plan.attacks[index], horizon, limit, of_pairs,
            looks if index < plan.representatives else fewer_looks,
            delta=delta, level=share, seed=seed,
            noise_numbers=FEWER_NOISE_NUMBERS if index else NOISE_NUMBERS,
        )[1:]  # fmt: skip

    results: list[_PairStatistics] = []
    for computed in map_in_forks(statistics_of, range(len(plan.attacks)), processes):
        results.append(_PairStatistics(plan.attacks[len(results)], *computed))
        progress(len(results) * runs // len(plan.attacks), runs)
    worst = min(results, key=lambda tested: (not tested.judged.findings, tested.pvalue))
    best = max(results, key=lambda tested: tested.judged.lower.epsilon)
    # The declaration is that of the whole problem: an attack may keep only a part of the graph,
    # where agents that are not attacked have fewer neighbours and thus other noise.
    sites = noisy.noise_sites(problem, one_graph(network), horizon)
    assumed = noisy.releases_if_assumed(problem, network, horizon)
    of_checks = OF_CHECKS * level
    of_check = of_checks / (len(CHECKS) + 1)
    of_outputs = of_check / max(1, len(plan.every) + len(plan.of_outputs))
    noise: tuple[NoiseFound, ...] = ()
    sensitivities: list[tuple[float, list[Finding]]] = []
    reports = [plan.exact]
    if plan.is_reproducible:
        noise = tuple(noise_found(sites, *results[0].evidence, confidence=1.0 - level + of_checks))
        sensitivities = [
            sensitivity_reached(
                sites, *tested.evidence, of_pairs.epsilon, delta, tested.attack.agent, factor,
                partial(size_of_noise_differs, stated, tested.attack, seed=seed),
            )
            for tested in results
        ]  # fmt: skip
        has_fault_at_sites = any(part.findings for part in noise) or any(
            found for _, found in sensitivities
        )
        is_accused = any(tested.findings for tested in results)
        if has_fault_at_sites and plan.has_exact_costs and is_derived(noisy) and not is_accused:
            if has_declared_joint_cost(stated, plan.every, seed=seed):
                sites, noise = [], ()
                sensitivities = [(math.nan, [])] * len(results)
                reports.append(CheckReport(sites=(JOINT_SITE,)))
            else:
                reports.append(CheckReport((Finding(NOTE, DERIVED_SITE),)))
        fewest_sites = min(results[0].evidence, key=lambda evidence: len(evidence.noise))
        reports.append(unrecovered_noise(sites, fewest_sites, plan.exact, confidence, delta))
        reports.append(audit_drawn_noise([evidence.drawn for evidence in results[0].evidence]))
        reports += _reports(
            [
                partial(
                    check, noisy, pair, horizon, releases=releases, runs=runs, seed=seed,
                    level=of_check / len(plan.attacks),
                    inclusions=INCLUSIONS // (1 if index < plan.representatives else FEWER),
                )
                for index, pair in enumerate(plan.attacks)
                for check in CHECKS
            ],
            processes,
        )  # fmt: skip
    outputs = partial(audit_outputs, level=of_outputs)
    unknown = [pair for pair in plan.every if pair.agent not in plan.exact.agents]
    reports += _reports(
        [
            partial(check, noisy, pair, horizon, seed=seed)
            for pairs, checks in (
                (plan.every, (outputs, *EXACT_CHECKS)),
                (unknown, (audit_presence_of_noise,)),
                (plan.of_outputs, (outputs,)),
            )
            for pair in pairs
            for check in checks
        ],
        processes,
    )
    has_fault = any(finding.weakens_privacy for finding in plan.exact.findings)
    if plan.every and horizon != requested.horizon and not has_fault:
        reports.append(audit_requested_horizon(requested, plan.every, seed=seed))
    if plan.every and is_foreign(noisy):
        with executed_lines(source_files(type(noisy))) as lines:
            for tried in (budget, Budget(math.inf)):
                with suppress(Exception):  # code from outside may raise anything
                    algorithm.calibrate(tried, problem, network, horizon)
            graph = one_graph(network)
            proposed = proposed_pairs(noisy, problem, graph, seed=seed)
            pairs_of_data = (*plan.every, *proposed)
            reports.append(audit_calibration(algorithm, pairs_of_data, budget, horizon))
            reports.append(audit_supports(noisy, problem, graph, horizon, seed=seed))
            hidden = (*kept_variables(type(noisy)), *untried_positions(problem))
            reports.append(CheckReport(untested=hidden))
            for tested in results:
                reports.append(audit_repeated_values(tested.attack, tested.evidence))
                reports.append(audit_missing_noise(tested.evidence))
                later = audit_repeated_later_values(noisy, tested.attack, horizon, seed=seed)
                reports.append(later)
            reports.append(
                CheckReport(untested=(SIZE_AFTER_FAULT,))
                if has_fault
                else audit_other_size(algorithm, problem, budget, horizon, delta, seed=seed)
            )
            for pair in plan.every:
                coupled_difference(noisy, pair, horizon)
        reports.append(CheckReport(untested=branches_not_executed(type(noisy), lines)))
    elif plan.every:
        reports.append(CheckReport(untested=(ONE_SIZE,)))
    reports += [form_of_messages(tested.attack, tested.evidence) for tested in results]
    reached = math.nan
    for (fraction, findings), tested in zip(sensitivities, results, strict=False):
        declared_counts = (
            *iterations_declared(tested.evidence, horizon),
            *messages_declared(sites, tested.evidence),
        )
        reached = float(np.fmax(reached, fraction))
        reports.append(CheckReport((*findings, *declared_counts)))
    reports.append(CheckReport(tuple(sites_and_releases(noisy, sites, declared.epsilon, delta))))
    of_statistics = (
        *(finding for tested in results for finding in tested.findings),
        *against_accountant(declared, claimed),
        *(finding for site_noise in noise for finding in site_noise.as_findings()),
    )
    report = CheckReport.joined([CheckReport(of_statistics), *reports])
    lower = best.judged.lower
    bounds = best.lower_bounds(limit, of_pairs, delta, share, seed)
    mu = max(bound.mu for tested in results for bound in tested.judged.bounds)
    return AuditResult(
        claimed=claimed, delta=delta, declared=declared.epsilon,
        permitted=None if factor == 1.0 else limit,
        lower=lower.epsilon, ceiling=lower.ceiling, confidence=confidence,
        relation=str(noisy.relation),
        runs=max(tested.runs for tested in results),
        power=detectable_epsilon(
            runs, delta=delta, confidence=1.0 - share * looks[-1].share / len(ORDERINGS)
        ),
        executed=f"{type(noisy).__name__}, {horizon} iterations, {plan.attacks[0].network.n_agents}"
        f" agents, {', '.join(dict.fromkeys(pair.name for pair in plan.attacks))}",
        statistic=lower.statistic, pvalue=min(1.0, worst.pvalue * len(results)),
        bounds=worst.judged.bounds, noise=noise, sensitivity=reached,
        proven=all(release.proven for release in releases),
        computed_lower=noisy.lower_bound(releases if assumed is None else assumed, delta).epsilon,
        lower_range=(min(bounds), max(bounds)),
        mu=mu, epsilon_of_mu=gaussian_epsilon(mu, delta) if mu > 0 else 0.0,
        findings=report.findings,
        coverage=Coverage(
            agents=plan.attacks[0].network.n_agents,
            records=int(problem.records) if problem.offers("records") else 0, iterations=horizon,
            dim=int(problem.dim), delta=delta,
            degrees=tuple(sorted(set(np.ravel(plan.attacks[0].network.degrees).astype(int).tolist()))),
            attacked=plan.agents, pairs=plan.pairs,
            outputs=("released and exchanged messages", *report.outputs),
            sites=(*(f"noise of the {site_noise.site}" for site_noise in noise), *report.sites),
            untested=(*limits, *plan.untested, *report.untested),
        ),
    )  # fmt: skip


class _AuditPlan(NamedTuple):
    """Plan of an audit: exact costs of all pairs, and the pairs that other tests use.

    Parameters
    ----------
    attacks : sequence of Attack
        Attacks for the tests of statistics, those with all runs first.
    representatives : int
        Number of attacks with all runs: one agent per class of agents with equal graph positions.
    agents : tuple of int
        Agents whose record is replaced.
    every : sequence of Attack
        Attacks for checks without an error level, one per agent.
    is_reproducible : bool
        False if random numbers do not come from the streams of the algorithm. Tests that compare
        executions with equal streams are then left out.
    """

    attacks: Sequence[Attack]
    representatives: int
    agents: tuple[int, ...]
    pairs: tuple[str, ...]
    exact: CheckReport
    untested: tuple[Untested, ...]
    every: Sequence[Attack] = ()
    of_outputs: Sequence[Attack] = ()
    is_reproducible: bool = True

    @property
    def has_exact_costs(self) -> bool:
        """True if the exact cost of every agent is at most the declared one."""
        agents = set(self.agents)
        return (
            not self.exact.findings
            and set(self.exact.agents) == agents
            and {attack.agent for attack in self.every} == agents
        )


def _plan(stated: DeclaredSetting, attack: Attack | None, seed: int, processes: int) -> _AuditPlan:
    """Compute the exact costs of every agent, and select the agents that statistics attack."""
    if attack is not None:
        other_agents = [i for i in range(attack.network.n_agents) if i != attack.agent]
        reason = "the pair of data sets was given"
        untested = [Untested(listed(other_agents), reason, False)] if other_agents else []
        agents, names = (attack.agent,), (attack.name,)
        return _AuditPlan((attack,), 1, agents, names, CheckReport(), tuple(untested))
    noisy, horizon, graph = stated.algorithm, stated.horizon, one_graph(stated.network)
    pairs = pairs_of_agents(noisy, stated.problem, graph, horizon, seed=seed)
    all_pairs = [pair for of_agent in pairs.values() for pair in of_agent]
    agents, names = tuple(pairs), tuple(dict.fromkeys(pair.name for pair in all_pairs))
    selected = [of_class[0] for of_class in agent_classes(graph, agents)][:MAX_ATTACKED]
    source = source_of_noise(noisy, all_pairs[0], horizon, seed=seed)
    if source.findings:
        attacked = [pairs[agent][0] for agent in selected]
        plan = _AuditPlan(attacked, len(attacked), agents, names, source, source.untested)
        return plan._replace(is_reproducible=False)
    exact = exact_costs(stated, all_pairs, seed=seed, processes=processes)
    missing = [agent for agent in range(graph.n_agents) if agent not in pairs]
    untested = []
    if missing:
        reason = "the problem states no neighbours for them"
        untested = [Untested(listed(missing), reason, not recovers_noise_itself(noisy))]
    representatives = len(selected)
    if any(gap.decisive for gap in exact.untested):
        selected = list(agents[:MAX_ATTACKED])
        representatives = len(selected)
    elif is_foreign(noisy):
        selected = list(dict.fromkeys([*selected, *agents]))[:MAX_ATTACKED]
    strongest_pairs = {
        agent: strongest(noisy, pairs[agent], horizon)
        for agent in dict.fromkeys([*selected, *agents[:MAX_ATTACKED]])
    }
    of_outputs = [
        pair
        for agent, tested in strongest_pairs.items()
        for pair in pairs_of_outputs(noisy, pairs[agent], tested, horizon)
    ]
    return _AuditPlan(
        [strongest_pairs[agent] for agent in selected], representatives, agents, names, exact,
        tuple(untested), tuple(strongest_pairs.values()), of_outputs,
    )  # fmt: skip


class _PairStatistics(NamedTuple):
    """Statistics of one pair of data sets."""

    attack: Attack
    evidence: Sequence[Evidence]
    judged: Judged
    runs: int
    share: float

    @property
    def pvalue(self) -> float:
        """Return the p-value of the claim, over all looks at increasing numbers of runs."""
        return self.judged.pvalue / self.share

    @property
    def findings(self) -> list[Any]:
        """Contradictions of the claim or of the declaration, as texts with the attacked agent."""
        return [finding.about(self.attack.agent) for finding in self.judged.findings]

    def lower_bounds(self, claimed, declared, delta: float, level: float, seed: int) -> list[float]:
        """Return lower bounds of epsilon for several partitions of the same runs."""
        later_bounds = [
            judge(
                *self.evidence, claimed, declared,
                delta=delta, confidence=1.0 - level * self.share, seed=seed + later,
            ).lower.epsilon
            for later in range(1, SEEDS)
        ]  # fmt: skip
        return [self.judged.lower.epsilon, *later_bounds]


def _reports(checks: Sequence[Callable[[], CheckReport]], processes: int) -> list[CheckReport]:
    """Return the reports of checks, which forked processes execute."""
    indices = range(len(checks))
    return list(map_in_forks(lambda index: checks[index](), indices, processes))


def _tested(
    noisy: Algorithm, attack: Attack, horizon: int, claimed: float, declared: Declaration, looks, *,
    delta: float, level: float, seed: int, noise_numbers: int,
) -> _PairStatistics:  # fmt: skip
    """Execute one pair of data sets until a finding decides, or all runs are done."""
    evidence: list[Evidence] = []
    done = 0
    for look in looks:
        additional_runs = look.runs - done
        new_evidence = [
            observed(
                noisy, attack, horizon, done, additional_runs, dataset_index, seed, noise_numbers
            )
            for dataset_index in (0, 1)
        ]
        evidence = (
            [a.joined(b) for a, b in zip(evidence, new_evidence, strict=True)]
            if evidence
            else new_evidence
        )
        done = look.runs
        look_confidence = 1.0 - level * look.share
        judged = judge(
            *evidence, claimed, declared, delta=delta, confidence=look_confidence, seed=seed
        )
        if judged.findings:
            break
    return _PairStatistics(attack, evidence, judged, done, look.share)


def _check(runs, confidence, delta, budget) -> None:
    arguments.whole("runs", runs, FEWEST, MAX_RUNS)
    arguments.number("confidence", confidence, "a number in (0, 1)", lambda v: 0 < v < 1)
    arguments.number("delta", delta, "a number in [0, 1)", lambda v: 0 <= v < 1)
    require(delta >= budget.delta, "delta", delta, f"at least the budget's, {budget.delta:g}")


def _check_setting(algorithm, problem, network, budget, horizon, seed) -> None:
    arguments.instance("algorithm", algorithm, Algorithm, "an Algorithm")
    arguments.instance("problem", problem, Problem, "a Problem")
    arguments.instance("network", network, Network, "a Network")
    arguments.instance("budget", budget, Budget, "a Budget")
    arguments.whole("horizon", horizon, 1, MAX_HORIZON)
    arguments.whole("seed", seed, 0)


def _stated(noisy, setting, relation) -> tuple[Algorithm, float]:
    statements = noisy.statements(*setting)
    if relation is None:
        return statements[0]
    for candidate, claimed in statements:
        if candidate.relation == relation:
            return candidate, claimed
    relations = ", ".join(str(candidate.relation) for candidate, _ in statements)
    raise InvalidInput("relation", str(relation), f"one of {relations}")
