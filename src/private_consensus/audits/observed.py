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

import numpy as np

from ..algorithms.dp_ci import DPCI, coupling
from ..algorithms.gradient_descent import GradientDescent, first_step
from ..algorithms.pdop import PrivateDistributedOptimisation
from ..errors import InvalidInput, require
from ..privacy import gaussian_epsilon
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
    light_cone_bound,
    noised_descent,
    statement,
)
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
        Of the guarantee; Laplace noise is accounted at delta 0.
    """
    return _in_epsilon([_measured(observed, observer, victim)], observed.law, delta)[0]


def _measured(observed: ObservedSystem, observer: Observer, victim: int) -> ObservedEpsilon:
    """As :func:`epsilon_for`, of Gaussian noise in mu."""
    if observed.law == "laplace":
        return _laplace(observed, observer, victim)
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
            _measured(observed, observer, u)
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


def _laplace(observed: ObservedSystem, observer: Observer, victim: int) -> ObservedEpsilon:
    require(not observed.last_states, "observer.last_states", True, "no rounds without noise")
    if observed.inputs.react:
        bound = _laplace_light_cone(observed, observer, victim)
        return ObservedEpsilon(float("nan"), bound, "light_cone")
    parts = [
        laplace_epsilon(system, observer, victim, observed.changes) for system in observed.channels
    ]
    return ObservedEpsilon(max(parts), max(parts), "exact")


def _laplace_light_cone(observed, observer, victim: int) -> float:
    """Losses of the victim's own messages, in rounds that can still arrive, added up."""
    (system,) = observed.channels
    arrives = light_cone(system, observer)[:, victim]
    sizes = observed.changes.patterns(system.horizon)
    single = (np.where(np.arange(system.horizon) == t, 1.0, 0.0) for t in np.flatnonzero(arrives))
    costs = np.zeros(system.horizon)
    for mask in single:
        costs += mask * light_cone_bound(system, observer, victim, Free(mask))
    return float(max((costs * pattern).sum() for pattern in sizes))


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
