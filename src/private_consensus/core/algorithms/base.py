"""Interface of all algorithms, and the iteration loop that most of them share.

An algorithm is a frozen dataclass of hyperparameters in the symbols of its paper, with
scalar fields. ``stack`` combines settings that differ in numbers only into one batch, whose
numeric fields have a leading settings axis. ``join_runs`` combines the noise of the runs.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from types import FunctionType
from typing import Any, ClassVar, NamedTuple, Self, TypeVar, final

import numpy as np

from private_consensus.common.errors import arguments, require
from private_consensus.privacy import Budget, Relation, Release, calibrate
from private_consensus.privacy.mechanisms import ADDITIVE, Exact, Mechanism

from ..handlers import Running
from ..networks import Network, require_same_agents
from ..parameters import (
    ASSUMED,
    CALIBRATION,
    STEP,
    Calibration,
    Law,
    NonNegative,
    Positive,
    rules_of,
    validate,
)
from ..problems import Problem
from ..randomness import Streams


class Internal(str):
    """Name of an observable that no observer receives, such as an analysis of a run."""


INTERNAL = Internal("internal")
"""Name of the iterates before the noise."""


class Attack:
    """Mixin of computations that attack the output of a method."""


class Analysis:
    """Mixin of exact computations about a method. They sample nothing: one run suffices."""


class Iterates(NamedTuple):
    """State of methods that store the iterates only, [settings, runs, agents, dim]."""

    x: np.ndarray


GRAPH, DEGREES, NOTHING = "graph", "degrees", "nothing"
"""Graph properties on which noise and privacy can depend: the edges, the degrees, or none."""

GIVEN = "given"
"""Calibration rule of an algorithm whose noise does not depend on the budget."""

OVERRIDABLE = (
    "mechanisms", "start", "step", "observables", "outcome", "calibrate", "claimed_epsilon", "run",
)  # fmt: skip
"""Methods of :class:`Algorithm` that a class may override; audits use all others."""

Observe = Callable[[int, np.ndarray, Mapping[str, Any]], None]
"""Callback that :meth:`Algorithm.run` calls after every iteration.

