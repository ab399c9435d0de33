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

from .evidence import Evidence, longer
from .execution import execute
from .neighbours import Attack
from .result import DIFFERS, CheckReport, Finding, NoiseFound, Untested
from .streams import AuditStreams

SLACK_OF_COST = 1e-3
"""The same of epsilon, with what an accountant rounds up."""
FILLING = 20_254
"""Seed of noise that fills holes."""
SILENT_RUNS, REPETITIONS = 150, 4
"""Runs that are executed with other noise, and how often."""
CONTINUOUS = 0.9
"""Smallest fraction of runs whose repetitions send different numbers, for continuous noise."""

SLACK = 1e-4
"""Relative; what a solver's tolerance and rounding, also to 32 bits, add to a change."""


def noise_found(
    sites: Sequence[NoiseSite], one: Evidence, other: Evidence, *, confidence: float
) -> Iterator[NoiseFound]:
    """Recovered noise of both data sets at every site, tested for law, scale and independence."""
    tested = [site for site in sites if site.name in one.noise]
    for site in tested:
        level = (1.0 - confidence) / len(tested)
        worlds = _alike(*(world.noise[site.name] for world in (one, other)))
        if site.selected:
            yield _selected(site, worlds, level)
            continue
        views = _views(np.concatenate(worlds), site.law)
        looked_at = [_alike(*map(view, worlds, range(2))) for view in views]
        looked_at = [pair for pair in looked_at if pair[0].size]
        found = [
            noise_test(a, 1.0, law=site.law, confidence=1.0 - level / len(looked_at), other=b)
            for a, b in looked_at
        ]
        texts = tuple(_text(finding) for one in found for finding in one.findings)
        if found:
            yield NoiseFound(site.name, found[0].estimate, found[0].low, found[0].high, texts)


def _selected(site: NoiseSite, worlds: Sequence[np.ndarray], level: float) -> NoiseFound:
    """Test noise that determines which of its values are visible; its scale stays unknown."""
    both = np.concatenate(worlds)
    found = ()
    if np.isfinite(both).all(-1).any():
        found = selected_noise_test(both, law=site.law, confidence=1.0 - level)
    return NoiseFound(site.name, math.nan, math.nan, math.nan, tuple(map(_text, found)))


def _text(finding) -> str:
    return f"{finding.kind}, {finding.where}"


View = Callable[[np.ndarray, int], np.ndarray]
"""From recovered noise and the number of its data set to what is tested of it."""


def _views(both: np.ndarray, law: str) -> list[View]:
    """Recovered noise as it can be tested: as it is, or, where there are holes, what there is one
    after the other, and beside it all of it with the holes filled."""
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
    """Coordinates of vectors that have as many each."""
    return noise[np.isfinite(noise)].reshape(*noise.shape[:3], -1)


def _one_by_one(noise: np.ndarray, _: int) -> np.ndarray:
    """Whole vectors, [values, 1, 1, dim]."""
    return noise[np.isfinite(noise).all(-1)][:, None, None]


def _number_by_number(noise: np.ndarray, _: int) -> np.ndarray:
    """Single coordinates, [values, 1, 1, 1]."""
    return noise[np.isfinite(noise)][:, None, None, None]


def _filled(noise: np.ndarray, world: int, law: str) -> np.ndarray:
    """Fill missing entries with fresh noise, so that the array can be tested as a whole.

    Noise that repeats in two rounds, agents or runs keeps its indices.
    """
    fresh = drawn(law, generator(FILLING, "holes", world), noise.shape)
    return np.where(np.isfinite(noise), noise, fresh)


