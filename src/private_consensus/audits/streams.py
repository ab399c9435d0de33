"""Random streams of audits: thousands of short runs, with separate streams per data set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from private_consensus.core.randomness import PURPOSES, UNIT_LAWS, Law, Streams

ROOT = 20_253


@dataclass(frozen=True)
class AuditStreams(Streams):
    """Streams with one generator for all runs, in order; the numbers depend on the label alone.

    Parameters
    ----------
    known : tuple of str
        Purposes that are drawn; all numbers of other purposes are 0.
    drawn : int, optional
        Number of runs for which numbers are drawn; ``runs`` are the first of them.
    """

    known: tuple[str, ...] = PURPOSES
    drawn: int | None = None

    @classmethod
    def labelled(cls, label: str, runs: int, seed: int = 0) -> AuditStreams:
        """Return streams that are independent of those of another label with the same seed."""
        return cls(ROOT + seed, tuple(range(runs)), dict.fromkeys(PURPOSES, label))

    def without(self, purpose: str) -> AuditStreams:
        """Return streams in which all numbers of one purpose are 0."""
        return replace(self, known=tuple(name for name in self.known if name != purpose))

    def first(self, runs: int) -> AuditStreams:
        """Return the first runs; their numbers are those of all runs together."""
        return replace(self, runs=self.runs[:runs], drawn=self.drawn or len(self.runs))

    def draw(
        self, purpose: str, law: str | Law, shape: tuple[int, ...], name: str = ""
    ) -> np.ndarray:
        return next(self.sequence(purpose, law, shape, name))

    def sequence(
        self, purpose: str, law: str | Law, shape: tuple[int, ...], name: str = ""
    ) -> Iterator[np.ndarray]:
        drawn = UNIT_LAWS[law] if isinstance(law, str) else law
        generator = self.shared(purpose, name)
        count = len(self.runs)
        unit = drawn(generator, (self.drawn or count, *shape))[:count]
        while purpose not in self.known:  # of these only the shape matters
            yield np.zeros_like(unit)
        while True:
            yield unit
            unit = drawn(generator, (self.drawn or count, *shape))[:count]
