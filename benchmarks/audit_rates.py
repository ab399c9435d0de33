"""How often audits flag a mechanism whose privacy is known exactly, and broken copies of it.

    python benchmarks/audit_rates.py [repetitions] [runs]

``rounds`` messages of ``dim`` coordinates, on D shifted along the diagonal by an amount that falls
as 1/sqrt(t), with fresh Gaussian noise of scale 1: exactly mu-GDP. Claimed are mu, epsilon at delta
and noise of scale 1. The copies keep the claims. The first column is the correct one: how often it
is flagged is the level.
"""

import sys
from dataclasses import dataclass

import numpy as np

from private_consensus.privacy import gaussian_epsilon
from private_consensus.privacy.audit.bounds import clopper_pearson
from private_consensus.privacy.audit.families import claim_p_value
from private_consensus.privacy.audit.noise import noise_test
from private_consensus.privacy.audit.statistics import audit_statistics

COPIES = (
    "correct", "noise x .8", "noise x .5", "noise on half of the coordinates",
    "last message without noise", "every third without noise", "same noise in all messages",
    "same noise in two messages", "data move thrice as much",
)  # fmt: skip


@dataclass(frozen=True)
class Trial:
    """The mechanism, and what is claimed for it; ``runs`` of each data set."""

    mu: float = 1.0
    delta: float = 1e-2
    runs: int = 4000
    rounds: int = 6
    dim: int = 3

    @property
    def shift(self):
        """What D has more than D', [rounds, dim]; noise of scale 1 makes it mu-GDP."""
        profile = np.outer(1 / np.sqrt(np.arange(1, self.rounds + 1)), np.ones(self.dim))
        return self.mu * profile / np.linalg.norm(profile)

    def noise(self, rng, copy):
        """Noise of one data set's runs, [runs, rounds, dim]."""
        drawn = rng.standard_normal((self.runs, self.rounds, self.dim))
        if copy.startswith("noise x"):
            drawn *= float(copy.split()[-1])
        elif copy == "noise on half of the coordinates":
            drawn[..., ::2] = 0
        elif copy == "last message without noise":
            drawn[:, -1] = 0
        elif copy == "every third without noise":
            drawn[:, 2::3] = 0
        elif copy == "same noise in all messages":
            drawn[:] = drawn[:, :1]
        elif copy == "same noise in two messages":
            drawn[:, 4] = drawn[:, 1]
        return drawn

    def flagged(self, rng, copy, confidence):
        """Whether each of the audits contradicts the claim."""
        noise, other = self.noise(rng, copy), self.noise(rng, copy)
        moved = self.shift * (3 if copy == "data move thrice as much" else 1)
        seen = moved + noise, other
        ratio = {"ratio": tuple((x * self.shift).sum(axis=(1, 2)) for x in seen)}
        stated = {
            "delta": self.delta,
            "confidence": confidence,
            "seed": 0,
            "orderings": ("epsilon", "mu"),
        }
        bounds = audit_statistics(*seen, statistics=ratio, **stated)
        tested = noise_test(
            noise[:, :, None], 1.0, law="gaussian", confidence=confidence, other=other[:, :, None]
        )
        claim = {"epsilon": gaussian_epsilon(self.mu, self.delta)}
        return {
            "epsilon": claim_p_value(bounds, claim) <= 1 - confidence,
            "mu": claim_p_value(bounds, {"mu": self.mu}) <= 1 - confidence,
            "noise": not tested.passes,
        }


def main(repetitions=20, runs=4000):
    """Print a table of rates, for several confidences of the correct copy."""
    trial = Trial(runs=runs)
    for copy in COPIES:
        for confidence in (0.9, 0.999) if copy == "correct" else (0.999,):
            number = 5 * repetitions if copy == "correct" else repetitions
            rng = np.random.default_rng(20)
            found = [trial.flagged(rng, copy, confidence) for _ in range(number)]
            for audit in found[0]:
                hits = sum(one[audit] for one in found)
                low, high = clopper_pearson(hits, number, 0.0005)
                print(f"{copy:34} {confidence:6} {audit:8} {hits:4} of {number}"
                      f"  [{float(low):.3f}, {float(high):.3f}]", flush=True)  # fmt: skip


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
