r"""Epsilon by observer, of algorithms of the papers that are linear in inputs and noise.

=====================================  ====================================  =================
algorithm                              view                                  rule
=====================================  ====================================  =================
``gradient_descent``, mean estimation  linear, public curvature in the       contraction
                                       loop; the projection contracts
``gradient_descent``, other losses     gradients react to hidden noise       light cone
``pdop``                               gradients react to hidden noise       light cone
``dp_ci``                              measurements react to nothing         exact (Laplace)
=====================================  ====================================  =================

Of all others :func:`observed_system` says why they do not fit; for them what the eavesdropper
learns bounds what any agent does.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ..algorithms.dp_ci import DPCI, coupling
from ..algorithms.gradient_descent import GradientDescent, first_step
from ..algorithms.pdop import PrivateDistributedOptimisation
from ..errors import InvalidInput, require
from ..privacy import Release, account, gaussian_epsilon
from ..privacy.observers import (
    Changes,
    Coalition,
    Constant,
    Eavesdropper,
    Free,
    Inputs,
    LinearSystem,
    Observer,
    Once,
    Round,
    SecureSums,
    laplace_epsilon,
    noised_descent,
    statement,
)
from ..privacy.observers.absorption import own_ratio_table
from ..privacy.observers.adaptivity import light_cone
from ..privacy.observers.systems import Broadcast
from ..problems.mean_estimation import MeanEstimation

NOT_LINEAR = {
    "LocallyPrivateGradientDescent": "weights are random or chosen by the largest difference",
    "ImprovedPlausiblyPrivateADMM": "whether a message is sent depends on private data",
    "DZOA": "the law of its noise is not known",
    "QDPSGD1": "messages are quantised and the agent goes on from its own state without noise",
    "QDPSGD2": "messages are quantised and the agent goes on from its own state without noise",
    "SDMDSGD": "random masks, and the agent goes on from its own state without noise",
    "FunctionalMechanism": "one agent, one output: there are no partial views",
}
MOST_BUDGETS = 3000
"""Rounds times agents up to which the contraction bound is minimised."""


@dataclass(frozen=True)
class ObservedSystem:
    """An algorithm with its noise set, as partial views see it.

    Parameters
    ----------
    channels : tuple of LinearSystem
        One for each direction in which a private input can change.
    changes : Changes
        Of the neighbouring relation of the algorithm, in the norm that its noise hides.
    inputs : Inputs
    law : {"gaussian", "laplace"}
    last_states : bool
        Whether rounds without noise follow, of any number.
    """

    channels: tuple[LinearSystem, ...]
    changes: Changes
    inputs: Inputs
    law: str = "gaussian"
    last_states: bool = False


@dataclass(frozen=True)
class ObservedEpsilon:
    """Epsilon of one pair, by the formula for inputs as given, and what is guaranteed."""

    formula: float
    guarantee: float
    rule: str


def observed_system(algorithm, problem, network, horizon: int) -> ObservedSystem:
    """The rounds of an algorithm on a problem and one fixed graph.

    Raises
    ------
    InvalidInput
        For an algorithm that does not fit, with what stands against it; for a graph that changes
        from run to run; for noise 0.
    """
    fixed = network.mixing.ndim == 2
    require(fixed, "network", network.mixing.shape, "one fixed graph for all runs")
    if isinstance(algorithm, GradientDescent):
        return _gradient_descent(algorithm, problem, network, horizon)
    if isinstance(algorithm, PrivateDistributedOptimisation):
        return _pdop(algorithm, problem, network, horizon)
    if isinstance(algorithm, DPCI):
        return _dp_ci(algorithm, problem, network, horizon)
    names = [kind.__name__ for kind in type(algorithm).__mro__]
    reason = next((NOT_LINEAR[name] for name in names if name in NOT_LINEAR), "not worked out")
    expected = f"an algorithm whose partial views are known; here: {reason}"
    raise InvalidInput("algorithm", names[0], expected)


def epsilon_for(
    observed: ObservedSystem, observer: Observer, victim: int, delta: float
) -> ObservedEpsilon:
    """Epsilon of what one agent's data show to an observer.

    Parameters
    ----------
    delta : float
        Of the guarantee. The linear program for Laplace noise gives pure privacy, whatever delta.
    """
    return _in_epsilon([_measured(observed, observer, victim, delta)], observed.law, delta)[0]


def _measured(
    observed: ObservedSystem, observer: Observer, victim: int, delta: float
) -> ObservedEpsilon:
    """As :func:`epsilon_for`, of Gaussian noise in mu."""
    if observed.law == "laplace":
        return _laplace(observed, observer, victim, delta)
    (system,) = observed.channels
    inputs = observed.inputs
    if system.horizon * system.n_agents > MOST_BUDGETS:
        inputs = Inputs(react=inputs.react)
    found = statement(system, observer, victim, observed.changes, inputs)
    return ObservedEpsilon(found.open_loop.upper, found.mu, found.rule)


def _in_epsilon(found: list[ObservedEpsilon], law: str, delta: float) -> list[ObservedEpsilon]:
    if law == "laplace":
        return found
    values = gaussian_epsilon([[one.formula, one.guarantee] for one in found], delta)
    return [
        ObservedEpsilon(float(formula), float(guarantee), one.rule)
        for one, (formula, guarantee) in zip(found, values, strict=True)
    ]


def epsilon_by_observer(
    algorithm, problem, network, horizon: int, delta: float
) -> list[dict[str, object]]:
    """For each kind of observer the worst and the median pair, beside the eavesdropper.

    The median is over ordered pairs and no guarantee for any of them.

    Returns
    -------
    list of dict
        ``observer``, ``pair``, ``formula``, ``guarantee``, ``rule``.
    """
    observed = observed_system(algorithm, problem, network, horizon)
    n, more = network.n_agents, {"last_states": observed.last_states}
    kinds = {
        "eavesdropper": [Eavesdropper()],
        "agent": [Coalition((v,), **more) for v in range(n)],
        "secure sums": [SecureSums((v,), **more) for v in range(n)],
    }
    rows = []
    for name, observers in kinds.items():
        found = [
            _measured(observed, observer, u, delta)
            for observer in observers
            for u in range(n)
            if u not in observer.members
        ]
        found.sort(key=lambda one: one.guarantee)
        pairs = {"worst": found[-1]}
        if name != "eavesdropper":
            pairs["median"] = found[len(found) // 2]
        shown = _in_epsilon(list(pairs.values()), observed.law, delta)
        rows += [
            {"observer": name, "pair": pair, **vars(one)}
            for pair, one in zip(pairs, shown, strict=True)
        ]
    return rows


def by_distance(
    algorithm, problem, network, horizon: int, delta: float, observer: int
) -> list[dict[str, object]]:
    """What one agent learns about every other one, the nearest first.

    Returns
    -------
    list of dict
        ``agent``, ``distance``, ``formula``, ``guarantee``, ``rule``.
    """
    observed = observed_system(algorithm, problem, network, horizon)
    view = Coalition((observer,), last_states=observed.last_states)
    view.check(network.n_agents)
    distances = _distances(network.adjacency, observer)
    others = [int(u) for u in np.argsort(distances, kind="stable") if u != observer]
    found = _in_epsilon([_measured(observed, view, u, delta) for u in others], observed.law, delta)
    return [
        {"agent": u, "distance": int(distances[u]), **vars(one)}
        for u, one in zip(others, found, strict=True)
    ]


def _distances(adjacency: np.ndarray, start: int) -> np.ndarray:
    """Links on the shortest way from one agent to each."""
    distances = np.full(len(adjacency), len(adjacency))
    reached = np.arange(len(adjacency)) == start
    for step in range(len(adjacency)):
        distances[reached] = np.minimum(distances[reached], step)
        reached = reached | adjacency[reached].any(0)
    return distances


def _laplace(
    observed: ObservedSystem, observer: Observer, victim: int, delta: float
) -> ObservedEpsilon:
    require(not observed.last_states, "observer.last_states", True, "no rounds without noise")
    if observed.inputs.react:
        bound = _laplace_light_cone(observed, observer, victim, delta)
        return ObservedEpsilon(float("nan"), bound, "light_cone")
    parts = [
        laplace_epsilon(system, observer, victim, observed.changes) for system in observed.channels
    ]
    return ObservedEpsilon(max(parts), max(parts), "exact")


def _laplace_light_cone(observed, observer, victim: int, delta: float) -> float:
    """The victim's own messages, in rounds that can still arrive, by the accountant."""
    (system,) = observed.channels
    arrives = light_cone(system, observer)[:, victim]
    ratios = own_ratio_table(system, observer, [victim])[:, 0]
    patterns = observed.changes.patterns(system.horizon)
    losses = [np.where(arrives & (sizes > 0), ratios * sizes, 0.0) for sizes in patterns]
    return max(_composed(tuple(map(float, loss)), delta) for loss in losses)


