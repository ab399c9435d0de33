"""Tests of the sampled batches of algorithms whose guarantee relies on sampling.

A batch is a set of records for which an algorithm requests clipped gradients. The algorithm
declares the kind and the rate of sampling. A batch must be independent of earlier batches, and all
records must be equally likely.

A record in a batch changes the noised quantity by at most the declared multiple of the noise's
standard deviation. Both data sets are executed with the same random numbers, so that all messages
are equal until the record is sampled. The first message that differs shows the change that the
record causes. With other noise, the message differs by the noise. The test therefore does not rely
on the declared clipping, weights or noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import bdtr, erfc, gammaincinv

from private_consensus.core.algorithms.base import Algorithm
from private_consensus.core.problems import Problem
from private_consensus.privacy import Release, Sampling

from .execution import execute
from .judging import neighbouring_steps
from .neighbours import Attack
from .result import DIFFERS, CheckReport, Finding, Untested
from .streams import AuditStreams

RUNS = 200
"""Largest number of runs whose batches or first changes are tested."""
INCLUSIONS = 1_000
"""Number of runs that determine how often a record is in a batch."""
ROUNDED = 0.02
"""Relative increase of a change that rounding messages to a grid may cause."""
ROTATED = 0.1
"""Difference of two noise vectors of equal draws, over their norm, that exceeds rounding."""


@Problem.register
class BatchRecorder:
    """Wrapper of a problem that records the batch of each clipped gradient, [agents, records]."""

    def __init__(self, problem: Any) -> None:
        self._problem = problem
        self.batches: list[np.ndarray] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._problem, name)

    def repeated(self, runs: int) -> BatchRecorder:
        """Repeat the problem for a number of runs and keep recording."""
        self._problem = self._problem.repeated(runs)
        return self

    def clipped_gradient(
        self, x: np.ndarray, rows: np.ndarray, sizes: np.ndarray, *options: Any, **keywords: Any
    ) -> np.ndarray:
        """Compute the problem's clipped gradient and record the batch."""
        is_sampled = np.arange(rows.shape[-1]) < sizes[:, None]
        agent_rows = self._problem.rows_of(0)
        by_agent = zip(agent_rows, rows, is_sampled, strict=True)
        self.batches.append(
            np.stack([np.isin(mine, indices[is_taken]) for mine, indices, is_taken in by_agent])
        )
        return self._problem.clipped_gradient(x, rows, sizes, *options, **keywords)


def sampling_found(
    algorithm: Algorithm, attack: Attack, horizon: int, *, releases: Sequence[Release],
    level: float, seed: int, runs: int = RUNS, inclusions: int = INCLUSIONS,
) -> CheckReport:  # fmt: skip
    """Test the batches of an algorithm that declares a sampling.

    How often a record is in a batch is determined by the number ``inclusions`` of runs.
    """
    samplings = {release.sampling for release in releases if release.sampling is not None}
    if len(samplings) > 1:
        text = "the releases declare several kinds or rates of sampling"
        return CheckReport(untested=(Untested("batches of records", text),))
    if not samplings:
        return CheckReport()
    recorder = BatchRecorder(attack.pair[0])
    runs = min(runs, RUNS)
    streams = AuditStreams.labelled("rows that are touched", runs, seed)
    execute(algorithm, recorder, attack.network, streams, horizon)
    if len(recorder.batches) != horizon * runs:
        return _inclusion(algorithm, attack, horizon, samplings.pop(), level, seed, inclusions)
    batches = np.stack(recorder.batches).reshape(horizon, runs, *recorder.batches[0].shape)
    results = list(_tested(batches, samplings.pop()))
    return CheckReport(
        tuple(
            Finding(DIFFERS, f"batches: {text}")
            for text, p_value in results
            if p_value * len(results) <= level
        ),
        sites=("batches of records",),
    )


