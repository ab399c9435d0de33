r"""How often each audit flags a correct mechanism and broken copies of it.

The mechanism: ``rounds`` messages of ``dim`` coordinates, on D shifted along the diagonal by an
amount that falls as 1/sqrt(t), with fresh Gaussian noise of one scale. It is exactly mu-GDP. The
copies: ``half noise`` uses half of that scale, ``reused noise`` adds the same draw to every
message, so that differences of messages carry none.

Measured with the default :class:`Trial` (mu = 1, claimed as epsilon = 2.32 at delta = 0.01; 6000
runs of each data set), 4000 repetitions of the correct copy and 1000 of each broken one, seed 20:

============  ===========  ==========  ============
audit         correct      half noise  reused noise
============  ===========  ==========  ============
noise scale   4 of 4000    all         all
transcript    none         all         all
gaussian fit  3 of 4000    all         all
threshold     none         all         all
============  ===========  ==========  ============

None of 4000 bounds a rate by 0.0019 and all of 1000 by 0.992, at 99.9 %. With fewer runs it is the
(epsilon, delta) audits that lose half noise: transcript and threshold flag 12 and 14 of 100 copies
at 1000 runs, 84 and 82 at 2000, all at 4000; the Gaussian fit flags all at 1000. At 200 runs false
alarms are 2, 0, 1 and 0 of 4000.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from private_consensus.errors import require
from private_consensus.privacy.audit import (
    CONFIDENCE,
    clopper_pearson,
    gaussian_fit,
    learned_statistic,
    log_likelihood_ratio,
    noise_scale_test,
    threshold_audit,
    transcript_audit,
)
from private_consensus.privacy.conversions import gaussian_epsilon

COPIES = ("correct", "half noise", "reused noise")
AUDITS = ("noise scale", "transcript", "gaussian fit", "threshold")


@dataclass(frozen=True)
class Rate:
    """How often something happened, with its 99.9 % Clopper-Pearson interval."""

    flagged: int
    repetitions: int

    @property
    def rate(self) -> float:
        """Share of repetitions."""
        return self.flagged / self.repetitions

    @property
    def interval(self) -> tuple[float, float]:
        """Confidence limits of the probability."""
        tail = (1 - CONFIDENCE) / 2
        low, high = clopper_pearson(self.flagged, self.repetitions, tail)
        return float(low), float(high)


@dataclass(frozen=True)
class Trial:
    """The mechanism under test and what is claimed for it.

    Parameters
    ----------
    mu : float
        Of the correct mechanism, and claimed.
    delta : float
        At which epsilon is claimed; exact for the correct mechanism.
    runs : int
        Of each of the two data sets.
    rounds, dim : int
    """

    mu: float = 1.0
    delta: float = 1e-2
    runs: int = 6000
    rounds: int = 6
    dim: int = 3

    @cached_property
    def shift(self) -> np.ndarray:
        """What D has more than D', shape (rounds, dim); noise scale 1 makes it mu-GDP."""
        profile = np.outer(1 / np.sqrt(np.arange(1, self.rounds + 1)), np.ones(self.dim))
        return self.mu * profile / np.linalg.norm(profile)

    @cached_property
    def epsilon(self) -> float:
        """Claimed, and exact for the correct mechanism."""
        return gaussian_epsilon(self.mu, self.delta)

    def noise(self, rng: np.random.Generator, copy: str) -> np.ndarray:
        """Noise of one data set's runs, shape (runs, rounds, dim); scale 1 is claimed."""
        require(copy in COPIES, "copy", copy, f"one of {', '.join(COPIES)}")
        if copy == "reused noise":
            one = rng.standard_normal((self.runs, 1, self.dim))
            return np.broadcast_to(one, (self.runs, self.rounds, self.dim))
        scale = 0.5 if copy == "half noise" else 1.0
        return scale * rng.standard_normal((self.runs, self.rounds, self.dim))

    def flags(self, audit: str, rng: np.random.Generator, copy: str) -> bool:
        """Whether one ``audit`` of fresh outcomes of ``copy`` contradicts the claim."""
        require(audit in AUDITS, "audit", audit, f"one of {', '.join(AUDITS)}")
        if audit == "noise scale":
            return not noise_scale_test(self.noise(rng, copy), 1.0).passes
        one, other = self.shift + self.noise(rng, copy), self.noise(rng, copy)
        if audit == "transcript":
            known = {"likelihood ratio": (self._ratio(one), self._ratio(other))}
            found = transcript_audit(one, other, statistics=known, delta=self.delta)
            return found.contradicts(epsilon=self.epsilon)
        if copy == "reused noise":  # the likelihood of the claimed model is blind to it
            statistic = learned_statistic(one, other, delta=self.delta)
        else:
            statistic = self._ratio(one), self._ratio(other)
        if audit == "gaussian fit":
            return gaussian_fit(*statistic).contradicts(self.mu)
        return threshold_audit(*statistic, delta=self.delta).contradicts(self.epsilon)

    def _ratio(self, messages: np.ndarray) -> np.ndarray:
        return log_likelihood_ratio(messages - self.shift, messages, 1.0)


def rejection_rate(
    flags: Callable[[np.random.Generator], bool], repetitions: int, rng: np.random.Generator
) -> Rate:
    """How often ``flags`` says yes when it draws its own outcomes."""
    return Rate(sum(bool(flags(rng)) for _ in range(repetitions)), repetitions)


def measure_rates(
    trial: Trial, repetitions: int, rng: np.random.Generator
) -> dict[tuple[str, str], Rate]:
    """Rate of flags by (audit, copy): false alarms of the correct copy, power for the others."""
    return {
        (audit, copy): rejection_rate(
            lambda draws, audit=audit, copy=copy: trial.flags(audit, draws, copy), repetitions, rng
        )
        for audit in AUDITS
        for copy in COPIES
    }
