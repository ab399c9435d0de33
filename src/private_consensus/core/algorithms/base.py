"""Interface of all algorithms, and the iteration loop that most of them share.

An algorithm is a frozen dataclass of hyperparameters in the symbols of its paper, with
scalar fields. ``stack`` combines settings that differ in numbers only into one batch, whose
numeric fields have a leading settings axis. ``join_runs`` combines the noise of the runs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from itertools import repeat
from typing import Any, ClassVar, NamedTuple, Self, TypeVar, final

import numpy as np

from private_consensus.common.errors import require
from private_consensus.privacy import Budget, Relation, Release
from private_consensus.privacy.brackets import LowerBound, lower_bound

from ..networks import Network
from ..problems import Problem
from ..randomness import Streams
from .checked import check_arguments
from .noise import GIVEN, LAWS, Noise, NoiseSite
from .noise import column as column
from .noise import per_agent as per_agent
from .parameters import FOR_CALIBRATION, check_parameters, convert_values, noises

STEP, CURVATURE, GRADIENT, PLAIN = "step", "curvature", "gradient", ""
"""Units of a search range: 1/L, L and G of an agent's objective, or no unit."""


class Range(NamedTuple):
    """Search range of a tuned parameter, on a logarithmic scale.

    Parameters
    ----------
    low, high : float
        Limits of the range, in ``unit``.
    default : float
        Value without tuning.
    unit : {"step", "curvature", "gradient", ""}
        Unit of the limits and the default: 1/L for step sizes, L for penalties, G for clipping
        norms, or none. One range then fits all problems. L is the curvature of an agent's
        objective and G the norm of its gradients; both are public.
    """

    low: float
    high: float
    default: float
    unit: str = PLAIN


class Finite(dict):
    """Observables of an iteration whose values are known to be finite."""


GRAPH, DEGREES, NOTHING = "graph", "degrees", "nothing"
"""Graph properties on which noise and privacy can depend: the edges, the degrees, or none."""

ASSUMED = "the norm of each record's gradient is assumed to be at most c1"

METHOD, AUDIT, ANALYSIS = "method", "audit", "analysis"
"""Kinds of computation in a cell: a method, an attack on it, or an analysis of it."""


Observe = Callable[[int, np.ndarray, Mapping[str, Any]], None]
"""Callback that :meth:`Algorithm.run` calls after every iteration.

Its arguments are the iteration, counted from 1; the indices of the active settings, which have not
reached their horizon; and the quantities of the iteration by name. Iterates are ``[active settings,
runs, agents, dim]``; measurements and costs are ``[active settings, runs]``.
"""


