"""Algorithms of the registry as linear systems: messages, states and noise.

A system is built from the calibrated algorithm, with its steps, weights and scales. Linear are
gradient methods with fixed weights, DP-CI and gossip, and ADMM on quadratic objectives with public
curvature. Projections are not linear: the formula holds while none is active, and the guarantee
holds in any case.

Only classes of the registry itself are mapped. A subclass may send other messages, and a too small
privacy loss would not be noticed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from private_consensus.common.errors import InvalidInput, require
from private_consensus.core import algorithms
from private_consensus.core.algorithms.dp_ci import coupling
from private_consensus.core.algorithms.gradient_descent import first_step
from private_consensus.core.algorithms.noise import LAWS
from private_consensus.core.networks import Network
from private_consensus.core.problems.mean_estimation import MeanEstimation
from private_consensus.privacy.observers import (
    Changes,
    Constant,
    Cyclic,
    Free,
    Inputs,
    LinearSystem,
    Once,
    Round,
    noised_descent,
)
from private_consensus.privacy.observers.systems import Broadcast

from . import admm, gossiping

OF_LINKS = {"zip_dl"}
"""Algorithms that send a different message to each neighbour."""
NOT_LINEAR = {
    "admm": "no noise is added, so that nothing is hidden",
    "canary_audit": "an audit that shows bounds and no iterates",
    "coordinate_descent": "agents do not communicate",
    "d_zoa": "the distribution of its noise is not known",
    "dgd": "no noise is added, so that nothing is hidden",
    "dp_admm": "a server averages the messages, and agents receive only the average",
    "dp_ci_moments": "moments of DP-CI without iterates; DP-CI itself is a linear system",
    "dsgd": "batches are sampled, and the perceptron's gradients are not linear",
    "fair_classification": "one agent with one output: there are no partial views",
    "ipp_admm": "whether a message is sent depends on private data",
    "ldp_subgradient": "Algorithm 2 with other step sizes; Algorithm 2 itself is a linear system",
    "logistic": "no noise is added, so that nothing is hidden",
    "one_shot_averaging": "noise once, then gossip as in Muffliato, which is a linear system",
    "pflr": "one agent with one output: there are no partial views",
    "pp_admm": "a solver may stop anywhere within its tolerance",
    "pp_admm_renyi": "a solver may stop anywhere within its tolerance",
    "q_dpsgd_1": "messages are quantised, and an agent continues from its unquantised model",
    "q_dpsgd_2": "messages are quantised, and an agent continues from its unquantised model",
    "r_admm": "every second message reuses a gradient without new noise",
    "random_aggregation": "one output, which does not depend on data",
    "release_audit": "an audit that shows bounds and no iterates",
    "sdm_dsgd": "a random set of coordinates is sent, and the agent keeps the others",
}
"""Reasons why an algorithm of the registry is not a linear system. The loss to an agent is then
bounded by distance and the accountant's guarantee (:mod:`.causal`)."""


class NotLinear(InvalidInput):
    """Error for an algorithm or setting that is not a linear system; ``reason`` states why."""

    def __init__(self, key: str, value: object, reason: str) -> None:
        super().__init__(key, value, f"an algorithm whose partial views are known; here: {reason}")
        self.reason = reason


@dataclass(frozen=True)
class ObservedSystem:
    """Calibrated algorithm as a linear system, for partial views.

    Parameters
    ----------
    channels : tuple of LinearSystem
        One system for each direction in which a private input can change.
    changes : Changes
        Changes under the neighbouring relation of the algorithm, in the norm of its noise.
    inputs : Inputs
        Reaction of the inputs to messages.
    law : {"gaussian", "laplace"}
        Distribution of the noise.
    last_states : bool
        True if rounds without noise follow, of any number, or if all models are released in the
        end.
    """

    channels: tuple[LinearSystem, ...]
    changes: Changes
    inputs: Inputs
    law: str = "gaussian"
    last_states: bool = False


def registry_name(algorithm: Any) -> str | None:
    """Return the registry's name of an algorithm; None for a class outside the registry."""
    module = type(algorithm).__module__
    package, _, name = module.rpartition(".")
    is_registered = package == algorithms.__name__ or algorithms.ANALYSES.get(name) == module
    return name if is_registered else None


def broadcasts(algorithm: Any) -> bool:
    """Return True if an agent sends the same message to all neighbours."""
    return registry_name(algorithm) not in OF_LINKS


def observed_system(algorithm: Any, problem: Any, network: Network, horizon: int) -> ObservedSystem:
    """Build the linear system of an algorithm on a problem and one fixed graph.

    Parameters
    ----------
    algorithm : Algorithm
        Calibrated algorithm.
    problem : Problem
        Problem of the agents.
    network : Network
        Fixed graph.
    horizon : int
        Number of rounds.

    Returns
    -------
    ObservedSystem

    Raises
    ------
    NotLinear
        For an algorithm that is not linear, with the reason.
    InvalidInput
        For a graph that changes between runs, and for noise 0.
    """
    require(network.shared, "network", "one graph per run", "one graph for all runs")
    name = registry_name(algorithm)
    if name not in MAPPED:
        reason = NOT_LINEAR.get(name, "its linear system is not derived")
        raise NotLinear("algorithm", type(algorithm).__name__, reason)
    noise = algorithm.noise
    require(bool(noise), "algorithm.noise", noise.scale, "a number above 0")
    return MAPPED[name](algorithm, problem, network, horizon)


