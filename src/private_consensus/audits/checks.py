"""Comparison of an execution with its declaration: noise at every site, and sensitivities.

A finding here bounds no epsilon from below; it says that the algorithm is not what it declares.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from private_consensus.core.algorithms.base import Algorithm, NoiseSite
from private_consensus.core.randomness import generator
from private_consensus.privacy import Release, account
from private_consensus.privacy.audit.laws import drawn
from private_consensus.privacy.audit.noise import noise_test
from private_consensus.privacy.audit.selected import selected_noise_test

from .evidence import Evidence, has_secret_coins, longer
from .execution import execute
from .neighbours import Attack
from .result import DIFFERS, CheckReport, Finding, NoiseFound, Untested
from .streams import AuditStreams

SLACK_OF_COST = 1e-3
"""Relative tolerance for epsilon, which includes the rounding of the accountant."""
FILLING = 20_254
"""Seed of the noise that replaces missing entries."""
SILENT_RUNS, REPETITIONS = 150, 4
"""Runs that are executed with other noise, and how often."""
REPEATED_RUNS = 4
"""Runs that are executed twice with equal streams."""
CONTINUOUS = 0.9
"""Smallest fraction of runs whose repetitions send different numbers, for continuous noise."""

SIZE_DIFFERS = (
    "the size of the noise depends on the data: equal draws are noise of other sizes on the two "
    "data sets"
)
SLACK = 1e-4
"""Relative tolerance for a change: error of a solver, and rounding to 32 or 64 bits."""


def noise_found(
    sites: Sequence[NoiseSite], first: Evidence, second: Evidence, *, confidence: float
) -> Iterator[NoiseFound]:
    """Yield distribution, scale and independence of the recovered noise of each site.

    Correct noise passes all tests with probability ``confidence``.
    """
    tested = [site for site in sites if site.name in first.noise and site.name in second.noise]
    for site in tested:
        level = (1.0 - confidence) / len(tested)
        noise_pair = _truncate_to_common(
            *(evidence.noise[site.name] for evidence in (first, second))
        )
        if site.selected:
            yield _selected(site, noise_pair, level)
            continue
        views = _views(np.concatenate(noise_pair), site.law)
        pairs = [_truncate_to_common(*map(view, noise_pair, range(2))) for view in views]
        pairs = [pair for pair in pairs if pair[0].size]
        tests = [
            noise_test(
                of_first, 1.0, law=site.law, confidence=1.0 - level / len(pairs), other=of_second
            )
            for of_first, of_second in pairs
        ]
        # Reused noise may fail the other tests as well.
        all_findings = sorted(
            (finding for test in tests for finding in test.findings),
            key=lambda finding: finding.kind != "reused",
        )
        texts = tuple(map(_text, all_findings))
        if tests:
            yield NoiseFound(site.name, tests[0].estimate, tests[0].low, tests[0].high, texts)


def _selected(site: NoiseSite, noise_pair: Sequence[np.ndarray], level: float) -> NoiseFound:
    """Test noise that determines which of its values are visible; its scale stays unknown."""
    all_noise = np.concatenate(noise_pair)
    tests = ()
    if np.isfinite(all_noise).all(-1).any():
        tests = selected_noise_test(all_noise, law=site.law, confidence=1.0 - level)
    return NoiseFound(site.name, math.nan, math.nan, math.nan, tuple(map(_text, tests)))


def _text(finding) -> str:
    return f"{finding.kind}, {finding.where}"


View = Callable[[np.ndarray, int], np.ndarray]
"""Function of recovered noise and the number of its data set that returns the tested array."""


def _views(both: np.ndarray, law: str) -> list[View]:
    """Return functions that bring recovered noise into a form that the tests accept.

    Noise with missing entries may be tested twice: the present entries alone, and all entries
    after filling the missing entries.
    """
    finite = np.isfinite(both)
    by_round = finite.all((0, 2, 3))
    if (by_round | ~finite.any((0, 2, 3))).all():
        return [lambda noise, _: noise[:, by_round]]
    counts = finite.sum(-1)
    if (counts == counts.flat[0]).all():
        return [_packed]
    filled = partial(_filled, law=law)
    vectors = finite.all(-1)
    if (vectors | ~finite.any(-1)).all():
        return [_one_by_one, filled]
    return [_number_by_number] if law == "gamma_norm" else [_number_by_number, filled]


def _packed(noise: np.ndarray, _: int) -> np.ndarray:
    """Return the present coordinates of vectors that all have equally many of them."""
    return noise[np.isfinite(noise)].reshape(*noise.shape[:3], -1)


def _one_by_one(noise: np.ndarray, _: int) -> np.ndarray:
    """Return the vectors without missing coordinates, [values, 1, 1, dim]."""
    return noise[np.isfinite(noise).all(-1)][:, None, None]


def _number_by_number(noise: np.ndarray, _: int) -> np.ndarray:
    """Return the present coordinates as separate values, [values, 1, 1, 1]."""
    return noise[np.isfinite(noise)][:, None, None, None]


def _filled(noise: np.ndarray, dataset_index: int, law: str) -> np.ndarray:
    """Fill missing entries with fresh noise, so that the array can be tested as a whole."""
    fresh = drawn(law, generator(FILLING, "holes", dataset_index), noise.shape)
    return np.where(np.isfinite(noise), noise, fresh)


def _truncate_to_common(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Truncate two noise arrays to the smaller number of runs and iterations."""
    runs, times = (min(sizes) for sizes in zip(first.shape[:2], second.shape[:2], strict=True))
    return first[:runs, :times], second[:runs, :times]


