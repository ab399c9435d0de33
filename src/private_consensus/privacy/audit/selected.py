"""Tests of partly observed noise, if the noise itself determines which part is observed.

The observed noise then has another distribution. For example, a message that is sent only if its
loss is small has favourable noise. However, among n positions with noise of the declared
distribution, observed or not, at most Bin(n, p) have an outcome of probability p. Every test here
counts such outcomes among the observed positions: lengths within a quantile of the distribution, on
either side, of all positions and of each round, agent, release and coordinate; and equal norms of
two releases. No distribution of the selection is assumed. Fewer outcomes than expected are not
evidence.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import bdtrc

from private_consensus.common.errors import require

from .laws import check_law, cumulative_size, size
from .noise import RESOLUTION, NoiseFinding, Result, names_of_releases, reused

TAILS = (1e-6, 1e-3, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75)
"""Tail probabilities of the outcomes that are counted."""

_GROUPS = {"round": (1,), "agent": (2,), "release": (1, 2)}
_AXES = ("run", "round", "agent")


def selected_noise_test(
    noise: np.ndarray, *, law: str, confidence: float, resolution: float = RESOLUTION
) -> tuple[NoiseFinding, ...]:
    """Test noise over its declared scale, [runs, rounds, agents, dim], in which unobserved is NaN.

    Correct noise has no finding with probability ``confidence``, for every selection.
    ``resolution`` is the precision of the recovered values, in units of the scale. The kinds of
    findings are ``too small``, ``too large`` and ``reused``.
    """
    check_law(law)
    require(noise.ndim == 4, "noise", noise.shape, "axes run, round, agent, coordinate")
    observed = np.all(np.isfinite(noise), axis=-1)
    require(bool(observed.any()), "noise", noise.shape, "at least one finite value")
    results = [*_tail_results(noise, observed, law), *_reused(noise, observed, law, resolution)]
    total = sum(result[3] for result in results)
    findings: dict[str, NoiseFinding] = {}
    for kind, where, p, _ in sorted(results, key=lambda result: result[2]):
        if p * total < 1.0 - confidence:
            findings.setdefault(kind, NoiseFinding(kind, where, float(p * total)))
    return tuple(findings.values())


def _tail_results(noise: np.ndarray, observed: np.ndarray, law: str) -> Iterator[Result]:
    below = np.where(observed, cumulative_size(size(noise, law), law, noise.shape[-1]), np.nan)
    yield from _group_results(below)
    if law != "gamma_norm" and noise.shape[-1] > 1:
        for coordinate in range(noise.shape[-1]):
            below_coordinate = cumulative_size(np.abs(noise[..., coordinate]), law, 1)
            where = f"coordinate {coordinate}"
            yield from _tails(below_coordinate.reshape(-1, 1), lambda _, name=where: name)


def _group_results(below: np.ndarray) -> Iterator[Result]:
    yield from _tails(below.reshape(-1, 1), lambda _: "everywhere")
    for axes in _GROUPS.values():
        sizes = [below.shape[axis] for axis in axes]
        grouped = np.moveaxis(below, axes, range(-len(axes), 0)).reshape(-1, int(np.prod(sizes)))

        def _describe(group, axes=axes, sizes=sizes):
            indices = np.unravel_index(group, sizes)
            return ", ".join(f"{_AXES[a]} {i}" for a, i in zip(axes, indices, strict=True))

        yield from _tails(grouped, _describe)


def _tails(below: np.ndarray, describe) -> Iterator[Result]:
    """Count outcomes [positions, groups] within each tail.

    Unobserved outcomes (NaN) are in none.
    """
    positions, groups = below.shape
    for tail in TAILS:
        for kind, inside in (("too small", below <= tail), ("too large", below >= 1.0 - tail)):
            p = bdtrc(inside.sum(0) - 1, positions, tail)
            worst = int(np.argmin(p))
            yield kind, describe(worst), float(p[worst]), groups


def _reused(
    noise: np.ndarray, observed: np.ndarray, law: str, resolution: float
) -> Iterator[Result]:
    runs, rounds, agents, _ = noise.shape
    if rounds * agents > 1:
        # a norm of 0 marks an unobserved vector: zeros are excluded from the comparison
        norms = np.where(observed, size(noise, law), 0.0).reshape(runs, -1)
        columns = names_of_releases(rounds, agents)
        yield reused("norms of releases", columns, norms, resolution, resolution)
