"""Tests of recovered noise: distribution, scale, freshness and independence.

Six kinds of test share 1 - confidence evenly; within a kind Bonferroni's inequality is used.

``scale``
    Sums of all values, on both sides (:mod:`.laws`).
``scale by group``
    Sums for each round, agent, coordinate, release and run. They detect noise on some of the
    coordinates only, or in all rounds but a few. For ``gamma_norm`` the fraction of the squared
    norm in a coordinate, which is Beta(1/2, (d - 1)/2), exceeds its median with probability 1/2.
``shape``
    Kolmogorov and Smirnov at the declared scale; conservative for a discrete distribution. The
    largest value, on both sides: truncated tails change the distance little, but a value beyond
    them reveals a record.
``zeros``
    Values that are exactly 0, against the probability of 0 on a grid of this resolution, or under
    the discrete distribution.
``reused``
    Equal lengths in two releases, two coordinates, or two runs of either data set, at the same
    index: at most Bin(n, pi) with pi of the grid. Equal norms of two releases: the same noise with
    its coordinates or signs in another order. Equal values at unrelated indices are expected on a
    grid of 2^24 numbers and are not evidence.
``dependent``
    Signs agree with probability 1/2, and so do comparisons of lengths with the median. This is
    tested for each such pair, and for all successive values along an axis together (products of
    successive fair signs are independent fair signs).

Equal lengths are searched in all pairs, by sorting. The pairs of the other tests are bounded
(:data:`COLUMNS`, :data:`ROWS`): if there are more releases, the first and the last are compared
with each other, and neighbours everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from scipy.optimize import brentq
from scipy.special import bdtr, bdtrc, gammaincinv

from private_consensus.common.errors import require

from .laws import (
    check_law,
    coincidence,
    distance_to_law,
    energy,
    largest_p_values,
    scale_p_values,
    size,
)

KINDS = ("scale", "scale by group", "shape", "zeros", "reused", "dependent")
COLUMNS, ROWS = 400, 4_000
"""Maximum numbers of columns and rows of which pairs are compared."""
RESOLUTION = 2.0**-20
"""Precision of recovered noise, in units of its scale: closer values count as equal."""

_AXES = ("run", "round", "agent", "coordinate")
_GROUPS = {"round": (1,), "agent": (2,), "coordinate": (3,), "release": (1, 2), "run": (0,)}
_SHAPE_VALUES = 100_000


@dataclass(frozen=True)
class NoiseFinding:
    """Difference between observed noise and declared noise.

    Parameters
    ----------
    kind : str
        ``too small``, ``too large``, ``wrong shape``, ``zeros``, ``reused`` or ``dependent``.
    where : str
        Location: ``everywhere``, or the group with the smallest p-value.
    p_value : float
        Corrected for all tests of the noise; below 1 - confidence.
    """

    kind: str
    where: str
    p_value: float


@dataclass(frozen=True)
class NoiseTest:
    """Outcome of :func:`noise_test`.

    Parameters
    ----------
    estimate, low, high : float
        Scale over the declared scale, with confidence limits that hold if distribution and
        independence are as declared.
    findings : tuple of NoiseFinding
        Empty if nothing contradicts the declaration.
    p_values : mapping
        By kind of :data:`KINDS`, corrected for all tests of the noise.
    """

    estimate: float
    low: float
    high: float
    findings: tuple[NoiseFinding, ...]
    p_values: Mapping[str, float]
    confidence: float

    @property
    def passes(self) -> bool:
        """True if distribution, scale, freshness and independence agree with the declaration."""
        return not self.findings

    @property
    def p_value(self) -> float:
        """Smallest p-value over all kinds of test, which is that of the declaration."""
        return min(self.p_values.values())

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of the findings."""
        return tuple(finding.kind for finding in self.findings)


