r"""Privacy loss to observers who receive a part of the messages.

Messages that are affine in the noise z and in the private values are a Gaussian vector, whose mean
moves by :math:`a` if the data of a target agent change. The view :math:`Bz` of an observer, with
the noise of its own agents removed, has the exact loss

.. math:: \mu^2 = \min\{\|\delta\|^2 : B\delta = a\} = a^\top (BB^\top)^+ a

in Gaussian differential privacy. It is a guarantee if private values are affine in the noise, too:
a finite sensitivity then implies that the linear part does not depend on records. In all other
cases the guarantee is the *causal bound*: the accountant's epsilon of the iterations whose messages
can still arrive.

The largest loss over the changes of a record is stated. If all records have the same Hessian, a
record changes all gradients by the same vector. Otherwise the changes of different iterations are
independent vectors up to the declared sensitivity, and a semidefinite program bounds the maximum.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse.csgraph import shortest_path

from private_consensus.common.errors import arguments, require
from private_consensus.core.algorithms.base import Algorithm, stack
from private_consensus.core.networks import Network
from private_consensus.privacy import Budget, account, gaussian_epsilon
from private_consensus.privacy.correlated_noise import correlation_maximum
from private_consensus.privacy.mechanisms import (
    CancellingLinks,
    Correlated,
    Exact,
    Gaussian,
    Laplace,
    Mechanism,
    SecureSum,
    Temporal,
)
from private_consensus.privacy.safe_digits import rounded_up

from .execution import calibrated_on_first_graph
from .feeding import Tilted, View, feed, unit_count
from .frozen import freeze

AGENT, SECURE, EAVESDROPPER = "agent", "secure sums", "eavesdropper"
FINAL, MEAN = "final models", "mean of final models"
KINDS = (AGENT, SECURE, EAVESDROPPER, FINAL, MEAN)
"""Observers: agents with the messages or the sums that they receive; an eavesdropper, who receives
every message; and observers of the final models, or of their mean, only."""
EXACT, CAUSAL = "exact", "causal bound"
LINEAR = (Gaussian, Correlated, SecureSum, Temporal, CancellingLinks)
"""Mechanisms whose output is linear in Gaussian noise."""

TOLERANCE = 1e-8
"""Relative tolerance of the least-squares problems, by which losses are rounded upwards."""
NEGLIGIBLE, SMALL = 1e-12, 1e-6
"""Singular values below NEGLIGIBLE count as 0, relative to the largest. If one lies between both
limits, rounding could hide an observation, and the causal bound is stated instead."""
AFFINE = 1e-9
"""Largest relative difference of an affine execution from its prediction."""
SIZES = (3.0, 1e9)
"""Sizes of the random noise with which executions are tested, in standard deviations: ordinary
noise, and noise that reaches every projection."""


class Loss(NamedTuple):
    """Privacy loss of a target agent to an observer, who is a coalition of members or an outsider.

    ``distance`` is the number of edges to the nearest member, None without members. ``rule`` is
    "exact" or "causal bound".
    """

    members: tuple[int, ...]
    target: int
    distance: int | None
    epsilon: float
    rule: str


@dataclass(frozen=True)
class ObserverResult:
    """Privacy losses of all agents to observers of one kind.

    Parameters
    ----------
    kind : str
        Kind of the observers, one of :data:`KINDS`.
    delta : float
        Delta of all guarantees.
    accounted : float
        Epsilon against the eavesdropper, by the accountant.
    losses : tuple of Loss
        One per observer and target agent.
    reason : str
        Reason why messages are not affine in Gaussian noise; empty if they are.
    """

    kind: str
    delta: float
    accounted: float
    losses: tuple[Loss, ...]
    reason: str = ""

    def summary(self) -> list[dict[str, Any]]:
        """Return the largest and the median epsilon by distance; a median is no guarantee."""
        rows = []
        for distance in sorted({loss.distance for loss in self.losses}, key=lambda d: d or 0):
            losses = sorted(x for x in self.losses if x.distance == distance)
            epsilons = sorted(loss.epsilon for loss in losses)
            rules = sorted({loss.rule for loss in losses})
            rows.append({
                "distance": distance, "pairs": len(losses), "largest": epsilons[-1],
                "median": epsilons[len(epsilons) // 2], "rule": " or ".join(rules),
            })  # fmt: skip
        return rows

    def __str__(self) -> str:
        accounted = rounded_up(self.accounted)
        lines = [
            f"observer: {self.kind}; delta = {self.delta:g}",
            f"epsilon against the eavesdropper, by the accountant: {accounted}",
        ]
        for row in self.summary():
            distance = "" if row["distance"] is None else f"at distance {row['distance']}, "
            lines.append(
                f"{distance}{row['pairs']} pairs: largest epsilon {rounded_up(row['largest'])}, "
                f"median {rounded_up(row['median'])} ({row['rule']})"
            )
        return "\n".join(lines + [f"not exact: {self.reason}"] * bool(self.reason))


@arguments.known_keywords
def observe(
    algorithm: Algorithm,
    problem: Any,
    network: Network,
    budget: Budget,
    horizon: int,
    *,
    kind: str = AGENT,
    members: Iterable[int] | None = None,
) -> ObserverResult:
    """Compute the privacy loss of each agent to observers who receive a part of the messages.

    Parameters
    ----------
    algorithm : Algorithm
        Algorithm, whose noise is calibrated to the budget.
    problem : Problem
        Objectives and data of the agents.
    network : Network
        Communication graph; the graph of the first run, if each run has a graph.
    budget : Budget
        Privacy budget of the whole run, against the eavesdropper.
    horizon : int
        Number of iterations.
    kind : {"agent", "secure sums", "eavesdropper", "final models", "mean of final models"}
        Messages that the observer receives.
    members : iterable of int, optional
        Agents of a coalition, who know their own noise. By default each agent is one observer;
        an outsider has no members.

    Returns
    -------
    ObserverResult

    Raises
    ------
    InvalidInput
        For invalid arguments.
    """
    noisy, network = calibrated_on_first_graph(algorithm, problem, network, budget, horizon)
    return Observed(noisy, problem, network, horizon).result(kind, budget.delta, members)


class Observed:
    """Executions of an algorithm whose noise is set, from which all losses are computed.

    They are those of the first run on one graph.
    """

    def __init__(self, algorithm: Algorithm, problem: Any, network: Network, horizon: int):
        self.algorithm, self.problem = stack([algorithm]), problem.repeated(1)
        self.network, self.horizon, self.agents = network, horizon, network.n_agents
        self.times = range(1, horizon + 1)
        self.mechanisms = algorithm.mechanisms(problem, network, horizon)
        self.accounted: dict[Any, float] = {}
        lengths = shortest_path(network.adjacency, unweighted=True)
        self.distances = np.minimum(lengths, self.agents).astype(int)

    def result(
        self, kind: str, delta: float, members: Iterable[int] | None = None
    ) -> ObserverResult:
        """Return the losses to one coalition, or to each observer of a kind."""
        arguments.choice("kind", kind, KINDS)
        if members is None:
            single = kind in (AGENT, SECURE)
            coalitions = [(v,) for v in range(self.agents)] if single else [()]
        else:
            coalitions = [tuple(arguments.whole("members", v, 0) for v in members)]
            expected = f"agents 0 to {self.agents - 1}"
            are_agents = max(coalitions[0], default=0) < self.agents
            is_needed = kind in (AGENT, SECURE) and not coalitions[0]
            require(are_agents and not is_needed, "members", members, expected)
        accounted = self._account(self.mechanisms.values(), self.horizon, delta)
        losses = [loss for c in coalitions for loss in self.losses(kind, c, delta)]
        return ObserverResult(kind, delta, accounted, tuple(losses), self.reason)

    def losses(self, kind: str, members: tuple[int, ...], delta: float) -> Iterator[Loss]:
        """Yield the losses of all agents that are not members."""
        exact, strangers = self._exact(kind, members), self._strangers(members)
        if exact is None:
            rule, epsilons = CAUSAL, [self._causal(kind, members, u, delta) for u in strangers]
        else:
            remaining = [self._unshared(name, members) for name in self.mechanisms]
            rule, largest = EXACT, self._account(remaining, self.horizon, delta)
            losses = gaussian_epsilon(exact[strangers] * (1 + TOLERANCE), delta)
            epsilons = np.minimum(losses, largest).tolist()
        for target, epsilon in zip(strangers, epsilons, strict=True):
            distance = min((int(self.distances[target, v]) for v in members), default=None)
            yield Loss(members, target, distance, epsilon, rule)

    def _strangers(self, members: tuple[int, ...]) -> list[int]:
        return [u for u in range(self.agents) if u not in members]

    # Executions.

    @cached_property
    def reason(self) -> str:
        """Reason why messages are not affine in Gaussian noise; empty if they are."""
        for name, mechanism in self.mechanisms.items():
            if not isinstance(mechanism, LINEAR):
                kinds = ", ".join(kind.__name__ for kind in LINEAR)
                return f"{name!r} is of type {type(mechanism).__name__}, and not {kinds}"
            if not all((self._declared(name, t, "scale") > 0).all() for t in self.times):
                return f"{name!r} has no noise"
            sizes = [self._declared(name, t) for t in self.times]
            if not (mechanism.proven and np.isfinite(sizes).all()):
                return f"the sensitivity of {name!r} is not proven"
        if self.leaves_network:
            return "values reach agents outside the network"
        if self.influence[0].samples:
            return "messages depend on public random numbers, of which the worst ones count"
        return "" if self.is_affine else "messages or private values are not affine in the noise"

    @cached_property
    def noise(self) -> dict[tuple[str, int], slice]:
        """Columns of the unit vectors of noise of each mechanism and iteration."""
        result, first = {}, 0
        for name, mechanism in self.mechanisms.items():
            count = unit_count(mechanism, self.problem)
            for t in self.times:
                result[name, t] = slice(first, first := first + count)
        return result

    @cached_property
    def random(self) -> np.ndarray:
        """Random noise [columns, dim] of standard deviation 1, with which executions are tested."""
        columns = max(columns.stop for columns in self.noise.values())
        return np.random.default_rng(0).standard_normal((columns, self.problem.dim))

    @cached_property
    def view(self) -> View:
        """Execution of each unit of noise, of each change, of random noise and without noise.

        The changes are those of all gradients of one agent by a constant, then of each query.
        """

        def units(name: str, t: int, unit: np.ndarray) -> None:
            columns = self.noise[name, t]
            flat = unit.reshape(len(unit), columns.stop - columns.start, -1)
            flat[columns, :, 0] = np.eye(flat.shape[1])
            flat[-3:-1] = np.multiply.outer(SIZES, self.random[columns])

        def shift(name: str, t: int, change: np.ndarray) -> None:
            first = -3 - (self.horizon - t + 1) * self.agents
            change[first : first + self.agents, :, 0] = np.diag(self._declared(name, t))

        count = len(self.random) + (1 + self.horizon) * self.agents + 3
        tilted = self._tilt(count, len(self.random))
        return feed(self.algorithm, tilted, self.network, self.horizon, count, units, shift=shift)

    @cached_property
    def is_affine(self) -> bool:
        """True if messages, queries and final models are affine in the noise.

        The random runs are then sums of the units of noise, in each coordinate. Since sensitivities
        are finite, the linear part does not depend on records.
        """
        messages = [message.values for message in self.view.messages]
        for values in (*messages, *self.view.queries.values(), self.view.final):
            if values is None or len(values) == 1:
                continue
            flat = (values - values[-1]).reshape(len(values), -1, values.shape[-1])
            units = flat[: len(self.random), :, 0]
            response = np.einsum("kr,kd->rd", units, self.random, optimize=True)
            for size, actual in zip(SIZES, flat[-3:-1], strict=True):
                predicted = size * response
                scale = np.abs(values[-1]).max(initial=0.0) + np.abs(predicted).max(initial=0.0)
                if not np.abs(actual - predicted).max(initial=0.0) <= AFFINE * scale:
                    return False
        return True

    @cached_property
    def is_constant(self) -> bool:
        """True if replacing a record is a constant change of gradients, and nothing else.

        With outputs that do not depend on queries, this change then moves each query by its
        declared sensitivity. A query that moves less depends on records in another way, or the
        relation protects more than a record.
        """
        if self.problem.record_curvature != 0:
            return False
        count, tilted = self.agents + 1, self._tilt(self.agents + 1, 0)
        setting = self.algorithm, tilted, self.network, self.horizon, count
        queries = feed(*setting, lambda name, t, unit: None, ignores_queries=True).queries
        agents = np.arange(self.agents)
        for (name, t), query in queries.items():
            if len(query) == 1:
                return False
            moved = np.linalg.norm(query[agents, agents] - query[-1, agents], axis=-1)
            declared = self._declared(name, t)
            if t > 1 and isinstance(self.mechanisms[name], CancellingLinks):
                # The state keeps earlier changes, which its sensitivity adds up.
                declared = declared - self._declared(name, t - 1)
            # Written so that NaN is a difference.
            if not np.all(np.abs(moved - declared) <= SMALL * declared):
                return False
        return True

    def _declared(self, name: str, t: int, quantity: str = "sensitivity") -> np.ndarray:
        """Return the declared sensitivity, or the scale, of each agent in an iteration."""
        mechanism = self.mechanisms[name]
        declared = mechanism.at(getattr(mechanism, quantity), t)
        return np.broadcast_to(declared, (1, 1, self.agents, 1)).ravel()

    def _tilt(self, count: int, first: int) -> Tilted:
        """Return a problem in whose runs from ``first`` on all gradients of one agent change."""
        change = np.zeros((count, self.agents, self.problem.dim))
        sizes = self.problem.record_change("l2") * np.eye(self.agents)
        change[first : first + self.agents, :, 0] = sizes
        return Tilted(self.problem, change)

    @cached_property
    def influence(self) -> tuple[View, np.ndarray]:
        """Execution with the output of one iteration and agent changed per run.

        The array has the number of messages after the release of each iteration.
        """
        random = np.random.default_rng(1)

        def shift(name: str, t: int, change: np.ndarray) -> None:
            agents, runs = np.arange(self.agents), np.arange(self.agents) + (t - 1) * self.agents
            if change.shape[1] == self.agents:
                change[runs, agents] = random.standard_normal((self.agents, *change.shape[2:]))

        count = self.horizon * self.agents + 1
        setting = self.algorithm, self.problem.repeated(count), self.network, self.horizon, count
        view = feed(*setting, shift=shift, after=True)
        times = np.array([message.released for message in view.messages])
        return view, np.array([int((times >= t).sum()) for t in self.times])

    @cached_property
    def leaves_network(self) -> bool:
        """True if an output changes the final model of an agent that no message reaches."""
        view, hops = self.influence
        if self.has_sum or view.final is None or len(view.final) == 1:
            return False
        difference = np.abs(view.final[:-1] - view.final[-1]).max(-1)
        changed = difference > AFFINE * (1 + np.abs(view.final).max())
        changed = changed.reshape(self.horizon, self.agents, self.agents)
        return bool((changed & (hops[:, None, None] < self.distances)).any())

    @property
    def has_sum(self) -> bool:
        """True if a secure protocol sends a sum to all agents."""
        return any(isinstance(m, SecureSum) for m in self.mechanisms.values())

    # Views.

    def _received(self, kind: str, members: list[int]) -> Iterator[np.ndarray]:
        """Yield the values that an observer receives, [runs, ..., dim]."""
        final = self.view.final
        if kind in (FINAL, MEAN) or not self.view.messages:
            if final is not None:
                yield final.mean(1, keepdims=True) if kind == MEAN else final
            return
        adjacency = self.network.adjacency
        neighbours = adjacency[:, members] if kind != EAVESDROPPER else adjacency
        for message in self.view.messages:
            values = message.values
            if message.is_public:
                yield values
            elif kind == SECURE and message.received.shape[1:] == values.shape[-2:]:
                yield message.received[:, members]
            elif values.ndim == 3:
                yield values[:, neighbours.any(1)]
            else:
                receives = np.isin(range(self.agents), members) | (kind == EAVESDROPPER)
                yield values[:, adjacency & receives]

    def _matrix(self, kind: str, members: tuple[int, ...]) -> np.ndarray:
        """Return the response of an observer's view to each run, [rows, runs]."""
        rows = [values[..., 0] for values in self._received(kind, list(members))]
        rows = [(x - x[-1]).reshape(len(x), -1) for x in rows if len(x) > 1]
        return np.concatenate(rows, axis=1).T if rows else np.zeros((0, 0))

    def _known(self, name: str, members: tuple[int, ...]) -> np.ndarray:
        """Return True for the units of noise of an iteration that a member knows."""
        mechanism = self.mechanisms[name]
        if isinstance(mechanism, Correlated):
            root = np.reshape(mechanism.root, (self.agents, -1))
            return (root[list(members)] != 0).any(0)
        is_member = np.isin(range(self.agents), members)
        return np.repeat(is_member, unit_count(mechanism, self.problem) // self.agents)

    # Losses.

    def _exact(self, kind: str, members: tuple[int, ...]) -> np.ndarray | None:
        """Return mu of each agent if it is a guarantee, else None."""
        if self.reason:
            return None
        known, first = [self._known(name, members) for name, _ in self.noise], len(self.random)
        matrix = self._matrix(kind, members)
        if not len(matrix):
            return np.zeros(self.agents)
        if self.is_constant:
            signals = matrix[:, first : first + self.agents, None]
        else:
            signals = matrix[:, -3 - self.horizon * self.agents : -3]
            signals = signals.reshape(-1, self.horizon, self.agents).transpose(0, 2, 1)
        forms = _forms(matrix[:, :first][:, ~np.concatenate(known)], signals)
        if forms is None:
            return None
        return np.sqrt([np.inf if f is None else correlation_maximum(f) for f in forms])

    def _causal(self, kind: str, members: tuple[int, ...], target: int, delta: float) -> float:
        """Return the accountant's epsilon of the iterations that can still reach the observer."""
        if np.isinf(self._account(self.mechanisms.values(), self.horizon, delta)):
            return np.inf
        view, hops = self.influence
        rounds, is_public = self.horizon, any(message.is_public for message in view.messages)
        reaches_all = self.has_sum or self.leaves_network or is_public or not view.messages
        if kind in (AGENT, SECURE) and not reaches_all:
            rounds = int((hops >= self.distances[target, list(members)].min()).sum())
        remaining = [self._unshared(name, members, target) for name in self.mechanisms]
        return self._account(remaining, rounds, delta)

    def _account(self, mechanisms: Iterable[Mechanism], rounds: int, delta: float) -> float:
        releases = [release for m in mechanisms for release in m.releases(rounds)]
        key = freeze((releases, delta))
        if key not in self.accounted:
            guarantee = account(releases, delta)
            self.accounted[key] = float(guarantee.epsilon) if guarantee.proven else np.inf
        return self.accounted[key]

    def _unshared(self, name: str, members: tuple[int, ...], target: int | None = None) -> Any:
        """Return the mechanism of all agents or one agent without the noise that members know."""
        mechanism = self.mechanisms[name]
        if isinstance(mechanism, SecureSum):
            return replace(mechanism, agents=self.agents - len(members))
        if isinstance(mechanism, Correlated):
            root = np.reshape(mechanism.root, (self.agents, -1))[self._strangers(members)]
            root = root[:, ~self._known(name, members)]
            # Members who know the noise can remove it from a combination of messages.
            if np.linalg.matrix_rank(root, rtol=SMALL) < len(root):
                return Exact(mechanism.sensitivity)
            return replace(mechanism, root=root)
        if target is None or type(mechanism) not in (Gaussian, Laplace):
            return mechanism
        sensitivity, scale = (
            [self._declared(name, t, quantity)[target] for t in self.times]
            for quantity in ("sensitivity", "scale")
        )
        return replace(mechanism, sensitivity=sensitivity, scale=scale)


def _forms(noise: np.ndarray, signals: np.ndarray) -> list[np.ndarray | None] | None:
    """Return the quadratic form of the changes of each target agent.

    ``noise`` is the response of the view to unknown noise, [rows, unit vectors], and ``signals``
    that to the changes of an agent, [rows, agents, changes]. None stands in place of a form if no
    noise hides the change, and in place of the list if the problem is ill-conditioned.
    """
    basis, singular, _ = np.linalg.svd(noise, full_matrices=False)
    relative = singular / singular.max(initial=1e-300)
    if ((relative > NEGLIGIBLE) & (relative < SMALL)).any():
        return None
    rank = int((relative >= SMALL).sum())
    whitened = np.einsum("ri,ruk->uik", basis[:, :rank] / singular[:rank], signals, optimize=True)
    projected = np.einsum(
        "ri,i,uik->ruk", basis[:, :rank], singular[:rank], whitened, optimize=True
    )
    misfit = np.linalg.norm(projected - signals, axis=0)
    hidden = misfit <= 1e-9 * np.linalg.norm(signals, axis=0)
    return [
        form.T @ form if is_hidden.all() else None
        for form, is_hidden in zip(whitened, hidden, strict=True)
    ]
