"""Compare the exact cost of replaced records with the declared releases, for every agent."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import replace
from functools import partial
from itertools import compress
from typing import NamedTuple

import numpy as np

from private_consensus.common.grouping import grouped
from private_consensus.core.randomness import generator
from private_consensus.kernels.forks import map_in_forks
from private_consensus.privacy import Release, account

from .checks import SIZE_DIFFERS
from .evidence import has_secret_coins
from .judging import DeclaredSetting, neighbouring_steps
from .message_densities import LEVEL, ComparedMessages, with_other_densities
from .neighbours import Attack
from .noise_recovery import recovers_noise_itself
from .noise_response import (
    EXACT,
    FAR,
    MAX_NUMBERS,
    MAX_UNITS,
    NOISE_DIFFERS,
    Blocks,
    Executed,
    Layout,
    OtherMessages,
    Response,
    Row,
    Shift,
    Work,
    is_continuous,
    noise_differs,
    response,
    shift,
    solved_by_blocks,
    solved_in_order,
    solved_on_average,
)
from .post_processing import constant_shift, first_iterations
from .probing import coupled_difference, is_foreign
from .result import DIFFERS, EXACT_SITES, CheckReport, Finding, Untested, list_numbers, listed
from .streams import ROOT

SLACK_OF_COST = 1e-3
"""Relative error of an accountant's upper bound."""
NOT_SMOOTH = "the messages are not an affine or smooth function of the noise"
NO_BASE = "the cost is known at random noise only, where a rotation of the noise is no fault"
ONE_BASE = "the cost is known without noise only, where a message below a threshold is no fault"
BASES, BASE_SIZE = 3, 0.5
"""Base points of messages that are not affine, and the deviation of their draws."""
NEARBY = 1e-3
"""Deviation of the draws at which a value without noise has to be found again."""
REPEATING = "the messages take equal values for different noise, so that shorter shifts may exist"
FINE_GRID = np.linspace(-FAR, FAR, 257)
"""Draws for which it is tested whether messages repeat values."""
CHOSEN = "only Gaussian, Laplace and gamma noise can be chosen; statistics test the messages"
OTHER_DENSITY = (
    "the shape or the size of the noise depends on private data, so that the shift of the noise is "
    "not the whole privacy cost"
)
SLACK_OF_SHIFT = 1e-4
"""Relative error of a sum of shifts."""
MAX_ROUNDS = 8_000
"""Iterations after which no further pair of an agent is tested. A pair whose messages are not
affine executes up to :math:`T^2` iterations."""


def exact_costs(
    setting: DeclaredSetting, attacks: Sequence[Attack], *, seed: int, processes: int = 1
) -> CheckReport:
    """Test every pair of data sets against the declared releases, without any randomness.

    If the messages on the first data set are not affine in the noise, the pair that changes the
    messages of its agent most is tested first. Pairs beyond :data:`MAX_ROUNDS` are left out and
    listed. The report does not depend on the number of ``processes``, each for some agents.
    """
    costs = partial(_exact_costs, setting, attacks, seed=seed, processes=processes)
    report, has_outputs = costs(internal=setting.algorithm.internal_outputs)
    noisy = [gap for gap in report.untested if gap.item.startswith("noise in the messages")]
    if not (has_outputs and any(gap.decisive for gap in noisy)):
        return report
    of_messages, _ = costs(internal=None)
    reason = "outputs are not an affine or smooth function of the noise"
    partly = Untested("noise in outputs that are no messages", reason, False)
    findings = tuple(dict.fromkeys((*report.findings, *of_messages.findings)))
    return replace(of_messages, findings=findings, untested=(*of_messages.untested, partly))


def size_of_noise_differs(setting: DeclaredSetting, attack: Attack, *, seed: int) -> bool:
    """Return True if the size of the noise in messages depends on the data set of a pair."""
    pairs = _Pairs(setting, seed, None)
    executions = [pairs.executed(attack, index) for index in (0, 1)]
    rows = executions[0].messages(np.zeros((1, 1))).rows
    return noise_differs(executions, rows)


