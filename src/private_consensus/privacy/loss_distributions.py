r"""Privacy loss distributions on a grid: discretisation, composition and epsilon.

The privacy loss of a pair (P, Q) is :math:`L=\ln(dP/dQ)`, and

.. math:: \delta(\epsilon) = E_P\big[(1-e^{\epsilon-L})_+\big].

*Discretisation.* An outcome whose loss lies between two grid points is assigned to both, such that
its probabilities under P and under Q are kept. The curve delta then connects its exact values at
the grid points by chords in :math:`e^\epsilon`, and lies above the exact curve (Doroshenko, Ghazi,
Kamath, Kumar, Manurangsi, "Connect the dots: tighter discrete approximations of privacy loss
distributions", PoPETs 2022). A step h adds at most :math:`h^2/4` to the variance of a loss.
Integrals are sums of positive terms, so that small losses keep their relative accuracy.

*Sampling.* With the loss t of all records, the loss of a Poisson sample of rate gamma is
:math:`L=\ln(1-\gamma+\gamma e^t)` for removing a record. The pair for adding it is exchanged. For a
sample of fixed size, and the replacement of a record, the positive losses are those for removing,
and the negative ones mirror them (Balle, Barthe, Gaboardi, "Privacy amplification by subsampling",
2018, Theorem 9). The joined curve is convex, hence that of a dominating pair (Zhu, Dong, Wang,
"Optimal accounting of differential privacy via characteristic function", 2022, Theorem 10).

*Composition.* The losses of independent releases add. Fourier transforms convolve the tilted
distributions :math:`p(\ell)e^{\theta\ell-K(\theta)}`, :math:`K(\theta)=\ln E e^{\theta L}`, so that
rounding errors are relative to a small delta. K is theta times the Renyi divergence of order
:math:`1+\theta`, and

.. math:: \delta(\epsilon) \le e^{K(\theta)-\theta\epsilon}
    \frac{1}{1+\theta}\left(\frac{\theta}{1+\theta}\right)^\theta

(Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020,
Proposition 12). The theta of the smallest epsilon determines the tilt.

*Monotonicity.* The step is a power of 2 that does not grow if a loss falls. Hence grids are nested,
and the curve of the finer grid is the smaller one. Losses are rounded up to a few binary digits:
the effect of a smaller loss exceeds that of rounding errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from scipy import fft
from scipy.special import ndtri

MAX_LOSS = 5e5
"""Largest loss of one release on a grid."""
MAX_LAPLACE = 2e3
"""Loss above which Laplace noise counts as randomised response, whose outcomes are few."""
MAX_POINTS = 2**21
"""Largest number of grid points of a composition, which bounds time and memory."""
DIGITS = 22
"""Number of binary digits to which loss parameters are rounded up."""
TRUNCATED, ROUNDING = 2.0**-16, 2.0**-20
"""Fractions of delta for losses beyond the grid, and for rounding errors of probabilities."""
TAIL = 2.0**-24
"""Tilted mass on either side of the grid of a composition, as a fraction of delta."""
FFT_ERROR = 2.0**7
"""Allowance for the error of a tilted total by Fourier transforms: roundings per release."""
STEP_OF_RELEASE, STEP_OF_TOTAL = 0.125, 2.0**-11
"""Largest steps, in standard deviations of an average release and of the total."""
MAX_STEPS = 2.0**17
"""Largest number of steps up to the largest loss of a release."""
MAX_CELL = 1.0
"""Width of a cell above which its losses are rounded up to its end."""
MAX_TILT = 0.7
"""Largest fraction of the tilt, beyond which the grid of the total becomes much longer."""
COARSE = {"gaussian": 1024, "laplace": 256, "response": 64}
"""Number of cells of an uneven grid, from which tilt and step are derived."""
PANELS = {"gaussian": 32, "laplace": 8}
"""Number of panels of a quadrature per standard deviation, or per unit of a loss."""

THETAS = np.unique([*np.arange(0.05, 2, 0.05), *range(2, 64), *range(64, 256, 4), 255])
"""Orders minus 1 of the Renyi divergences of releases without a dominating pair."""

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(3)


@dataclass(frozen=True)
class Pair:
    r"""Dominating pair of one release.

    Parameters
    ----------
    kind : {"gaussian", "laplace", "response"}
        Noise on one number, or randomised response, which dominates every pure mechanism.
    components : tuple of (float, float, float)
        Probability, sampling rate and loss parameter for each value of an additional observation.
        The loss parameter is the sensitivity over the scale of the noise, or the pure epsilon.
    sampling : {"poisson", "fixed_size"}, optional
        None if all records are used.
    """

    kind: str
    components: tuple[tuple[float, float, float], ...]
    sampling: str | None = None

    def rounded_up(self) -> Pair:
        """Return the pair with loss parameters of at most :data:`DIGITS` binary digits."""
        components = tuple((p, rate, _rounded_up(loss)) for p, rate, loss in self.components)
        large = self.kind == "laplace" and max(loss for *_, loss in components) > MAX_LAPLACE
        return Pair("response" if large else self.kind, components, self.sampling)

    @property
    def informative(self) -> list[tuple[float, float, float]]:
        """Components that depend on the record."""
        return [component for component in self.components if component[1] * component[2] > 0]

    def span(self, rate: float, parameter: float, tail: float) -> tuple[float, float]:
        """Return an interval of unsampled losses, outside of which the mass is at most ``tail``.

        Only positive losses count for a sample of fixed size.
        """
        low, high = -parameter, parameter
        if self.kind == "gaussian":
            z = -float(ndtri(tail / 2))
            # a shifted outcome has the mass `rate`, an outcome around 0 the remaining mass
            shifted = parameter - float(ndtri(min(tail / (2 * rate), 0.4)))
            high = parameter * (max(shifted, z) - parameter / 2)
            low = (
                -parameter * (z + parameter / 2) if self.sampling else parameter * parameter - high
            )
        return (max(low, 0.0) if self.sampling == "fixed_size" else low), high


def _rounded_up(loss: float) -> float:
    mantissa, exponent = math.frexp(loss)
    return math.ldexp(math.ceil(math.ldexp(mantissa, DIGITS)), exponent - DIGITS)


class Losses:
    """Distributions of the losses of independent releases.

    Each distribution has losses, their masses, and the number of releases that it describes.
    """

    def __init__(self, distributions: Sequence[tuple[np.ndarray, np.ndarray, int]]):
        self.distributions = [(v[m > 0], m[m > 0], count) for v, m, count in distributions]
        self.values = np.concatenate([values for values, _, _ in self.distributions])
        self.masses = np.concatenate([masses for _, masses, _ in self.distributions])
        self.counts = np.array([float(count) for _, _, count in self.distributions])
        self.sizes = [values.size for values, _, _ in self.distributions]
        self.starts = np.cumsum([0, *self.sizes[:-1]])
        self.log_masses = np.log(self.masses)
        self.largest = float(self.values.max())

    def log_moments(self, theta: float) -> np.ndarray:
        r"""Return :math:`\ln E e^{\theta L}` of one release of each distribution."""
        exponents = theta * self.values
        if np.abs(exponents).max() < 1:  # without a rounding error near 1
            return np.log1p(np.add.reduceat(self.masses * np.expm1(exponents), self.starts))
        exponents += self.log_masses
        largest = np.maximum.reduceat(exponents, self.starts)
        moments = np.add.reduceat(np.exp(exponents - np.repeat(largest, self.sizes)), self.starts)
        return largest + np.log(moments)

    def log_moment(self, theta: float) -> float:
        r"""Return :math:`K(\theta)`, the logarithmic moment of the total loss."""
        return float(self.counts @ self.log_moments(theta))

    @property
    def deviation(self) -> float:
        """Standard deviation of the total loss."""
        variances = [m @ (v - m @ v) ** 2 for v, m, _ in self.distributions]
        return math.sqrt(float(self.counts @ variances))


# --- Discretisation ---------------------------------------------------------------------------


def _sampled(t: np.ndarray, rate: float) -> np.ndarray:
    r"""Return :math:`\ln(1-\gamma+\gamma e^t)`."""
    if rate == 1:
        return t
    with np.errstate(over="ignore"):
        small = np.log1p(rate * np.expm1(np.minimum(t, 500.0)))
    return np.where(t > 500, np.logaddexp(np.log1p(-rate), math.log(rate) + t), small)


def _unsampled(loss: np.ndarray, rate: float) -> np.ndarray:
    r"""Invert :func:`_sampled`; minus infinity for losses of at most :math:`\ln(1-\gamma)`."""
    if rate == 1:
        return loss
    with np.errstate(divide="ignore", over="ignore"):
        small = np.log1p(np.maximum(np.expm1(np.minimum(loss, 1.0)) / rate, -1.0))
    large = np.maximum(loss, 1.0)
    return np.where(loss > 1, large - math.log(rate) + np.log1p((rate - 1) * np.exp(-large)), small)


def even_edges(pair: Pair, tail: float, step: float, limit: float = math.inf) -> np.ndarray:
    """Return the multiples of the step between the smallest and the largest loss of a pair.

    At most ``limit`` on either side of 0.
    """
    spans = [_sampled(np.array(pair.span(r, x, tail)), r) for _, r, x in pair.informative]
    low, high = max(np.min(spans) / step, -limit), min(np.max(spans) / step, limit)
    return step * np.arange(math.floor(low), math.ceil(high) + 1)


def _uneven_edges(pair: Pair, tail: float) -> np.ndarray:
    """Return losses whose unsampled losses are evenly spaced."""
    cells = max(COARSE[pair.kind] // len(pair.informative), 64)
    edges = [
        _sampled(np.linspace(*pair.span(rate, parameter, tail), cells + 1), rate)
        for _, rate, parameter in pair.informative
    ]
    return np.unique(np.concatenate([*edges, [0.0]]))


def _discretized(pair: Pair, edges: np.ndarray, tail: float) -> list[tuple]:
    """Return the loss distribution on the edges, for each direction of the neighbours."""
    if pair.sampling == "fixed_size":
        edges = edges[edges >= 0]
    p, q = _split(pair, edges, tail)
    if pair.sampling == "fixed_size":
        masses = np.concatenate([q[:0:-1], p])
        masses[q.size - 1] += q[0] + max(1.0 - q.sum() - p.sum(), 0.0)
        return [(np.concatenate([-edges[:0:-1], edges]), masses / masses.sum())]
    removed = edges, p / p.sum()
    return [removed, (-edges[::-1], q[::-1] / q.sum())] if pair.sampling else [removed]


def _split(pair: Pair, edges: np.ndarray, tail: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the masses under P and Q that outcomes assign to both edges of their cells.

    The masses of positive losses only, for a sample of fixed size.
    """
    p, q = np.zeros(edges.size), np.zeros(edges.size)
    for loss, log_q in pair_outcomes(pair, edges, tail):
        if pair.sampling == "fixed_size":
            loss, log_q = loss[loss > 0], log_q[loss > 0]
        cell = np.clip(np.searchsorted(edges, loss, "right") - 1, 0, edges.size - 2)
        width = np.diff(edges)[cell]
        # linear in exp(-loss) under P, and in exp(loss) under Q
        upper = np.clip(np.expm1(edges[cell] - loss) / np.expm1(-width), 0.0, 1.0)
        upper_q = upper * np.exp(np.minimum(loss - edges[cell + 1], 0.0))
        wide = width > MAX_CELL
        for masses, log_mass, fraction in (
            (p, loss + log_q, np.where(wide, 1.0, upper)),
            (q, log_q, np.where(wide, 0.0, upper_q)),
        ):
            mass = np.exp(log_mass)
            masses += np.bincount(cell + 1, fraction * mass, edges.size)
            masses += np.bincount(cell, (1 - fraction) * mass, edges.size)
    return p, q