Its arguments are the iteration, counted from 1; the indices of the active settings, which have not
reached their horizon; and the quantities of the iteration by name. Iterates are ``[active settings,
runs, agents, dim]``; measurements and costs are ``[active settings, runs]``.
"""


@dataclass(frozen=True, kw_only=True)
class Algorithm(arguments.KnownKeywords, ABC):
    """Base class of all algorithms, private or not; a class overrides :data:`OVERRIDABLE` only.

    The methods have common arguments. ``problem`` has the objectives and data of the agents, with
    their sensitivities, and ``network`` the communication graph with its mixing matrix. ``horizon``
    is the number of iterations, and ``t`` = 1, 2, ... the iteration. ``release`` is the function
    that passes private values through mechanisms, see :meth:`.Running.function`. ``state`` is a
    NamedTuple whose arrays have leading axes [settings, runs].

    Attributes
    ----------
    relation : Relation
        Neighbouring relation of the guarantee.
    observer : str
        Observer against whom the guarantee holds.
    source : str
        Paper, section and equations.
    needs : tuple of str
        Attributes and methods of the problem that the algorithm requires, in addition to the
        gradient, and that set noise, steps or coefficients. No mechanism covers those that the
        problem computes from data (:attr:`.Problem.from_data`).
    privacy_depends_on : {"graph", "degrees", "nothing"}
        Graph properties on which noise and privacy statements depend.
    quantities : tuple of str
        Names of all observables, for configurations; by default ``released`` only. An observable
        whose name is an :class:`Internal` reaches no observer. Audits test all others.
    """

    relation = Relation("record", "replace")
    observer: ClassVar[str] = "an eavesdropper, who receives every message"
    source: ClassVar[str] = ""
    needs: ClassVar[tuple[str, ...]] = ()
    privacy_depends_on: ClassVar[str] = GRAPH
    quantities: ClassVar[tuple[str, ...]] = ("released",)

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        for name, method in vars(Algorithm).items():
            is_public = isinstance(method, FunctionType | property) and name[0] != "_"
            is_kept = not is_public or name in OVERRIDABLE or getattr(cls, name) is method
            expected = f"another name, or one of the methods to override: {', '.join(OVERRIDABLE)}"
            require(is_kept, f"{cls.__name__}.{name}", "a redefined method", expected)

    def __post_init__(self):
        # Without the decorator or an annotation, a field would keep its inherited default.
        kind, without = type(self), "a default without a field"
        for declared in fields(self):
            stated = getattr(kind, declared.name, declared.default)
            is_used = declared.default is MISSING or stated is declared.default
            expected = "an annotated field of a class with @dataclass(frozen=True, kw_only=True)"
            require(is_used, f"{kind.__name__}.{declared.name}", without, expected)
        validate(self, "algorithm")

    def calibrate(self, budget: Budget, problem: Problem, network: Network, horizon: int) -> Self:
        """Return a copy whose noise is set so that the whole run meets ``budget``.

        By default, the accountant or the paper's formula sets the field ``noise``, see
        :func:`least_noise`. Noise that is given remains unchanged.

        Raises
        ------
        InvalidInput
            By default, for a finite budget of an algorithm without a field ``noise``.
        """
        if self.noise_is_given:
            return self
        has_noise = "noise" in parameters(self)
        expected = "inf, since this algorithm is not private: it has no field noise"
        require(has_noise or not budget.private, "budget.epsilon", budget.epsilon, expected)
        if not has_noise:
            return self
        if not budget.private:
            return replace(self, noise=0.0)
        return replace(self, noise=least_noise(self, budget, problem, network, horizon))

    @final
    def check_needs(self, problem: Problem) -> None:
        """Refuse a problem that lacks an attribute or method of :attr:`needs`."""
        missing = [name for name in self.needs if not problem.offers(name)]
        expected = f"a problem with {', '.join(missing)}"
        require(not missing, "problem.name", type(problem).__name__, expected)

    @final
    def graph_statistics(self, network: Network) -> Hashable:
        """Return the graph properties that determine the noise and the privacy statements.

        Calibration and privacy accounting are computed once for all graphs with equal properties.
        """
        if self.privacy_depends_on == DEGREES:
            return int(network.degrees.min()), int(network.degrees.max())
        return network.identity if self.privacy_depends_on == GRAPH else None

    @abstractmethod
    def mechanisms(
        self, problem: Problem, network: Network, horizon: int
    ) -> Mapping[str, Mechanism]:
        """Declare the mechanisms through which :meth:`step` releases private values, by name.

        Sensitivity and scale are lists over iterations of values that broadcast to [settings, runs,
        agents, 1], or one value for all iterations. ``horizon`` is the largest of a batch.
        """

    @final
    def releases(self, problem: Problem, network: Network, horizon: int) -> list[Release]:
        """Return the releases of all mechanisms, for the agent with the largest privacy loss.

        Their composition bounds the privacy loss of a run.
        """
        require_same_agents(problem, network)
        declared = self.mechanisms(problem, network, horizon)
        return [release for m in declared.values() for release in m.releases(horizon)]

    @final
    def releases_if_assumed(
        self, problem: Problem, network: Network, horizon: int
    ) -> list[Release] | None:
        """Return the releases under the assumed bound on the gradients of records.

        The data do not guarantee the bound, so that these releases are never proven. The result is
        None without noise, and if :meth:`releases` needs no assumption on the data.
        """
        if not assumed_bound(self) or not np.any(getattr(self, "noise", 0.0)):
            return None
        if np.isfinite(problem.record_change("l2")):
            return None
        assumed = self.releases(self.bounded(problem), network, horizon)
        note = "the norm of each record's gradient is assumed to be at most c1"
        return [replace(release, proven=False, note=note) for release in assumed]

    @final
    def bounded(self, problem: Problem) -> Any:
        """Return the problem under the assumed bound on the gradients of records."""
        return BoundedGradients(problem, getattr(self, assumed_bound(self)))

    def claimed_epsilon(
        self, delta: float, problem: Problem, network: Network, horizon: int
    ) -> float:
        """Return the epsilon of the paper's formula at the current noise; NaN if it has none."""
        return float("nan")

    @final
    @property
    def noise_is_given(self) -> bool:
        """Return True if the noise does not depend on the budget."""
        return getattr(self, "calibration", "") == GIVEN

    def start(self, problem: Problem, network: Network, release: Any) -> NamedTuple:
        """Return the state before the first iteration, in which nothing can be released.

        By default, all agents start at 0, and the state has their iterates only.
        """
        return Iterates(origin(problem, release))

    @abstractmethod
    def step(
        self, state: Any, problem: Problem, network: Network, release: Any, t: int
    ) -> NamedTuple:
        """Return the state after iteration ``t``, of the same type as the state before it."""

    def observables(self, state: Any, problem: Problem, t: int) -> Mapping[str, np.ndarray]:
        """Return the quantities to measure and to audit after an iteration, by name.

        They are ``released`` iterates, which the releases cover, ``internal`` iterates, which no
        observer receives, and further quantities. By default, ``released`` is the field ``x``.
        """
        return {"released": state.x}

    def outcome(
        self, state: Any, problem: Problem, network: Network, release: Any, t: int
    ) -> Mapping[str, np.ndarray]:
        """Return the quantities to measure after the last iteration of a setting only."""
        return {}

    def run(
        self,
        problem: Problem,
        network: Network,
        streams: Streams,
        horizon: np.ndarray,
        observe: Observe,
    ) -> None:
        """Run a batch of settings, each to its own horizon, see :func:`iterate`."""
        iterate(self, problem, network, streams, horizon, observe)

    @final
    def select(self, mask: np.ndarray) -> Self:
        """Return a batch with the settings for which the mask is True."""
        values = parameters(self).items()
        batched = {name: value[mask] for name, value in values if isinstance(value, np.ndarray)}
        return replace(self, **batched)