def _inclusion(
    algorithm: Algorithm, attack: Attack, horizon: int, declared: Sampling, level: float, seed: int,
    runs: int,
) -> CheckReport:  # fmt: skip
    """Test how often records are in batches, by the first message that a replaced record changes.

    Both data sets have equal noise and equal random numbers, so that messages differ from the first
    batch on that holds the record. A second record must be sampled independently of the first.
    """
    pairs = [attack.pair]
    exchanged_pair = _second_record(attack)
    if exchanged_pair is not None:
        pairs.append(exchanged_pair)
    firsts = [_first_changes(algorithm, pair, attack, horizon, seed, runs) for pair in pairs]
    first_changes = [first for first in firsts if first is not None]
    begin = min((int(first.min()) for first in first_changes), default=horizon)
    if begin >= horizon:
        text = "no message shows which records are in a batch"
        return CheckReport(untested=(Untested("batches of records", text),))
    results = [
        result
        for first in first_changes
        for result in _hazards(first, declared.rate, begin, horizon)
    ]
    if len(first_changes) == 2:
        results.append(
            _together(first_changes[0], first_changes[1], begin, declared, attack.pair[0].records)
        )
    findings = tuple(
        Finding(DIFFERS, f"batches of agent {attack.agent}: {text}")
        for text, p_value in results
        if p_value * len(results) <= level
    )
    untested = ()
    if len(first_changes) < 2:
        text = "the problem has no rows that can be exchanged"
        untested = (Untested("dependence of two records in a batch", text),)
    return CheckReport(findings, sites=("batches of replaced records",), untested=untested)


def _second_record(attack: Attack) -> tuple[Any, Any] | None:
    """Return the pair with the replaced record and a second record swapped; None without rows."""
    first, second = attack.pair
    if not all(
        isinstance(getattr(problem, name, None), np.ndarray)
        for problem in attack.pair
        for name in ("features", "labels")
    ):
        return None
    features, labels = (first.features, second.features), (first.labels, second.labels)
    if features[0].ndim < 3 or labels[0].shape != features[0].shape[:-1]:
        return None
    rows = np.moveaxis(features[0], -3, 0)[attack.agent]
    rows_of_other = np.moveaxis(features[1], -3, 0)[attack.agent]
    differs = (rows != rows_of_other).any(-1)
    signs = np.moveaxis(labels[0], -2, 0)[attack.agent], np.moveaxis(labels[1], -2, 0)[attack.agent]
    differs = (differs | (signs[0] != signs[1])).reshape(-1, differs.shape[-1]).any(0)
    if features[0].shape[-2] < 2 or differs.sum() != 1:
        return None
    index = int(differs.argmax())
    order = np.arange(len(differs))
    order[[index, index - 1]] = order[[index - 1, index]]

    def exchanged(problem: Any) -> Any:
        rows, signs = problem.features.copy(), problem.labels.copy()
        rows[..., attack.agent, :, :] = problem.features[..., attack.agent, order, :]
        signs[..., attack.agent, :] = problem.labels[..., attack.agent, order]
        return replace(problem, features=rows, labels=signs)

    return exchanged(first), exchanged(second)


def _first_changes(
    algorithm: Algorithm, pair: tuple[Any, Any], attack: Attack, horizon: int, seed: int, runs: int
) -> np.ndarray | None:
    """Return for each run the first iteration, from 0, whose message differs, else ``horizon``."""
    streams = AuditStreams.labelled("inclusion of a record", runs, seed)
    first_sent, second_sent = (
        execute(algorithm, problem, attack.network, streams, horizon).sent[:, :, attack.agent]
        for problem in pair
    )
    if first_sent.shape != second_sent.shape:
        return None
    tolerance = 1e-9 * (1.0 + np.abs(first_sent).max())
    differs = (np.abs(first_sent - second_sent) > tolerance).any(-1)
    return np.where(differs.any(1), differs.argmax(1), horizon)


def _hazards(
    first: np.ndarray, rate: float, begin: int, horizon: int
) -> Iterator[tuple[str, float]]:
    """Yield the p-value of the inclusion rate per iteration, for runs not included earlier."""
    for t in range(begin, horizon):
        at_risk, included = int((first >= t).sum()), int((first == t).sum())
        condition = "after batches without a record, it" if t > begin else "a record"
        text = (
            f"{condition} is in {included} of {at_risk} batches of iteration {t + 1}, the declared "
            f"rate is {rate:.3g}"
        )
        yield text, _binomial(included, at_risk, rate)


