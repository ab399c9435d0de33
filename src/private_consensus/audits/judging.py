"""Tests of a claim and of a declaration by the statistics of two executions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from private_consensus.core.algorithms.base import Algorithm
from private_consensus.core.networks import Network
from private_consensus.privacy import NOT_PROVEN, Relation, Release, account, gaussian_dp
from private_consensus.privacy.audit.bounds import Bound
from private_consensus.privacy.audit.claims import Profile
from private_consensus.privacy.audit.families import claim_p_value
from private_consensus.privacy.audit.statistics import audit_statistics, best_bound

from .evidence import Evidence
from .result import CONTRADICTED, DIFFERS, Finding

BY_ACCOUNTANT = "the declared releases have epsilon"
"""First words of the finding that the accountant's epsilon exceeds the claimed one."""
DELTAS = (1e-3, 1e-2, 1e-1)
"""Deltas at which a few thousand runs can contradict the declared releases."""
ORDERINGS = ("epsilon", "mu")
"""Measures for which events are chosen: epsilon for the claim, mu for the declared releases."""
RATIO = "likelihood ratio"
SLACK = 1e-6
"""Relative amount by which a calibration may exceed its budget."""
SCALABLE = ("gaussian", "laplace", "gamma_norm", "discrete_gaussian")
"""Mechanisms whose cost for a larger change is that of a larger sensitivity."""


class Judged(NamedTuple):
    """Lower bounds of all statistics, p-value of the claim, and the resulting findings."""

    bounds: tuple[Bound, ...]
    pvalue: float
    findings: tuple[Finding, ...]

    @property
    def lower(self) -> Bound:
        """Largest lower bound of epsilon."""
        return best_bound(list(self.bounds))


class Declaration(NamedTuple):
    """Privacy cost of the declared releases.

    It has epsilon at the claim's delta, pairs (epsilon, delta) that a few thousand runs can
    contradict, mu if all releases are Gaussian, else infinity, and epsilon at delta 0."""

    epsilon: float
    points: tuple[tuple[float, float], ...]
    mu: float
    pure: float


def neighbouring_steps(relation: Relation) -> float:
    """Return the number of neighbouring changes that replace a record: 2 for add or remove."""
    return 2.0 if relation.change == "add_remove" else 1.0


def changes_per_pair(algorithm: Algorithm, releases: Sequence[Release]) -> float:
    """Return the largest effect of a replaced record over the declared one.

    It is 1 for releases with sampling or a profile, whose declaration is not scaled.
    """
    scalable = all(r.sampling is None and r.mechanism in SCALABLE for r in releases)
    return neighbouring_steps(algorithm.relation) if scalable else 1.0


def releases_of_pairs(algorithm: Algorithm, releases: Sequence[Release]) -> list[Release]:
    """Return the declared releases for pairs of data sets in which a record is replaced.

    Sensitivities are multiplied by :func:`changes_per_pair`.
    """
    factor = changes_per_pair(algorithm, releases)
    if factor == 1.0:
        return list(releases)
    return [replace(r, sensitivity=factor * np.asarray(r.sensitivity)) for r in releases]


def declaration(releases: Sequence[Release], delta: float) -> Declaration:
    """Compute the privacy cost of the declared releases by the accountant."""
    gaussian = all(release.mechanism == "gaussian" for release in releases)
    mu = gaussian_dp(releases) if gaussian else math.inf
    pure = account(releases, 0.0).epsilon
    return Declaration(account(releases, delta).epsilon, refutable_points(releases), mu, pure)


def refutable_points(releases: Sequence[Release]) -> tuple[tuple[float, float], ...]:
    """Return pairs of epsilon and delta of the releases that a few thousand runs can refute."""
    return tuple((account(releases, delta).epsilon, delta) for delta in DELTAS)


@dataclass(frozen=True)
class DeclaredSetting:
    """Calibrated algorithm on a problem, with the releases that it declares.

    Parameters
    ----------
    delta : float
        Delta at which costs are compared.
    """

    algorithm: Algorithm
    problem: Any
    network: Network
    horizon: int
    delta: float

    @cached_property
    def releases(self) -> list[Release]:
        """Releases that the algorithm declares."""
        return self.algorithm.releases(self.problem, self.network, self.horizon)

    @cached_property
    def declared(self) -> Declaration:
        """Privacy cost of the declared releases."""
        return declaration(self.releases, self.delta)

    @property
    def profile(self) -> tuple[tuple[float, float], ...]:
        """Pairs of epsilon and delta that the declared releases permit."""
        declared = self.declared
        return (declared.epsilon, self.delta), *declared.points, (declared.pure, 0.0)

    @property
    def is_sampled(self) -> bool:
        """True if the cost of a record depends on the batches."""
        return any(release.sampling or release.profile for release in self.releases)