def _exact_costs(
    setting: DeclaredSetting,
    attacks: Sequence[Attack],
    *,
    internal: tuple[str, ...] | None,
    seed: int,
    processes: int,
) -> tuple[CheckReport, bool]:
    """Return the report, and whether outputs other than messages were among the tested values."""
    of_agents = grouped(attacks, lambda attack: attack.agent)
    agents = sorted(of_agents)
    pairs = _Pairs(setting, seed, internal)
    rows = pairs.executed(attacks[0], 0).messages(np.zeros((1, 1))).rows
    outputs = tuple(dict.fromkeys(row.kind for row in rows if row.kind.startswith("output")))
    is_decisive = not recovers_noise_itself(setting.algorithm)
    reason = _reason(pairs.layout, len(rows))
    if not (reason or pairs.layout.units) and has_secret_coins(setting.algorithm, setting.releases):
        reason = "the algorithm draws no noise, only secret random numbers of the purpose sampling"
    if reason:
        item = f"noise in the messages of {listed(agents)}"
        return CheckReport(untested=(Untested(item, reason, is_decisive),)), bool(outputs)
    pairs.local_response = response(pairs.executed(attacks[0], 0))
    tests = map_in_forks(lambda agent: _of_agent(pairs.copy(), of_agents[agent]), agents, processes)
    results = dict(zip(agents, tests, strict=True))
    findings = [fault for result in results.values() for fault in result.faults]
    covered = [agent for agent in agents if not results[agent].reason]
    untested = [
        Untested(f"{result.untested} the messages of agent {agent}", result.reason, is_decisive)
        for agent, result in results.items()
        if result.reason and not result.faults
    ]
    untested += _left_out(results)
    all_records = any(attack.all_records for attack in attacks)
    if setting.algorithm.relation.unit == "agent" and not all_records:
        text = "the guarantee is for all data of an agent, pairs of data sets differ in one record"
        untested.append(Untested("effect of all data of an agent", text))
    if setting.is_sampled:
        text = "the declared releases are sampled, their cost depends on the batches"
        untested.append(Untested("cost of a record without sampling", text, False))
    sites = () if not covered else (
        f"{EXACT_SITES} to all messages, {listed(covered)}, {setting.horizon} iterations",
    )  # fmt: skip
    report = CheckReport(
        tuple(_merged(findings)), outputs if covered else (), sites, tuple(untested), tuple(covered)
    )
    return report, bool(outputs)


class _OfAgent(NamedTuple):
    """Test of the pairs of one agent.

    Parameters
    ----------
    reason : str
        Why a pair could not be tested; empty if all could.
    left_out : list of str
        Names of pairs that were left out because of :data:`MAX_ROUNDS`.
    untested : str
        Untested part of the messages if there is a reason: the noise in them or their density.
    """

    faults: list[Fault]
    reason: str
    left_out: list[str]
    untested: str = "noise in"


def _left_out(results: Mapping[int, _OfAgent]) -> Iterator[Untested]:
    """List the pairs that were left out, by the names that any agent's pairs have."""
    agents = [agent for agent, result in results.items() if result.left_out]
    if agents:
        names = dict.fromkeys(name for agent in agents for name in results[agent].left_out)
        item = f"exact cost of the pairs {', '.join(names)} of {listed(agents)}"
        reason = (
            "messages are not affine in the noise, and pairs that change them more took "
            f"{MAX_ROUNDS} iterations"
        )
        yield Untested(item, reason, False)