@lru_cache(maxsize=256)
def _composed(losses: tuple[float, ...], delta: float) -> float:
    return account([Release("laplace", np.array(losses), np.ones(len(losses)))], delta).epsilon


def _gradient_descent(algorithm, problem, network, horizon: int) -> ObservedSystem:
    require(algorithm.noise > 0, "algorithm.noise", algorithm.noise, "a number above 0")
    repaired = algorithm.stage_two == "repaired"
    expected = "repaired: printed, Stage II shows the last iterate without noise"
    require(repaired, "algorithm.stage_two", algorithm.stage_two, expected)
    t = np.arange(1, horizon + 1)
    first = first_step(problem)
    steps, scales = first / (t + algorithm.shift), algorithm.noise * first * t**-algorithm.decay
    change = problem.record_gradient_change
    options = {"gain": steps, "noise": scales, "adjacency": network.adjacency}
    if isinstance(problem, MeanEstimation):
        kept = np.maximum(1 - steps * problem.records, 0.0)  # 1 - 1/(t + shift)
        moves = kept[:, None, None] * network.mixing
        system = noised_descent(network.mixing, horizon, transition=moves, **options)
        return ObservedSystem((system,), Constant(change), Inputs(expansion=1.0), last_states=True)
    system = noised_descent(network.mixing, horizon, **options)
    return ObservedSystem((system,), Free(change), Inputs(), last_states=True)


