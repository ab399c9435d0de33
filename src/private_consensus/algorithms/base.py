"""The interface of algorithms, and the iteration loop that most of them share.

An algorithm is a frozen dataclass of hyperparameters in the symbols of its paper. Its fields are
scalars, or arrays that broadcast to (runs, agents, dim); ``stack`` joins settings that differ in
numbers only, and then such a field carries the settings axis in front.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial, wraps
from inspect import signature
from itertools import repeat
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np

from ..errors import InvalidInput, require
from ..networks import Network, require_same_agents
from ..privacy import Budget, Relation, Release
from ..privacy.brackets import LowerBound, lower_bound
from ..problems import Problem
from ..randomness import Streams
from .noise import Noise, NoiseSite
from .parameters import FOR_CALIBRATION, check_parameters, set_noises
from .shapes import column as column
from .shapes import per_agent as per_agent

STEP, CURVATURE, GRADIENT, PLAIN = "step", "curvature", "gradient", ""
"""Units of a range: 1/L, L and G of an agent's objective, or none."""


class Range(NamedTuple):
    """Search range of a tuned parameter, on a logarithmic scale.

    Parameters
    ----------
    low, high : float
        In ``unit``.
    default : float
        Where nothing is tuned.
    unit : {"step", "curvature", "gradient", ""}
        1/L, L or G: what a step, a penalty or a clip is measured by, so that one range serves all
        problems. L is the curvature of an agent's objective and G the size of its gradients, as
        they are public.
    """

    low: float
    high: float
    default: float
    unit: str = PLAIN


class Finite(dict):
    """Observables after an iteration, known to be finite."""


COMPARED = frozenset({"calibrate", "releases", "run"})
"""Methods of algorithms that refuse a problem and a network of different numbers of agents. They
come before every execution and every account."""

METHOD, AUDIT, ANALYSIS = "method", "audit", "analysis"
"""Kinds of what a cell runs."""


Residuals = dict[str, np.ndarray]
"""By noise site, the noise of one iteration over its declared scale, [runs, agents, dim]."""


class Observe(Protocol):
    """Callback of the driver, called by :meth:`Algorithm.run` after every iteration.

    It may have a function ``asks(t, active)``, whether it looks at an iteration at all: where it
    does not, what only an observer needs may be missing from ``seen``.
    """

    def __call__(self, t: int, active: np.ndarray, seen: Mapping[str, Any]) -> None:
        """``active`` indexes the settings still running; ``seen`` maps quantities to iterates
        ``[len(active), runs, agents, dim]``, to measurements ``[len(active), runs]`` or to
        costs."""


