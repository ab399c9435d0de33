"""How often the audits flag a mechanism that is known exactly, and broken copies of it.

The trial of :mod:`private_consensus.privacy.audit_rates` with two copies more: ``no clipping``, in
which the data move messages by three times what is claimed, and ``un-noised last message``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..privacy.audit import noise_scale_test, transcript_audit
from ..privacy.audit_rates import Rate, Trial
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

    def flagged(self, rng: np.random.Generator, copy: str) -> dict[str, bool]:
        """Which audits contradict what is claimed of a copy."""
        moved = (3.0 if copy == "no clipping" else 1.0) * self.shift
        noise, other = self.noise(rng, copy), self.noise(rng, copy)
        found = transcript_audit(moved + noise, other, delta=self.delta)
        return {
            "noise scale": not noise_scale_test(noise, 1.0).passes,
            "transcript": found.contradicts(epsilon=self.epsilon),
            "gaussian fit": found.contradicts(mu=self.mu),
        }


def power(repetitions: int) -> list[dict[str, Any]]:
    """The power table: how often each audit flags each copy, with its 99.9 % interval."""
    trial = Control()
    rows = []
    for copy in COPIES:
        rng = generator(20_254, "audit", copy)
        found = [trial.flagged(rng, copy) for _ in range(repetitions)]
        rows += [
            _row(audit, copy, Rate(sum(one[audit] for one in found), repetitions), trial.runs)
            for audit in AUDITS
        ]
    return sorted(rows, key=lambda row: AUDITS.index(row["audit"]))


def _row(audit: str, copy: str, rate: Rate, runs: int) -> dict[str, Any]:
    low, high = rate.interval
    return {
        "audit": audit, "copy": copy, "flagged": rate.flagged, "repetitions": rate.repetitions,
        "rate": rate.rate, "low": low, "high": high, "runs": runs,
    }  # fmt: skip