def judge(
    first: Evidence, second: Evidence, claimed: float, declared: Declaration, *,
    delta: float, confidence: float, seed: int,
) -> Judged:  # fmt: skip
    """Test every statistic of two executions against the claim and the declaration.

    Events are chosen for the claim and for the declaration. All bounds hold together at
    ``confidence``. ``claimed`` is the epsilon at ``delta`` that the claim permits for this pair.
    """
    bounds = audit_statistics(
        *_features(first, second), statistics=_scalars(first, second), delta=delta,
        confidence=confidence, seed=seed, orderings=ORDERINGS,
    )  # fmt: skip
    pvalue = claim_p_value(bounds, {"epsilon": claimed})
    findings = list(_against_claim(bounds, pvalue, claimed, confidence))
    findings += _against_declaration(bounds, declared, confidence)
    return Judged(tuple(bounds), pvalue, tuple(findings))


def _against_claim(bounds: list[Bound], pvalue: float, claimed: float, confidence: float):
    if pvalue <= 1.0 - confidence:
        lower = best_bound(bounds)
        text = (
            f"the messages show epsilon of at least {lower.epsilon:.4g} at delta {lower.delta:g}, "
            f"the claim permits {claimed:.4g} ({lower.statistic})"
        )
        yield Finding(CONTRADICTED, text)


def _against_declaration(
    bounds: list[Bound], declared: Declaration, confidence: float
) -> Iterator[Finding]:
    """Test the declaration as a whole curve, and as mu."""
    if claim_p_value(bounds, {"profile": Profile(declared.points)}) <= 1.0 - confidence:
        listed = (f"epsilon {epsilon:.4g} at delta {delta:g}" for epsilon, delta in declared.points)
        text = f"the messages show more than the declared releases permit: {', '.join(listed)}"
        yield Finding(DIFFERS, text)
    elif math.isfinite(declared.mu) and (
        claim_p_value(bounds, {"mu": declared.mu}) <= 1.0 - confidence
    ):
        worst = max(bounds, key=lambda bound: bound.mu)
        text = (
            f"the messages show mu of at least {worst.mu:.4g}, the declared releases permit "
            f"{declared.mu:.4g} ({worst.statistic})"
        )
        yield Finding(DIFFERS, text)


def against_accountant(declared: Declaration, claimed: float) -> list[Finding]:
    """Return a finding if the declared releases cost more than the claimed epsilon."""
    if declared.epsilon <= claimed * (1 + SLACK):
        return []
    text = (
        f"{BY_ACCOUNTANT} {declared.epsilon:.4g} by the accountant, the claimed epsilon is "
        f"{claimed:.4g}"
    )
    return [Finding(NOT_PROVEN, text)]


def _features(first: Evidence, second: Evidence) -> tuple[np.ndarray, np.ndarray]:
    """Return projections and coordinates of messages, truncated to equal numbers for both sets."""
    blocks = []
    for name in ("projected", "whole"):
        of_first, of_second = getattr(first, name), getattr(second, name)
        width = min(of_first.shape[1], of_second.shape[1])
        blocks.append((of_first[:, :width], of_second[:, :width]))
    first_features, second_features = (
        np.concatenate(arrays, axis=1) for arrays in zip(*blocks, strict=True)
    )
    return first_features, second_features


def _scalars(first: Evidence, second: Evidence) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    shared = first.scalars.keys() & second.scalars.keys()
    statistics = {name: (first.scalars[name], second.scalars[name]) for name in sorted(shared)}
    if first.messages != second.messages:
        first_counts, second_counts = (
            np.full(len(evidence.projected), float(evidence.messages))
            for evidence in (first, second)
        )
        statistics["number of messages"] = first_counts, second_counts
    if first.not_finite.any() or second.not_finite.any():
        counts = first.not_finite.astype(float), second.not_finite.astype(float)
        statistics["numbers that are not finite"] = counts
    if first.ratio is not None and second.ratio is not None:
        statistics[RATIO] = first.ratio, second.ratio
    return statistics