def _of_agent(pairs: _Pairs, attacks: Sequence[Attack]) -> _OfAgent:
    """Test the pairs of one agent. Pairs are left out only if the strongest one came first."""
    result = _OfAgent([], "", [])
    algorithm, horizon = pairs.setting.algorithm, pairs.setting.horizon
    local_response = pairs.local_response
    is_affine = local_response is None or local_response.affine
    if not is_affine:
        attacks = sorted(
            attacks, key=lambda pair: coupled_difference(algorithm, pair, horizon), reverse=True
        )
    for attack in attacks:
        if not is_affine and pairs.work.rounds > MAX_ROUNDS:
            result.left_out.append(attack.name)
            continue
        faults, reason = pairs.faults(attack)
        result.faults.extend(faults)
        result = result._replace(reason=result.reason or reason)
    if local_response is None or is_affine or not is_foreign(algorithm):
        return result
    if result.faults or result.reason:
        return result
    compared = [
        ComparedMessages(
            (pairs.executed(attack, 0), pairs.executed(attack, 1)), local_response, attack.agent
        )
        for attack in attacks
    ]
    for index in with_other_densities(compared):
        # The solution may be another one than a shift that is the same for all draws.
        if None not in pairs.constant_shifts(attacks[index]):
            continue
        excess = compared[index].excess(_profile(pairs.setting), pairs.seed)
        if excess is not None:
            text = (
                "the shape or the size of the noise depends on a record of agent {agent}: the "
                f"density of its messages gives delta at least {excess.lower:.3g} at epsilon "
                f"{excess.epsilon:.4g} (confidence 1 - {LEVEL:g}), the declared releases "
                f"permit {excess.delta:g}"
            )
            result.faults.append(Fault(attacks[index].agent, text, 1.0))
        return result._replace(reason=OTHER_DENSITY, untested="density of")
    return result


def _reason(layout: Layout, rows: int) -> str:
    """Return the reason why responses cannot be computed; empty if they can."""
    if layout.uncontrolled:
        return f"{'; '.join(sorted(layout.uncontrolled))} ({CHOSEN})"
    if layout.units > MAX_UNITS or layout.units * rows > MAX_NUMBERS:
        return f"{layout.units} draws and {rows} numbers in messages are too many"
    return ""


