r"""Mechanisms: the only way from a private value to a message.

An algorithm declares its mechanisms once and passes each private value, the *query*, through one
of them. The declaration is executed (:meth:`Mechanism.output`), accounted
(:meth:`Mechanism.releases`) and audited (:meth:`Mechanism.cost`), so that the scale that runs is
the scale that is accounted.

Arrays are ``[settings, runs, agents, dim]``. Sensitivity and scale are *lists over iterations* of
values that broadcast to ``[settings, runs, agents, 1]``, or one such value for all iterations; an
array never means time. The set of mechanisms is closed: an audit refuses subclasses from outside of
this package, whose cost could be stated wrongly.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from private_consensus.common.errors import arguments, require

from .cancelling_noise import hiding_energy
from .correlated_noise import cyclic_sensitivity
from .objective_perturbation import PerturbedObjective
from .releases import Release

UNBOUNDED = "the problem states no bound on a record's gradient"


EXCESS = 1e-3
"""Largest relative excess of dominating losses over the largest sum of the losses of an agent."""
ROUNDING = 1e-13
"""Bound on the rounding error of singular values, relative to the largest one."""


COMPARED = 20
"""Largest number of coordinates for which the Jacobian term of an objective is computed."""
MISFIT = 1e-4
"""Largest error of a solver in units of the noise, relative to the norm of the noise."""


def sizes_of(shape: tuple[str | int, ...], problem: Any) -> tuple[int, ...]:
    """Return a shape in which "agents" and "dim" are replaced by the sizes of a problem."""
    sizes = {"agents": problem.n_agents, "dim": problem.dim}
    return tuple(sizes[size] if isinstance(size, str) else size for size in shape)


class Recorded(NamedTuple):
    """Release of an execution: name, iteration, evidence of the private value, noise and output."""

    name: str
    t: int
    evidence: Any
    unit: Any
    output: Any
    where: np.ndarray | None = None


@dataclass(frozen=True)
class Mechanism(arguments.KnownKeywords, ABC):
    """Base of all mechanisms.

    Parameters
    ----------
    sensitivity : float, ndarray or list
        Largest change of an agent's query by one record, in the norm of the noise.
    scale : float, ndarray or list
        Scale of the noise, in the unit of the query; 0 for no noise.
    stream : str
        Name of the noise stream; the main stream by default. Each mechanism of an algorithm needs a
        stream of its own, since equal streams have equal noise.
    shape : tuple
        Shape of the unit noise per run: ("agents", k), or (k,) for one query of all records. The
        length k is "dim" or a number; the sensitivity is the norm over these k entries.
    times : collection of int, optional
        Iterations in which values are released; None for all.
    touched : int, optional
        Largest number of releases that one change affects; None for all. An audit compares the sum
        of the costs of all releases with the sum of that many losses.
    proven : bool
        True if the sensitivity is proven.
    note : str
        Reason why the sensitivity is not proven, or an assumption.
    """

    sensitivity: Any = 0.0
    scale: Any = 0.0
    _: KW_ONLY
    stream: str = ""
    shape: tuple[str | int, ...] = ("agents", "dim")
    times: Collection[int] | None = None
    touched: int | None = None
    proven: bool = True
    note: str = ""

    law: ClassVar[str] = ""
    pure: ClassVar[bool] = False
    """True if the loss is a pure epsilon, so that losses of several releases can be added."""
    unit: ClassVar[Any] = None
    norm_order: ClassVar[int] = 2
    takes_array: ClassVar[bool] = True
    """True if the query is an array in the shape of the unit noise."""
    separates_agents: ClassVar[bool] = True
    """True if the cost of each agent depends on the query of this agent only."""

    def __post_init__(self):
        kind = type(self).__name__
        expected = (
            "a number, an array that broadcasts to [settings, runs, agents, 1], or a list with one "
            "of them per iteration"
        )
        for key in ("sensitivity", "scale"):
            stated = getattr(self, key)
            for value in stated if isinstance(stated, list) else [stated]:
                shape = np.shape(value)
                fits = shape[-1:] in ((), (1,))
                require(fits, f"{kind}.{key}", f"an array of shape {shape}", expected)
        query = self.query_shape
        one_axis = len(query) == 1 and query != ("agents",)
        fits = one_axis or (len(query) == 2 and query[0] == "agents")
        # The sensitivity is a norm over the last axis, which has to be the whole query of an agent.
        expected = '("agents", k), with the k entries of an agent in one axis, or (k,)'
        require(fits, f"{kind}.shape", query, expected)

    @property
    def query_shape(self) -> tuple[str | int, ...]:
        """Shape of the query per run; that of the unit noise unless the noise is combined."""
        return self.shape

    # Execution.

    def units(self, problem: Any, streams: Any) -> Iterator[Any]:
        """Return the unit noise of all iterations, one array [runs, *shape] per iteration.

        ``streams`` are the random streams of all runs.
        """
        shape = sizes_of(self.shape, problem)
        return streams.sequence("noise", self.unit, shape, self.stream)

    def memory(self) -> dict[str, np.ndarray] | None:
        """Return the initial memory of a mechanism that depends on its earlier outputs, or None.

        Arrays of the memory have a leading settings axis after the first release.
        """
        return None

    @abstractmethod
    def output(self, query: Any, unit: Any, t: int) -> Any:
        """Return the released value of iteration t, counted from 1.

        ``query`` is the private value, usually [settings, runs, agents, dim], and ``unit`` the unit
        noise, [runs, agents, dim].
        """

    def unaccounted(self, unit: Any) -> str:
        """Return a reason why the accountant does not cover a unit noise; empty if it does."""
        return ""

    def uses(self, recorded: Recorded, row: int) -> Any:
        """Return True for agents whose query may depend on a record, by the index of its row."""
        return True

    def evidence(self, query: Any, unit: Any, output: Any, t: int) -> Any:
        """Return arrays that state the private value of a release, for the comparison by a replay.

        They are sent to another process, so that functions are replaced by their values. By
        default, they are a copy of the query.
        """
        return np.array(query)

    @property
    def noise_streams(self) -> tuple[str, ...]:
        """Names of the noise streams, which no other mechanism may use."""
        return () if self.unit is None else (self.stream,)

    # Accounting.

    def at(self, values: Any, t: int) -> Any:
        """Return the value of iteration t."""
        if not isinstance(values, list):
            return values
        actual = f"a list of {len(values)} values"
        require(1 <= t <= len(values), "mechanism", actual, f"a value for iteration {t}")
        return values[t - 1]

    def unit_scale(self, t: int) -> Any:
        """Return the scale of iteration t in the unit of the sensitivity."""
        return self.at(self.scale, t)

    @property
    def factor(self) -> float:
        """Ratio of the loss to sensitivity over scale; above 1 if noise is correlated."""
        return 1.0

    def loss(self, t: int) -> np.ndarray:
        """Return the declared loss of iteration t: sensitivity over scale, times the factor."""
        sensitivity = np.asarray(self.at(self.sensitivity, t), float)
        return self.factor * self.loss_of(sensitivity, self.unit_scale(t))

    def released_times(self, horizon: int) -> list[int]:
        """Return the iterations of a run in which values are released."""
        times = range(1, int(horizon) + 1)
        return [t for t in times if self.times is None or t in self.times]

    def levels(self, horizon: int) -> tuple[np.ndarray, np.ndarray]:
        """Return sensitivity and scale of the agent with the largest loss, [releases].

        The sensitivity includes :attr:`factor`. If one change touches fewer releases, those with
        the largest losses.
        """
        times = self.released_times(horizon)
        columns = [(self.at(self.sensitivity, t), self.unit_scale(t)) for t in times]
        if any(np.ndim(value) for pair in columns[:1] for value in pair):
            columns = [np.broadcast_arrays(*pair) for pair in columns]
        stacked = np.array(columns, float).reshape(len(times), 2, -1)
        sensitivity, scale = stacked[:, 0], stacked[:, 1]
        losses = self.loss_of(sensitivity, scale)
        worst = losses.argmax(1)[:, None]
        sensitivity, scale = (np.take_along_axis(a, worst, 1)[:, 0] for a in (sensitivity, scale))
        largest = losses.max(1, initial=0.0)
        if self.touched is not None:
            selected = np.sort(np.argsort(-largest, kind="stable")[: self.touched])
            return self.factor * sensitivity[selected], scale[selected]
        if self.pure and largest.sum() > losses.sum(0).max(initial=0.0) * (1 + EXCESS):
            # No agent has the largest loss in every iteration.
            sensitivity = dominating(losses)[0] * scale
        return self.factor * sensitivity, scale

    def loss_of(self, sensitivity: np.ndarray, scale: np.ndarray) -> np.ndarray:
        """Return the ratio of sensitivity and scale, 0 without a change."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(sensitivity == 0, 0.0, sensitivity / scale)

    def releases(self, horizon: int) -> list[Release]:
        """Return the releases of all iterations of the agent with the largest loss."""
        if not self.released_times(horizon):
            return []
        sensitivity, scale = self.levels(horizon)
        if not np.all(scale > 0):
            return [Release("exact", sensitivity=float(np.max(sensitivity)), scale=0.0)]
        return [Release(self.law, sensitivity, scale, proven=self.proven, note=self.note)]

    # Audit.

    def norm(self, change: np.ndarray) -> np.ndarray:
        """Return the norm of a change of unit noise, over the last axis, which is kept."""
        return np.linalg.norm(change, self.norm_order, axis=-1, keepdims=True)

    def change(self, query: Any, recorded: Recorded, t: int) -> np.ndarray:
        """Return the change of the unit noise that gives the recorded output on other data.

        ``query`` is the private value on the other data.
        """
        return (recorded.evidence - query) / self.unit_scale(t)

    def cost(self, query: Any, recorded: Recorded, t: int, earlier: list) -> np.ndarray:
        """Return the loss of the recorded output on a pair of data sets, as :meth:`loss` counts it.

        ``query`` is the private value on the other data. ``earlier`` contains the changes of the
        earlier iterations, for noise that is correlated over iterations. The result broadcasts
        against [settings, runs, agents, 1].
        """
        return self.norm(self.change(query, recorded, t))

    def replay(self, query: Any, recorded: Recorded, t: int) -> Any:
        """Return the value that a replay on other data continues with: the recorded output."""
        return recorded.output