def source_of_noise(
    algorithm: Algorithm, attack: Attack, horizon: int, *, seed: int
) -> CheckReport:
    """Find random numbers that do not come from the streams of the algorithm.

    Two executions with equal streams, on the first data set, then send different messages.
    """
    streams = AuditStreams.labelled("source of the noise", REPEATED_RUNS, seed)
    global_state = np.random.get_state()  # noqa: NPY002 - to name this generator
    first, second = (
        execute(algorithm, attack.pair[0], attack.network, streams, horizon).sent for _ in range(2)
    )
    t, agent = 0, attack.agent
    if first.shape == second.shape:
        precision = 1e-9 * np.abs(first).max(initial=0.0)
        is_equal = np.isclose(first, second, rtol=0.0, atol=precision, equal_nan=True)
        if is_equal.all():
            return CheckReport()
        t, agent, _ = np.argwhere(~is_equal.all(0))[0]
    uses_global = str(global_state) != str(np.random.get_state())  # noqa: NPY002
    generator = "NumPy's global generator (np.random)" if uses_global else "another generator"
    text = (
        f"random numbers in the message of agent {agent} in iteration {t + 1} come from "
        f"{generator} instead of the streams that the algorithm was given, so that this noise can "
        "neither be tested nor reproduced"
    )
    item = "noise in the messages"
    reason = "executions with equal streams send different messages"
    return CheckReport((Finding(DIFFERS, text),), untested=(Untested(item, reason),))


def silent_messages(
    algorithm: Algorithm,
    attack: Attack,
    horizon: int,
    *,
    releases: Sequence[Release],
    seed: int,
    **_: Any,
) -> CheckReport:
    """Find messages without noise in some runs, for any values of other random draws.

    Each run is repeated with other noise. If no message depends on noise, it is repeated with other
    secret coins as well. A number of a message that stays equal in all repetitions carries no noise
    in this run. It is a fault if it changes with the data, and if almost all other runs send
    different numbers in all repetitions: numbers with few possible values are equal by chance.
    """
    streams = AuditStreams.labelled("messages without noise", SILENT_RUNS, seed)
    first_setting, second_setting = ((problem, attack.network) for problem in attack.pair)
    first = execute(algorithm, *first_setting, streams, horizon).sent
    changed = execute(algorithm, *second_setting, streams, horizon).sent
    tolerance = 1e-9 * np.abs(first).max(initial=0.0)
    varied = [("noise",), ("noise", "sampling")]
    for purposes in varied if has_secret_coins(algorithm, releases) else varied[:1]:
        repeated = [
            execute(
                algorithm, *first_setting,
                streams.with_groups(**dict.fromkeys(purposes, f"repetition {k}")), horizon,
            ).sent
            for k in range(REPETITIONS)
        ]  # fmt: skip
        if any(sent.shape != first.shape for sent in (changed, *repeated)):
            return CheckReport()
        equal = np.all([np.abs(sent - first) <= tolerance for sent in repeated], axis=0)
        if not equal.all():
            break
    ordered = np.sort(np.stack([first, *repeated]), axis=0)
    distinct = (np.diff(ordered, axis=0) > tolerance).all(0)
    is_unchanged = equal & (np.abs(changed - first) > tolerance)
    is_continuous = distinct.sum(0) >= CONTINUOUS * np.maximum(1, (~equal).sum(0))
    never = equal.all(0) & (distinct.mean() >= CONTINUOUS * (~equal).mean())
    faulty = is_unchanged.any(0) & (is_continuous & distinct.any(0) | never)
    hint = "; no message depends on draws of the purpose noise" if equal.all() else ""
    findings = []
    for t, agent in np.argwhere(faulty.any(-1))[:1]:
        runs = float(is_unchanged[:, t, agent].any(-1).mean())
        text = (
            f"the message of agent {agent} in iteration {t + 1} carries no noise in {runs:.0%} of "
            f"runs and changes with a record of agent {attack.agent}{hint}"
        )
        findings.append(Finding(DIFFERS, text))
    return CheckReport(tuple(findings), sites=("presence of noise in each run",))