@dataclass(frozen=True, kw_only=True)
class Algorithm(ABC):
    """An algorithm of the field, private or not.

    Attributes
    ----------
    relation : Relation
        Whose change the guarantee hides.
    source : str
        Paper, section and equations.
    oracles : tuple of str
        Uses of private data that no mechanism covers.
    uses : tuple of str
        Quantities of the problem by which it sets noise, steps or coefficients; those that the
        problem computes from data (:attr:`.Problem.from_data`) are oracles too.
    needs : tuple of str
        Of what not every problem has, what the algorithm asks the problem for.
    kind : {"method", "audit", "analysis"}
        What a cell with it is: a run of a method, an attack on what a method releases, or a
        computation about a method.
    deterministic : bool
        Whether nothing is drawn at random, so that one run says all.
    draws_once : bool
        Whether it draws once for settings with other problems and networks, too: then these go
        side by side.
    ranges : mapping
        Parameters that are tuned, and ``horizon``; those that are None are not used and stay so.
    internal_outputs : tuple of str
        Returned quantities that no observer receives, such as iterates before noise and analyses of
        a run. Audits test all other quantities.
    lower_bound_because : str
        Why the attained shares of its releases are proven for exactly this class. A class that
        extends it states its own reason; otherwise it has no lower bound.
    """

    relation: ClassVar[Relation] = Relation("record", "replace")
    source: ClassVar[str] = ""
    oracles: ClassVar[tuple[str, ...]] = ()
    uses: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[tuple[str, ...]] = ()
    kind: ClassVar[str] = METHOD
    deterministic: ClassVar[bool] = False
    draws_once: ClassVar[bool] = False
    ranges: ClassVar[Mapping[str, Range]] = {}
    internal_outputs: ClassVar[tuple[str, ...]] = ("internal",)
    lower_bound_because: ClassVar[str] = ""

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        for name in COMPARED.intersection(vars(cls)):
            setattr(cls, name, _of_same_agents(vars(cls)[name]))

    def __post_init__(self):
        check_parameters(self)
        set_noises(self)

    def calibrate(self, budget: Budget, problem: Problem, network: Network, horizon: int) -> Self:
        """A copy with its noise set such that the whole run spends ``budget``."""
        if np.isfinite(budget.epsilon):
            raise InvalidInput(
                "budget.epsilon", budget.epsilon, "inf: this algorithm is not private"
            )
        return self

    def check_needs(self, problem: Problem) -> None:
        """Refuse a problem that lacks something of :attr:`needs`.

        Raises
        ------
        InvalidInput
            With key ``problem.name``; what is missing stands in it.
        """
        missing = [name for name in self.needs if not problem.offers(name)]
        expected = f"a problem with {', '.join(missing)}"
        require(not missing, "problem.name", type(problem).__name__, expected)

    def graph_statistics(self, network: Network) -> Hashable:
        """What of a graph the noise and the statements of privacy depend on: graphs with equal
        answers are calibrated and accounted for once. All of the graph unless it is less."""
        return network.identity

    @abstractmethod
    def releases(self, problem: Problem, network: Network, horizon: int) -> list[Release]:
        """Return the releases that an observer of all messages receives from one agent, the one
        with the largest privacy loss.
        """

    def lower_bound(self, releases: Sequence[Release], delta: float) -> LowerBound:
        """Return the lower bound on epsilon by an attack that is proven for exactly this class.

        Parameters
        ----------
        releases : sequence of Release
            Those of :meth:`releases` or :meth:`releases_if_assumed`.
        delta : float

        Returns
        -------
        LowerBound
            0 if the class itself states no :attr:`lower_bound_because`, and a release states what
            an attack attains.
        """
        attacked = any(
            not (release.attained is None and release.reached is None and release.attack is None)
            for release in releases
        )
        if attacked and not vars(type(self)).get("lower_bound_because"):
            return LowerBound(0.0, "none", f"no attack is proven for {type(self).__name__}")
        return lower_bound(releases, delta)

    def releases_if_assumed(
        self, problem: Problem, network: Network, horizon: int
    ) -> list[Release] | None:
        """The same under what the paper assumes of the data and nothing guarantees; None where
        :meth:`releases` assume nothing. Never proven."""
        return None

    def epsilon_by_formula(
        self, delta: float, problem: Problem, network: Network, horizon: int
    ) -> float:
        """Epsilon that the paper's own formula gives for the noise that is set."""
        return float("nan")

    def statements(
        self, budget: Budget, problem: Problem, network: Network, horizon: int
    ) -> list[tuple[Self, float]]:
        """What is stated of one run's privacy: for each neighbouring relation a copy of this
        algorithm with that relation, and the epsilon that the paper claims for it. Noise that is
        given is claimed to be as private as the paper's formula says."""
        if not self.noise_is_given:
            return [(self, budget.epsilon)]
        return [(self, self.epsilon_by_formula(budget.delta, problem, network, horizon))]

    @property
    def noise_is_given(self) -> bool:
        """Return True if the noise does not depend on the budget."""
        return False

    def noise_sites(self, problem: Problem, network: Network, horizon: int) -> list[NoiseSite]:
        """Return where noise is added, so that audits can recover it; empty if unknown."""
        return []

    def residuals(
        self, problem: Problem, network: Network, streams: Streams, execution: Any
    ) -> Iterator[Residuals]:
        """The noise of each iteration that follows from what was executed, supposing ``problem``.

        ``execution`` has ``sent`` and ``internal``, each [runs, iterations, agents, dim] or None
        for what is not to be used; ``streams`` has the randomness that is not noise.
        """
        return iter(())

    def log_likelihood(
        self, problem: Problem, network: Network, streams: Streams, execution: Any
    ) -> np.ndarray | None:
        """Logarithm of the density of all that was sent, supposing ``problem``, up to a constant;
        [runs], or None where it does not follow from noise at one site, or is not known."""
        return None

    @property
    def largest_change(self) -> float | None:
        """How far a measurement may move, where the guarantee names that."""
        return None

    @property
    def hidden_sampling(self) -> bool:
        """Return True if other agents do not observe a random choice besides the noise."""
        return False

    @abstractmethod
    def run(
        self,
        problem: Problem,
        network: Network,
        streams: Streams,
        horizon: np.ndarray,
        observe: Observe,
    ) -> None:
        """Run a batch of settings, each to its own horizon (an array ``[settings]``)."""