@dataclass(frozen=True, kw_only=True)
class Algorithm(ABC):
    """Base class of all algorithms, private or not.

    Attributes
    ----------
    relation : Relation
        Neighbouring relation of the guarantee.
    observer : str
        Observer against whom the guarantee holds.
    source : str
        Paper, section and equations.
    oracles : tuple of str
        Uses of private data that no mechanism covers.
    uses : tuple of str
        Quantities of the problem that set noise, steps or coefficients. Those that the problem
        computes from data (:attr:`.Problem.from_data`) are oracles as well.
    needs : tuple of str
        Optional attributes and methods of the problem that the algorithm requires.
    kind : {"method", "audit", "analysis"}
        Kind of computation: a run of a method, an attack on the output of a method, or an
        analysis of a method.
    deterministic : bool
        True if the algorithm samples nothing, so that one run suffices.
    ranges : mapping
        Search ranges of the tuned parameters and of ``horizon``. Parameters with the value None
        are unused and are not tuned.
    internal_outputs : tuple of str
        Observables that no observer receives, such as iterates before noise and analyses of a
        run. Audits test all other observables.
    lower_bound_because : str
        Reason why an attack attains the privacy loss that the releases state as attained. It
        applies to this class only: without a reason of its own, a subclass has no lower bound.
    privacy_depends_on : {"graph", "degrees", "nothing"}
        Graph properties on which noise and privacy statements depend.
    assumed_bound : str
        Name of the parameter that is assumed to bound the gradients of records; empty if
        nothing is assumed.
    quantities : tuple of str
        Names of all observables, for configurations; by default the iterates before the noise
        and after it.
    largest_change : float, optional
        Largest change of a measurement that the guarantee covers; None without such a limit.
    hidden_sampling : bool
        True if the algorithm makes random choices, other than noise, that other agents do not
        observe.
    calibration : str
        Rule by which a budget sets the noise. :data:`GIVEN` leaves the noise unchanged. An
        algorithm with several rules has a field of this name.
    """

    relation = Relation("record", "replace")
    observer: ClassVar[str] = "an eavesdropper, who receives every message"
    source: ClassVar[str] = ""
    oracles: ClassVar[tuple[str, ...]] = ()
    uses = tuple[str, ...]()
    needs: ClassVar[tuple[str, ...]] = ()
    kind: ClassVar[str] = METHOD
    deterministic: ClassVar[bool] = False
    ranges: ClassVar[Mapping[str, Range]] = {}
    internal_outputs: ClassVar[tuple[str, ...]] = ("internal",)
    lower_bound_because: ClassVar[str] = ""
    privacy_depends_on: ClassVar[str] = GRAPH
    assumed_bound: ClassVar[str] = ""
    quantities: ClassVar[tuple[str, ...]] = ("internal", "released")
    largest_change = None
    hidden_sampling = False
    calibration = ""

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        check_arguments(cls)

    def __post_init__(self):
        # Without the decorator or an annotation, a field would keep its inherited default.
        kind, without = type(self), "a default without a field"
        for declared in fields(self):
            stated = getattr(kind, declared.name, declared.default)
            is_used = declared.default is MISSING or stated is declared.default
            expected = "an annotated field of a class with @dataclass(frozen=True, kw_only=True)"
            require(is_used, f"{kind.__name__}.{declared.name}", without, expected)
        check_parameters(self)
        convert_values(self)

    def calibrate(self, budget: Budget, problem: Problem, network: Network, horizon: int) -> Self:
        """Return a copy whose noise is set so that the whole run meets ``budget``.

        Parameters
        ----------
        budget : Budget
            Privacy budget of the whole run.
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        horizon : int
            Number of iterations.

        Returns
        -------
        Algorithm
            Copy with calibrated noise.

        Raises
        ------
        InvalidInput
            By default, if the budget is finite, since the algorithm is not private.
        """
        expected = "inf, since this algorithm is not private"
        require(not budget.private, "budget.epsilon", budget.epsilon, expected)
        return self

    @final
    def check_needs(self, problem: Problem) -> None:
        """Refuse a problem that lacks an attribute or method of :attr:`needs`.

        Raises
        ------
        InvalidInput
            With key ``problem.name``; the message lists the missing names.
        """
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
    def releases(self, problem: Problem, network: Network, horizon: int) -> list[Release]:
        """Return the mechanisms that an observer of all messages receives from one agent.

        The agent is the one with the largest privacy loss.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        horizon : int
            Number of iterations.

        Returns
        -------
        list of Release
            Mechanisms whose composition bounds the privacy loss.
        """

    @final
    def lower_bound(self, releases: Sequence[Release], delta: float) -> LowerBound:
        """Return the lower bound on epsilon by an attack that is proven for this class.

        Parameters
        ----------
        releases : sequence of Release
            Result of :meth:`releases` or :meth:`releases_if_assumed`.
        delta : float
            Delta at which epsilon is stated.

        Returns
        -------
        LowerBound
            0 if a release states an attained loss, but the class states no
            :attr:`lower_bound_because` of its own.
        """
        states_attack = any(
            not (release.attained is None and release.reached is None and release.attack is None)
            for release in releases
        )
        if states_attack and not vars(type(self)).get("lower_bound_because"):
            return LowerBound(0.0, "none", f"no attack is proven for {type(self).__name__}")
        return lower_bound(releases, delta)

    @final
    def releases_if_assumed(
        self, problem: Problem, network: Network, horizon: int
    ) -> list[Release] | None:
        """Return the releases under the assumed bound on the gradients of records.

        The data do not guarantee the bound, so that these releases are never proven.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        horizon : int
            Number of iterations.

        Returns
        -------
        list of Release or None
            None without noise, and if :meth:`releases` needs no assumption on the data.
        """
        is_noisy = any(getattr(self, name) for name in noises(type(self)))
        if not (is_noisy and self.assumed_bound and np.isinf(problem.record_change("l2"))):
            return None
        bounded: Any = BoundedGradients(problem, getattr(self, self.assumed_bound))
        assumed = self.releases(bounded, network, horizon)
        return [replace(release, proven=False, note=ASSUMED) for release in assumed]

    def epsilon_by_formula(
        self, delta: float, problem: Problem, network: Network, horizon: int
    ) -> float:
        """Return the epsilon of the paper's formula at the current noise.

        Parameters
        ----------
        delta : float
            Delta at which epsilon is stated.
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        horizon : int
            Number of iterations.

        Returns
        -------
        float
            NaN if the paper has no formula.
        """
        return float("nan")

    def statements(
        self, budget: Budget, problem: Problem, network: Network, horizon: int
    ) -> list[tuple[Self, float]]:
        """Return the epsilon that the paper claims for one run, per neighbouring relation.

        By default, there is one relation. The claimed epsilon is that of the budget, or that of the
        paper's formula if the noise does not depend on the budget.

        Parameters
        ----------
        budget : Budget
            Privacy budget of the whole run.
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        horizon : int
            Number of iterations.

        Returns
        -------
        list of (Algorithm, float)
            Per neighbouring relation, a copy of the algorithm with that relation, and the
            claimed epsilon.
        """
        if not self.noise_is_given:
            return [(self, budget.epsilon)]
        return [(self, self.epsilon_by_formula(budget.delta, problem, network, horizon))]

    @final
    @property
    def noise_is_given(self) -> bool:
        """Return True if the noise does not depend on the budget."""
        return self.calibration == GIVEN

    def noise_sites(self, problem: Problem, network: Network, horizon: int) -> list[NoiseSite]:
        """Return the sites at which noise is added, so that audits can recover the noise.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        horizon : int
            Number of iterations.

        Returns
        -------
        list of NoiseSite
            Empty if the sites are unknown.
        """
        return []

    @abstractmethod
    def run(
        self,
        problem: Problem,
        network: Network,
        streams: Streams,
        horizon: np.ndarray,
        observe: Observe,
    ) -> None:
        """Run a batch of settings, each to its own horizon.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        streams : Streams
            Random streams of all runs.
        horizon : ndarray of int, shape (settings,)
            Number of iterations of each setting.
        observe : Observe
            Callback that receives the observables of each iteration.
        """


