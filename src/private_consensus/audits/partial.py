"""Audit of one observer: received messages in executions, compared with the guarantee.

The algorithm is executed with its own steps and draws; the formula for its views is not used.
Members of an observer also know their own messages, from which their own noise follows, because
their states are functions of their data and messages. If agents share noise, or a member receives
models only, its noise does not follow and is added to its view. The models after the last round are
the last messages of algorithms whose agents send their whole state. A view is projected to the
direction in which the records differ; coordinates of broadcasts do not mix.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np

from private_consensus.common.errors import InvalidInput, require
from private_consensus.core.algorithms.base import Algorithm, draws_of, stack
from private_consensus.core.networks import Network
from private_consensus.privacy.audit.families import claim_p_value
from private_consensus.privacy.audit.sequential import detectable_epsilon
from private_consensus.privacy.audit.statistics import audit_statistics, best_bound
from private_consensus.privacy.observers import (
    Coalition,
    Eavesdropper,
    FinalModels,
    Observer,
    SecureSums,
)

from .execution import Execution, execute
from .neighbours import Attack
from .result import CONTRADICTED, AuditResult, Finding
from .streams import AuditStreams
from .views import Observation, epsilon_for, observation
from .views.causal import SHARED_NOISE
from .views.linear import broadcasts, registry_name


def audit_view(
    noisy: Algorithm, attack: Attack, horizon: int, observer: Observer, *,
    runs: int, confidence: float, delta: float, seed: int,
) -> AuditResult:  # fmt: skip
    """Test the guarantee for the data of the attacked agent against one observer.

    Parameters
    ----------
    noisy : Algorithm
        Calibrated.
    attack : Attack
        Neighbouring data sets that differ in a record of ``attack.agent``.
    horizon : int
        Number of iterations.
    observer : Eavesdropper, Coalition, SecureSums or FinalModels
        Observer whose view is tested.
    runs : int
        Number of runs on each data set.
    confidence : float
        Confidence of the lower bounds on the privacy loss.
    delta : float
        Delta at which epsilon is bounded.
    seed : int
        Seed of all random numbers.

    Returns
    -------
    AuditResult
        ``claimed`` is the guarantee against this observer; ``declared`` is the value of the formula
        for fixed inputs, NaN if there is no formula.

    Raises
    ------
    InvalidInput
        For an observer of another kind, outside of the graph, with the attacked agent as a member,
        or without received messages.
    """
    problem, network = attack.pair[0], attack.network
    _check(network, observer, attack.agent)
    view = observation(noisy, problem, network, horizon)
    privacy_loss = epsilon_for(view, observer, attack.agent, delta)
    look = _look(noisy, network, observer, view)
    views = [_views(noisy, attack, horizon, observer, look, runs, w, seed) for w in (0, 1)]
    require(views[0].shape[1] > 0, "observer", observer, "an observer who receives messages")
    bounds = audit_statistics(
        *views, statistics={}, delta=delta, confidence=confidence, seed=seed,
        orderings=("epsilon", "mu"),
    )  # fmt: skip
    lower = best_bound(bounds)
    pvalue = claim_p_value(bounds, {"epsilon": privacy_loss.guarantee})
    findings = ()
    if pvalue <= 1.0 - confidence:
        text = (
            f"the observed values show epsilon of at least {lower.epsilon:.4g} at delta {delta:g}, "
            f"guaranteed is {privacy_loss.guarantee:.4g} ({privacy_loss.rule})"
        )
        findings = (Finding(CONTRADICTED, text),)
    return AuditResult(
        claimed=privacy_loss.guarantee, delta=delta, declared=privacy_loss.formula,
        lower=lower.epsilon, ceiling=lower.ceiling, confidence=confidence,
        relation=str(noisy.relation), observer=str(observer), runs=runs,
        statistic=lower.statistic, pvalue=min(1.0, pvalue),
        power=detectable_epsilon(runs, delta=delta, confidence=confidence),
        executed=f"{type(noisy).__name__}, {horizon} iterations, {network.n_agents} agents, "
        f"{attack.name}",
        bounds=tuple(bounds), findings=findings, sensitivity=math.nan,
    )  # fmt: skip


def _check(network, observer: Observer, target: int) -> None:
    kind = isinstance(observer, Eavesdropper | Coalition | FinalModels)
    require(kind, "observer", observer, "Eavesdropper, Coalition, SecureSums or FinalModels")
    observer.check(network.n_agents)
    outside = target not in observer.members
    require(
        outside, "observer.members", observer.members, f"agents other than the target, {target}"
    )


def _weights(view: Observation, observer: Observer) -> np.ndarray | None:
    """Return the weights with which agents sum each other's messages, [agents, agents]."""
    if not isinstance(observer, SecureSums):
        return None
    expected = f"an observer of single messages: the weights of sums are unknown ({view.reason})"
    if view.system is None:
        raise InvalidInput("observer", observer, expected)
    uses = view.system.channels[0].rounds[-1].uses
    return uses[:, :: uses.shape[1] // len(uses)]  # of several coordinates the first


Look = Callable[[Execution, np.ndarray], np.ndarray]
"""Function of an execution and a direction; returns the observed values along it, [runs, ...]."""


def _look(noisy: Algorithm, network: Network, observer: Observer, view: Observation) -> Look:
    """Return the observed part of messages, and of models after the last round."""
    models = _models(observer, view)
    if isinstance(observer, FinalModels):
        return models
    messages = _messages(noisy, network, observer, view)
    if not observer.receives_last_states:
        return messages
    return lambda execution, along: np.concatenate(
        [_flat(messages(execution, along)), _flat(models(execution, along))], axis=1
    )


def _models(observer: Observer, view: Observation) -> Look:
    channels = () if view.system is None else view.system.channels
    sends_state = bool(channels) and channels[0].noised_state
    is_needed = isinstance(observer, FinalModels) or observer.receives_last_states
    expected = "an observer of messages only: agents do not send their models, so none is recorded"
    require(sends_state or not is_needed, "observer", observer, expected)
    if not is_needed:
        return lambda execution, along: np.zeros((len(execution.sent), 0))
    rows = observer.final_rows(channels[0])
    return lambda execution, along: execution.sent[:, -1] @ along @ rows.T


def _messages(noisy: Algorithm, network: Network, observer: Observer, view: Observation) -> Look:
    if view.system is not None and view.system.channels[0].one_model:
        return lambda execution, along: (execution.sent @ along)[..., :1]
    if broadcasts(noisy):
        rows = seen_rows(observer, network.adjacency, _weights(view, observer))
        return lambda execution, along: execution.sent @ along @ rows.T
    rows = seen_links(observer, network.adjacency, network.mixing)
    return lambda execution, along: np.einsum("rtav,kav->rtk", execution.links @ along, rows)


def _views(
    noisy,
    attack: Attack,
    horizon,
    observer: Observer,
    look: Look,
    runs: int,
    dataset_index: int,
    seed: int,
):
    """Return the view of the observer in each run on one data set, [runs, numbers]."""
    streams = AuditStreams.labelled(f"view of world {dataset_index}", runs, seed)
    execution = execute(noisy, attack.pair[dataset_index], attack.network, streams, horizon)
    along = attack.direction / np.linalg.norm(attack.direction)
    arrays = [_flat(look(execution, along))]
    hidden = isinstance(observer, FinalModels) or registry_name(noisy) in SHARED_NOISE
    if observer.members and hidden:
        run_arguments = attack.pair[dataset_index].repeated(runs), attack.network, streams
        batch: Any = stack([noisy])
        draws = islice(draws_of(batch, *run_arguments), horizon)
        arrays += [
            member_noise @ along
            for draw in draws
            for member_noise in drawn_by(observer, draw, attack.network)
        ]
    return np.concatenate(arrays, axis=1)


def drawn_by(observer: Observer, draw: Any, network: Network) -> list[np.ndarray]:
    """Return the noise of a round that members know.

    Members know the noise that they sampled, and the noise of each edge that ends at one of them.

    Parameters
    ----------
    observer : Observer
    draw : Draw
        Unit draws of the round.
    network : Network

    Returns
    -------
    list of ndarray, shape (runs, numbers, dim)
    """
    noise, members = getattr(draw, "noise", draw), list(observer.members)
    ends = np.isin(np.arange(network.n_agents), members)
    linked = np.triu(network.adjacency & (ends[:, None] | ends))
    arrays = noise if isinstance(noise, tuple) else (noise,)
    return [array[:, linked] if array.ndim == 4 else array[:, members] for array in arrays]


def _flat(values: np.ndarray) -> np.ndarray:
    return values.reshape(len(values), -1)


def seen_rows(
    observer: Observer, adjacency: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """Return the linear combinations of a round's messages that the observer receives.

    They are single messages or sums of messages, and the messages of its members.

    Parameters
    ----------
    observer : Observer
    adjacency : ndarray, shape (agents, agents)
    weights : ndarray, shape (agents, agents), optional
        Weights of secure sums.

    Returns
    -------
    ndarray, shape (rows, agents)
    """
    identity, members = np.eye(len(adjacency)), list(observer.members)
    if isinstance(observer, Eavesdropper):
        return identity
    is_other = np.where(np.isin(np.arange(len(identity)), members), 0.0, 1.0)
    if isinstance(observer, SecureSums):
        if weights is None:
            raise InvalidInput("observer", observer, "known weights of the sums that it receives")
        return np.vstack([identity[members], weights[members] * is_other])
    is_received = adjacency[members].any(0) & (is_other > 0)
    return np.vstack([identity[members], identity[is_received]])


def seen_links(observer: Observer, adjacency: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the linear combinations of messages of links that the observer receives.

    An eavesdropper receives the messages of all links, a member those that it sends and receives.
    Of a secure sum, a member receives its weighted sum.

    Parameters
    ----------
    observer : Observer
    adjacency, weights : ndarray, shape (agents, agents)

    Returns
    -------
    ndarray, shape (rows, agents, receivers)
    """
    linked = np.asarray(adjacency) > 0
    member = np.isin(np.arange(len(linked)), list(observer.members))
    if isinstance(observer, Eavesdropper):
        return _single(linked)
    sent, received = linked & member[:, None], linked & member & ~member[:, None]
    if not isinstance(observer, SecureSums):
        return _single(sent | received)
    sums = [np.where(received & (np.arange(len(linked)) == m), weights.T, 0.0)
            for m in observer.members]  # fmt: skip
    return np.concatenate([_single(sent), np.stack(sums)])


def _single(links: np.ndarray) -> np.ndarray:
    """Build one row per edge, [links, agents, receivers]."""
    rows = np.zeros((np.count_nonzero(links), *links.shape))
    rows[np.arange(len(rows)), *np.nonzero(links)] = 1.0
    return rows
