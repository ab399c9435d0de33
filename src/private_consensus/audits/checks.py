"""What was executed against what is declared: noise, and how far the data move what is noised.

A finding here bounds no epsilon from below; it says that the algorithm is not what it declares.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from ..algorithms.base import Algorithm, NoiseSite
from ..privacy import Release, account
from ..privacy.audit.noise import noise_test
from .evidence import World
from .execution import execute
from .neighbours import Attack
from .result import DIFFERS, Finding, NoiseFound
from .streams import AuditStreams

SLACK_OF_COST = 1e-3
"""The same of epsilon, with what an accountant rounds up."""
AGAIN = 20
"""Runs that are executed with other noise."""

SLACK = 1e-4
"""Relative; what a solver's tolerance and rounding, also to 32 bits, add to a change."""


def noise_found(
    sites: Sequence[NoiseSite], one: World, other: World, *, confidence: float
) -> Iterator[NoiseFound]:
    """Recovered noise of both data sets at every site, tested for law, scale and independence."""
    tested = [site for site in sites if site.name in one.noise]
    for site in tested:
        level = (1.0 - confidence) / len(tested)
        here, there = _alike(*(_noised(world.noise[site.name]) for world in (one, other)))
        if not here.size:
            continue
        found = noise_test(here, 1.0, law=site.law, confidence=1.0 - level, other=there)
        texts = tuple(f"{finding.kind}, {finding.where}" for finding in found.findings)
        yield NoiseFound(site.name, found.estimate, found.low, found.high, texts)


def _noised(unit: np.ndarray) -> np.ndarray:
    """Noise without the places that have none: rounds where that is all of a round, coordinates
    where each vector has as many, else whole vectors, or single coordinates, one after the other,
    [values, 1, 1, dim or 1]."""
    finite = np.isfinite(unit)
    by_round = finite.all((0, 2, 3))
    if (by_round | ~finite.any((0, 2, 3))).all():
        return unit[:, by_round]
    counts = finite.sum(-1)
    if (counts == counts.flat[0]).all():
        return unit[finite].reshape(*counts.shape, -1)
    vectors = finite.all(-1)
    if (vectors | ~finite.any(-1)).all():
        return unit[vectors][:, None, None]
    return unit[finite][:, None, None, None]


def _alike(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As many runs and iterations of either."""
    runs, times = (min(sizes) for sizes in zip(one.shape[:2], other.shape[:2], strict=True))
    return one[:runs, :times], other[:runs, :times]


def noise_matters(algorithm: Algorithm, attack: Attack, horizon: int, seed: int) -> list[Finding]:
    """A finding where a run sends the same whatever noise is drawn for it: what hides the data then
    does not come from the streams that it should come from, but from the data or the code."""
    streams = AuditStreams.labelled("noise that matters", AGAIN, seed)
    world = attack.pair[0], attack.network
    one, other = (
        execute(algorithm, *world, drawn, horizon).sent
        for drawn in (streams, streams.with_groups(noise="drawn again"))
    )
    if one.shape != other.shape or not (one == other).all((1, 2, 3)).any():
        return []
    return [Finding(DIFFERS, "messages do not depend on the noise that is drawn")]


def iterations_declared(worlds: Sequence[World], horizon: int) -> list[Finding]:
    """A finding where more iterations let something out than were asked for and declared."""
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
    told = [Release(s.law, np.max(s.moved) if one else s.moved, 1.0) for s in sites]
    spent = account(told, delta).epsilon
    if spent <= declared * (1.0 + SLACK_OF_COST):
        return []
    text = f"its noise in all iterations is worth epsilon {spent:.4g}, its releases {declared:.4g}"
    return [Finding(DIFFERS, text)]


def sensitivity_reached(
    sites: Sequence[NoiseSite], one: World, other: World, declared: float, delta: float
) -> tuple[float, list[Finding]]:
    """Largest change of what is noised over the declared one, and whether it, or what all changes
    cost together, is above what is declared: an epsilon at ``delta``."""
    known = [world.moved for world in (one, other) if world.moved is not None]
    if not known or len(sites) != 1:
        return math.nan, []
    (site,) = sites
    times = min(len(site.moved), *map(len, known))
    most = np.max([moved[:times] for moved in known], axis=0)
    allowed = np.where(site.moved > 0, site.moved, np.nan)[:times]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = float(np.nanmax(most / allowed))
    texts = []
    if share > 1.0 + SLACK:
        texts.append(
            f"a record moves the {site.name} by {share:.4g} times the declared sensitivity"
        )
    spent = account([Release(site.law, np.nan_to_num(most), 1.0)], delta).epsilon
    if spent > declared * (1.0 + SLACK_OF_COST):
        texts.append(
            f"{np.count_nonzero(most)} messages are moved by so much that they cost epsilon "
            f"{spent:.4g}, declared is {declared:.4g}"
        )
    return share, [Finding(DIFFERS, text) for text in texts]