def iterations_declared(both_evidence: Sequence[Evidence], horizon: int) -> list[Finding]:
    """Return a finding if more iterations release values than the declared horizon."""
    iterations = max(evidence.iterations for evidence in both_evidence)
    if iterations <= horizon:
        return []
    return [Finding(DIFFERS, f"{iterations} iterations release values, {horizon} are declared")]


def sites_and_releases(
    algorithm: Algorithm, sites: Sequence[NoiseSite], declared: float, delta: float
) -> list[Finding]:
    """Return a finding if the noise of all iterations costs more than the declared releases.

    Some releases are then left out. A measurement enters a single message. ``declared`` is the
    epsilon of the declared releases at ``delta``.
    """
    if not sites or not all(np.isfinite(site.moved).all() for site in sites):
        return []
    is_of_measurement = algorithm.relation.unit == "measurement"
    observed_releases = [
        Release(s.law, np.max(s.moved) if is_of_measurement else _observed(s), 1.0) for s in sites
    ]
    cost = account(observed_releases, delta).epsilon
    if cost <= declared * (1.0 + SLACK_OF_COST):
        return []
    text = (
        f"the declared noise of all iterations gives epsilon {cost:.4g}, the declared releases "
        f"give {declared:.4g}"
    )
    return [Finding(DIFFERS, text)]


def _observed(site: NoiseSite) -> np.ndarray:
    """Return the largest changes over the noise scale, one per observed iteration."""
    return np.sort(site.moved)[::-1][: site.max_observed]


def form_of_messages(attack: Attack, both_evidence: Sequence[Evidence]) -> CheckReport:
    """Compare shape and finiteness of the messages on the two data sets.

    A message that is finite in all runs on one data set and in no run on the other is a finding.
    """
    first, second = both_evidence
    changed = f"a record of agent {attack.agent}"
    if first.shape != second.shape:
        numbers = (
            f"{shape[0]} agents times {shape[1]} numbers" for shape in (first.shape, second.shape)
        )
        text = f"the shape of messages changes with {changed}: {' and '.join(numbers)}"
        return CheckReport((Finding(DIFFERS, text),))
    count = min(first.messages, second.messages)
    shares = [evidence.missing[:count] / len(evidence.not_finite) for evidence in both_evidence]
    differences = np.argwhere(np.abs(shares[0] - shares[1]) == 1.0)
    if not len(differences):
        return CheckReport()
    message, agent = differences[0]
    changed_value = (
        f"message of agent {agent} in iteration {message + 1}"
        if message < first.iterations
        else f"value that agent {agent} exchanges"
    )
    text = (
        f"the {changed_value} has NaN or infinite numbers in all runs on one data set and in none "
        f"on the other: this changes with {changed}"
    )
    return CheckReport((Finding(DIFFERS, text),))


def messages_declared(
    sites: Sequence[NoiseSite], both_evidence: Sequence[Evidence]
) -> list[Finding]:
    """Compare the number of noised messages of each agent with the declared maximum.

    Only sites with ``max_observed`` are compared.
    """
    findings = []
    for site in sites:
        noise = [
            evidence.noise[site.name] for evidence in both_evidence if site.name in evidence.noise
        ]
        if site.max_observed is None or site.name != "message" or not noise:
            continue
        max_messages = max(
            int(np.isfinite(noise_of_world).any(-1).sum(1).max()) for noise_of_world in noise
        )
        if max_messages > site.max_observed:
            text = f"an agent sends {max_messages} messages, {site.max_observed} are declared"
            findings.append(Finding(DIFFERS, text))
    return findings


