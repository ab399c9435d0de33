"""Check of all outputs: a returned quantity may depend on data only through messages.

The algorithm is executed on D and on D' with equal messages (:mod:`.replay`). An output that
differs, and that loud noise does not change, reveals data without any noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np

from private_consensus.core.algorithms.base import Algorithm
from private_consensus.core.networks import Network
from private_consensus.privacy.audit.claims import Profile
from private_consensus.privacy.audit.families import claim_p_value
from private_consensus.privacy.audit.statistics import audit_statistics

from .execution import run_batch
from .judging import DELTAS, refutable_points, releases_of_pairs
from .neighbours import Attack
from .replay import MESSAGES, Replays, equal, replays, tolerance_until
from .result import DIFFERS, CheckReport, Finding, Untested
from .streams import AuditStreams

STATISTICAL_RUNS = (200, 1000)
"""Least and largest number of runs per data set for outputs that carry noise."""
STATISTICAL_NUMBERS = 2_000_000
"""Numbers per data set that bound the number of runs."""
OUTPUT_PAIRS = 2
"""Pairs of each agent on which outputs are tested, in addition to the strongest pair."""
LEAST_CHANGE = 1e-9
"""Smallest relative change of an output that is not rounding."""
COUPLED_RUNS = 2
"""Runs with equal draws on both data sets."""
MAX_FEATURES = 60
"""Numbers per run that are compared for one output."""


def audit_outputs(
    algorithm: Algorithm, attack: Attack, horizon: int, *, level: float, seed: int
) -> CheckReport:
    """Test every quantity that an algorithm returns and does not declare internal.

    An output that depends on data although all messages are equal is a finding. ``level`` is the
    error level of the tests of all outputs that carry noise.
    """
    runs = replays(algorithm, attack, horizon, seed=seed)
    internal = algorithm.internal_outputs
    names = sorted({quantity for quantity, _ in runs.recorded.outputs})
    untested = [
        Untested(f"output {name!r}", "it is declared internal", decisive=False)
        for name in names
        if name in internal and name != "internal"
    ]
    at_end = {name for name, t in runs.recorded.outputs if t == "end"}
    tested = [
        name for name in names if name not in internal and (name not in MESSAGES or name in at_end)
    ]
    if runs.neighbour is None:
        untested += [runs.not_tested(f"output {name!r}") for name in tested]
        return CheckReport(untested=tuple(untested))
    findings, noisy = [], []
    for name in tested:
        text, carries_noise = _dependence(name, runs, attack.agent)
        if text:
            findings.append(Finding(DIFFERS, text))
        elif carries_noise:
            noisy.append(name)
    if noisy:
        statistical, missing = _noisy_outputs(algorithm, attack, horizon, noisy, level, seed)
        findings += statistical
        untested += missing
    missing = {gap.item for gap in untested}
    outputs = tuple(name for name in tested if f"output {name!r}" not in missing)
    return CheckReport(tuple(findings), outputs=outputs, untested=tuple(untested))


def _dependence(name: str, runs: Replays, agent: int) -> tuple[str, bool]:
    """Return the text of a finding, and whether the output depends on data and on noise."""
    neighbour = runs.neighbour
    carries_noise = False
    for (quantity, t), values in runs.recorded.outputs.items():
        if quantity != name or neighbour is None or (name in MESSAGES and t != "end"):
            continue
        when = "at the end" if t == "end" else f"of iteration {t}"
        of_neighbour = neighbour.outputs.get((name, t))
        if of_neighbour is None:
            return f"the output {name!r} {when} is missing on one of two data sets", False
        if equal(values, of_neighbour, tolerance_until(neighbour, t)):
            continue
        if not _lacks_noise(runs, name, t, values):
            carries_noise = True
            continue
        text = f"the output {name!r} {when} depends on the data of agent {agent} although all "
        return text + "messages are equal", False
    return "", carries_noise


def _lacks_noise(runs: Replays, name: str, t: Any, values: np.ndarray) -> bool:
    """Return True if an output depends on data and not on noise, while messages are equal.

    If no noise makes a message equal, the output may differ because of this message.
    """
    loud, neighbour = runs.loud, runs.neighbour
    if loud is None or neighbour is None or (name, t) not in loud.outputs:
        return False
    replayed = (
        is_equal for time, is_equal in neighbour.replayed.items() if t == "end" or time <= t
    )
    if not all(replayed):
        return False
    of_neighbour = neighbour.outputs[name, t]
    return runs.lacks_noise(0, values, of_neighbour, lambda trace: trace.outputs.get((name, t)))


def _noisy_outputs(
    algorithm: Algorithm, attack: Attack, horizon: int, names: list[str], level: float, seed: int
) -> tuple[list[Finding], list[Untested]]:
    """Compare the distribution of outputs on D and D' with the cost of the declared releases."""
    problem, network = attack.pair[0], attack.network
    releases = releases_of_pairs(algorithm, algorithm.releases(problem, network, horizon))
    points = refutable_points(releases)
    numbers = horizon * problem.n_agents * problem.dim
    low, high = STATISTICAL_RUNS
    runs = int(np.clip(STATISTICAL_NUMBERS // numbers, low, high))
    samples = [
        _sampled(algorithm, problem, network, horizon, names, index, runs, seed)
        for index, problem in enumerate(attack.pair)
    ]
    findings, untested = [], []
    for name in names:
        first, second = (sample.get(name) for sample in samples)
        if first is None or second is None or first.shape != second.shape:
            reason = "it carries noise, and its values are not one array per run"
            untested.append(Untested(f"output {name!r}", reason))
            continue
        bounds = audit_statistics(
            first, second, statistics={}, delta=DELTAS[0],
            confidence=1.0 - level / len(names), seed=seed,
        )  # fmt: skip
        if claim_p_value(bounds, {"profile": Profile(points)}) <= level / len(names):
            text = f"the output {name!r} reveals more about the data of agent {attack.agent} than "
            findings.append(Finding(DIFFERS, text + "the declared releases permit"))
    return findings, untested


def _sampled(
    algorithm: Algorithm, problem: Any, network: Any, horizon: int, names: list[str],
    index: int, runs: int, seed: int,
) -> dict[str, np.ndarray]:  # fmt: skip
    """Return the values [runs, features] of outputs; of many values the first and last ones."""
    streams = AuditStreams.labelled(f"outputs of data set {index}", runs, seed)
    values_by_name: dict[str, list[np.ndarray]] = {}

    def keep(t: int, active: np.ndarray, observables: Mapping[str, Any]) -> None:
        for name in names:
            if name in observables:
                values_by_name.setdefault(name, []).append(np.array(observables[name][0], float))

    run_batch(algorithm, problem, network, streams, horizon, keep)
    samples = {}
    for name, values in values_by_name.items():
        if all(value.ndim and len(value) == runs for value in values):
            flat = np.concatenate([value.reshape(runs, -1) for value in values], axis=1)
            half = MAX_FEATURES // 2
            if flat.shape[1] > MAX_FEATURES:
                flat = np.concatenate([flat[:, :half], flat[:, -half:]], axis=1)
            samples[name] = flat
    return samples


def pairs_of_outputs(
    algorithm: Algorithm, candidates: Sequence[Attack], tested: Attack, horizon: int
) -> list[Attack]:
    """Return at most :data:`OUTPUT_PAIRS` pairs of data sets that change single outputs most.

    The pair that changes messages most can leave an output unchanged: opposite rows give gradients
    of equal length. The pair ``tested`` is left out; pairs for outputs that it does not change come
    first.
    """
    known_changes = output_changes(algorithm, tested, horizon)
    candidates_left = (
        [candidate for candidate in candidates if candidate is not tested] if known_changes else []
    )
    changes = [output_changes(algorithm, candidate, horizon) for candidate in candidates_left]
    votes: dict[int, tuple[bool, int]] = {}
    for name in sorted({name for change in (known_changes, *changes) for name in change}):
        sizes = [change.get(name, 0.0) for change in changes]
        best = int(np.argmax(sizes)) if sizes else -1
        if best < 0 or sizes[best] <= max(LEAST_CHANGE, known_changes.get(name, 0.0)):
            continue
        is_first, number = votes.get(best, (False, 0))
        is_unchanged = known_changes.get(name, 0.0) <= LEAST_CHANGE
        votes[best] = (is_first or is_unchanged, number + 1)
    ranked = sorted(votes, key=lambda index: votes[index], reverse=True)
    return [candidates_left[index] for index in ranked[:OUTPUT_PAIRS]]


@np.errstate(divide="ignore", invalid="ignore")
def output_changes(algorithm: Algorithm, attack: Attack, horizon: int) -> dict[str, float]:
    """Return the differences of the outputs of two runs with equal draws, relative to their size.

    For each quantity, it is the largest difference of all iterations, or infinite if one data set
    does not have the output. Messages and outputs declared internal are left out.
    """
    first, second = (
        _outputs(algorithm, problem, attack.network, horizon) for problem in attack.pair
    )
    changes: dict[str, float] = {}
    for key in first.keys() | second.keys():
        size = np.inf
        if key in first and key in second and first[key].shape == second[key].shape:
            largest = np.nanmax(np.abs(first[key]), initial=0.0)
            size = float(np.nanmax(np.abs(first[key] - second[key]), initial=0.0))
            size = size / largest if largest > 0 else size
        changes[key[0]] = max(changes.get(key[0], 0.0), size)
    return changes


def _outputs(
    algorithm: Algorithm, problem: Any, network: Network, horizon: int
) -> dict[tuple[str, int], np.ndarray]:
    """Return the outputs of two runs by quantity and position among the calls of the observer."""
    outputs: dict[tuple[str, int], np.ndarray] = {}
    skipped = {*MESSAGES, *algorithm.internal_outputs}
    calls = count()

    def _keep(t: int, active: np.ndarray, observables: Mapping[str, Any]) -> None:
        call = next(calls)
        for name in observables.keys() - skipped:
            values = np.asarray(observables[name])
            if values.dtype.kind in "fiub":
                outputs[name, call] = np.array(values, float)

    streams = AuditStreams.labelled("coupled", COUPLED_RUNS)
    run_batch(algorithm, problem, network, streams, horizon, _keep)
    return outputs