def pair_outcomes(pair: Pair, edges: np.ndarray, tail: float) -> Iterator[tuple]:
    """Yield losses and logarithmic masses under Q of outcomes that represent a pair.

    Continuous distributions are represented by Gauss-Legendre nodes, in panels within the cells.
    """
    for probability, rate, parameter in pair.components:
        if probability > 0 and rate * parameter == 0:
            yield np.zeros(1), np.log([probability])
        elif probability > 0:
            span = pair.span(rate, parameter, tail)
            t, log_q = _unsampled_outcomes(pair.kind, parameter, _unsampled(edges, rate), span)
            yield _sampled(t, rate), log_q + math.log(probability)


def _unsampled_outcomes(kind: str, parameter: float, edges: np.ndarray, span) -> tuple:
    if kind == "response":
        losses = np.array([-parameter, parameter])
        return losses, -np.logaddexp(0.0, losses)
    if kind == "laplace":
        loss, log_weight = _quadrature(edges, *span, PANELS[kind])
        log_q = log_weight - (loss + parameter) / 2 - math.log(4)
        atoms = np.array([0.0, -parameter]) - math.log(2)
        return np.append(loss, [-parameter, parameter]), np.append(log_q, atoms)
    ends = np.array(span) / parameter + parameter / 2
    x, log_weight = _quadrature(edges / parameter + parameter / 2, *ends, PANELS[kind])
    loss = parameter * (x - parameter / 2)
    return loss, log_weight - x**2 / 2 - math.log(2 * math.pi) / 2


