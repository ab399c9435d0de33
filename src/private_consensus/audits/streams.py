"""Random numbers of audits: thousands of short runs, a world of their own for each data set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..randomness import PURPOSES, UNIT_LAWS, Streams

ROOT = 20_253


@dataclass(frozen=True)
class AuditStreams(Streams):
    """One generator draws for all runs as they go on; the numbers depend on the label alone.

    Parameters
    ----------
    known : tuple of str
        Purposes that are drawn; all numbers of the others are 0, which for noise means none.
    drawn : int, optional
        Runs for which numbers are drawn, of which ``runs`` are the first; none: as many as those.
    """

    known: tuple[str, ...] = PURPOSES
    drawn: int | None = None

    @classmethod
    def labelled(cls, label: str, runs: int, seed: int = 0) -> AuditStreams:
        """Streams that share nothing with those of another label."""
        return cls(ROOT + seed, tuple(range(runs)), dict.fromkeys(PURPOSES, label))

    def without(self, purpose: str) -> AuditStreams:
        """The same streams, those of one purpose silent."""
        return replace(self, known=tuple(name for name in self.known if name != purpose))

    def first(self, runs: int) -> AuditStreams:
        """What the first runs of all draw."""
        return replace(self, runs=self.runs[:runs], drawn=self.drawn or len(self.runs))

    def draw(self, purpose, law, shape, name="") -> np.ndarray:
        return next(self.sequence(purpose, law, shape, name))

    def sequence(self, purpose, law, shape, name="") -> Iterator[np.ndarray]:
        drawn = UNIT_LAWS[law] if isinstance(law, str) else law
        generator = self.shared(purpose, name)
        count = len(self.runs)
        while True:
            unit = drawn(generator, (self.drawn or count, *shape))[:count]
            yield unit if purpose in self.known else np.zeros_like(unit)
