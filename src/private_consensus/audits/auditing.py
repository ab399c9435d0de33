"""Audit of an algorithm: record an execution, replay it on neighbouring data, compare."""

import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from private_consensus.common.errors import InvalidInput, arguments
from private_consensus.core.algorithms.base import Algorithm, parameters
from private_consensus.core.claims import claims_of, epsilon_by_formula
from private_consensus.core.handlers import require_own_streams
from private_consensus.core.networks import Network
from private_consensus.core.problems import Problem
from private_consensus.privacy import Budget, Relation, account
from private_consensus.privacy.mechanisms import Mechanism

from .comparison import ROUNDING, Excess, costs_of, leak_between
from .execution import Execution, calibrated_on_first_graph, execute
from .frozen import freeze
from .locality import unsent_dependence
from .result import (
    LEAKS,
    NO_DELTA,
    NO_GUARANTEE,
    NOT_CONTRADICTED,
    NOT_EXECUTED,
    REFUSED,
    UNDERSTATED,
    AuditResult,
)
from .search import Pair, Path, Search, has_series, streams_of
from .workers import Worker, two_workers

PAIRS, WORK, SMALL_DATA = (20, 300), 25_000, 1000
"""Least and largest default number of pairs of data sets; the number of iterations of all agents in
all pairs that decides between them, and the number of values of an agent above which it is smaller.
"""
ATTAINED = 0.99
"""Smallest ratio of cost and declared loss that counts as attained."""
CALIBRATED = 4
"""Number of pairs of data sets for which the calibration is repeated."""
PRIVACY = "private_consensus.privacy."
"""Beginning of the names of modules with mechanisms."""
AUDITED = (Relation("record", "replace"), Relation("agent", "replace"))
"""Neighbouring relations of the proposed pairs, except for data that arrive over time."""