class _Pairs:
    """Responses of the messages on the data sets of several pairs, computed once if equal."""

    def __init__(
        self, setting: DeclaredSetting, seed: int, internal: tuple[str, ...] | None
    ) -> None:
        self.setting, self.seed, self.internal = setting, seed, internal
        self.layout = Layout()
        self.local_response: Response | None = None
        self.blocks: Blocks | None = None
        self.first: np.ndarray | None = None
        self.work = Work()

    def copy(self) -> _Pairs:
        """Return a copy whose executions do not change this object."""
        pairs = copy(self)
        pairs.layout, pairs.work = deepcopy(self.layout), Work()
        return pairs

    def executed(self, attack: Attack, index: int) -> Executed:
        """Return the algorithm on one data set of a pair."""
        return Executed(
            self.setting.algorithm, attack.pair[index], attack.network, self.setting.horizon,
            self.seed, self.layout, self.internal, self.work,
        )  # fmt: skip

    def faults(self, attack: Attack) -> tuple[list[Fault], str]:
        """Return the faults that occur at all base points, and the reason if there is no result.

        Without a solution at the first base point a rotation of the noise could be taken for a
        fault. A message that certainly has no noise is a fault at any base point: no other point
        disproves it. Equal messages may hide the noise if they are processed afterwards. The shift
        that is the same for all draws therefore decides before faults at base points do. Messages
        that repeat values, such as values modulo 1, may have a shorter shift than that at a base
        point.
        """
        fault_of = partial(self._fault_of, attack)
        first: list[Fault] | None = None
        costly: list[Shift] = []
        reasons: list[str] = []
        index = 0
        for index, solutions in enumerate(self.shifts(attack)):
            if isinstance(solutions, str):
                reasons.append(solutions)
                continue
            faults = [fault for fault in map(fault_of, solutions) if fault is not None]
            if any(solution.is_certain for solution in solutions):
                return faults, ""
            if not faults:
                return [], ""
            if index == 0 or len(reasons) == BASES:  # without noise, or on average
                first, costly = faults, solutions
            elif first is None:
                reasons.append(NO_BASE)
        for solution in self.constant_shifts(attack):
            if solution is None:
                break
            if fault := fault_of(solution):
                return [fault], ""
        else:
            return [], ""
        if first is None:
            return [], reasons[-1]
        if index == BASES - 1 and len(reasons) == index:
            return [], ONE_BASE
        if all(np.isfinite(fault.excess) for fault in first) and all(
            self.repeats(attack, solution) for solution in costly
        ):
            return [], REPEATING
        return first, ""

    def _fault_of(self, attack: Attack, solution: Shift) -> Fault | None:
        """Return a fault if a message has no noise, or if the shift costs more than declared."""
        if np.any(solution.unexplained):
            return Fault(attack.agent, _leak(solution, attack.agent), np.inf)
        excess = _excess(self.setting, solution, self.layout)
        if excess is None:
            return None
        text, ratio = excess
        executions = [self.executed(attack, index) for index in (0, 1)]
        differs = noise_differs(executions, solution.rows)
        cause = _cause(self.setting, solution, self.layout, differs)
        text = f"a record of agent {{agent}} shifts the messages by {text}{cause}"
        return Fault(attack.agent, text, ratio)

    def shifts(self, attack: Attack) -> Iterator[list[Shift] | str]:
        """Yield the shifts between the data sets per base point, or the reason for their absence.

        A fault has to show at each base point. The first base point is the absence of noise. The
        others are random draws, at which no message is at a kink. A value that certainly has no
        noise has to be found again near the base point, so that a base point at which the code
        takes an exceptional branch, such as a gradient of length 0, is no fault.
        """
        executions = [self.executed(attack, index) for index in (0, 1)]
        local_response = [self._response(executed) for executed in executions]
        if local_response[0].rows != local_response[1].rows:
            yield "the number of messages depends on the data"
            return
        if all(of_data.is_exact for of_data in local_response):
            yield self._of_affine(local_response)
            return
        solved, differs = 0, noise_differs(executions, local_response[1].rows)
        for base in range(BASES):
            start = self._base(base, local_response[1].matrix.shape[1])
            shift = self._certain_at(executions, local_response[1], start, base)
            solved += shift is not None
            if shift is None:
                yield NOT_SMOOTH
                continue
            solutions = [shift]
            if differs:
                reverse = self._certain_at(executions[::-1], local_response[0], start, base)
                if reverse is not None:
                    # Without noise, iterates may be at a kink, where draws are not unique.
                    shorter = reverse.units / (1.0 + NOISE_DIFFERS)
                    solutions.append(reverse._replace(units=shorter))
            yield solutions
        if not solved:
            yield self._rough(executions)

    def _certain_at(
        self, executions: list[Executed], local_response: Response, start: np.ndarray, base: int
    ) -> Shift | None:
        """Return the shift at a base point; a certain fault must also occur at a nearby point."""
        shift = self._at(executions, local_response, start)
        if shift is None or not shift.is_certain:
            return shift
        random = generator(ROOT, "nearby", base).standard_normal(len(start))
        again = self._at(executions, local_response, start + NEARBY * random)
        return shift._replace(is_certain=again is not None and again.is_certain)

    def constant_shifts(self, attack: Attack) -> Iterator[Shift | None]:
        """Yield the shift that is the same for all draws, for each base point of earlier draws."""
        first, second = (self.executed(attack, index) for index in (0, 1))
        local_response = self.local_response
        if local_response is None or local_response.is_exact:
            yield None
            return
        try:
            if self.first is None:
                self.first = first_iterations(first, local_response)
        except OtherMessages:
            yield None
            return
        for base in range(BASES):
            start = self._base(base, len(self.first))
            yield constant_shift((first, second), local_response, self.first, start)

    def repeats(self, attack: Attack, solution: Shift) -> bool:
        """Return True if messages take equal values for different noise, as modulo 1."""
        units = np.zeros((len(FINE_GRID), len(solution.units)))
        units[:, np.abs(solution.units).argmax()] = FINE_GRID
        try:
            values = self.executed(attack, 1).values(units, solution.rows)
        except OtherMessages:
            return False
        steps = np.diff(values, axis=0)
        steps[np.abs(steps) <= EXACT * np.abs(values).max(0)] = 0.0
        times = solution.local_response.times
        responds = steps.any(0)
        first = responds & (times == times[responds].min(initial=times.max()))
        is_monotone = np.all(steps >= 0, axis=0) | np.all(steps <= 0, axis=0)
        return bool(first.any() and not (is_monotone & first).any())

    def _base(self, index: int, units: int) -> np.ndarray:
        """Return the draws of a base point; the first one is the absence of noise."""
        if index == 0:
            return np.zeros(units)
        return BASE_SIZE * generator(ROOT, "base", index).standard_normal(units)

    def _at(
        self, executions: list[Executed], local_response: Response, start: np.ndarray
    ) -> Shift | None:
        """Return the shift at a base point; None if it cannot be computed."""
        try:
            return self._solved(
                executions[1],
                local_response,
                executions[0].values(start[None], local_response.rows)[0],
                start,
            )
        except OtherMessages:
            return None

    def _of_affine(self, local_response: list[Response]) -> list[Shift] | str:
        equal = local_response[0].matrix is local_response[1].matrix
        solutions = []
        for first, second in ((0, 1),) if equal else ((0, 1), (1, 0)):
            solution = shift(
                local_response[second], local_response[first].base - local_response[second].base
            )
            if not solution.unique and not self._gaussian(solution):
                return "a message has several draws of noise that is not Gaussian"
            solutions.append(solution)
        return solutions

    def _solved(
        self, executed: Executed, local_response: Response, target: np.ndarray, start: np.ndarray
    ) -> Shift | None:
        if self.blocks is None or self.blocks.local_response.matrix is not local_response.matrix:
            self.blocks = Blocks.of(local_response)
        if not is_continuous(executed, local_response, start):
            return None
        solution = solved_by_blocks(executed, self.blocks, target, start)
        return (
            solved_in_order(executed, local_response, target, start)
            if solution is None
            else solution
        )

    def _rough(self, executions: list[Executed]) -> list[Shift] | str:
        try:
            average_shifts = solved_on_average((executions[0], executions[1]), self.seed)
        except OtherMessages:
            average_shifts = None
        if average_shifts is None:
            return NOT_SMOOTH
        length = max(average_shifts.error, float(np.linalg.norm(average_shifts.shift.units)))
        shorter = (1.0 - average_shifts.error / length) * average_shifts.shift.units
        return [average_shifts.shift._replace(units=shorter)]

    def _gaussian(self, solution: Shift) -> bool:
        moved = np.abs(solution.units) > 0
        return bool((self.layout.laws[moved] == "gaussian").all())

    def _response(self, executed: Executed) -> Response:
        """Return the response on a data set: a cached one if it predicts the messages."""
        earlier = self.local_response
        if earlier is not None and earlier.affine:
            units = earlier.matrix.shape[1]
            probes = FAR * np.sin(1.0 + np.arange(2 * units) ** 1.2).reshape(2, units)
            values, rows = executed.messages(np.concatenate([np.zeros((1, units)), probes]))
            if rows == earlier.rows and _predicted(earlier, values, probes):
                return earlier._replace(base=values[0])
        elif earlier is not None:
            values, rows = executed.messages(np.zeros((1, earlier.matrix.shape[1])))
            if rows == earlier.rows:
                return earlier._replace(base=values[0])
        local_response = response(executed)
        self.local_response = self.local_response or local_response
        return local_response