check_arguments(Algorithm)


class Iterative(Algorithm):
    """Algorithm that repeats one step; state arrays are ``[settings, runs, agents, dim]``.

    Attributes
    ----------
    noise : Noise, optional
        Noise whose unit draws are the draws of an iteration.
    """

    noise = None

    @abstractmethod
    def start(
        self, problem: Problem, network: Network, streams: Streams, settings: int
    ) -> NamedTuple:
        """Return the state before the first iteration.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        streams : Streams
            Random streams of all runs.
        settings : int
            Number of settings in the batch.

        Returns
        -------
        NamedTuple
            State whose arrays have leading axes [settings, runs].
        """

    def draws(self, problem: Problem, streams: Streams) -> Iterator[Any]:
        """Return the random draws of all iterations, at unit scale.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        streams : Streams
            Random streams of all runs.

        Returns
        -------
        iterator
            One item per iteration. By default, the unit draws of :attr:`noise`, or None without
            noise.
        """
        noise = self.noise
        return noise.units(problem, streams) if isinstance(noise, Noise) else repeat(None)

    @abstractmethod
    def step(self, state: Any, problem: Problem, network: Network, draw: Any, t: int) -> NamedTuple:
        """Return the state after iteration ``t`` = 1, 2, ...

        Parameters
        ----------
        state : NamedTuple
            State before the iteration.
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        draw : Any
            Item of :meth:`draws` for the iteration.
        t : int
            Iteration, counted from 1.

        Returns
        -------
        NamedTuple
            State of the same type.
        """

    @abstractmethod
    def observables(self, state: Any, problem: Problem, t: int) -> Mapping[str, np.ndarray]:
        """Return the quantities to measure and to audit after an iteration.

        Parameters
        ----------
        state : NamedTuple
            State after the iteration.
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        t : int
            Iteration, counted from 1.

        Returns
        -------
        mapping
            Quantities by name: ``released`` iterates, which the releases cover, ``internal``
            iterates, which no observer receives, and further quantities of the algorithm.
        """

    def outcome(
        self, state: Any, problem: Problem, network: Network, t: int
    ) -> Mapping[str, np.ndarray]:
        """Return the quantities to measure after the last iteration of a setting only.

        Parameters
        ----------
        state : NamedTuple
            State after the iteration.
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        t : int
            Iteration, counted from 1.

        Returns
        -------
        mapping
            Quantities by name; empty by default.
        """
        return {}

    # Methods for audits.

    def noise_sites(self, problem, network, horizon):
        """Return the draw of an iteration as a noise site, if one release states its privacy cost.

        The scale of the site is 1, the scale of the draws. The release may have another unit, such
        as that of the gradient or of the message.
        """
        noisy = [r for r in self.releases(problem, network, horizon) if r.mechanism in DENSITIES]
        per_iteration = [r for r in noisy if max(np.size(r.losses()), r.count) == horizon]
        if len(noisy) != 1 or not per_iteration:
            return []
        (release,) = per_iteration
        if release.sampling is not None:  # the cost of a record depends on the batches
            moved = np.full(horizon, np.nan)
        else:
            moved = np.broadcast_to(release.losses(), horizon)
        unit_scale = np.ones((horizon, 1, 1))
        norm = LAWS[release.mechanism].norm
        return [NoiseSite(DRAW, release.mechanism, unit_scale, norm, moved)]

    def run(self, problem, network, streams, horizon, observe):
        """Run a batch of settings; each setting leaves the batch at its horizon."""
        horizon = np.asarray(horizon)
        active = np.arange(len(horizon))
        algorithm = self
        state = self.start(problem, network, streams, len(horizon))
        draws = self.draws(problem, streams)
        for t in range(1, int(horizon.max()) + 1):
            state = algorithm.step(state, problem, network, next(draws), t)
            observe(t, active, algorithm.observables(state, problem, t))
            ended = horizon[active] == t
            if not ended.any():
                continue
            last = algorithm.select(ended).outcome(_take(state, ended), problem, network, t)
            observe(t, active[ended], last)
            algorithm, state, active = (
                algorithm.select(~ended),
                _take(state, ~ended),
                active[~ended],
            )

    @final
    def select(self, mask: np.ndarray) -> Self:
        """Return a batch with the settings for which the mask is True."""
        values = parameters(self).items()
        batched = {name: value[mask] for name, value in values if isinstance(value, np.ndarray)}
        return replace(self, **batched)