def noise_test(
    noise: np.ndarray,
    scale: Any,
    *,
    law: str,
    confidence: float,
    other: np.ndarray | None = None,
    resolution: float = RESOLUTION,
) -> NoiseTest:
    """Test distribution, scale, freshness and independence of recovered noise.

    Parameters
    ----------
    noise : ndarray, shape (runs, rounds, agents, dim)
        Recovered noise.
    scale : float or ndarray
        Declared scale; broadcast against ``noise``. For ``gamma_norm`` constant along the last
        axis, for ``discrete_gaussian`` one number.
    law : {"gaussian", "laplace", "gamma_norm", "uniform", "discrete_gaussian"}
        Declared distribution.
    confidence : float
        Probability with which correct noise passes.
    other : ndarray, optional
        Noise of the same rounds under the other data set, with equally many runs; the two must
        be independent.
    resolution : float
        Precision of the recovered values, in units of the scale; not used for
        ``discrete_gaussian``.
    """
    check_law(law)
    samples = [_unit(values, scale) for values in (noise, other) if values is not None]
    shape, *other_shapes = (sample.shape for sample in samples)
    require(other_shapes in ([], [shape]), "other", other_shapes, f"an array of shape {shape}")
    unit = np.concatenate(samples)
    sigma = float(np.max(scale))
    if law == "discrete_gaussian":
        require(np.size(scale) == 1, "scale", np.shape(scale), "one number for a discrete Gaussian")
    zero, equal = coincidence(law, sigma, resolution)
    tested = {
        "scale": list(_scale(unit, law, sigma)),
        "scale by group": list(_scale_by_group(unit, law, sigma)),
        "shape": [_shape(unit, law, sigma), *_largest(unit, law, sigma)],
        "zeros": [_zeros(unit, zero)],
        "reused": [
            *(reused(*pairing, equal, resolution) for pairing in _pairings(unit)),
            *_norms_reused(unit, law, resolution),
        ],
        "dependent": [*_dependent(unit, law), *_neighbours(unit, len(samples))],
    }
    worst_by_kind = {kind: _worst(results, len(KINDS)) for kind, results in tested.items()}
    findings = tuple(
        finding for finding in worst_by_kind.values() if finding.p_value < 1 - confidence
    )
    is_cut = any(finding.where == "tails are cut" for finding in findings)
    if is_cut and _median_p_value(unit, law) >= 1 - confidence:
        # Without its tails, noise of the declared scale has a smaller variance.
        findings = tuple(finding for finding in findings if finding.kind != "too small")
    level = (1 - confidence) / (2 * len(KINDS))
    estimate, low, high = _interval(unit, law, sigma, level)
    p_values = {kind: finding.p_value for kind, finding in worst_by_kind.items()}
    return NoiseTest(estimate, low, high, findings, p_values, confidence)


Result = tuple[str, str, float, int]
"""Kind of finding, group with the smallest p-value, this p-value, and the number of groups."""


def _unit(noise: np.ndarray, scale: Any) -> np.ndarray:
    noise = np.asarray(noise, float)
    require(noise.ndim == 4, "noise", noise.shape, "axes run, round, agent, coordinate")
    require(noise.size > 0, "noise", noise.shape, "at least one value")
    require(bool(np.all(np.isfinite(noise))), "noise", "a non-finite value", "finite numbers")
    require(bool(np.all(np.asarray(scale) > 0)), "scale", scale, "numbers > 0")
    return noise / scale


def _worst(results: list[Result], kinds: int) -> NoiseFinding:
    """Return the finding with the smallest p-value of one kind of test.

    It is corrected for all tests of the kind and for the number of kinds.
    """
    total = sum(count for *_, count in results)
    kind, where, p, _ = min(results, key=lambda result: result[2])
    return NoiseFinding(kind, where, float(min(1.0, p * total * kinds)))


# --- Scale ------------------------------------------------------------------------------------


def _scale(unit: np.ndarray, law: str, sigma: float) -> Iterator[Result]:
    low, high = scale_p_values(energy(unit, law).sum(), unit.size, law, sigma)
    yield "too small", "everywhere", float(low), 1
    yield "too large", "everywhere", float(high), 1
    if law == "uniform" and np.max(np.abs(unit)) > 1 + 1e-6:
        yield "too large", "beyond the interval", 0.0, 1


def _scale_by_group(unit: np.ndarray, law: str, sigma: float) -> Iterator[Result]:
    summands = energy(unit, law)
    for name, axes in _GROUPS.items():
        if name == "coordinate" and law == "gamma_norm":
            yield from _norm_fractions(unit)
            continue
        summed_axes = tuple(axis for axis in range(4) if axis not in axes)
        sums = summands.sum(axis=summed_axes)
        count = int(np.prod([unit.shape[axis] for axis in summed_axes]))
        for kind, p in zip(
            ("too small", "too large"), scale_p_values(sums, count, law, sigma), strict=True
        ):
            index = np.unravel_index(int(np.argmin(p)), p.shape)
            yield kind, _location(axes, index), float(p[index]), p.size


def _location(axes: tuple[int, ...], indices) -> str:
    return ", ".join(f"{_AXES[axis]} {index}" for axis, index in zip(axes, indices, strict=True))