def _of_same_agents(method: Callable) -> Callable:
    """Return the method with a comparison of the agents of its problem and its network."""
    names = list(signature(method).parameters)
    places = [(name, names.index(name)) for name in ("problem", "network")]

    @wraps(method)
    def compared(*given: Any, **named: Any) -> Any:
        world = [given[at] if at < len(given) else named.get(name) for name, at in places]
        require_same_agents(*world)
        return method(*given, **named)

    return compared


class Iterative(Algorithm):
    """An algorithm that repeats one step; state arrays are ``[settings, runs, agents, dim]``."""

    @abstractmethod
    def start(
        self, problem: Problem, network: Network, streams: Streams, settings: int
    ) -> NamedTuple:
        """The state before the first iteration."""

    def draws(self, problem: Problem, streams: Streams) -> Iterator[Any]:
        """Unit draws, one item an iteration; none unless an algorithm asks for some."""
        return repeat(None)

    def draws_on(self, problem: Problem, network: Network, streams: Streams) -> Iterator[Any]:
        """The same where it depends on the graph what is drawn, as where links have noise."""
        return self.draws(problem, streams)

    @abstractmethod
    def step(self, state: Any, problem: Problem, network: Network, draw: Any, t: int) -> NamedTuple:
        """The state after iteration ``t`` = 1, 2, ..."""

    @abstractmethod
    def observables(self, state: Any, problem: Problem, t: int) -> Mapping[str, np.ndarray]:
        """Quantities of a state: ``internal`` and ``released`` iterates, and what else there is."""

    def outcome(
        self, state: Any, problem: Problem, network: Network, t: int
    ) -> Mapping[str, np.ndarray]:
        """Quantities that exist only once a setting has ended."""
        return {}

    # What audits ask for.

    def noise_sites(self, problem, network, horizon):
        """The draw of each iteration, where one series of releases says what it costs.

        In units of the draw, whatever the releases are stated in: of the gradient, of the message.
        """
        noisy = [r for r in self.releases(problem, network, horizon) if r.mechanism in DENSITIES]
        whole = [r for r in noisy if max(np.size(r.losses()), r.count) == horizon]
        if len(noisy) != 1 or not whole:
            return []
        (release,) = whole
        if release.sampling is not None:  # the cost of a record depends on the batches
            moved = np.full(horizon, np.nan)
        else:
            moved = np.broadcast_to(release.losses(), horizon)
        ones = np.ones((horizon, 1, 1))
        return [NoiseSite(DRAW, release.mechanism, ones, release.norm, moved)]

    def residual(
        self, scale: Any, state: Any, problem: Any, network: Any, draw: Any, shown: Any, t: int
    ) -> Residuals:
        """Noise sites and their noise in iteration t, over its scale, from the state before; none
        where no noise explains what was sent.

        ``scale`` maps sites to their scale in this iteration, ``shown`` has what was ``sent`` in
        it, and ``internal`` (None where that is not to be used).
        """
        take = partial(self._sent_with, state, problem, network, draw, t)
        if DRAW not in scale:
            return {"message": (shown.sent - take(0.0)) / scale["message"]}
        unit = explained(take, shown.sent) if _noise_of(draw) is not None else None
        return {} if unit is None else {DRAW: unit}

    def _sent_with(self, state, problem, network, draw, t: int, unit: Any) -> np.ndarray:
        """Return the message of an iteration under given noise, [runs, agents, dim]."""
        noise = without_noise(draw)
        if np.any(unit):
            noise = self.with_residual(draw, {DRAW: unit + np.zeros(np.shape(_noise_of(draw)))})
        after = self.step(state, problem, network, noise, t)
        return self.observables(after, problem, t)["released"][0]

    def with_residual(self, draw: Any, found: Residuals) -> Any:
        """The draw with which the same step sends what was sent."""
        (unit,) = found.values()
        if isinstance(draw, np.ndarray):
            return filled(unit, draw)
        return draw._replace(noise=filled(unit, draw.noise))

    def residuals(self, problem, network, streams, execution):
        """The steps are taken again, each with the noise that explains what was sent, as long as
        there is such noise."""
        horizon = execution.sent.shape[1]
        sites = self.noise_sites(problem, network, horizon)
        if not sites:
            return
        scales = {
            site.name: np.broadcast_to(site.scale, (horizon, *np.shape(site.scale)[1:]))
            for site in sites
        }
        batch = stack([self])
        state = batch.without_diagnostics(batch.start(problem, network, streams, 1))
        draws = batch.draws_on(problem, network, streams)
        for t in range(1, horizon + 1):
            draw = next(draws)
            scale = {name: values[t - 1] for name, values in scales.items()}
            shown = execution.at(t)
            found = batch.residual(scale, state, problem, network, draw, shown, t)
            yield found
            if not found:
                return
            state = batch.step(state, problem, network, batch.with_residual(draw, found), t)

    def run(self, problem, network, streams, horizon, observe):
        horizon = np.asarray(horizon)
        active = np.arange(len(horizon))
        algorithm = self
        state = self.start(problem, network, streams, len(horizon))
        if getattr(observe, "messages_alone", False):
            state = self.without_diagnostics(state)
        draws = self.draws_on(problem, network, streams)
        asks = getattr(observe, "asks", lambda t, active: True)
        for t in range(1, int(horizon.max()) + 1):
            state = algorithm.asked(state, asks(t, active))
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

    def asked(self, state: Any, anyone: bool) -> Any:
        """The state before an iteration that anyone looks at, or else nobody: what only an observer
        needs has not to be made then."""
        return state

    def without_diagnostics(self, state: Any) -> Any:
        """The first state for those who look at messages alone, as audits do: None in place of what
        no message depends on, which steps then leave out."""
        return state

    def select(self, chosen: np.ndarray) -> Self:
        """The batch restricted to some of its settings."""
        values = parameters(self).items()
        batched = {name: value[chosen] for name, value in values if isinstance(value, np.ndarray)}
        return replace(self, **batched)