def _log_gaussian(unit: np.ndarray) -> np.ndarray:
    return -np.nansum(unit**2, axis=(-2, -1)) / 2


def _log_laplace(unit: np.ndarray) -> np.ndarray:
    return -np.nansum(np.abs(unit), axis=(-2, -1))


def _log_gamma_norm(unit: np.ndarray) -> np.ndarray:
    return -np.linalg.norm(np.nan_to_num(unit), axis=-1).sum(-1)


DENSITIES = {"gaussian": _log_gaussian, "laplace": _log_laplace, "gamma_norm": _log_gamma_norm}
"""Log density of unit noise [runs, agents, dim] up to a constant, by distribution."""


DRAW = "draw"
"""Name of the noise site of an algorithm that declares no sites: the draw of its step."""


class BoundedGradients:
    """Problem under the assumption that the gradient of each record has a bounded l2 norm.

    Parameters
    ----------
    problem : Problem
        Problem whose data do not guarantee the bound.
    bound : float
        Assumed bound on the l2 norm.
    """

    def __init__(self, problem: Problem, bound: float):
        self.problem, self.bound = problem, bound

    def __getattr__(self, name: str) -> Any:
        return getattr(self.problem, name)

    def record_change(self, norm: str) -> float:
        """Return the largest change of an agent's gradient by one record, under the assumption."""
        return self.problem.assumed_record_change(self.bound)

    def attained_gradient_share(self, norm: str) -> float | None:
        """Return the fraction of :meth:`record_change` that one pair of records attains."""
        return self.problem.assumed_gradient_share(self.bound)

    def attained_minimiser_share(self, norm: str, curvature: float) -> float | None:
        """Return the attained fraction of the l2 change of a minimiser; None if unknown."""
        return self.problem.assumed_minimiser_share(self.bound)


def origin(problem: Problem, streams: Streams, settings: int) -> np.ndarray:
    """Return iterates of 0, [settings, runs, agents, dim], the starting point of all agents."""
    return np.zeros((settings, len(streams.runs), problem.n_agents, problem.dim))