def sensitivity_reached(
    sites: Sequence[NoiseSite],
    first: Evidence,
    second: Evidence,
    declared: float,
    delta: float,
    agent: int = 0,
    factor: float = 1.0,
    noise_differs: Callable[[], bool] = lambda: False,
) -> tuple[float, list[Finding]]:
    """Compare the largest change of the noised values with the declared sensitivity.

    If changes are declared for all rounds together, those of a run are summed.

    Parameters
    ----------
    declared : float
        Epsilon of the declared releases at ``delta``.
    factor : float
        Distance between the two data sets, in declared sensitivities.
    noise_differs : callable
        Return True if the size of the noise depends on the data set.

    Returns
    -------
    fraction : float
        Largest change over the declared sensitivity; NaN if it is not known.
    findings : list of Finding
    """
    moved = [evidence.moved for evidence in (first, second) if evidence.moved is not None]
    together = [evidence.together for evidence in (first, second) if evidence.together is not None]
    if not moved or len(sites) != 1:
        return math.nan, []
    (site,) = sites
    by_round = not np.isnan(site.moved).all()
    if by_round:
        share, largest_changes = _reached(site, moved)
        share /= factor
    else:
        share, largest_changes = math.nan, reduce(longer, together)
    texts = []
    if share > 1.0 + SLACK:
        texts.append(
            f"a record of agent {agent} changes the {site.name} by {share:.4g} times the declared "
            "sensitivity"
        )
        if noise_differs():
            texts[-1] += f" ({SIZE_DIFFERS})"
    cost = account([Release(site.law, np.nan_to_num(largest_changes), 1.0)], delta).epsilon
    if cost > declared * (1.0 + SLACK_OF_COST):
        texts.append(
            f"a record of agent {agent} changes {np.count_nonzero(largest_changes)} messages; "
            f"together they have epsilon {cost:.4g}, the declared epsilon is {declared:.4g}"
        )
    return share, [Finding(DIFFERS, text) for text in texts]


def _reached(site: NoiseSite, moved: Sequence[np.ndarray]) -> tuple[float, np.ndarray]:
    """Return the largest change over the declared one, and the largest change of each round."""
    times = min(len(site.moved), *map(len, moved))
    largest_changes = np.max([changes[:times] for changes in moved], axis=0)
    allowed = np.where(site.moved > 0, site.moved, np.nan)[:times]
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.nanmax(largest_changes / allowed)), largest_changes


def unrecovered_noise(
    sites: Sequence[NoiseSite],
    evidence: Evidence,
    exact: CheckReport,
    confidence: float = 0.0,
    delta: float = 0.0,
) -> CheckReport:
    """List declared sites and iterations whose noise was not recovered.

    The result has no findings: a message without noise is one of ``exact``, the report of
    :func:`.exact_costs`, which decides if it covers all agents. ``confidence`` and ``delta``
    determine how many runs show an event of probability delta.
    """
    decisive = bool(exact.untested) and any(gap.decisive for gap in exact.untested)
    missing = []
    for site in sites:
        if site.name not in evidence.noise:
            reason = "the messages are not affine in the noise of one iteration"
            if delta > 0:
                # statistics are tested on one half of the runs
                runs = math.ceil(-2.0 * math.log1p(-confidence) / delta)
                reason += (
                    "; only statistics of the messages test it, which show an event of "
                    f"probability delta = {delta:g} with {runs} runs"
                )
            missing.append(
                Untested(f"distribution of the noise of the {site.name}", reason, decisive)
            )
            continue
        noise = evidence.noise[site.name]
        scale = np.broadcast_to(site.scale, (len(site.moved), *np.shape(site.scale)[1:]))
        declared = np.asarray(np.isfinite(scale).all((1, 2)))
        if declared[noise.shape[1] :].any():
            reason = "no values of the noise reproduce the earlier messages"
            item = f"noise of the {site.name} after iteration {noise.shape[1]}"
            missing.append(Untested(item, reason, decisive))
        declared = declared[: noise.shape[1]]
        is_unrecovered = (
            np.asarray(np.isnan(noise).all(0))[: len(declared)] & declared[:, None, None]
        )
        for t, agent, coordinate in np.argwhere(is_unrecovered)[:1]:
            where = f"agent {agent}, iteration {t + 1}, coordinate {coordinate}"
            reason = f"{is_unrecovered.sum()} entries of messages do not depend on the noise"
            missing.append(Untested(f"noise of the {site.name}, {where}", reason, decisive))
    return CheckReport(untested=tuple(missing))