@dataclass(frozen=True, kw_only=True)
class DecayingNoise(Algorithm):
    r"""Method with noise of the scale ``noise / growth**t`` in iteration t = 1, 2, ...

    Parameters
    ----------
    law : {"laplace", "gaussian", "gamma_norm"}
        Distribution of the noise: independent Laplace or normal coordinates, or a density
        proportional to :math:`\exp(-\|b\|_2/s)` at the scale s.
    noise, growth : float
        Scale of the noise: ``noise / growth**t`` in iteration t = 1, 2, ... The inverse scale
        :math:`\beta_k = 1.02^k` of Xiao et al. is ``noise=1, growth=1.02``.
    calibration : {"accountant", "formula", "given"}
        Rule by which a budget sets the noise: the smallest noise that the accountant accepts, the
        noise at which the paper's formula equals the epsilon of the budget, or unchanged noise.
    init_std : float
        Standard deviation of the coordinates of :math:`x_i^0`; 0 to start at the origin.
    """

    law: Law = "laplace"
    noise: NonNegative = 0.0
    growth: Positive = 1.0
    calibration: Calibration = "accountant"
    init_std: NonNegative = 1.0

    def scale(self, t: int) -> Any:
        """Return the noise scale of iteration t, broadcastable against iterates."""
        # The power of an array: that of a Python number may differ in the last digit.
        return column(self.noise) / np.asarray(column(self.growth)) ** t

    @property
    def norm(self) -> str:
        """Norm of the sensitivity that the noise hides."""
        return f"l{ADDITIVE[self.law].norm_order}"

    @property
    def noisy(self) -> bool:
        """Return True if every setting of the batch has noise."""
        return bool(np.all(np.asarray(self.noise) > 0))

    def additive(self, change: Any, horizon: int) -> Any:
        """Return the mechanism with this noise; ``change`` is a sensitivity, or one per iteration.

        See :class:`.Mechanism` for the form of sensitivities.
        """
        return ADDITIVE[self.law](change, per_iteration(self.scale, horizon))

    def loss_by_formula(self, problem, network, t: int) -> Any:
        """Return the privacy loss of iteration t by the paper's formula.

        It broadcasts against [settings, runs, agents, 1], and is infinite if the paper has no
        formula.
        """
        return np.full((1, 1, 1, 1), np.inf)

    def claimed_epsilon(self, delta, problem, network, horizon):
        """Return the largest sum over all iterations of the losses of an agent."""
        if not self.noisy:
            return float("inf")
        times = range(1, horizon + 1)
        return float(np.max(sum(self.loss_by_formula(problem, network, t) for t in times)))


def least_noise(algorithm: Any, budget, problem, network, horizon: int) -> float:
    """Return the smallest noise scale that meets a finite budget, by accountant or formula.

    The field ``calibration`` of the algorithm names the rule.
    """
    if getattr(algorithm, "calibration", "") == "formula":
        return _by_formula(algorithm, budget, problem, network, horizon)
    declared = replace(algorithm, noise=1.0).mechanisms(problem, network, horizon)
    exact = [name for name, mechanism in declared.items() if isinstance(mechanism, Exact)]
    expected = f"inf, since this algorithm is not private: no noise on {', '.join(exact)}"
    require(not exact, "budget.epsilon", budget.epsilon, expected)

    def releases_at(noise):
        return replace(algorithm, noise=noise).releases(problem, network, horizon)

    return calibrate(releases_at, budget)


