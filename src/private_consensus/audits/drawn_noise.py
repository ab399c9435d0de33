"""The noise that ``draws`` yields, compared with the random numbers of its stream.

``draws`` may combine several streams. Given the numbers of all other streams, the noise of an
iteration is often f u + a, with the numbers u that one stream returned for this iteration:

- If every factor f is at least 1, the noise is u plus independent noise, because a scaled Gaussian,
  Laplace or gamma variable is a sum of the unscaled one and an independent one. Additional noise
  cannot weaken privacy. It is left out of the tests of the distribution.
- If a is 0, a factor below 1 leaves a message with less noise than declared. Such factors may be
  too rare to change the distribution of all noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from private_consensus.core.algorithms.base import DRAW, Algorithm, stack
from private_consensus.core.algorithms.noise import LAWS
from private_consensus.core.randomness import Law

from .result import DIFFERS, NOTE, CheckReport, Finding
from .streams import AuditStreams

PRECISION = 1e-6
"""Relative rounding error of drawn and of recovered noise."""


class DrawnNoise(NamedTuple):
    """Drawn noise as ``factor`` times the numbers of one stream plus ``added``.

    Parameters
    ----------
    numbers, factor, added : ndarray, shape (runs, iterations, agents, dim)
        The numbers have the sign with which messages contain them.
    """

    numbers: np.ndarray
    factor: np.ndarray
    added: np.ndarray

    @property
    def has_only_more_noise(self) -> bool:
        """Return True if the drawn noise is that of the stream plus independent noise."""
        return bool((np.abs(self.factor) >= 1.0 - PRECISION).all())

    @property
    def is_smaller(self) -> np.ndarray:
        """Entries that are the numbers of the stream times a factor below 1."""
        return (np.abs(self.factor) < 1.0 - PRECISION) & (self.added == 0)


@dataclass(frozen=True)
class ConstantStream(AuditStreams):
    """Streams that record which noise is drawn, one of which may return a constant.

    Parameters
    ----------
    opened : dict
        Names, distributions and shapes of the streams of the purpose noise, in order.
    replaced : str or None
        Name of the stream that returns ``constant``.
    """

    opened: dict[tuple[str, Any, tuple[int, ...]], None] = field(default_factory=dict)
    replaced: str | None = None
    constant: float = 0.0

    def sequence(
        self, purpose: str, law: str | Law, shape: tuple[int, ...], name: str = ""
    ) -> Iterator[np.ndarray]:
        numbers = super().sequence(purpose, law, shape, name)
        if purpose != "noise":
            return numbers
        self.opened[name, law, tuple(shape)] = None
        if name != self.replaced:
            return numbers
        return (np.full_like(unit, self.constant) for unit in numbers)


def drawn_noise(
    algorithm: Algorithm, problem: Any, network: Any, streams: AuditStreams, noise: np.ndarray
) -> DrawnNoise | None:
    """Express the drawn noise by the numbers of one stream.

    The algorithm has one noise site, the draw, whose noise, [runs, iterations, agents, dim], was
    recovered from the messages. Return None if messages contain other noise than the drawn one, or
    if the drawn noise is another function of the numbers of each stream.
    """
    horizon = noise.shape[1]
    (site,) = algorithm.noise_sites(problem, network, horizon)
    batch: Any = stack([algorithm])
    recorded = ConstantStream(**vars(streams))

    def drawn(drawn_streams: AuditStreams) -> np.ndarray | None:
        draws = islice(batch.draws(problem, drawn_streams), horizon)
        arrays = [getattr(draw, "noise", draw) for draw in draws]
        is_complete = len(arrays) == horizon and all(
            isinstance(array, np.ndarray) and array.shape == noise[:, 0].shape for array in arrays
        )
        return np.stack(arrays, axis=1) if is_complete else None

    values = drawn(recorded)
    if values is None or not _agree(np.abs(noise), np.abs(values)):
        return None
    for name, law, shape in list(recorded.opened):
        if law != LAWS[site.law].unit or shape != noise.shape[2:]:
            continue
        arrays = islice(streams.sequence("noise", law, shape, name), horizon)
        numbers = np.stack(list(arrays), axis=1)
        added, added_to_one = (
            drawn(replace(recorded, replaced=name, constant=constant)) for constant in (0.0, 1.0)
        )
        if added is None or added_to_one is None:
            continue
        factor = added_to_one - added
        if _agree(factor * numbers + added, values):
            sign = np.where(np.isnan(noise), np.nan, np.sign(noise) * np.sign(values))
            return DrawnNoise(sign * numbers, factor, added)
    return None


def _agree(first: np.ndarray, second: np.ndarray) -> bool:
    """Return True if no two numbers differ by more than rounding error; NaN equals any number."""
    tolerance = PRECISION * (1.0 + np.abs(second))
    return not (np.abs(first - second) > tolerance).any()


def audit_drawn_noise(both: Sequence[DrawnNoise | None]) -> CheckReport:
    """Find drawn noise that is smaller, or larger, than the numbers of its stream."""
    decompositions = [drawn for drawn in both if drawn is not None]
    if not decompositions:
        return CheckReport()
    findings = []
    is_smaller = np.concatenate([drawn.is_smaller for drawn in decompositions])
    if is_smaller.any():
        factor = np.abs(
            np.concatenate([drawn.factor for drawn in decompositions])[is_smaller]
        ).max()
        _, t, agent, _ = np.argwhere(is_smaller)[0]
        text = (
            f"draws yields at most {factor:.3g} times the random numbers of the noise stream in "
            f"{is_smaller.mean():.2%} of its numbers, such as for agent {agent} in iteration "
            f"{t + 1}: this noise is too small"
        )
        findings.append(Finding(DIFFERS, text))
    elif all(drawn.has_only_more_noise for drawn in decompositions):
        is_more = [
            (np.abs(drawn.factor) > 1.0 + PRECISION) | (drawn.added != 0)
            for drawn in decompositions
        ]
        if np.any(is_more):
            text = f"noise of the {DRAW}: more than declared, by independent noise"
            findings.append(Finding(NOTE, text))
    return CheckReport(tuple(findings), sites=("drawn noise against the numbers of its stream",))