def _together(
    first: np.ndarray, second: np.ndarray, begin: int, declared: Sampling, records: int
) -> tuple[str, float]:
    """Return the p-value of the number of first batches that contain both of two records."""
    joint_count = int(((first == begin) & (second == begin)).sum())
    rate = declared.rate**2
    if declared.kind == "fixed_size" and records > 1:
        rate = declared.rate * (declared.rate * records - 1) / (records - 1)
    text = f"two records are together in {joint_count} of {len(first)} batches, the expected "
    text += f"number is {rate * len(first):.3g}"
    return text, _binomial(joint_count, len(first), max(0.0, rate))


def _binomial(count: int, trials: int, rate: float) -> float:
    """Return the two-sided p-value of a binomial count."""
    below = float(bdtr(count, trials, rate))
    above = 1.0 - float(bdtr(count - 1, trials, rate)) if count else 1.0
    return min(1.0, 2.0 * min(below, above))


def sampled_record_change(
    algorithm: Algorithm, attack: Attack, horizon: int, *, releases: Sequence[Release],
    level: float, seed: int, runs: int = RUNS, **_: Any,
) -> CheckReport:  # fmt: skip
    """Test the effect of a record in a batch on the first message that it changes.

    The effect is compared in standard deviations of the noise. Noise of earlier rounds may be in
    this message, too: the measured effect is then smaller than the true one.
    """
    largest = max(map(_mu_if_sampled, releases), default=0.0)
    allowed = neighbouring_steps(algorithm.relation) * largest
    item = f"effect of a sampled record of agent {attack.agent}"
    if not 0 < allowed < np.inf:
        if not any(release.sampling for release in releases):
            return CheckReport()
        text = "only sampled releases with Gaussian noise are tested"
        return CheckReport(untested=(Untested(item, text),))
    streams = AuditStreams.labelled("a record in a batch", min(runs, RUNS), seed)
    redrawn = streams.with_groups(noise="drawn again")

    def _messages(index: int, noise: AuditStreams) -> np.ndarray:
        sent = execute(algorithm, attack.pair[index], attack.network, noise, horizon).sent
        return sent[:, :, attack.agent]

    first, second, again = _messages(0, streams), _messages(1, streams), _messages(0, redrawn)
    if first.shape != second.shape:
        text = "the data sets lead to different numbers of messages"
        return CheckReport(untested=(Untested(item, text),))
    effect = _least_change(first - second, first - again, level / horizon)
    if effect <= allowed * (1 + ROUNDED):
        return CheckReport()
    rotated = _rotated(first, second, again, _messages(1, redrawn))
    effect = _least_change((first - second)[~rotated], first - again, level / horizon)
    if effect <= allowed * (1 + ROUNDED):
        text = "equal draws are noise with other signs on the two data sets"
        return CheckReport(untested=(Untested(item, text),))
    text = f"a record in a batch changes a message by at least {effect:.4g} standard deviations"
    finding = Finding(DIFFERS, f"{text} of its noise, the declared value is {allowed:.4g}")
    return CheckReport((finding,))


def _mu_if_sampled(release: Release) -> float:
    """Return the declared effect of a record in the batch, in standard deviations of the noise.

    It is 0 for a release without sampling.
    """
    if release.profile is not None:
        return release.profile.mu_if_sampled()
    if release.mechanism == "gaussian" and release.sampling is not None:
        return float(np.max(release.losses()))
    return 0.0