def _log_gaussian(unit: np.ndarray) -> np.ndarray:
    return -np.nansum(unit**2, axis=(-2, -1)) / 2


def _log_laplace(unit: np.ndarray) -> np.ndarray:
    return -np.nansum(np.abs(unit), axis=(-2, -1))


def _log_gamma_norm(unit: np.ndarray) -> np.ndarray:
    return -np.linalg.norm(np.nan_to_num(unit), axis=-1).sum(-1)


DENSITIES = {"gaussian": _log_gaussian, "laplace": _log_laplace, "gamma_norm": _log_gamma_norm}
"""By law, the logarithm of the density of unit noise [runs, agents, dim], up to a constant."""


DRAW = "draw"
"""Site of an algorithm that states releases and no sites: the draw that its step is given."""
FAR = 8.0
"""Units of noise up to which a message has to follow."""
ROUNDING = 1e-5
"""Relative, of an algorithm that may compute in 32 bits."""


def explained(sent_with: Callable[[Any], np.ndarray], sent: np.ndarray) -> np.ndarray | None:
    """Return the unit noise with which a step sends ``sent``; None if there is none.

    Parameters
    ----------
    sent_with : callable
        Maps unit noise to a message. It has to be affine in each coordinate separately: the noise
        of messages that are clipped, rounded or averaged afterwards is not known.
    sent : ndarray, shape (runs, agents, dim)

    Returns
    -------
    ndarray or None
        NaN in coordinates that the noise does not change.
    """
    bare = sent_with(0.0)
    response = sent_with(1.0) - bare
    silent = response == 0
    if silent.all():
        return None
    near = ROUNDING * (np.abs(response).max() + np.abs(bare).max())
    uneven = FAR * np.cos(np.arange(response.size)).reshape(response.shape)
    if not np.allclose(sent_with(uneven), bare + uneven * response, rtol=ROUNDING, atol=near):
        return None
    unit = np.where(silent, 0.0, sent - bare) / np.where(silent, 1.0, response)
    if not np.allclose(sent_with(unit), sent, rtol=ROUNDING, atol=near):
        return None
    return np.where(silent, np.nan, unit)


def _noise_of(draw: Any) -> np.ndarray | None:
    noise = draw if isinstance(draw, np.ndarray) else getattr(draw, "noise", None)
    return noise if isinstance(noise, np.ndarray) else None