def _norm_fractions(unit: np.ndarray) -> Iterator[Result]:
    """Test how often a coordinate's fraction of the squared norm exceeds its spherical median."""
    dim = unit.shape[-1]
    if dim == 1:
        return
    releases = unit.reshape(-1, dim)
    squares = releases**2
    total = squares.sum(axis=-1, keepdims=True)
    fraction = squares / np.where(total > 0, total, 1.0)
    above = (fraction > stats.beta.median(0.5, (dim - 1) / 2)).sum(axis=0)
    number = len(releases)
    for kind, p in (
        ("too small", bdtr(above, number, 0.5)),
        ("too large", bdtr(number - above, number, 0.5)),
    ):
        yield kind, f"coordinate {int(np.argmin(p))}", float(p.min()), dim


def _interval(unit: np.ndarray, law: str, sigma: float, level: float) -> tuple[float, float, float]:
    """Return the scale over the declared one, with confidence limits.

    The estimate has equal tails; at a limit one tail equals the level.
    """
    total = float(energy(unit, law).sum())

    def tails(ratio: float) -> tuple[float, float]:
        low, high = scale_p_values(np.array(total), unit.size, law, sigma, ratio)
        return float(low), float(high)

    def root(excess) -> float:
        return float(np.exp(brentq(lambda log: excess(tails(np.exp(log))), -30.0, 30.0)))

    if total == 0 and law != "uniform":
        return 0.0, 0.0, 0.0
    middle = root(lambda p: p[0] - p[1])
    return middle, root(lambda p: level - p[1]), root(lambda p: p[0] - level)


# --- Shape and zeros --------------------------------------------------------------------------