@arguments.known_keywords
def audit(
    algorithm: Algorithm,
    problem: Problem,
    network: Network,
    budget: Budget,
    horizon: int,
    *,
    pairs: int | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> AuditResult:
    """Try to contradict the guarantee of an algorithm by executions on neighbouring data.

    An execution is recorded on one data set. It is replayed on a neighbouring data set, with the
    recorded outputs of all mechanisms. Every message, every output and the state of all other
    agents must then be identical, else a value leaks beside the mechanisms. The change of each
    private value must cost at most the declared loss. Every agent is attacked.

    Parameters
    ----------
    algorithm : Algorithm
        Algorithm; the audit calibrates its noise to the budget.
    problem : Problem
        Problem with sizes and bounds; its data are one of the tried data sets.
    network : Network
        Communication graph; the graph of the first run, if each run has a graph.
    budget : Budget
        Privacy budget of the whole run.
    horizon : int
        Number of iterations.
    pairs : int
        Number of pairs of data sets; by default 20 to 200, fewer for large executions.
    seed : int
        Seed of the data and of the noise.
    progress : callable
        Called after each pair with the number of executed pairs and of all pairs.

    Returns
    -------
    AuditResult

    Raises
    ------
    InvalidInput
        For invalid arguments, or a problem without known neighbours.
    """
    noisy, network = calibrated_on_first_graph(algorithm, problem, network, budget, horizon)
    result = audit_calibrated(
        noisy, problem, network, horizon, budget.delta, pairs=pairs, seed=seed, progress=progress
    )
    if result.finding or result.verdict == NOT_EXECUTED:
        return result
    leak = _calibration_leak(algorithm, problem, network, budget, horizon, seed)
    if leak:
        return replace(result, verdict=LEAKS, reason=leak)
    ((_, claimed), *_) = claims_of(noisy, budget, problem, network, horizon)
    if not type(noisy).claimed_epsilon.__module__.startswith("private_consensus."):
        # Formulas of papers may be below the cost; the statements of the package compare them.
        stated = epsilon_by_formula(noisy, budget.delta, problem, network, horizon)
        claimed = min(claimed, stated) if stated > 0 else claimed
    if np.isfinite(result.epsilon) and result.epsilon > claimed * (1 + ROUNDING):
        reason = f"the mechanisms compose to epsilon {result.epsilon:.6g}, claimed is {claimed:.6g}"
        return replace(result, verdict=UNDERSTATED, reason=reason)
    return result


def _calibration_leak(algorithm, problem, network, budget, horizon: int, seed: int) -> str:
    """Return a sentence if a calibrated parameter depends on records; empty if none does.

    The report lists quantities that the problem computes from data, if ``needs`` declares them.
    They have equal values on both data sets.
    """
    declared = set(algorithm.needs) & set(problem.from_data)
    search = Search(algorithm, problem, network, horizon, CALIBRATED, seed)
    for data, changed, text in search.ends():
        try:
            first, second = (
                parameters(algorithm.calibrate(budget, problem, network, horizon))
                for problem in (data, with_values_of(data, changed, declared))
            )
        except (ArithmeticError, InvalidInput):
            continue
        for name in first:
            if freeze(first[name]) != freeze(second[name]):
                return f"calibrate sets {name!r} from records ({text})"
    return ""


def with_values_of(first: Any, second: Any, names: Collection[str]) -> Any:
    """Return the second problem with some attributes of the first one."""
    values = {name: property(lambda _, name=name: getattr(first, name)) for name in names}
    problem = copy(second)
    kind = type(type(second).__name__, (type(second),), values)
    object.__setattr__(problem, "__class__", kind)
    return problem


def audit_calibrated(
    algorithm: Algorithm,
    problem: Any,
    network: Network,
    horizon: int,
    delta: float,
    *,
    pairs: int | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> AuditResult:
    """Audit an algorithm whose noise is set, on the graph of one run; see :func:`audit`.

    The declared epsilon is stated at ``delta``.
    """
    if pairs is None:
        size = max(1.0, problem.dim * getattr(problem, "records", 1) / SMALL_DATA)
        pairs = int(np.clip(WORK / (horizon * network.n_agents * size), *PAIRS))
    arguments.whole("pairs", pairs, 1)
    edges = int(np.sum(network.degrees)) // 2
    graph = f"a graph with {network.n_agents} agents and {edges} edges"
    facts: dict[str, Any] = {"delta": delta, "iterations": horizon, "graph": graph}
    try:
        declared = algorithm.mechanisms(problem, network, horizon)
        refusal = refused_declaration(declared, horizon)
        facts["epsilon"] = account(algorithm.releases(problem, network, horizon), delta).epsilon
    except InvalidInput:
        raise
    except Exception as error:
        text = f"{type(error).__name__}: {error} (mechanisms)"
        return AuditResult(NOT_EXECUTED, text, **facts)
    if not has_series(problem) and algorithm.relation not in AUDITED:
        refusal = f"no pairs of data sets are proposed for the relation: {algorithm.relation}"
    try:
        require_own_streams(declared)
    except InvalidInput as error:
        refusal = refusal or str(error)
    if refusal:
        return AuditResult(REFUSED, refusal, **facts)
    findings = _Findings(declared, network.n_agents)
    search = Search(algorithm, problem, network, horizon, pairs, seed)

    def executed(
        number: int, data: Any, releases: Any = None, push: Any = None, source: Any = None
    ) -> Execution:
        world = algorithm, data, network, horizon, streams_of(seed, number)
        with np.errstate(all="ignore"):
            execution = execute(*world, releases, push)
            if source is not None:
                execution.unsent = unsent_dependence(*world, source)
        return execution

    with two_workers(executed) as workers:
        for pair in search.pairs():
            findings.pairs += 1
            try:
                if isinstance(pair, Path):
                    count, findings.leak = _neighbours_on(pair, *workers, network.n_agents)
                    pair = search.neighbours_on(pair, count)
                if not findings.leak:
                    source = None if pair.agent in findings.attacked else pair.agent
                    pair, recorded, again, replayed = _executions(pair, search, *workers, source)
                    findings.add(pair, recorded, again, replayed)
                    search.reached(pair, max(findings.latest.values(), default=0.0))
            except EOFError as error:
                findings.error = str(error) or "the process that executes the algorithm ended"
                break
            progress(findings.pairs, pairs)
            if findings.leak:
                break
    return findings.result(horizon, facts)


def _executions(
    pair: Pair, search: Search, first: Worker, second: Worker, source: int | None
) -> tuple[Pair, Execution, Execution | None, Execution]:
    """Return a pair, its recorded execution, its repetition, and its replay on the second data set.

    An execution is repeated once per attacked agent.
    """
    recorded = first.call(pair.number, pair.first, None, pair.push)
    of_batch = search.of_batch(pair, recorded.weights)
    if of_batch is not pair:
        pair = of_batch
        recorded = first.call(pair.number, pair.first, None, pair.push)
    second.submit(pair.number, pair.second, recorded.releases)
    again = None
    if source is not None:
        again = first.call(pair.number, pair.first, recorded.releases, None, source)
    return pair, recorded, again, second.result()


def _neighbours_on(path: Path, first: Worker, second: Worker, agents: int) -> tuple[int, str]:
    """Return the place of the neighbours of a path that differ most, and a leak between them.

    The outputs of all executions are those of the first data set. Bisection follows a leak if there
    is one, else, for records of one agent, the larger change of a query per record.
    """
    recorded = first.call(path.number, path.between(0), None, path.push)

    def replay(count: int) -> Execution:
        execution = second.call(path.number, path.between(count), recorded.releases)
        execution.releases = recorded.releases
        return execution

    low, high, last = 0, path.length, replay(path.length)
    if recorded.refusal or recorded.error or (path.push is not None and last.error):
        return 0, ""
    executions = {low: recorded, high: last}

    def leak(start: int, stop: int, agent: Any = slice(None)) -> str:
        return leak_between(executions[start], executions[stop], agent, agents)

    def change(start: int, stop: int) -> float:
        """Return the largest change of a query per record, relative to its declared loss."""
        ratios = [_ratios(executions[count]) for count in (start, stop)]
        return float(np.max(np.abs(ratios[1] - ratios[0]), initial=0.0)) / (stop - start)

    is_leak = bool(leak(low, high))
    while high - low > 1:
        middle = (low + high) // 2
        if not is_leak and len(path.agents) > 1:
            return middle, ""
        executions[middle] = replay(middle)
        if leak(low, middle):
            high, is_leak = middle, True
        elif is_leak or change(middle, high) > change(low, middle):
            low = middle
        else:
            high = middle
    return low, leak(low, high, path.place(low)[0])


def _ratios(execution: Execution) -> np.ndarray:
    """Return the ratios of cost and declared loss of all releases; 0 without a replay."""
    ratios = [np.ravel(cost / loss) for _, _, cost, loss in execution.costs if np.all(loss > 0)]
    return np.concatenate(ratios) if ratios else np.zeros(1)


def refused_declaration(declared: Mapping[str, Mechanism], horizon: int) -> str:
    """Return the reason why a declaration cannot be audited; empty if it can."""
    if not isinstance(declared, Mapping):
        return "mechanisms returns no mapping from names to mechanisms"
    for name, mechanism in declared.items():
        if not _is_own(type(mechanism)):
            return f"{name!r} is no mechanism of this package: {type(mechanism).__name__}"
        for t in mechanism.released_times(horizon):
            values = mechanism.at(mechanism.sensitivity, t), mechanism.at(mechanism.scale, t)
            for label, value in zip(("sensitivity", "scale"), values, strict=True):
                # Written so that NaN is refused.
                if not np.all(np.asarray(value, float) >= 0):
                    return f"the {label} of {name!r} in iteration {t} is {value}, expected >= 0"
    return ""


class _Findings:
    """Collected findings of all pairs; the strongest decides the verdict."""

    def __init__(self, declared: Mapping[str, Mechanism], agents: int):
        self.declared, self.agents = declared, agents
        self.leak = self.refusal = self.error = self.unsent = ""
        self.excess = Excess()
        self.reached: dict[str, float] = {}
        self.latest: dict[str, float] = {}
        self.pairs = self.outputs = self.executed = 0
        self.attacked: set[int] = set()

    def add(
        self, pair: Pair, recorded: Execution, again: Execution | None, replayed: Execution
    ) -> None:
        """Compare a recorded execution with its repetition, if any, and with its replay."""
        self.attacked.add(pair.agent)
        self.latest = {}
        failure = recorded.refusal or recorded.error or replayed.error
        if failure and pair.push is not None:
            # Outputs far from 0 may exceed the range of a solver, or the resolution of a query.
            self.error = self.error or failure
            return
        if recorded.refusal:
            self.refusal = self.refusal or recorded.refusal
            return
        if recorded.error and replayed.error:
            self.error = self.error or recorded.error
            return
        if recorded.leak:
            self.leak = recorded.leak
            return
        self.executed += 1
        self.outputs += len(recorded.events)
        if again is not None and self.is_different(recorded, again):
            self.leak = (
                "two executions on the same data differ although all mechanisms have the same "
                "outputs: randomness or memory beside the handler"
            )
            return
        self.leak = leak_between(recorded, replayed, pair.agent, self.agents)
        self.leak += f" ({pair.text})" if self.leak else ""
        self.latest, excess = costs_of(recorded, replayed, self.declared, pair.agent, pair.row)
        if pair.push is not None and np.isinf(list(self.latest.values())).any():
            # Far from 0, a solver may be too inexact to explain an output.
            self.latest = {}
            return
        for name, ratio in self.latest.items():
            self.reached[name] = max(self.reached.get(name, 0.0), ratio)
        self.excess = max(self.excess, excess, key=lambda excess: excess.ratio)

    def is_different(self, recorded: Execution, again: Execution) -> bool:
        """Return True if an execution differs from its repetition on the same data."""
        self.unsent = self.unsent or again.unsent
        moved, excess = costs_of(recorded, again, self.declared, None)
        repeated = leak_between(recorded, again, None, self.agents)
        return bool(repeated or excess.text) or any(ratio > 1e-6 for ratio in moved.values())

    def result(self, horizon: int, facts: dict[str, Any]) -> AuditResult:
        """Return the result with the verdict of the strongest finding."""
        notes = []
        if reason := self.error or self.refusal:
            notes.append(f"not compared: {self.pairs - self.executed} pairs ({reason})")
        if self.unsent:
            notes.append(f"not through the network: {self.unsent}")
        facts |= {
            "reached": self.reached, "pairs": self.pairs, "agents": len(self.attacked),
            "outputs": self.outputs, "notes": tuple(notes),
        }  # fmt: skip
        for verdict, reason in ((LEAKS, self.leak), (UNDERSTATED, self.excess.text)):
            if reason:
                return AuditResult(verdict, reason, **facts)
        if self.refusal:
            return AuditResult(REFUSED, self.refusal, **facts)
        if self.error and not self.executed:
            return AuditResult(NOT_EXECUTED, self.error, **facts)
        without = [name for name, m in self.declared.items() if not _has_guarantee(m, horizon)]
        if without or not np.isfinite(facts["epsilon"]):
            names = ", ".join(map(repr, without))
            reason = f"{names} has no noise, no finite sensitivity or no proof"
            return AuditResult(NO_GUARANTEE, reason if without else NO_DELTA, **facts)
        facts["notes"] = (*notes, *unattained(self.reached))
        return AuditResult(NOT_CONTRADICTED, **facts)


def unattained(reached: Mapping[str, float]) -> Iterator[str]:
    """Yield what the largest changes of the tried pairs leave open."""
    untried = "pairs that were not tried may exceed it"
    for name, ratio in reached.items():
        if ratio < ATTAINED:
            yield f"{name}: no tried pair attains the declared sensitivity; {untried}"
    if any(ratio >= ATTAINED for ratio in reached.values()):
        yield f"reached {ATTAINED:g} or more: a tried change is nearly the sensitivity; {untried}"


def _is_own(kind: type) -> bool:
    """Return True for a mechanism that a module of :mod:`private_consensus.privacy` defines."""
    module = sys.modules.get(kind.__module__)
    is_defined = getattr(module, kind.__qualname__, None) is kind
    return is_defined and kind.__module__.startswith(PRIVACY) and issubclass(kind, Mechanism)


def _has_guarantee(mechanism: Mechanism, horizon: int) -> bool:
    """Return True if all losses are finite and proven."""
    is_finite = all(np.isfinite(mechanism.loss(t)).all() for t in range(1, horizon + 1))
    return is_finite and all(release.proven for release in mechanism.releases(horizon))
