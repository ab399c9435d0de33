"""Test that a sampled record affects the messages of its own iteration only.

Amplification by sampling composes one sampled release per iteration. It does not apply to a method
that keeps a value of its batch without noise, such as a momentum of gradients, and uses it in
messages of later iterations.

The second data set is executed with the random numbers and the messages of the first one. The noise
of the attacked agent is chosen such that its messages are the recorded ones. The message that the
agent would send with its sampled noise then differs only if its batch holds the replaced record, or
if the agent remembers an earlier batch. After a first difference, the former has the declared rate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import bdtrc

from private_consensus.core.algorithms.base import Algorithm
from private_consensus.core.randomness import Law
from private_consensus.privacy import Release

from .neighbours import Attack
from .noise_recovery import recovers_noise_itself
from .probing import is_foreign
from .replay import CLOSE, Trace, run_traced
from .result import DIFFERS, CheckReport, Finding, Untested
from .streams import AuditStreams

RUNS = 200
"""Largest number of runs."""
LEAST_CHANGE = 1e-3
"""Change of a message that counts, over the largest change of the iteration's messages."""
SITE = "memory of earlier batches"


@dataclass(frozen=True)
class _OddStreams(AuditStreams):
    """Streams whose noise is drawn again in iterations 1, 3, 5, ..."""

    def sequence(
        self, purpose: str, law: str | Law, shape: tuple[int, ...], name: str = ""
    ) -> Iterator[np.ndarray]:
        unchanged = super().sequence(purpose, law, shape, name)
        if purpose != "noise":
            yield from unchanged
            return
        again = AuditStreams(self.root, self.runs, {**self.groups, purpose: "drawn again"})
        for index, units in enumerate(
            zip(unchanged, again.sequence(purpose, law, shape, name), strict=False)
        ):
            yield units[1 - index % 2]


def later_messages(
    algorithm: Algorithm, attack: Attack, horizon: int, *, releases: Sequence[Release],
    level: float, seed: int, runs: int = RUNS, **_: Any,
) -> CheckReport:  # fmt: skip
    """Test how often a message differs after an earlier batch held the replaced record.

    Reviewed algorithms are not tested: their batches are recorded, and adapters repeat each of
    their steps from recorded messages.
    """
    samplings = {release.sampling for release in releases if release.sampling is not None}
    if not samplings or horizon < 2 or not is_foreign(algorithm):
        return CheckReport()
    streams = AuditStreams.labelled("later messages", min(runs, RUNS), seed)
    agent, network = attack.agent, attack.network
    recorded = run_traced(algorithm, attack.pair[0], network, streams, horizon, agent)

    def replayed(index: int, drawn: AuditStreams) -> Trace | None:
        try:
            return run_traced(
                algorithm, attack.pair[index], network, drawn, horizon, agent, recorded
            )
        except Exception:  # code from outside may raise anything
            return None

    item = f"effect of a sampled record of agent {agent} on later messages"
    changes = _changes(recorded, replayed(1, streams), agent)
    if changes is None:
        reason = "the messages of an execution could not be repeated on the other data set"
        is_decisive = not recovers_noise_itself(algorithm)
        return CheckReport(untested=(Untested(item, reason, is_decisive),))
    rate = max(sampling.rate for sampling in samplings)
    is_changed = changes > LEAST_CHANGE * changes.max(initial=0.0)
    follows = np.logical_or.accumulate(is_changed, axis=0)[:-1]
    trials, count = int(follows.sum()), int((follows & is_changed[1:]).sum())
    if not trials or float(bdtrc(count - 1, trials, rate)) > level:
        return CheckReport(sites=(SITE,))
    if _remembers_noise(recorded, replayed(0, _OddStreams(**vars(streams))), agent):
        reason = "later messages also depend on noise that earlier messages do not determine"
        return CheckReport(untested=(Untested(item, reason),))
    of_first = int(follows.any(1).argmax())
    t = of_first + 2 + int((follows & is_changed[1:])[of_first:].any(1).argmax())
    text = (
        f"a sampled record of agent {agent} also changes messages of later iterations, such as "
        f"iteration {t}: after a batch with the record, {count} of {trials} messages depend on it, "
        f"and the declared sampling permits a fraction of {rate:.3g}"
    )
    return CheckReport((Finding(DIFFERS, text),), sites=(SITE,))


def _changes(recorded: Trace, replayed: Trace | None, agent: int) -> np.ndarray | None:
    """Return the changes of the agent's messages, [iterations, runs]; 0 for rounding errors.

    None if messages were not repeated, so that later ones may differ for this reason.
    """
    times = sorted(t for name, t in recorded.outputs if name == "released" and t != "end")
    times = [t for t in times if t > 0]
    if replayed is None or not times or any(t not in replayed.bare for t in times):
        return None
    if not all(replayed.replayed.get(t, False) for t in times[:-1]):
        return None
    pairs = [(recorded.outputs["released", t], replayed.bare[t]) for t in times]
    if any(first.shape != second.shape or first.ndim < 3 for first, second in pairs):
        return None
    scale = max(float(np.abs(first).max(initial=0.0)) for first, _ in pairs)
    changes = [np.abs(first - second)[:, agent].max(-1) for first, second in pairs]
    return np.where(np.stack(changes) > CLOSE * scale, changes, 0.0)


def _remembers_noise(recorded: Trace, replayed: Trace | None, agent: int) -> bool:
    """Return True unless iterations with equal noise repeat messages after other noise."""
    changes = _changes(recorded, replayed, agent)
    if changes is None:
        return True
    return not (changes[::2] > 0).any(1).all() or bool((changes[1::2] > 0).any())
