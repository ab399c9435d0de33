"""The audit of one observer's view: what is received in execution, against what is guaranteed.

The algorithm is executed by its own steps and draws; nothing of the formula for its views is used
to look at them. Members of an observer have their own messages as well: what they drew themselves
follows from these, since their states are functions of what they hold. A view is projected to the
direction in which the records differ; coordinates of broadcasts do not mix.
"""

from __future__ import annotations

import math

import numpy as np

from ..algorithms.base import Algorithm
from ..errors import require
from ..observations import Observation, epsilon_for, observation
from ..observations.linear import broadcasts
from ..privacy.audit.families import claim_p_value
from ..privacy.audit.sequential import detectable_epsilon
from ..privacy.audit.statistics import audit_statistics, best_bound
from ..privacy.observers import Coalition, Eavesdropper, Observer, SecureSums
from .execution import execute
from .neighbours import Attack
from .result import CONTRADICTED, AuditResult, Finding
from .streams import AuditStreams


def audit_view(
    noisy: Algorithm, attack: Attack, horizon: int, observer: Observer, *,
    runs: int, confidence: float, delta: float, seed: int,
) -> AuditResult:  # fmt: skip
    """Test what is guaranteed of the victim's data against one observer.

    Parameters
    ----------
    noisy : Algorithm
        With its noise set.
    attack : Attack
        Neighbouring data sets that differ in a record of ``attack.agent``.
    observer : Eavesdropper, Coalition or SecureSums

    Returns
    -------
    AuditResult
        ``claimed`` is the guarantee against this observer, ``declared`` the formula's value for
        inputs as given, NaN where there is none.

    Raises
    ------
    InvalidInput
        For an observer of another kind, one that is not in the graph or has the victim as a member,
        one who is sent nothing, and an algorithm with a message for each neighbour.
    """
    problem, network = attack.pair[0], attack.network
    _check(noisy, network, observer, attack.agent)
    seen = observation(noisy, problem, network, horizon)
    found = epsilon_for(seen, observer, attack.agent, delta)
    rows = seen_rows(observer, network.adjacency, _weights(seen, observer))
    views = [_views(noisy, attack, horizon, rows, runs, world, seed) for world in (0, 1)]
    require(views[0].shape[1] > 0, "observer", observer, "an observer who is sent something")
    bounds = audit_statistics(
        *views, statistics={}, delta=delta, confidence=confidence, seed=seed,
        orderings=("epsilon", "mu"),
    )  # fmt: skip
    lower = best_bound(bounds)
    pvalue = claim_p_value(bounds, {"epsilon": found.guarantee})
    findings = ()
    if pvalue <= 1.0 - confidence:
        text = (
            f"the view needs epsilon {lower.epsilon:.4g} at delta {delta:g}, guaranteed is "
            f"{found.guarantee:.4g} ({found.rule})"
        )
        findings = (Finding(CONTRADICTED, text),)
    return AuditResult(
        claimed=found.guarantee, delta=delta, declared=found.formula, lower=lower.epsilon,
        ceiling=lower.ceiling, confidence=confidence, relation=str(noisy.relation),
        observer=str(observer), runs=runs, statistic=lower.statistic, pvalue=min(1.0, pvalue),
        power=detectable_epsilon(runs, delta=delta, confidence=confidence),
        executed=f"{type(noisy).__name__}, {horizon} iterations, {network.n_agents} agents, "
        f"{attack.name}",
        bounds=tuple(bounds), findings=findings, sensitivity=math.nan,
    )  # fmt: skip


def _check(noisy, network, observer: Observer, victim: int) -> None:
    kind = isinstance(observer, Eavesdropper | Coalition)
    plain = kind and not getattr(observer, "last_states", False)
    require(plain, "observer", observer, "an eavesdropper, agents, or sums that they see")
    observer.check(network.n_agents)
    outside = victim not in observer.members
    require(outside, "observer.members", observer.members, f"agents without the victim, {victim}")
    expected = "an algorithm whose messages are broadcast"
    require(broadcasts(noisy), "algorithm", type(noisy).__name__, expected)


def _weights(seen: Observation, observer: Observer) -> np.ndarray | None:
    """With which agents take each other's messages into sums, [agents, agents]."""
    if not isinstance(observer, SecureSums):
        return None
    expected = f"single messages: what is summed is not known ({seen.reason})"
    require(seen.system is not None, "observer", observer, expected)
    uses = seen.system.channels[0].rounds[-1].uses
    return uses[:, :: uses.shape[1] // len(uses)]  # of several coordinates the first


def _views(noisy, attack: Attack, horizon, rows, runs: int, world: int, seed: int) -> np.ndarray:
    """What the observer has of each run on one data set, [runs, numbers]."""
    streams = AuditStreams.labelled(f"view of world {world}", runs, seed)
    one = execute(noisy, attack.pair[world], attack.network, streams, horizon)
    along = one.sent @ attack.direction / np.linalg.norm(attack.direction)
    return (along @ rows.T).reshape(len(along), -1)


def seen_rows(
    observer: Observer, adjacency: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """What of all agents' messages of a round the observer has, [rows, agents]: those it receives,
    alone or in sums, and its members' own."""
    eye, members = np.eye(len(adjacency)), list(observer.members)
    if isinstance(observer, Eavesdropper):
        return eye
    others = np.where(np.isin(np.arange(len(eye)), members), 0.0, 1.0)
    if isinstance(observer, SecureSums):
        return np.vstack([eye[members], weights[members] * others])
    heard = adjacency[members].any(0) & (others > 0)
    return np.vstack([eye[members], eye[heard]])