def _predicted(local_response: Response, values: np.ndarray, probes: np.ndarray) -> bool:
    """Return True if the response predicts the messages of another data set."""
    size = np.abs(probes) @ np.abs(local_response.matrix).T + np.abs(values[0])
    error = np.abs(values[1:] - values[0] - probes @ local_response.matrix.T)
    return bool((error <= 10 * local_response.precision * size + 1e-300).all())


class Fault(NamedTuple):
    """Finding for one pair: the attacked agent, and a text with the placeholder ``{agent}``.

    ``excess`` is the cost over the declared cost, infinite for values without noise.
    """

    attacked: int
    text: str
    excess: float


def _leak(solution: Shift, attacked: int) -> str:
    """Name the first message that changes with the data and has no noise to hide it."""
    is_noiseless = np.isinf(solution.unexplained)
    rows: Sequence[Row] = solution.rows
    if is_noiseless.any():
        row = rows[int(np.flatnonzero(is_noiseless)[0])]
        silent = compress(rows, is_noiseless)
        coordinates = sorted({r.coordinate for r in silent if r[:2] == row[:2]})
        all_of = {r.coordinate for r in rows if r[:2] == row[:2] and r.kind == row.kind}
        where = "" if set(coordinates) == all_of else f" in coordinate {list_numbers(coordinates)}"
        agent = "{agent}" if row.agent == attacked else str(row.agent)
        return (
            f"the {row.kind} of agent {agent} in iteration {row.iteration} carries no noise{where} "
            "and changes with a record of agent {agent}"
        )
    row = _first_unexplained(solution)
    agent = "{agent}" if row.agent == attacked else str(row.agent)
    return (
        f"the messages up to iteration {row.iteration} determine a value without noise that "
        f"changes with a record of agent {{agent}}: the {row.kind} of agent {agent} repeats noise "
        "of other messages, or has none"
    )