def _gradient_descent(
    algorithm: Any, problem: Any, network: Network, horizon: int
) -> ObservedSystem:
    """Build the system of Showkatbakhsh et al., Algorithm 1; the last states determine Stage II."""
    if algorithm.stage_two != "repaired":
        key, value = "algorithm.stage_two", algorithm.stage_two
        raise NotLinear(key, value, "Stage II shows the last iterate without noise")
    t = np.arange(1, horizon + 1)
    first = first_step(problem)
    steps = first / (t + algorithm.shift)
    scales = algorithm.noise.scale * first * t**-algorithm.decay
    system = _mixed_gradient_steps(
        problem, network, network.mixing, steps, scales, change=problem.record_gradient_change
    )
    return replace(system, last_states=True)


def _pdop(algorithm: Any, problem: Any, network: Network, horizon: int) -> ObservedSystem:
    """Build the system of reference [45] of Xiao et al.

    The gradient is that at the mixed value, and noise is added after the projection.
    """
    _require_law(algorithm)
    steps = algorithm.eta * algorithm.decay ** np.arange(1, horizon + 1)
    change = problem.record_change(LAWS[algorithm.law].norm)
    mixing, scales = network.mixing, algorithm.noise.scales(horizon)
    return _mixed_gradient_steps(
        problem, network, mixing, steps, scales, change=change, law=algorithm.law
    )


def _ldp_gradient_descent(
    algorithm: Any, problem: Any, network: Network, horizon: int
) -> ObservedSystem:
    """Build the system of Xiao et al., Algorithm 2, with weights at their mean.

    The aggregate is the plain mean of a neighbourhood.
    """
    if algorithm.weights == "random":
        raise NotLinear("algorithm.weights", "random", "the weights of aggregates are random")
    if algorithm.aggregator == "range":
        raise NotLinear("algorithm.aggregator", "range", "the least and the largest value are used")
    _require_law(algorithm)
    members = network.adjacency + np.eye(network.n_agents)
    steps = algorithm.eta * algorithm.decay ** np.arange(1, horizon + 1)
    change = problem.record_change(LAWS[algorithm.law].norm)
    mixing, scales = members / members.sum(1, keepdims=True), algorithm.noise.scales(horizon)
    system = _mixed_gradient_steps(
        problem, network, mixing, steps, scales, change=change, law=algorithm.law
    )
    linear = isinstance(problem, MeanEstimation)  # nothing is projected here
    return replace(system, inputs=Inputs(react=False)) if linear else system


def _require_law(algorithm: Any) -> None:
    if algorithm.law not in ("gaussian", "laplace"):
        raise NotLinear("algorithm.law", algorithm.law, "coordinates of the noise are dependent")


def _mixed_gradient_steps(
    problem: Any,
    network: Network,
    mixing: np.ndarray,
    steps: np.ndarray,
    scales: np.ndarray,
    *,
    change: float,
    law: str = "gaussian",
) -> ObservedSystem:
    r"""Build the system :math:`z = W y`, :math:`y' = \mathrm{Proj}(z - \eta_t\nabla f_i(z)) + n_t`.

    The noise :math:`n_t` has scale :math:`\sigma_t`. The loss of a mean has the public curvature
    :math:`N_i`, which is part of the loop. The loop contracts up to :math:`\eta_t N_i = 2`,
    including the projection. Other gradients are fixed inputs.
    """
    options = {"gain": steps, "noise": scales, "adjacency": network.adjacency}
    horizon = len(steps)
    if not isinstance(problem, MeanEstimation):
        system = noised_descent(mixing, horizon, **options)
        return ObservedSystem((system,), Free(change), Inputs(), law=law)
    point_factor = 1 - steps * problem.records
    # A step of 1/N removes the previous state.
    point_factor = np.where(np.abs(point_factor) < 1e-15, 0.0, point_factor)
    moves = point_factor[:, None, None] * mixing
    system = noised_descent(mixing, horizon, transition=moves, **options)
    return ObservedSystem((system,), Constant(change), Inputs(expansion=1.0), law=law)