def filled(unit: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """Noise that was found, and as it was drawn where it does not show."""
    return np.where(np.isnan(unit), drawn, unit)


def moved(now: np.ndarray, before: np.ndarray) -> np.ndarray:
    """Return where two values differ by more than rounding."""
    return ~np.isclose(now, before, rtol=1e-9, atol=1e-12)


def without_noise(draw: Any) -> Any:
    """The same draw without its noise; what is random beside it stays."""
    if isinstance(draw, np.ndarray):
        return np.zeros_like(draw)
    if not hasattr(draw, "noise"):
        return draw
    return draw._replace(noise=_zeros_like(draw.noise))


def _zeros_like(noise: Any) -> Any:
    if isinstance(noise, tuple):
        return tuple(map(np.zeros_like, noise))
    return np.zeros_like(noise)


def origin(problem: Problem, streams: Streams, settings: int) -> np.ndarray:
    """Iterates at 0, [settings, runs, agents, dim]."""
    return np.zeros((settings, len(streams.runs), problem.n_agents, problem.dim))


def normal_start(problem: Problem, streams: Streams, settings: int, std: Any) -> np.ndarray:
    """Starting points: standard normal draws times ``std``, the same for all algorithms."""
    unit = streams.draw("data", "normal", (problem.n_agents, problem.dim), "start")
    shape = (settings, *unit.shape)
    return np.broadcast_to(column(std) * unit, shape).copy()


def parameters(algorithm: Algorithm) -> dict[str, Any]:
    """Values of all fields as a configuration states them: of a noise its scale."""
    values = {f.name: getattr(algorithm, f.name) for f in fields(algorithm)}
    return {name: v.scale if isinstance(v, Noise) else v for name, v in values.items()}


def unstable_steps(algorithm: Algorithm, problem: Problem) -> dict[str, tuple[float, float]]:
    """Return the step sizes above 2/L, with which gradient descent diverges.

    Parameters
    ----------
    algorithm : Algorithm
        Its step sizes are the parameters that :attr:`Algorithm.ranges` states in units of 1/L.
    problem : Problem
        L is its largest ``smoothness``.

    Returns
    -------
    dict of str to (float, float)
        For each such parameter, its first value and 2/L.
    """
    smoothness = getattr(problem, "smoothness", None)
    if smoothness is None:
        return {}
    largest = 2.0 / float(np.max(smoothness))
    values = parameters(algorithm)
    steps = {
        name: float(np.max(values[name]))
        for name, tuned in algorithm.ranges.items()
        if tuned.unit == STEP and values.get(name) is not None
    }
    return {name: (step, largest) for name, step in steps.items() if step > largest}


def structure(algorithm: Algorithm) -> tuple:
    """Return the common part of settings of one batch: all but numbers and calibration switches."""
    calibrating = {f.name for f in fields(algorithm) if FOR_CALIBRATION.keys() & f.metadata.keys()}
    values = ((n, v) for n, v in parameters(algorithm).items() if n not in calibrating)
    return (type(algorithm), *((name, value) for name, value in values if not _is_number(value)))


def stack(settings: Sequence[Algorithm]) -> Algorithm:
    """Stack settings of equal structure; numbers become arrays with the settings axis."""
    first = settings[0]
    if any(structure(setting) != structure(first) for setting in settings):
        raise ValueError("settings of different structure do not stack")
    given = [parameters(setting) for setting in settings]
    stacked = {
        name: _stack_values([one[name] for one in given])
        for name, value in given[0].items()
        if _is_number(value)
    }
    return replace(first, **stacked)


def join_runs(algorithms: Sequence[Algorithm]) -> Algorithm:
    """Join the copies of a setting for each run; numbers that differ become arrays [runs, 1, 1].

    Raises
    ------
    ValueError
        Where the copies differ in anything but scalars.
    """
    first = algorithms[0]
    if all(one is first for one in algorithms):  # as on graphs that make no difference
        return first
    if any(structure(one) != structure(first) for one in algorithms):
        raise ValueError("runs of different structure do not join")
    changed, given = {}, [parameters(one) for one in algorithms]
    for name in given[0]:
        values = [one[name] for one in given]
        if not _is_number(values[0]) or all(np.array_equal(v, values[0]) for v in values):
            continue
        if any(np.ndim(value) for value in values):
            raise ValueError(f"{name}: only scalars of different runs join")
        changed[name] = np.reshape(values, (-1, 1, 1))
    return replace(first, **changed) if changed else first


def _stack_values(values: list[Any]) -> np.ndarray:
    shape = np.broadcast_shapes(*(np.shape(value) for value in values))
    return np.stack([np.broadcast_to(value, shape) for value in values])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number | np.ndarray) and not isinstance(value, bool)


def _take(state: Any, chosen: np.ndarray) -> Any:
    return type(state)(*(None if array is None else array[chosen] for array in state))