def normal_start(problem: Problem, streams: Streams, settings: int, std: Any) -> np.ndarray:
    """Return normal starting points, [settings, runs, agents, dim], that all algorithms share.

    The standard deviation ``std`` of each coordinate may differ between settings.
    """
    unit = streams.draw("data", "normal", (problem.n_agents, problem.dim), "start")
    return np.broadcast_to(column(std) * unit, (settings, *unit.shape)).copy()


def overrides(instance: Any, kind: type, *names: str) -> bool:
    """Return True if the class of an object overrides a method of its base class ``kind``."""
    return any(getattr(type(instance), name) is not getattr(kind, name) for name in names)


AnyAlgorithm = TypeVar("AnyAlgorithm", bound=Algorithm)


def parameters(algorithm: Algorithm) -> dict[str, Any]:
    """Return the values of all fields, with each noise replaced by its scale."""
    values = {f.name: getattr(algorithm, f.name) for f in fields(algorithm)}
    return {name: v.scale if isinstance(v, Noise) else v for name, v in values.items()}


def step_parameters(algorithm: Algorithm) -> list[str]:
    """Return the names of the step sizes of an algorithm: its parameters with ranges in 1/L."""
    values = parameters(algorithm)
    return [
        name
        for name, tuned in algorithm.ranges.items()
        if tuned.unit == STEP and values.get(name) is not None
    ]


def unstable_steps(algorithm: Algorithm, problem: Problem) -> dict[str, tuple[float, float]]:
    """Return the largest value and 2/L of each step size above 2/L, with which descent diverges.

    L is the largest ``smoothness`` of the problem. The step sizes are :func:`step_parameters`.
    """
    if not problem.offers("smoothness"):
        return {}
    largest = 2.0 / float(np.max(problem.smoothness))
    values = parameters(algorithm)
    steps = {name: float(np.max(values[name])) for name in step_parameters(algorithm)}
    return {name: (step, largest) for name, step in steps.items() if step > largest}


def structure(algorithm: Algorithm) -> tuple:
    """Return the class and the non-numeric fields, which are equal for all settings of a batch.

    Fields that affect the calibration only may differ between the settings.
    """
    calibrating = {f.name for f in fields(algorithm) if FOR_CALIBRATION.keys() & f.metadata.keys()}
    values = ((n, v) for n, v in parameters(algorithm).items() if n not in calibrating)
    return (type(algorithm), *((name, value) for name, value in values if not _is_number(value)))


def stack(settings: Sequence[AnyAlgorithm]) -> AnyAlgorithm:
    """Combine settings of equal structure into one batch.

    The numeric fields of the batch are arrays with a leading settings axis.
    """
    first = settings[0]
    if any(structure(setting) != structure(first) for setting in settings):
        raise ValueError("cannot stack settings: only their numbers may differ")
    values_of_settings = [parameters(setting) for setting in settings]
    stacked = {
        name: _stack_values([values_of_setting[name] for values_of_setting in values_of_settings])
        for name, value in values_of_settings[0].items()
        if _is_number(value)
    }
    return replace(first, **stacked)


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
    changed, values_of_runs = {}, [parameters(copy) for copy in algorithms]
    for name in values_of_runs[0]:
        values = [values_of_run[name] for values_of_run in values_of_runs]
        if not _is_number(values[0]) or all(np.array_equal(v, values[0]) for v in values):
            continue
        if any(np.ndim(value) for value in values):
            raise ValueError(f"{name}: cannot join arrays that differ between runs; use scalars")
        changed[name] = np.reshape(values, (-1, 1, 1))
    return replace(first, **changed) if changed else first


def _stack_values(values: list[Any]) -> np.ndarray:
    shape = np.broadcast_shapes(*(np.shape(value) for value in values))
    return np.stack([np.broadcast_to(value, shape) for value in values])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number | np.ndarray) and not isinstance(value, bool)


def _take(state: Any, mask: np.ndarray) -> Any:
    """Return the settings of a state for which the mask is True."""
    for name, array in zip(type(state)._fields, state, strict=True):
        usable = array is None or np.shape(array)[:1] == mask.shape
        expected = f"None or an array [settings, ...] with {len(mask)} settings"
        require(usable, f"state.{name}", f"shape {np.shape(array)}", expected)
    return type(state)(*(None if array is None else array[mask] for array in state))