def _dp_ci(algorithm: Any, problem: Any, network: Network, horizon: int) -> ObservedSystem:
    """Build the systems of DP-CI, one for each measured number.

    The state is the last message of every agent, with n numbers per agent.
    """
    agents, dim = problem.n_agents, problem.dim
    sent, identity = Broadcast(network.mixing, network.adjacency), np.eye(agents * dim)
    carried = {
        "senders": np.repeat(np.arange(agents), dim),
        "receives": np.repeat(sent.heard, dim, axis=1),
        "uses": np.repeat(sent.heard.astype(float), dim, axis=1),
        "owners": np.repeat(np.eye(agents, dtype=bool), dim, axis=0),
        "kinds": np.tile(np.arange(dim), agents),
    }

    def round_(t: int, channel: int) -> Round:
        """Return the round of one iteration for one measured number.

        Parameters
        ----------
        t : int
            Iteration, from 0.
        channel : int
            Index of the measured number.

        Returns
        -------
        Round
        """
        step = float(algorithm.step_size(t - 1)) if t else 0.0
        moves = identity - step * coupling(problem, network, t - 1)
        inputs = np.zeros((agents, dim, agents))
        if t:
            inputs[range(agents), :, range(agents)] = step * problem.matrices(t - 1)[:, channel]
        matrices = (
            moves,
            inputs.reshape(-1, agents),
            float(algorithm.noise_scale(problem, t)) * identity,
        )
        return Round(*matrices, *matrices, **carried)

    first = 0 if algorithm.initial_noise else 1
    systems = tuple(
        LinearSystem([round_(t, channel) for t in range(first, horizon + 1)], agents)
        for channel in range(problem.matrices(0).shape[1])
    )
    kind = Free if algorithm.unit == "stream" else Once
    return ObservedSystem(systems, kind(algorithm.delta), Inputs(react=False), law="laplace")


def _admm(algorithm: Any, problem: Any, network: Network, horizon: int) -> ObservedSystem:
    """Build the system of ADMM for objectives of means.

    They are quadratic with the public curvature :math:`N_i`, in a box.
    """
    if not isinstance(problem, MeanEstimation):
        value = type(problem).__name__
        raise NotLinear("problem", value, "the curvature of the objectives is not public")
    reason = admm.not_linear(algorithm)
    if reason:
        raise NotLinear("algorithm", type(algorithm).__name__, reason)
    law = getattr(algorithm, "law", "gaussian")
    if law not in ("gaussian", "laplace"):
        raise NotLinear("algorithm.law", law, "coordinates of the noise are dependent")
    system = admm.quadratic_system(algorithm, problem, network, horizon)
    change = Constant(problem.record_change(LAWS[law].norm))
    inputs = Inputs(react=admm.projects(algorithm))
    return ObservedSystem((system,), change, inputs, law=law)


def _muffliato(algorithm: Any, problem: Any, network: Network, horizon: int) -> ObservedSystem:
    """Build the system of Muffliato, with one input per agent that does not depend on messages."""
    system = gossiping.averaging(algorithm, network, horizon)
    change = problem.record_change("l2") / problem.records
    return ObservedSystem((system,), Constant(change), Inputs(react=False))


def _clipped_descent(
    system_of: Callable[..., LinearSystem], *, last_states: bool = False
) -> Callable[..., ObservedSystem]:
    """Return the function that builds the system of a method with full-batch gradients.

    The noise is Gaussian, and ``system_of`` builds the rounds. Means without clipping have the
    public curvature :math:`N_i` in the loop, and no projection. Other gradients are fixed inputs.
    """

    def mapped(algorithm: Any, problem: Any, network: Network, horizon: int) -> ObservedSystem:
        """Build the linear system of a calibrated algorithm.

        Parameters
        ----------
        algorithm : Algorithm
            Calibrated algorithm.
        problem : Problem
            Problem of the agents.
        network : Network
            Fixed graph.
        horizon : int
            Number of rounds.

        Returns
        -------
        ObservedSystem
        """
        loop = isinstance(problem, MeanEstimation) and algorithm.clip is None
        point_factor = 1.0 - algorithm.eta * problem.records if loop else 1.0
        system = system_of(algorithm, network, horizon, float(point_factor))
        change = algorithm.change(problem)
        period = int(getattr(algorithm, "batches", 1))
        if loop:
            changes, inputs = Constant(change), Inputs(react=False)
        else:
            changes = Free(change) if period == 1 else Cyclic(change, period=period)
            inputs = Inputs()
        return ObservedSystem((system,), changes, inputs, last_states=last_states)

    return mapped


MAPPED: dict[str, Callable[..., ObservedSystem]] = {
    "gradient_descent": _gradient_descent,
    "pdop": _pdop,
    "ldp_gradient_descent": _ldp_gradient_descent,
    "dp_ci": _dp_ci,
    "p_admm": _admm,
    "pr_admm": _admm,
    "dvp": _admm,
    "m_admm": _admm,
    "ldp_admm": _admm,
    "exact_admm": _admm,
    "muffliato": _muffliato,
    "muffliato_gd": _clipped_descent(gossiping.phases),
    "mafalda_sgd": _clipped_descent(gossiping.filtered),
    "decor": _clipped_descent(gossiping.pairwise_noise),
    "zip_dl": _clipped_descent(gossiping.cancelling_noise),
    "secure_aggregation": _clipped_descent(gossiping.summed),
    "local_training": _clipped_descent(gossiping.alone, last_states=True),
}
"""Functions that build the system from algorithm, problem, network and horizon, by name."""