def _first_unexplained(solution: Shift) -> Row:
    """Return a row at the end of the shortest prefix of messages that no draws explain."""
    if not solution.local_response.is_exact:  # solved iteration by iteration
        return solution.rows[int(np.flatnonzero(solution.unexplained)[0])]
    iterations = solution.local_response.times

    def unexplained_until(t: int) -> np.ndarray:
        within = iterations <= t
        prefix = solution.local_response.prefix(within)
        return shift(prefix, solution.change[within]).unexplained

    times = np.unique(iterations).tolist()
    t = times[bisect_left(times[:-1], True, key=lambda t: bool(unexplained_until(t).any()))]
    last = np.where(iterations[iterations <= t] == t, unexplained_until(t), 0.0)
    return [row for row in solution.rows if row.iteration <= t][int(last.argmax())]


def _excess(setting: DeclaredSetting, solution: Shift, layout: Layout) -> tuple[str, float] | None:
    """Return text and ratio if the shift costs more than the declared releases; None otherwise."""
    if setting.is_sampled:
        return None
    # replacing a record is one removal and one addition
    units = solution.units / neighbouring_steps(setting.algorithm.relation)
    shifted = list(_as_releases(units, layout))
    if not shifted:
        return None
    declared = setting.declared
    gaussian = all(release.mechanism == "gaussian" for release in shifted)
    if gaussian and np.isfinite(declared.mu):
        length = float(np.linalg.norm(units))
        if length <= declared.mu * (1 + SLACK_OF_SHIFT) + 1e-9:
            return None
        measured, permitted = _distinct_numbers(length, declared.mu)
        text = (
            f"{measured} standard deviations of their noise, the declared releases permit "
            f"{permitted}"
        )
        return text, length / declared.mu
    if _is_below_declared(units, layout, setting.releases):
        return None
    for epsilon, point_delta in setting.profile:
        cost = account(shifted, point_delta).epsilon
        if cost > epsilon * (1 + SLACK_OF_COST) + 1e-9:
            measured, permitted = _distinct_numbers(cost, epsilon)
            text = (
                f"epsilon {measured} at delta {point_delta:g}, "
                f"the declared releases permit {permitted}"
            )
            return text, cost / max(epsilon, 1e-300)
    return None


def _profile(setting: DeclaredSetting) -> Sequence[tuple[float, float]]:
    """Return pairs of epsilon and delta that the declared releases permit; empty if unknown."""
    if neighbouring_steps(setting.algorithm.relation) > 1 or setting.is_sampled:
        return ()
    return setting.profile


def _distinct_numbers(first: float, second: float) -> tuple[str, str]:
    """Return two different numbers with at least four digits, and enough that they differ."""
    for digits in range(4, 17):
        texts = f"{first:.{digits}g}", f"{second:.{digits}g}"
        if texts[0] != texts[1]:
            break
    return texts