def _alike(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Truncate both to the smaller number of runs and iterations."""
    runs, times = (min(sizes) for sizes in zip(one.shape[:2], other.shape[:2], strict=True))
    return one[:runs, :times], other[:runs, :times]


def silent_messages(
    algorithm: Algorithm, attack: Attack, horizon: int, *, seed: int, **_: Any
) -> CheckReport:
    """Find messages without noise in some runs, whatever else is random.

    Each run is repeated with other noise. A number of a message that stays equal in all repetitions
    carries no noise in this run. It is a fault if it changes with the data, and if almost all other
    runs send different numbers in all repetitions: numbers with few possible values are equal by
    chance.

    Parameters
    ----------
    algorithm : Algorithm
    attack : Attack
    horizon : int
    seed : int

    Returns
    -------
    CheckReport
    """
    streams = AuditStreams.labelled("messages without noise", SILENT_RUNS, seed)
    again = [streams.with_groups(noise=f"repetition {k}") for k in range(REPETITIONS)]
    world, other = ((problem, attack.network) for problem in attack.pair)
    first = execute(algorithm, *world, streams, horizon).sent
    changed = execute(algorithm, *other, streams, horizon).sent
    repeated = [execute(algorithm, *world, one, horizon).sent for one in again]
    if any(sent.shape != first.shape for sent in (changed, *repeated)):
        return CheckReport()
    size = 1e-9 * np.abs(first).max(initial=0.0)
    equal = np.all([np.abs(sent - first) <= size for sent in repeated], axis=0)
    ordered = np.sort(np.stack([first, *repeated]), axis=0)
    distinct = (np.diff(ordered, axis=0) > size).all(0)
    silent = equal & (np.abs(changed - first) > size)
    loud = distinct.sum(0) >= CONTINUOUS * np.maximum(1, (~equal).sum(0))
    never = equal.all(0) & (distinct.mean() >= CONTINUOUS * (~equal).mean())
    faulty = silent.any(0) & (loud & distinct.any(0) | never)
    findings = []
    for t, agent in np.argwhere(faulty.any(-1))[:1]:
        runs = float(silent[:, t, agent].any(-1).mean())
        text = (
            f"the message of agent {agent} in iteration {t + 1} carries no noise in {runs:.0%} of "
            f"runs and changes with a record of agent {attack.agent}"
        )
        findings.append(Finding(DIFFERS, text))
    return CheckReport(tuple(findings), sites=("presence of noise in each run",))


def iterations_declared(worlds: Sequence[Evidence], horizon: int) -> list[Finding]:
    """Findings where more iterations release something than the horizon that is declared."""
    most = max(world.iterations for world in worlds)
    if most <= horizon:
        return []
    return [Finding(DIFFERS, f"{most} iterations let something out, {horizon} are declared")]


def sites_and_releases(
    algorithm: Algorithm, sites: Sequence[NoiseSite], declared: float, delta: float
) -> list[Finding]:
    """A finding where the noise of all iterations costs more than the releases that are declared:
    some of them are left out. A measurement enters one message alone."""
    if not sites or not all(np.isfinite(site.moved).all() for site in sites):
        return []
    one = algorithm.relation.unit == "measurement"
    told = [Release(s.law, np.max(s.moved) if one else _observed(s), 1.0) for s in sites]
    spent = account(told, delta).epsilon
    if spent <= declared * (1.0 + SLACK_OF_COST):
        return []
    text = f"its noise in all iterations is worth epsilon {spent:.4g}, its releases {declared:.4g}"
    return [Finding(DIFFERS, text)]


def _observed(site: NoiseSite) -> np.ndarray:
    """Largest changes over the scale among the iterations whose noise is observed."""
    return np.sort(site.moved)[::-1][: site.max_observed]


def messages_declared(sites: Sequence[NoiseSite], worlds: Sequence[Evidence]) -> list[Finding]:
    """Compare the number of noised messages of each agent with the declared maximum.

    Parameters
    ----------
    sites : sequence of NoiseSite
        Those with ``max_observed`` are compared.
    worlds : sequence of Evidence
        Executions on the two data sets.

    Returns
    -------
    list of Finding
        One finding per site whose noise is observed in more iterations than declared.
    """
    findings = []
    for site in sites:
        noise = [world.noise[site.name] for world in worlds if site.name in world.noise]
        if site.max_observed is None or site.name != "message" or not noise:
            continue
        most = max(int(np.isfinite(one).any(-1).sum(1).max()) for one in noise)
        if most > site.max_observed:
            text = f"an agent sends {most} messages, {site.max_observed} are declared"
            findings.append(Finding(DIFFERS, text))
    return findings


def sensitivity_reached(
    sites: Sequence[NoiseSite],
    one: Evidence,
    other: Evidence,
    declared: float,
    delta: float,
    agent: int = 0,
    factor: float = 1.0,
) -> tuple[float, list[Finding]]:
    """Largest change of what is noised over the declared one, and whether it, or what all changes
    cost together, is above what is declared: an epsilon at ``delta``.

    Where changes are declared together and not round by round, those of single runs are summed.
    """
    worlds = [world for world in (one, other) if world.moved is not None]
    if not worlds or len(sites) != 1:
        return math.nan, []
    (site,) = sites
    by_round = not np.isnan(site.moved).all()
    if by_round:
        share, most = _reached(site, [world.moved for world in worlds if world.moved is not None])
        share /= factor
    else:
        together = (world.together for world in worlds if world.together is not None)
        share, most = math.nan, reduce(longer, together)
    texts = []
    if share > 1.0 + SLACK:
        texts.append(
            f"a record of agent {agent} moves the {site.name} by {share:.4g} times the declared "
            "sensitivity"
        )
    spent = account([Release(site.law, np.nan_to_num(most), 1.0)], delta).epsilon
    if spent > declared * (1.0 + SLACK_OF_COST):
        texts.append(
            f"{np.count_nonzero(most)} messages are moved by so much by a record of agent {agent} "
            f"that they cost epsilon {spent:.4g}, declared is {declared:.4g}"
        )
    return share, [Finding(DIFFERS, text) for text in texts]


def _reached(site: NoiseSite, moved: Sequence[np.ndarray]) -> tuple[float, np.ndarray]:
    """Largest change over the declared one, and the largest change of each round."""
    times = min(len(site.moved), *map(len, moved))
    most = np.max([changes[:times] for changes in moved], axis=0)
    allowed = np.where(site.moved > 0, site.moved, np.nan)[:times]
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.nanmax(most / allowed)), most


def unrecovered_noise(
    sites: Sequence[NoiseSite], evidence: Evidence, exact: CheckReport
) -> CheckReport:
    """List declared sites and iterations whose noise was not recovered.

    Parameters
    ----------
    sites : sequence of NoiseSite
    evidence : Evidence
        Of one data set.
    exact : CheckReport
        Of :func:`.exact_costs`; it decides if it covers all agents.

    Returns
    -------
    CheckReport
        Without findings: a message without noise is one of ``exact``.
    """
    decisive = bool(exact.untested) and any(part.decisive for part in exact.untested)
    missing = []
    for site in sites:
        if site.name not in evidence.noise:
            reason = "the messages are not affine in the noise of one iteration"
            missing.append(
                Untested(f"distribution of the noise of the {site.name}", reason, decisive)
            )
            continue
        noise = evidence.noise[site.name]
        scale = np.broadcast_to(site.scale, (len(site.moved), *np.shape(site.scale)[1:]))
        declared = np.asarray(np.isfinite(scale).all((1, 2)))
        if declared[noise.shape[1] :].any():
            reason = "no draw makes a step send the messages before"
            item = f"noise of the {site.name} after iteration {noise.shape[1]}"
            missing.append(Untested(item, reason, decisive))
        declared = declared[: noise.shape[1]]
        silent = np.asarray(np.isnan(noise).all(0))[: len(declared)] & declared[:, None, None]
        for t, agent, coordinate in np.argwhere(silent)[:1]:
            where = f"agent {agent}, iteration {t + 1}, coordinate {coordinate}"
            reason = f"the message does not depend on it in {silent.sum()} places"
            missing.append(Untested(f"noise of the {site.name}, {where}", reason, decisive))
    return CheckReport(untested=tuple(missing))