def _by_formula(algorithm: Any, budget, problem, network, horizon: int) -> float:
    """Return the noise scale at which the paper's formula equals the epsilon of the budget.

    All formulas have the form a / noise + b, which two values determine.
    """
    at_1, at_2 = (
        replace(algorithm, noise=s).claimed_epsilon(budget.delta, problem, network, horizon)
        for s in (1.0, 2.0)
    )
    # Solve a + b = at_1 and a/2 + b = at_2.
    constant, factor = 2 * at_2 - at_1, 2 * (at_1 - at_2)
    expected = f"above {constant:g}, the privacy loss that remains with any noise"
    require(budget.epsilon > constant, "budget.epsilon", budget.epsilon, expected)
    return factor / (budget.epsilon - constant)


def iterate(
    algorithm: Any,
    problem: Problem,
    network: Network,
    streams: Streams,
    horizon: np.ndarray,
    observe: Observe,
    compiled: Callable[..., Any] | None = None,
) -> None:
    """Run a batch of settings; each setting leaves the batch at its horizon, [settings].

    A ``compiled`` function replaces :meth:`Algorithm.step`; its first argument is the algorithm.
    """
    require_same_agents(problem, network)
    horizon = np.asarray(horizon)
    active, largest = np.arange(len(horizon)), int(horizon.max())
    declared = algorithm.mechanisms(problem, network, largest)
    handler = Running(declared, problem, streams, horizon)
    release = handler.function()
    state = algorithm.start(problem, network, release)
    for t in range(1, largest + 1):
        handler.begin(t)
        arguments = state, problem, network, release, t
        state = compiled(algorithm, *arguments) if compiled else algorithm.step(*arguments)
        observe(t, active, algorithm.observables(state, problem, t))
        ended = horizon[active] == t
        if ended.all():
            observe(t, active, algorithm.outcome(state, problem, network, release, t))
        elif ended.any():
            last, of_ended = algorithm.select(ended), _take(state, ended)
            ending = handler.select(ended, last.mechanisms(problem, network, largest)).function()
            outcome = last.outcome(of_ended, problem, network, ending, t)
            observe(t, active[ended], outcome)
            algorithm, state = algorithm.select(~ended), _take(state, ~ended)
            active = active[~ended]
            handler = handler.select(~ended, algorithm.mechanisms(problem, network, largest))
            release = handler.function()


def per_iteration(value: Callable[[int], Any], horizon: int) -> list[Any]:
    """Return the values of a function of the iteration, for t = 1, ..., horizon."""
    return list(map(value, range(1, int(horizon) + 1)))


class BoundedGradients:
    """Problem whose records are assumed to have gradients with an l2 norm of at most ``bound``."""

    def __init__(self, problem: Problem, bound: float):
        self.problem, self.bound = problem, bound

    def __getattr__(self, name: str) -> Any:
        return getattr(self.problem, name)

    def record_change(self, norm: str) -> float:
        r"""Return :math:`2wc_1` in l2, which no record exceeds under the assumption."""
        return 2.0 * self.problem.weight * self.bound

    def attained_gradient_share(self, norm: str) -> float | None:
        """Return the fraction of :meth:`record_change` that one pair of records attains."""
        return None if self.problem.minimiser_slack is None else 1.0

    def attained_minimiser_share(self, norm: str, curvature: float) -> float | None:
        """Return the attained fraction of the l2 change of a minimiser; None if unknown."""
        slack = self.problem.minimiser_slack
        return None if slack is None else max(0.0, 1.0 - slack / self.record_change("l2"))


def column(value: Any) -> Any:
    """Reshape a field so that it broadcasts against ``[settings, runs, agents, dim]``."""
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return value[:, None, None, None]
    return value


def per_agent(value: Any) -> Any:
    """Reshape a field so that it broadcasts against ``[settings, runs, agents]``."""
    array = column(value)
    return array[..., 0] if isinstance(array, np.ndarray) else array


def common_value(name: str, value: Any) -> Any:
    """Return the value of a field that must be equal for all settings of a batch."""
    values = np.unique(value)
    require(len(values) == 1, f"algorithm.{name}", values, "an equal number for all settings")
    return values[0]


def origin(problem: Problem, release: Any) -> np.ndarray:
    """Return iterates of 0, [settings, runs, agents, dim], the starting point of all agents."""
    return np.zeros((release.settings, release.runs, problem.n_agents, problem.dim))