def _lengths_by_iteration(units: np.ndarray, layout: Layout, order: int) -> dict[int, float]:
    """Return the l1 or l2 length of the shift of each iteration's draws."""
    lengths: dict[int, float] = {}
    for draws in layout.draws.values():
        draw_units = units[draws.offset : draws.offset + int(np.prod(draws.shape))]
        square = lengths.get(draws.iteration, 0.0) ** order + float(
            (abs(draw_units) ** order).sum()
        )
        lengths[draws.iteration] = square ** (1 / order)
    return lengths


def _is_below_declared(units: np.ndarray, layout: Layout, releases: Sequence[Release]) -> bool:
    """Return True if no iteration has a larger l1 shift than a declared Laplace release."""
    if {release.mechanism for release in releases} != {"laplace"} or set(layout.laws) != {
        "laplace"
    }:
        return False
    declared = np.concatenate([np.repeat(np.ravel(r.losses()), r.count) for r in releases])
    lengths = sorted(_lengths_by_iteration(units, layout, 1).values(), reverse=True)
    allowed = np.zeros(max(len(lengths), len(declared)))
    allowed[: len(declared)] = np.sort(declared)[::-1]
    return bool((np.array(lengths) <= allowed[: len(lengths)] * (1 + SLACK_OF_SHIFT)).all())


def _cause(setting: DeclaredSetting, solution: Shift, layout: Layout, differs: bool) -> str:
    """Return the cause of a larger shift: number of messages, size of the noise, or change."""
    sizes = _lengths_by_iteration(
        solution.units / neighbouring_steps(setting.algorithm.relation), layout, 2
    )
    largest = max(sizes, key=lambda t: sizes[t])
    changed = [size for size in sizes.values() if size > SLACK_OF_SHIFT * sizes[largest]]
    counts = [np.size(release.losses()) * release.count for release in setting.releases]
    max_declared = max(float(np.max(release.losses())) for release in setting.releases)
    if differs:
        return f" ({SIZE_DIFFERS})"
    if len(changed) > sum(counts) and sizes[largest] <= max_declared * (1 + SLACK_OF_SHIFT):
        return (
            f" (more messages than declared: a record changes messages of {len(changed)} "
            f"iterations, the releases declare {sum(counts)})"
        )
    text = " (the noise is smaller or the effect of a record is larger than declared, "
    if len(changed) > 1 and min(changed) >= sizes[largest] * (1 - SLACK_OF_SHIFT):
        text += f"equally in {len(changed)} iterations"
    else:
        text += f"most in iteration {largest}"
    return f"{text}: {sizes[largest]:.4g} standard deviations)"


def _as_releases(units: np.ndarray, layout: Layout) -> Iterator[Release]:
    """Yield releases with the privacy cost of the shift, one per distribution of the noise."""
    tiny = 1e-9 * max(1.0, float(np.abs(units).max(initial=0.0)))
    lengths: dict[str, list[float]] = {}
    for draws in layout.draws.values():
        draw_units = units[draws.offset : draws.offset + int(np.prod(draws.shape))]
        if draws.law == "gamma_norm":
            moved = np.linalg.norm(draw_units.reshape(-1, draws.shape[-1]), axis=-1)
        else:
            moved = np.abs(draw_units)
        lengths.setdefault(draws.law, []).extend(moved[moved > tiny].tolist())
    for law, values in lengths.items():
        if values and law == "gaussian":
            yield Release("gaussian", float(np.linalg.norm(values)), 1.0)
        elif values:
            yield Release(law, np.array(values), 1.0)


def _merged(faults: Sequence[Fault]) -> Iterator[Finding]:
    """Yield the largest fault of each agent; agents with equal faults share a finding."""
    largest: dict[int, Fault] = {}
    for fault in faults:
        earlier = largest.get(fault.attacked)
        if earlier is None or fault.excess > earlier.excess:
            largest[fault.attacked] = fault
    for text, of_text in grouped(sorted(largest), lambda agent: largest[agent].text).items():
        also = "" if len(of_text) == 1 else f" (also {listed(of_text[1:])})"
        yield Finding(DIFFERS, text.format(agent=of_text[0]) + also)