def _quadrature(
    edges: np.ndarray, low: float, high: float, density: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and logarithmic weights on [low, high], in panels that contain no edge."""
    panels = np.linspace(low, high, math.ceil(density * (high - low)) + 2)
    ends = np.union1d(edges[(edges > low) & (edges < high)], panels)
    half = np.diff(ends)[:, None] / 2
    nodes = ends[:-1, None] + half * (1 + _NODES)
    return nodes.ravel(), np.log(half * _WEIGHTS).ravel()


# --- Composition ------------------------------------------------------------------------------


def tilt(
    moment: Callable[[float], float], delta: float, deviation: float, largest: float
) -> tuple[float, float]:
    """Return the theta with the smallest bound on epsilon by Renyi divergences, and this bound.

    ``moment`` maps theta to the logarithmic moment of the total loss. The standard ``deviation`` of
    the total and the ``largest`` loss of one release limit the search.
    """

    def bound(log_theta: float) -> float:
        return _renyi_bound(moment, delta, math.exp(log_theta))

    grid = np.log(_scales(deviation, largest, 40))
    bounds = np.array([bound(log_theta) for log_theta in grid])
    best = int(np.nanargmin(bounds))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)]
    ratio = (math.sqrt(5) - 1) / 2
    for _ in range(20):
        inner_low, inner_high = high - ratio * (high - low), low + ratio * (high - low)
        if bound(inner_low) < bound(inner_high):
            high = inner_high
        else:
            low = inner_low
    return math.exp((low + high) / 2), min(bound((low + high) / 2), bounds[best])


def _renyi_bound(moment: Callable[[float], float], delta: float, theta: float) -> float:
    """Return the bound on epsilon by the Renyi divergence of order theta + 1."""
    factor = math.log1p(theta) + theta * math.log1p(1 / theta)
    return (moment(theta) - math.log(delta) - factor) / theta


def _scales(deviation: float, largest: float, number: int) -> np.ndarray:
    """Return values of theta, or of its changes, between which moments are evaluated."""
    smallest = min(value for value in (deviation, largest) if value > 0)
    return np.geomspace(1e-3 / max(deviation, largest), 1e2 / smallest, number)


@dataclass(frozen=True)
class Total:
    r"""Tilted distribution of a total loss.

    Parameters
    ----------
    values, masses : ndarray
        Evenly spaced losses, and their masses after the tilt.
    theta, moment : float
        Tilt, and :math:`K(\theta)` of the total loss.
    error : float
        Bound on the mass that is misplaced.
    """

    values: np.ndarray
    masses: np.ndarray
    theta: float
    moment: float
    error: float

    def epsilon(self, delta: float, *, lower: bool = False) -> float:
        r"""Return an upper or a ``lower`` bound on the smallest epsilon >= 0 at ``delta``.

        With the grid points :math:`\ell_k` and :math:`A_k=\sum_{j\ge k}m_je^{-\theta(\ell_j-
        \ell_k)}`, and with :math:`B_k` the sum for :math:`\theta+1`, delta is
        :math:`e^{K-\theta\ell_k}(A_k - e^{\epsilon-\ell_k}B_k)` in :math:`[\ell_{k-1},\ell_k]`.
        """
        step = self.values[1] - self.values[0]
        b = _discounted(self.masses, (self.theta + 1) * step)
        # the recursion of A - B has positive terms only
        terms = -math.expm1(-step) * math.exp(-self.theta * step) * np.append(b[1:], 0.0)
        difference = _discounted(terms, self.theta * step) + (-1 if lower else 1) * self.error
        exponents = math.log(delta) - self.moment + self.theta * self.values
        allowed = np.exp(np.minimum(exponents, 700.0))
        exceeded = np.flatnonzero(difference > allowed)
        k = int(exceeded[-1]) + 1 if exceeded.size else 0
        if k == self.values.size:
            return float(self.values[-1]) if lower else math.inf
        if k == 0:
            return 0.0 if lower else max(float(self.values[0]), 0.0)
        fraction = (difference[k] - allowed[k]) / b[k] if b[k] > 0 else 0.0
        return max(float(self.values[k]) + math.log1p(max(fraction, math.expm1(-step))), 0.0)


def _discounted(masses: np.ndarray, rate: float) -> np.ndarray:
    """Return the sum of this and all later masses, discounted by exp(-rate * distance).

    Discounts within a block are not smaller than exp(-30), so that they do not underflow.
    """
    length = masses.size if masses.size * rate < 30 else int(30 / rate) + 1
    blocks = np.pad(masses, (0, -masses.size % length)).reshape(-1, length)
    discounts = np.exp(-rate * np.arange(length + 1))
    sums = np.cumsum((blocks * discounts[:-1])[:, ::-1], axis=1)[:, ::-1] / discounts[:-1]
    later = 0.0
    for block in sums[::-1]:
        block += later * discounts[:0:-1]
        later = block[0]
    return sums.ravel()[: masses.size]


def composed(
    losses: Losses,
    step: float,
    theta: float,
    delta: float,
    proxy: Losses,
    precision: type[np.floating] = np.float64,
) -> Total:
    """Convolve loss distributions on multiples of ``step``, after a tilt.

    The tilt is ``theta``, or smaller if rounding errors allow it. ``proxy`` has similar
    distributions with fewer points, by which Chernoff's bounds are chosen, and ``precision`` is the
    type of the transforms. The losses of the result are a window outside of which little of the
    tilted mass lies, compared with ``delta``.
    """
    fft_error = (10 + losses.counts.sum()) * FFT_ERROR * float(np.finfo(precision).eps)
    # A total loss with a normal distribution gains the factor delta^(t^2 - 2t) from the fraction t.
    needed = math.log(fft_error / (TAIL * delta)) / -math.log(delta)
    theta *= min(MAX_TILT, 1 - math.sqrt(1 - min(max(needed, 0.0), 1.0)))
    tail = max(TAIL * delta, 2.0**-60)
    moments = losses.log_moments(theta)
    moment = float(losses.counts @ moments)
    scales = _scales(proxy.deviation, proxy.largest, 24)

    def end(sign: int) -> float:
        excess = np.array([proxy.log_moment(theta + sign * scale) for scale in scales])
        excess -= proxy.log_moment(theta) + math.log(tail)
        scale = scales[np.argmin(excess / scales)]
        exact = losses.log_moment(theta + sign * scale)
        return sign * (exact - moment - math.log(tail)) / scale

    first = math.floor(max(end(-1), sum(v[0] * n for v, _, n in losses.distributions)) / step)
    last = math.ceil(min(end(1), sum(v[-1] * n for v, _, n in losses.distributions)) / step) + 1
    if not 0 <= last - first <= MAX_POINTS:  # negative if losses are too large for integers
        return Total(np.array([0.0, step]), np.ones(2), theta, moment, math.inf)
    size = fft.next_fast_len(last - first + 1, real=True)
    spectrum = np.ones(1)
    for (values, masses, count), log_moment in zip(losses.distributions, moments, strict=True):
        index = np.rint(values / step).astype(np.int64) % size
        tilted = np.bincount(index, masses * np.exp(theta * values - log_moment), size)
        spectrum = spectrum * _power(fft.rfft(tilted.astype(precision)), count)
    masses = np.roll(fft.irfft(spectrum, size), -first % size)[: last - first + 1]
    error = 2 * tail + fft_error * min(1.0, step * size)
    grid = step * np.arange(first, last + 1)
    return Total(grid, np.maximum(masses, 0.0).astype(float), theta, moment, error)


def _power(base: np.ndarray, exponent: int) -> np.ndarray:
    """Return an integer power by repeated squaring, faster than that of extended precision."""
    result = base
    for digit in f"{exponent:b}"[1:]:
        result = result * result
        if digit == "1":
            result = result * base
    return result


# --- Upper bounds on epsilon ------------------------------------------------------------------

Composition = Sequence[tuple[Pair, int]]
"""Dominating pairs and numbers of releases, composed adaptively."""


def epsilon(composition: Composition, delta: float) -> float:
    """Return an upper bound on epsilon at ``delta`` > 0 from the distribution of the total loss.

    It is infinite for losses above :data:`MAX_LOSS`, and for a grid above :data:`MAX_POINTS`.
    """
    composition, tail, delta = _allowances(composition, delta)
    if not composition:
        return 0.0
    if delta <= 0 or not _largest(composition, tail) <= MAX_LOSS:
        return math.inf
    coarse = _coarse(composition, tail)
    deviation = max(losses.deviation for losses in coarse)
    largest = max(losses.largest for losses in coarse)
    count = sum(count for _, count in composition)
    step = min(STEP_OF_RELEASE / math.sqrt(count), STEP_OF_TOTAL) * deviation
    step = 2.0 ** math.floor(math.log2(max(step, largest / MAX_STEPS)))
    # tails of sampled losses are heavy, so that a tilt helps less
    precision = np.longdouble if any(pair.sampling for pair, _ in composition) else np.float64
    result = 0.0
    fine = _distributions(composition, tail, partial(even_edges, step=step))
    for rough, losses in zip(coarse, fine, strict=True):
        theta, bound = tilt(rough.log_moment, delta, deviation, largest)
        if bound > 0:
            total = composed(losses, step, theta, delta, rough, precision)
            result = max(result, min(bound, total.epsilon(delta)))
    return result


def renyi_epsilon(
    composition: Composition, delta: float, unpaired: Callable[[float], float]
) -> float:
    """Return an upper bound on epsilon at ``delta`` > 0 from Renyi divergences.

    ``unpaired`` maps theta to the logarithmic moment of the releases without a pair.
    """
    composition, tail, delta = _allowances(composition, delta)
    if delta <= 0 or not _largest(composition, tail) <= MAX_LOSS:
        return math.inf
    bounds = [0.0]
    for losses in _coarse(composition, tail) or [None]:

        def moment(theta: float, losses: Losses | None = losses) -> float:
            return unpaired(theta) + (losses.log_moment(theta) if losses else 0.0)

        bounds.append(float(np.nanmin([_renyi_bound(moment, delta, t) for t in THETAS])))
    return max(bounds)


def _allowances(composition: Composition, delta: float) -> tuple[tuple, float, float]:
    """Return informative pairs with rounded losses, the mass of truncated losses, and delta."""
    rounded = tuple((pair.rounded_up(), count) for pair, count in composition if pair.informative)
    releases = sum(count for pair, count in rounded if pair.kind == "gaussian")
    tail = max(TRUNCATED * delta / (2 * max(releases, 1)), 1e-300)
    return rounded, tail, delta * (1 - ROUNDING) - 2 * releases * tail


def _largest(composition: Composition, tail: float) -> float:
    spans = [pair.span(r, x, tail) for pair, _ in composition for _, r, x in pair.informative]
    return float(np.max(np.abs(spans), initial=0.0))


@lru_cache(maxsize=8)  # used by two accountants
def _coarse(composition: Composition, tail: float) -> list[Losses]:
    return _distributions(composition, tail, _uneven_edges)


def _distributions(composition: Composition, tail: float, edges: Callable) -> list[Losses]:
    """Return the distributions of all pairs, for each direction of the neighbours."""
    by_pair = [(_discretized(pair, edges(pair, tail), tail), count) for pair, count in composition]
    directions = max((len(distributions) for distributions, _ in by_pair), default=0)
    return [
        Losses([(*pairs[k % len(pairs)], count) for pairs, count in by_pair])
        for k in range(directions)
    ]
