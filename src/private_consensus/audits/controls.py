"""How often the audits flag a mechanism that is known exactly, and broken copies of it.

The trial of :mod:`private_consensus.privacy.audit_rates` with two copies more: ``no clipping``, in
which the data move messages by three times what is claimed, and ``un-noised last message``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..privacy.audit import noise_scale_test, transcript_audit
from ..privacy.audit_rates import Trial, rejection_rate
from ..randomness import generator
from .transcripts import COPIES

AUDITS = ("noise scale", "transcript", "gaussian fit")


@dataclass(frozen=True)
class Control(Trial):
    """A Gaussian mechanism of several messages whose mu is exact, and its copies."""

    runs: int = 4000

    def noise(self, rng: np.random.Generator, copy: str) -> np.ndarray:
        if copy in ("half noise", "reused noise"):
            return super().noise(rng, copy)
        drawn = super().noise(rng, "correct")
        if copy == "un-noised last message":
            drawn[:, -1] = 0.0
        return drawn

    def flags(self, audit: str, rng: np.random.Generator, copy: str) -> bool:
        if audit == "noise scale":
            return not noise_scale_test(self.noise(rng, copy), 1.0).passes
        moved = (3.0 if copy == "no clipping" else 1.0) * self.shift
        one, other = moved + self.noise(rng, copy), self.noise(rng, copy)
        found = transcript_audit(one, other, delta=self.delta)
        if audit == "transcript":
            return found.contradicts(epsilon=self.epsilon)
        return found.contradicts(mu=self.mu)


def power(repetitions: int) -> list[dict[str, Any]]:
    """The power table: how often each audit flags each copy, with its 99.9 % interval."""
    trial = Control()
    rows = []
    for audit in AUDITS:
        for copy in COPIES:
            rng = generator(20_254, "audit", audit, copy)
            rate = rejection_rate(
                lambda draws, audit=audit, copy=copy: trial.flags(audit, draws, copy),
                repetitions,
                rng,
            )
            low, high = rate.interval
            rows.append(
                {
                    "audit": audit, "copy": copy, "flagged": rate.flagged,
                    "repetitions": repetitions, "rate": rate.rate, "low": low, "high": high,
                    "runs": trial.runs,
                }
            )  # fmt: skip
    return rows