def _rotated(
    sent: np.ndarray, sent_of_second: np.ndarray, again: np.ndarray, again_of_second: np.ndarray
) -> np.ndarray:
    """Return the runs whose first changed message may have equally long, but different noise.

    The change of such a message is not the effect of a record alone: the noise of one data set may
    be that of the other one with another sign. Noise is compared in coordinates that differ between
    the data sets for both draws, since others may not be sent. A run without them is returned too.
    """
    index = np.arange(len(sent)), (sent != sent_of_second).any(-1).argmax(1)
    is_sent = (sent[index] != sent_of_second[index]) & (again[index] != again_of_second[index])
    noise = (sent - again)[index] * is_sent
    noise_of_second = (sent_of_second - again_of_second)[index] * is_sent
    length = np.linalg.norm(noise, axis=-1)
    excess = np.abs(length - np.linalg.norm(noise_of_second, axis=-1))
    is_equally_long = excess <= ROUNDED * length
    differs = np.linalg.norm(noise - noise_of_second, axis=-1) > ROTATED * length
    return (is_equally_long & differs) | ~is_sent.any(-1)


def _least_change(changes: np.ndarray, noise: np.ndarray, level: float) -> float:
    """Return the largest first change of all runs over an upper limit of the noise's deviation.

    ``changes`` has the shape (runs, iterations, dim). The confidence limit of each iteration is
    wrong with probability ``level``.

    ``noise`` is a difference of two draws; values that are 0 were not sent.
    """
    lengths = np.linalg.norm(changes, axis=-1)
    first = np.where(lengths.any(1), (lengths > 0).argmax(1), -1)
    ratios = [0.0]
    for t in np.unique(first[first >= 0]):
        drawn = noise[:, t][noise[:, t] != 0]
        if drawn.size:
            # of n normal numbers the sum of squares is chi-squared with n degrees of freedom
            variance = (drawn**2).sum() / 2 / (2 * gammaincinv(drawn.size / 2, level))
            ratios.append(float(lengths[first == t, t].max() / np.sqrt(variance)))
    return max(ratios)


def _tested(batches: np.ndarray, declared: Sampling) -> Iterator[tuple[str, float]]:
    """Yield defects of batches [rounds, runs, agents, records] with the p-values of their tests."""
    sizes, records = batches.sum(-1), batches.shape[-1]
    rate = sizes.mean() / records
    standard_error = sizes.std() / records / np.sqrt(sizes.size)
    if declared.kind == "poisson":
        standard_error = np.sqrt(declared.rate * (1 - declared.rate) / batches.size)
    yield (
        f"records are sampled at the rate {rate:.3g}",
        _two_sided(rate - declared.rate, standard_error),
    )
    if declared.kind == "poisson":
        expected = records * declared.rate * (1 - declared.rate)
        error = expected * np.sqrt(2 / sizes.size + 1 / (expected * sizes.size))
        text = "the variance of the batch size is not the declared one"
        yield text, _two_sided(sizes.var() - expected, error)
    share = sizes[..., None] / records
    counts, probabilities = batches.sum((0, 1)), np.broadcast_to(share, batches.shape)
    p_values = _two_sided(
        counts - probabilities.sum((0, 1)),
        np.sqrt((probabilities * (1 - probabilities)).sum((0, 1))),
    )
    text = "some records are sampled more often than others"
    yield text, min(1.0, float(p_values.min()) * p_values.size)
    if len(batches) < 2:
        return
    overlap = (batches[:-1] & batches[1:]).sum(-1)
    earlier, later = sizes[:-1], sizes[1:]
    mean = earlier * later / records
    variance = mean * (records - earlier) * (records - later) / (records * (records - 1))
    error = np.sqrt(variance.sum())
    text = "a batch depends on the preceding batch"
    yield text, _two_sided((overlap - mean).sum(), error)


def _two_sided(gap: Any, error: Any) -> Any:
    """Return the p-value of a normal difference ``gap`` with standard error ``error``.

    Without error it is 1 for equal values and 0 otherwise.
    """
    gap, error = np.abs(gap), np.asarray(error, float)
    tiny = 1e-9
    z = np.divide(gap, error, out=np.zeros(np.shape(gap + error)), where=error > tiny)
    return np.where(error > tiny, erfc(z / np.sqrt(2.0)), gap <= tiny).astype(float)