def dominating(losses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return losses that dominate those of all agents, and the losses of one agent.

    This agent has the largest sum of losses.

    The argument has shape [times, agents], both results [times]. The first result dominates at
    every delta. Composition does not depend on the order of the losses, and a mechanism with some
    loss also satisfies every larger loss. After sorting by size, the k-th dominating loss is the
    largest k-th loss of any agent. If these losses exceed the largest sum of an agent, the largest
    ones are merged into one: Laplace noise on several numbers protects all of them at least as well
    as noise on one number that changes by the sum of their changes (:mod:`..privacy.accounting`).
    """
    ranked = -np.sort(-losses, axis=0)
    largest_ranked, together = ranked.max(-1), ranked.cumsum(0).max(-1)
    remainder = np.append(largest_ranked[::-1].cumsum()[::-1][1:], 0.0)
    merged_count = int(np.argmax(together + remainder <= (1 + EXCESS) * together[-1])) + 1
    costliest = losses.sum(0).argmax()
    merged = together[merged_count - 1], ranked[:merged_count, costliest].sum()
    order = (-losses[:, costliest]).argsort()
    largest, agent_losses = np.zeros((2, len(losses)))
    largest[order] = [merged[0], *np.zeros(merged_count - 1), *largest_ranked[merged_count:]]
    agent_losses[order] = [
        merged[1],
        *np.zeros(merged_count - 1),
        *ranked[merged_count:, costliest],
    ]
    return largest, np.minimum(agent_losses, largest)  # sums may differ by rounding


# Additive noise.


@dataclass(frozen=True)
class Additive(Mechanism):
    """Independent noise of one distribution, added to the query of each agent."""

    def output(self, query, unit, t):
        return query + self.at(self.scale, t) * unit


class Gaussian(Additive):
    """Gaussian noise; l2 sensitivity, scale is the standard deviation of each coordinate."""

    law, unit = "gaussian", "normal"


class Laplace(Additive):
    """Laplace noise; l1 sensitivity, scale is b of the density :math:`e^{-|y|/b}/(2b)`."""

    law, unit, norm_order, pure = "laplace", "laplace", 1, True


def gamma_norm_unit(generator: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    r"""Return noise of density proportional to :math:`e^{-\|b\|_2}` in the last axis.

    In polar coordinates the density of the radius is :math:`r^{d-1}e^{-r}`: Gamma with shape d,
    independent of a uniform direction (Chaudhuri, Monteleoni, Sarwate, JMLR 2011).
    """
    direction = generator.standard_normal(shape)
    radius = generator.gamma(shape[-1], size=shape[:-1])
    return radius[..., None] * direction / np.linalg.norm(direction, axis=-1, keepdims=True)


class GammaNorm(Additive):
    r"""Noise of density proportional to :math:`e^{-\|b\|_2/s}`; l2 sensitivity, scale is s."""

    law, unit = "gamma_norm", staticmethod(gamma_norm_unit)


ADDITIVE = {kind.law: kind for kind in (Gaussian, Laplace, GammaNorm)}
"""Mechanisms of independent additive noise by the name of the distribution."""


# Values without noise.


@dataclass(frozen=True)
class Exact(Mechanism):
    """Value that is released without noise; the loss is infinite unless the sensitivity is 0.

    Parameters
    ----------
    reason : str
        Reason why the value is released, for readers of the guarantee.
    """

    sensitivity: Any = np.inf
    reason: str = ""

    def units(self, problem, streams):
        return iter(lambda: None, 0)

    def output(self, query, unit, t):
        return np.array(query, order="C")

    def releases(self, horizon):
        sensitivity = float(np.max(self.levels(horizon)[0], initial=0.0))
        return [Release("exact", sensitivity, 0.0, note=self.reason)]

    def loss_of(self, sensitivity, scale):
        return np.where(sensitivity > 0, np.inf, 0.0)

    def cost(self, query, recorded, t, earlier):
        same = np.all(np.equal(query, recorded.evidence), axis=-1, keepdims=True)
        return np.where(same, 0.0, np.inf)


class Unproven(Exact):
    """Value whose privacy is an assumption of the paper; it has no guarantee."""

    def releases(self, horizon):
        return [Release("exact", proven=False, note=self.reason)]


# Correlated noise of agents.


@dataclass(frozen=True)
class Correlated(Gaussian):
    r"""Gaussian noise that is correlated between agents: scale times ``root`` times unit noise.

    The sensitivity is that of a single agent. The loss is the Mahalanobis norm of the largest
    change of one agent, :math:`\Delta\,\sqrt{\max_i (RR^\top)^{-1}_{ii}}/s`.

    Parameters
    ----------
    root : ndarray, shape (agents, k)
        R with the covariance :math:`RR^\top` of unit noise between the agents. Its rank is the
        number of agents, since a combination of the queries has no noise otherwise.
    """

    root: Any = None
    separates_agents: ClassVar[bool] = False

    def __post_init__(self):
        super().__post_init__()
        root, expected = self.root, "an array ([runs,] agents, k) with the rank agents"
        root = arguments.array("Correlated.root", root, expected, np.isfinite)
        fits = root.ndim > 1 and (np.linalg.matrix_rank(root, rtol=ROUNDING) == root.shape[-2])
        stated = f"an array of shape {root.shape} with a smaller rank"
        require(bool(np.all(fits)), "Correlated.root", stated, expected)

    def output(self, query, unit, t):
        return query + self.at(self.scale, t) * (self.root @ unit)

    @cached_property
    def factor(self):
        # Reduced singular values bound the inverse from above, also if it is ill-conditioned.
        vectors, singular, _ = np.linalg.svd(self.root, full_matrices=False)
        reduced = singular - ROUNDING * singular[..., :1]
        return float(np.sqrt((vectors**2 / reduced[..., None, :] ** 2).sum(-1).max()))

    query_shape = ("agents", "dim")

    def cost(self, query, recorded, t, earlier):
        moved = self.change(query, recorded, t)
        covariance = self.root @ np.swapaxes(self.root, -1, -2)
        square = (moved * np.linalg.solve(covariance, moved)).sum((-2, -1), keepdims=True)
        return np.sqrt(np.maximum(square, 0.0))


@dataclass(frozen=True)
class SecureSum(Gaussian):
    r"""Mean of the noisy queries of all agents, of which only the mean leaves a secure protocol.

    Parameters
    ----------
    agents : int
        Number N of agents, each of which adds noise of ``scale`` to its query, before the mean;
        the sensitivity is that of a query. The sum has scale :math:`\sqrt N` times as large.
    """

    agents: int = 1
    separates_agents: ClassVar[bool] = False

    def output(self, query, unit, t):
        noisy = super().output(query, unit, t)
        return np.broadcast_to(noisy.mean(-2, keepdims=True), noisy.shape)

    def units(self, problem, streams):
        actual, expected = f"agents = {self.agents}", f"{problem.n_agents}, those of the problem"
        require(self.agents == problem.n_agents, "SecureSum", actual, expected)
        return super().units(problem, streams)

    @property
    def factor(self):
        return 1.0 / np.sqrt(self.agents)

    def change(self, query, recorded, t):
        difference = recorded.evidence.sum(-2, keepdims=True) - query.sum(-2, keepdims=True)
        return difference / (self.at(self.scale, t) * np.sqrt(self.agents))


@dataclass(frozen=True)
class Temporal(Gaussian):
    r"""Gaussian noise that is correlated over iterations by a causal filter.

    Parameters
    ----------
    filter : ndarray, shape (horizon, horizon)
        Lower triangular matrix :math:`C^{-1}`, whose row t weights the unit noise of the
        iterations up to t.
    period : int
        Number of iterations between two uses of a record; 1 if each iteration uses all records.
    """

    filter: Any = None
    period: int = 1

    def __post_init__(self):
        super().__post_init__()
        expected = "a lower triangular matrix of finite numbers with a positive diagonal"
        rows = arguments.array("Temporal.filter", self.filter, expected, np.isfinite)
        is_square = rows.ndim == 2 and rows.shape[0] == rows.shape[1]
        is_causal = is_square and np.all(np.diagonal(rows) > 0) and not np.triu(rows, 1).any()
        require(bool(is_causal), "Temporal.filter", self.filter, expected)

    def units(self, problem, streams):
        history: list[np.ndarray] = []
        for unit in super().units(problem, streams):
            history.append(unit)
            yield tuple(history)

    def output(self, query, unit, t):
        drawn = np.stack([np.broadcast_to(noise, query.shape) for noise in unit], axis=-1)
        return query + self.at(self.scale, t) * (drawn @ self.filter[t - 1, :t])

    @cached_property
    def factor(self):
        r"""Largest norm of :math:`C\Delta`; a record changes its iterations by at most 1 each."""
        inverse = solve_triangular(self.filter, np.eye(len(self.filter)), lower=True)
        return cyclic_sensitivity(inverse, self.period) * (1 + 1e-9)

    def levels(self, horizon):
        # The whole sequence is one release.
        sensitivity, scale = super().levels(horizon)
        largest = slice(k := int(self.loss_of(sensitivity, scale).argmax()), k + 1)
        return sensitivity[largest], scale[largest]

    def loss(self, t):
        times = range(1, len(self.filter) + 1)
        return np.max([super(Temporal, self).loss(s) for s in times], axis=0)

    def cost(self, query, recorded, t, earlier):
        # The changes so far, in units of white noise.
        earlier.append(self.change(query, recorded, t))
        white = np.linalg.solve(self.filter[:t, :t], np.reshape(earlier, (t, -1)))
        return np.linalg.norm(white.reshape(t, *query.shape), axis=(0, -1))[..., None]


@dataclass(frozen=True)
class CancellingLinks(Gaussian):
    r"""Noisy messages on all edges, with noise whose weighted sum at the sender is 0.

    The query is a vector per agent; the output has one vector per pair of agents, 0 without an
    edge. The vector of an agent for itself is hidden: a replay returns that of the other data, so
    that messages are ``np.where(np.eye(agents)[..., None] == 1, 0.0, output)``.
    With Y white noise, :math:`Z_{a\to v} = Y_{a\to v} - \sum_j w_{aj} Y_{a\to j} / (d_a w_{av})`.

    Parameters
    ----------
    mixing : ndarray, shape ([runs,] agents, agents)
        Mixing matrix w.
    """

    mixing: Any = None

    def output(self, query, unit, t):
        weights = np.asarray(self.mixing)[..., None]
        members = (weights > 0).astype(float)
        sums = (weights * members * unit).sum(-2, keepdims=True)
        sizes = members.sum(-2, keepdims=True)
        shares = np.divide(members, sizes * weights, out=np.zeros_like(weights), where=weights > 0)
        scale = np.asarray(self.at(self.scale, t))[..., None]
        return members * (query[..., None, :] + scale * (members * unit - shares * sums))

    @cached_property
    def factor(self):
        matrices = np.reshape(self.mixing, (-1, *np.shape(self.mixing)[-2:]))
        return float(np.sqrt(max(map(hiding_energy, matrices))))

    query_shape = ("agents", "dim")

    def cost(self, query, recorded, t, earlier):
        return super().cost(query, recorded, t, earlier) * self.factor

    def replay(self, query, recorded, t):
        # The other messages are as recorded, so that the own message takes the whole difference.
        # They are compared bit by bit: only a sum with -0.0 keeps the sign of a zero.
        own_weights = np.diagonal(self.mixing, axis1=-2, axis2=-1)[..., None]
        difference = ((query - recorded.evidence) / own_weights)[..., None, :]
        to_itself = np.eye(query.shape[-2], dtype=bool)[..., None]
        return recorded.output + np.where(to_itself, difference, -0.0)


# Objective perturbation.


class Objective(NamedTuple):
    """Query of objective perturbation: a strongly convex objective f.

    ``solve(b)`` returns the minimiser of f(x) + b'x, [settings, runs, agents, dim];
    ``gradient(x)`` that of f.
    """

    solve: Callable[..., np.ndarray]
    gradient: Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class ObjectivePerturbation(Mechanism):
    r"""Noise in the linear term of an objective whose exact minimiser is released.

    The output x determines the noise: it is :math:`-\nabla f(x)`. The loss is that of the change of
    the gradient at x, and the Jacobian term :math:`|\ln\det\nabla^2 f(x) - \ln\det\nabla^2 f'(x)|`.

    Parameters
    ----------
    distribution : {"gaussian", "laplace", "gamma_norm"}
        Distribution of the noise.
    jacobian : float, ndarray or list
        Bound on the Jacobian term, per iteration.
    weight : float, ndarray or list
        Factor of the noise in the linear term: -D for noise of the centre of a penalty D.
    kappa : float, optional
        Largest ratio of the curvature of a record to that of the objective, for a generalised
        linear model whose loss has a derivative of one sign per record. The loss of Gaussian noise
        is then proven by Rényi divergences (:class:`.PerturbedObjective`).
    """

    distribution: str = "gaussian"
    jacobian: Any = 0.0
    weight: Any = 1.0
    kappa: float | None = None
    takes_array: ClassVar[bool] = False

    law = property(lambda self: self.distribution)  # ty: ignore
    unit = property(lambda self: ADDITIVE[self.distribution].unit)
    norm_order = property(lambda self: ADDITIVE[self.distribution].norm_order)  # ty: ignore

    def unit_scale(self, t):
        return np.abs(self.at(self.weight, t) * self.at(self.scale, t))

    def output(self, query, unit, t):
        return query.solve(self.at(self.scale, t) * unit)

    def loss(self, t):
        jacobian = self.at(self.jacobian, t) if self.kappa is None else np.log1p(self.kappa)
        return super().loss(t) + jacobian

    def minimiser(self, recorded: Recorded) -> np.ndarray:
        """Return the exact minimiser on the recorded data."""
        return recorded.output

    def evidence(self, query, unit, output, t):
        return query.gradient(output), log_determinant(query, output)

    def change(self, query, recorded, t):
        # Two gradients at one point: an active constraint changes both by the same multiplier.
        gradient = recorded.evidence[0]
        return (gradient - query.gradient(self.minimiser(recorded))) / self.unit_scale(t)

    def total(self, change: np.ndarray, query: Any, recorded: Recorded, t: int) -> Any:
        """Return the norm of a change of noise plus the change of the log-determinant.

        If the log-determinant takes too long to compute, its bound is added where noise changes.
        """
        norm, x = self.norm(change), self.minimiser(recorded)
        if x.shape[-1] > COMPARED:
            bound = self.loss(t) - Mechanism.loss(self, t)
            return norm + np.where(norm > 0, bound, 0.0)
        return norm + np.abs(log_determinant(query, x) - recorded.evidence[1])

    def cost(self, query, recorded, t, earlier):
        change = self.change(query, recorded, t)
        is_explained = self.explains(query, recorded, change, t)
        return np.where(is_explained, self.total(change, query, recorded, t), np.inf)

    def explains(self, query: Any, recorded: Recorded, change: np.ndarray, t: int) -> np.ndarray:
        """Return True for agents whose noise, plus its ``change``, gives the recorded output.

        It is False if ``solve`` and ``gradient`` are not those of one convex objective, or if
        ``solve`` does not use the noise.
        """
        if not np.all(self.unit_scale(t) > 0):
            return np.array(True)
        unit = recorded.unit + np.sign(self.at(self.weight, t)) * change
        minimiser = self.output(query, unit, t)
        error = query.gradient(minimiser) - query.gradient(recorded.output)
        allowed = MISFIT * (1.0 + self.norm(unit)) * self.unit_scale(t)
        return self.norm(error) <= allowed

    def losses(self, horizon: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return sensitivities, scales and Jacobian terms of the agent with the largest loss."""
        times = self.released_times(horizon)
        jacobians = np.array([np.max(self.at(self.jacobian, t)) for t in times])
        return *self.levels(horizon), jacobians

    def releases(self, horizon):
        change, scales, jacobians = self.losses(horizon)
        if not np.all(scales > 0):
            return super().releases(horizon)
        if self.distribution != "gaussian":
            return [Release("pure", epsilon=change / scales + jacobians)]
        if self.kappa == 0:
            return [Release("gaussian", change, scales, proven=self.proven, note=self.note)]
        if self.kappa is not None:
            mus = (change / scales).tolist()
            profiles = [PerturbedObjective(mu, self.kappa) for mu in mus]
            return [Release("profile", profile=profile) for profile in profiles]
        note = "the Jacobian term of Gaussian objective perturbation depends on the noise"
        return [
            Release("gaussian", change, scales, proven=self.proven, note=self.note),
            Release("pure", epsilon=jacobians, proven=False, note=note),
        ]


def log_determinant(objective: Objective, x: np.ndarray, h: float = 1e-5) -> np.ndarray:
    """Return the log-determinant of the Hessian of an objective per agent.

    ``x``, [settings, runs, agents, dim], are points, and ``h`` is the step of the central
    differences of the gradient. The result is NaN for more than :data:`COMPARED` coordinates.
    """
    if x.shape[-1] > COMPARED:
        return np.full((*x.shape[:-1], 1), np.nan)
    columns = [
        (objective.gradient(x + h * e) - objective.gradient(x - h * e)) / (2 * h)
        for e in np.eye(x.shape[-1])
    ]
    return np.linalg.slogdet(np.stack(columns, axis=-1))[1][..., None]
