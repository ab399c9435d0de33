"""What was executed against what is declared: noise, and how far the data move what is noised.

A finding here bounds no epsilon from below; it says that the algorithm is not what it declares.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from ..algorithms.base import NoiseSite
from ..privacy.audit.noise import noise_test
from .evidence import World
from .result import DIFFERS, Finding, NoiseFound

SLACK = 1e-6
"""Relative; what a solver's tolerance and rounding add to a change."""


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
    """Noise without the places that have none: rounds where that is all of a round, else whole
    vectors, or single coordinates, one after the other, [values, 1, 1, dim or 1]."""
    finite = np.isfinite(unit)
    by_round = finite.all((0, 2, 3))
    if (by_round | ~finite.any((0, 2, 3))).all():
        return unit[:, by_round]
    vectors = finite.all(-1)
    if (vectors | ~finite.any(-1)).all():
        return unit[vectors][:, None, None]
    return unit[finite][:, None, None, None]


def _alike(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As many runs of either."""
    runs = min(len(one), len(other))
    return one[:runs], other[:runs]


def sensitivity_reached(
    sites: Sequence[NoiseSite], one: World, other: World
) -> tuple[float, list[Finding]]:
    """Largest change of what is noised over the declared one, and whether it is above it."""
    known = [world.moved for world in (one, other) if world.moved is not None]
    if not known or len(sites) != 1:
        return math.nan, []
    (site,) = sites
    with np.errstate(divide="ignore", invalid="ignore"):
        share = float(
            np.nanmax(np.max(known, axis=0) / np.where(site.moved > 0, site.moved, np.nan))
        )
    if share <= 1.0 + SLACK:
        return share, []
    text = f"a record moves the {site.name} by {share:.4g} times the declared sensitivity"
    return share, [Finding(DIFFERS, text)]