def normal_start(problem: Problem, release: Any, std: Any) -> np.ndarray:
    """Return normal starting points, [settings, runs, agents, dim], that all algorithms share.

    The standard deviation ``std`` of each coordinate may differ between settings.
    """
    unit = release.once("start", "normal", (problem.n_agents, problem.dim))
    return np.broadcast_to(column(std) * unit, (release.settings, *unit.shape)).copy()


def is_built_in(algorithm: Algorithm) -> bool:
    """Return True if the class of an algorithm belongs to this package."""
    return type(algorithm).__module__.startswith("private_consensus.")


AnyAlgorithm = TypeVar("AnyAlgorithm", bound=Algorithm)


def parameters(algorithm: Algorithm) -> dict[str, Any]:
    """Return the values of all fields."""
    return {f.name: getattr(algorithm, f.name) for f in fields(algorithm)}


def assumed_bound(algorithm: Algorithm) -> str:
    """Return the name of the field with an assumed bound on gradients of records; empty if none."""
    return next(iter(marked_fields(algorithm, ASSUMED)), "")


def marked_fields(algorithm: Algorithm, mark: str) -> list[str]:
    """Return the names of the fields with a mark, such as :data:`.STEP`."""
    return [name for name, rule in rules_of(type(algorithm)).items() if mark in rule.marks]


def unstable_steps(algorithm: Algorithm, problem: Problem) -> dict[str, tuple[float, float]]:
    """Return the largest value and 2/L of each step size above 2/L, with which descent diverges.

    L is the largest ``smoothness`` of the problem. Step sizes are marked :data:`.STEP`.
    """
    if not problem.offers("smoothness"):
        return {}
    largest = 2.0 / float(np.max(problem.smoothness))
    values = parameters(algorithm)
    steps = {name: float(np.max(values[name])) for name in marked_fields(algorithm, STEP)}
    return {name: (step, largest) for name, step in steps.items() if step > largest}


def structure(algorithm: Algorithm) -> tuple:
    """Return the class and the non-numeric fields, which are equal for all settings of a batch.

    Fields that affect the calibration only may differ between the settings.
    """
    calibrating = marked_fields(algorithm, CALIBRATION)
    values = ((n, v) for n, v in parameters(algorithm).items() if n not in calibrating)
    return (type(algorithm), *((name, value) for name, value in values if not _is_number(value)))


def stack(settings: Sequence[AnyAlgorithm]) -> AnyAlgorithm:
    """Combine settings of equal structure into one batch.

    The numeric fields of the batch are arrays with a leading settings axis.
    """
    first = settings[0]
    if any(structure(setting) != structure(first) for setting in settings):
        raise ValueError("cannot stack settings: only their numbers may differ")
    numeric = [name for name, value in parameters(first).items() if _is_number(value)]
    values = {name: [getattr(setting, name) for setting in settings] for name in numeric}
    return replace(first, **{n: np.stack(np.broadcast_arrays(*v)) for n, v in values.items()})


def join_runs(algorithms: Sequence[Algorithm]) -> Algorithm:
    """Combine the copies of a setting for single runs into one setting for all runs.

    Numbers that differ between the runs become arrays [runs, 1, 1]. Copies that differ in anything
    else raise ``ValueError``.
    """
    first = algorithms[0]
    if all(copy is first for copy in algorithms):
        return first
    if any(structure(copy) != structure(first) for copy in algorithms):
        raise ValueError("cannot join copies of a setting: only their numbers may differ")
    changed = {}
    for name in parameters(first):
        values = [getattr(copy, name) for copy in algorithms]
        if not _is_number(values[0]) or all(np.array_equal(v, values[0]) for v in values):
            continue
        if any(np.ndim(value) for value in values):
            raise ValueError(f"{name}: cannot join arrays that differ between runs; use scalars")
        changed[name] = np.reshape(values, (-1, 1, 1))
    return replace(first, **changed) if changed else first


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number | np.ndarray) and not isinstance(value, bool)


def _take(state: Any, mask: np.ndarray) -> Any:
    """Return the settings of a state for which the mask is True."""

    def taken(name: str, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: taken(f"{name}.{key}", entry) for key, entry in value.items()}
        if value is None:
            return None
        usable = np.shape(value)[:1] == mask.shape
        expected = f"None or an array [settings, ...] with {len(mask)} settings"
        require(usable, f"state.{name}", f"shape {np.shape(value)}", expected)
        return value[mask]

    return type(state)(*(taken(*item) for item in zip(type(state)._fields, state, strict=True)))