def _shape(unit: np.ndarray, law: str, sigma: float) -> Result:
    releases = unit.reshape(-1, unit.shape[-1])
    step, period = max(1, unit.size // _SHAPE_VALUES), unit.shape[1] * unit.shape[2]
    while math.gcd(step, period) > 1:  # else some rounds or agents would never be tested
        step += 1
    distance, number = distance_to_law(releases[::step], law, sigma)
    return "wrong shape", "everywhere", float(stats.kstwo.sf(distance, number)), 1


def _largest(unit: np.ndarray, law: str, sigma: float) -> Iterator[Result]:
    shorter, longer = largest_p_values(unit, law, sigma)
    yield "wrong shape", "tails are cut", shorter, 1
    yield "wrong shape", "outliers", longer, 1


def _median_p_value(unit: np.ndarray, law: str) -> float:
    """Return the p-value of a median length that is too small; 0 if it is not tested."""
    if law in ("uniform", "discrete_gaussian"):
        return 0.0
    lengths = energy(unit, law)
    above = np.count_nonzero(lengths > _median(law, unit.shape[-1]))
    return float(bdtr(above, lengths.size, 0.5))


def _zeros(unit: np.ndarray, chance: float) -> Result:
    zeros = unit == 0
    number = int(zeros.sum())
    p = float(bdtrc(number - 1, unit.size, chance)) if number else 1.0
    return "zeros", f"{number} of {unit.size} values", p, 1


# --- Reuse and dependence ---------------------------------------------------------------------


def _pairings(unit: np.ndarray) -> Iterator[tuple[str, Sequence[str], np.ndarray]]:
    """Yield the noise as matrices [rows, columns], whose columns are compared in pairs.

    Each has a name, and a name of each column.
    """
    runs, rounds, agents, dim = unit.shape
    unfolded = {
        "releases": unit.transpose(0, 3, 1, 2).reshape(runs * dim, rounds * agents),
        "coordinates": unit.reshape(-1, dim),
        "runs": unit.reshape(runs, -1).T,
    }
    for name, values in unfolded.items():
        if values.shape[1] > 1:
            is_release = name == "releases"
            columns = names_of_releases(rounds, agents) if is_release else _numbers(values)
            yield name, columns, values


def names_of_releases(rounds: int, agents: int) -> list[str]:
    """Return the names of the releases of each round and agent."""
    return [f"of agent {i} in iteration {t}" for t in range(1, rounds + 1) for i in range(agents)]


def _numbers(values: np.ndarray) -> list[str]:
    return [str(column) for column in range(values.shape[1])]


def _bounded(columns: Sequence[str], values: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Return the first and the last columns and rows, and the names of these columns."""
    row_ends, column_ends = _ends(len(values), ROWS), _ends(values.shape[1], COLUMNS)
    return [columns[index] for index in column_ends], values[np.ix_(row_ends, column_ends)]


def _ends(length: int, max_length: int) -> np.ndarray:
    """Return the first and the last indices, at most a given number."""
    if length <= max_length:
        return np.arange(length)
    return np.r_[: max_length // 2, length - max_length // 2 : length]


def _norms_reused(unit: np.ndarray, law: str, resolution: float) -> Iterator[Result]:
    runs, rounds, agents, dim = unit.shape
    if law == "discrete_gaussian" or dim == 1 or rounds * agents == 1:
        return
    norms = size(unit, law).reshape(runs, -1)
    columns = names_of_releases(rounds, agents)
    yield reused("norms of releases", columns, norms, resolution, resolution)


def reused(
    name: str, columns: Sequence[str], values: np.ndarray, chance: float, resolution: float
) -> Result:
    """Test two columns of lengths, [rows, columns], for equal lengths other than 0 in one row.

    ``chance`` is the probability of equal lengths in a row, for independent noise. Lengths that
    differ by at most ``resolution`` count as equal. The result is the kind, the pair of columns
    with the most equal lengths, its p-value, and the number of pairs.
    """
    rows, number = values.shape
    rounded = np.rint(np.abs(values) / resolution)
    # To locate equal values takes longer than sorting: rows without any are removed first.
    rounded = rounded[_equal(np.sort(rounded, axis=1)).any(1)]
    order = np.argsort(rounded, axis=1, kind="stable")
    ordered = np.take_along_axis(rounded, order, axis=1)
    row, position = np.nonzero(_equal(ordered))
    first, second = np.sort([order[row, position], order[row, position + 1]], axis=0)
    pairs = number * (number - 1) // 2
    if not len(row):
        return "reused", name, 1.0, pairs
    codes, counts = np.unique(first * number + second, return_counts=True)
    largest = int(np.argmax(counts))
    pair = [columns[index] for index in divmod(int(codes[largest]), number)]
    p = float(bdtrc(int(counts[largest]) - 1, rows, chance))
    return "reused", f"{name} {pair[0]} and {pair[1]}", p, pairs


def _equal(ordered: np.ndarray) -> np.ndarray:
    """Return where a non-zero value equals its predecessor."""
    return (np.diff(ordered, axis=1) == 0) & (ordered[:, 1:] > 0)


def _dependent(unit: np.ndarray, law: str) -> Iterator[Result]:
    for name, columns, values in _pairings(unit):
        compared, entries = _bounded(columns, values)
        yield _agreement(f"signs of {name}", compared, np.sign(entries))
    if law == "discrete_gaussian":  # its lengths have ties
        return
    lengths = energy(unit, law)
    for name, columns, values in _pairings(lengths):
        compared, entries = _bounded(columns, values)
        signs = np.sign(entries - _median(law, unit.shape[-1]))
        yield _agreement(f"lengths of {name}", compared, signs)


def _median(law: str, dim: int) -> float:
    """Compute the median of the energy of a distribution."""
    if law == "gaussian":
        return float(stats.chi2.median(1))
    return float(gammaincinv(dim if law == "gamma_norm" else 1, 0.5))


def _agreement(name: str, columns: Sequence[str], signs: np.ndarray) -> Result:
    """Test the pair of columns whose signs agree most or least often."""
    number = signs.shape[1]
    signs = signs.astype(np.float32)  # sums of at most ROWS ones are exact
    comparisons, balance = np.abs(signs).T @ np.abs(signs), signs.T @ signs
    pairs = np.triu_indices(number, 1)
    comparisons, balance = comparisons[pairs].astype(int), np.abs(balance[pairs]).astype(int)
    # Many pairs have equal counts, whose probability is computed once.
    counted, inverse = np.unique(comparisons * (len(signs) + 1) + balance, return_inverse=True)
    comparisons, balance = np.divmod(counted, len(signs) + 1)
    p = np.minimum(1.0, 2 * bdtr((comparisons - balance) / 2, comparisons, 0.5))[inverse]
    index = int(np.argmin(p))
    return (
        "dependent",
        f"{name} {columns[pairs[0][index]]} and {columns[pairs[1][index]]}",
        float(p[index]),
        number * (number - 1) // 2,
    )


def _neighbours(unit: np.ndarray, samples: int) -> Iterator[Result]:
    """Test products of successive signs along each axis, and of the signs of the two data sets."""
    signs = np.sign(unit).astype(np.int8)
    for axis, name in enumerate(_AXES):
        if signs.shape[axis] > 1:
            last = np.take(signs, range(1, signs.shape[axis]), axis)
            first = np.take(signs, range(signs.shape[axis] - 1), axis)
            yield _sign_balance(f"successive {name}s", last * first)
    if samples == 2:
        signs_one, signs_other = np.split(signs, 2)
        yield _sign_balance("the two data sets", signs_one * signs_other)


def _sign_balance(name: str, products: np.ndarray) -> Result:
    comparisons, balance = int(np.count_nonzero(products)), int(products.sum(dtype=int))
    p = (
        min(1.0, 2 * float(bdtr((comparisons - abs(balance)) // 2, comparisons, 0.5)))
        if comparisons
        else 1.0
    )
    return "dependent", name, p, 1