def _pdop(algorithm, problem, network, horizon: int) -> ObservedSystem:
    known = ("gaussian", "laplace")
    require(algorithm.law in known, "algorithm.law", algorithm.law, f"one of {', '.join(known)}")
    require(algorithm.noisy, "algorithm.noise", algorithm.noise, "a number above 0")
    t = np.arange(1, horizon + 1)
    gains, scales = algorithm.eta * algorithm.decay**t, algorithm.scales(horizon)
    system = noised_descent(
        network.mixing, horizon, gain=gains, noise=scales, adjacency=network.adjacency
    )
    change = problem.record_change("l1" if algorithm.law == "laplace" else "l2")
    return ObservedSystem((system,), Free(change), Inputs(), law=algorithm.law)


def _dp_ci(algorithm, problem, network, horizon: int) -> ObservedSystem:
    """States are what was sent, n numbers an agent; one channel for each number measured."""
    require(algorithm.noise > 0, "algorithm.noise", algorithm.noise, "a number above 0")
    agents, dim = problem.n_agents, problem.dim
    sent, eye = Broadcast(network.mixing, network.adjacency), np.eye(agents * dim)
    carried = {
        "senders": np.repeat(np.arange(agents), dim),
        "receives": np.repeat(sent.heard, dim, axis=1),
        "uses": np.repeat(sent.heard.astype(float), dim, axis=1),
        "owners": np.repeat(np.eye(agents, dtype=bool), dim, axis=0),
        "kinds": np.tile(np.arange(dim), agents),
    }

    def round_(t: int, channel: int) -> Round:
        step = float(algorithm.step_size(t - 1)) if t else 0.0
        moves = eye - step * coupling(problem, network, t - 1)
        inputs = np.zeros((agents, dim, agents))
        if t:
            inputs[range(agents), :, range(agents)] = step * problem.matrices(t - 1)[:, channel]
        parts = (moves, inputs.reshape(-1, agents), float(algorithm.noise_scale(problem, t)) * eye)
        return Round(*parts, *parts, **carried)

    first = 0 if algorithm.initial_noise else 1
    systems = tuple(
        LinearSystem([round_(t, channel) for t in range(first, horizon + 1)], agents)
        for channel in range(problem.matrices(0).shape[1])
    )
    kind = Free if algorithm.unit == "stream" else Once
    return ObservedSystem(systems, kind(algorithm.delta), Inputs(react=False), law="laplace")
