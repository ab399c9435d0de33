"""Faults in steps: gradients, minimisers, clipping and noise that violate the declaration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from private_consensus.core.algorithms.families.decentralized_sgd import at

from .tampering import Answered, OwnNoise, dressed

STEPS = 40.0
"""Length of a normalised gradient step, in units of the change by a record."""
STRIDE = 400.0
"""Length of a normalised step to a minimiser, in units of the change by a record."""


def own_step(problem) -> dict[str, Callable]:
    """Return a gradient of constant norm, independent of that of the true gradient."""

    def gradient(x):
        gradients = problem.gradient(x)
        length = np.linalg.norm(gradients, axis=-1, keepdims=True)
        return STEPS * problem.record_gradient_change * gradients / np.maximum(length, 1e-12)

    return {"gradient": gradient}


def own_stride(problem) -> dict[str, Callable]:
    """Return a proximal step of constant length in the direction of the minimiser."""

    def proximal(linear, penalty, centre, start, *tolerance, **options):
        displacement = (
            problem.proximal(linear, penalty, centre, start, *tolerance, **options) - centre
        )
        length = np.linalg.norm(displacement, axis=-1, keepdims=True)
        reach = STRIDE * problem.record_gradient_change / penalty
        return centre + reach * displacement / np.maximum(length, 1e-12)

    return {"proximal": proximal}


def weighed(problem) -> dict[str, Callable]:
    """Return gradients, minimisers and data with an undeclared weight of 2."""

    def gradient(x):
        return 2.0 * problem.gradient(x)

    def proximal(linear, penalty, centre, start, *tolerance, **options):
        scaled_arguments = linear / 2.0, penalty / 2.0, centre, start
        return problem.proximal(*scaled_arguments, *tolerance, **options)

    def data(t, unit):
        return 2.0 * problem.data(t, unit)

    return {"gradient": gradient, "proximal": proximal, "data": data}


def weighted_in_step(weight: float) -> type:
    """Return a class whose steps multiply the gradients of all records by ``weight``."""

    class Weighted:
        def step(self, state, problem, network, draw, t):
            weighted = Answered(problem, gradient=lambda x: weight * problem.gradient(x))
            return super().step(state, weighted, network, draw, t)

    return Weighted


def doubled(problem) -> dict[str, Callable]:
    """Return clipped gradients multiplied by 2."""

    def clipped_gradient(*arguments, **options):
        clipped = problem.clipped_gradient(*arguments, **options)
        clipped *= 2.0
        return clipped

    return {"clipped_gradient": clipped_gradient}


def lengths(gradients: np.ndarray) -> np.ndarray:
    return np.linalg.norm(gradients, axis=-1, keepdims=True)


class ClipsAfterNoise(OwnNoise):
    """Algorithm that :class:`ClippedAfterNoise` runs: the mean is clipped after its noise."""

    def sampled_gradient(self, s, x, problem, round_, clip):
        sizes = self.sizes(s, round_.speeds)
        gradient = problem.clipped_gradient(x, round_.rows, sizes, np.inf, round_.gradient)
        gradient += self.noise_of_round(s, sizes, round_)
        gradient /= np.maximum(1.0, lengths(gradient) / float(at(self.K, s)))
        return gradient, sizes


class ClippedAfterNoise:
    """Fault: the noisy mean is clipped instead of the gradients of the records."""

    def run(self, problem, network, streams, horizon, observe):
        runs = dressed(self, self.honest, ClipsAfterNoise)
        runs.run(problem, network, streams, horizon, observe)


class ClippedMean:
    """Fault: the mean is clipped instead of the gradients of the records."""

    def sampled_gradient(self, s, x, problem, round_, clip):
        gradient, sizes = super().sampled_gradient(s, x, problem, round_, np.inf)
        gradient /= np.maximum(1.0, lengths(gradient) / float(at(self.K, s)))
        return gradient, sizes


# Faults in the addition of noise: an audit that repeats the steps repeats these faults.

QUIET_LENGTH = 0.9
"""Norm of the gradient at 0 below which noise is omitted, in units of the change by a record."""
LOUD_SHARE = 0.2
"""Norm of the gradient at 0 above which noise is omitted, in changes by all records."""

Addition = Callable[[np.ndarray, int, Any], np.ndarray]
"""Function of unit noise [runs, agents, ...], iteration and problem; returns the added noise."""


def noise_added(addition: Addition) -> type:
    """Return a class whose steps change their noise by ``addition``."""

    class NoiseAdded:
        def step(self, state, problem, network, draw, t):
            added = with_noise(draw, lambda unit: addition(unit, t, problem))
            return super().step(state, problem, network, added, t)

    return NoiseAdded


def with_noise(draw, change: Callable[[np.ndarray], np.ndarray]):
    """Return a draw whose noise is changed by a function."""
    if isinstance(draw, np.ndarray):
        return change(draw)
    if hasattr(draw, "keys") and isinstance(draw.keys, dict):
        units = {name: change(draw.keys[name]) for name in ("units", "discrete")
                 if np.ndim(draw.keys.get(name)) == 3}  # fmt: skip
        return draw._replace(keys=draw.keys | units)
    noise = draw.noise
    if isinstance(noise, tuple):
        return draw._replace(noise=tuple(change(unit) for unit in noise))
    return draw._replace(noise=change(noise))


def factor_of(unit: np.ndarray, agent: int, factor: float) -> np.ndarray:
    """Multiply the noise of one agent, also of its pairs [runs, agents, agents, dim]."""
    changed = np.array(unit, float)
    changed[:, agent] *= factor
    if unit.ndim == 4 and unit.shape[1] == unit.shape[2]:
        other_agents = np.arange(unit.shape[2]) != agent
        changed[:, other_agents, agent] *= factor
    return changed


def added_half(unit, t, problem):
    return 0.5 * unit


def added_half_by_agent_1(unit, t, problem):
    return factor_of(unit, 1, 0.5)


def added_by_all_but_the_last(unit, t, problem):
    return factor_of(unit, unit.shape[1] - 1, 0.0)


def added_to_all_but_the_last_coordinate(unit, t, problem):
    changed = np.array(unit, float)
    changed[..., -1] = 0.0
    return changed


def added_in_all_rounds_but_the_second(unit, t, problem):
    return unit * (t != 2)


def added_by_agent_1_as_by_agent_0(unit, t, problem):
    changed = np.array(unit, float)
    changed[:, 1] = changed[:, 0]
    return changed


def added_by_the_last_from_a_constant_seed(unit, t, problem):
    changed = np.array(unit, float)
    changed[:, -1] = np.random.default_rng(t).standard_normal(changed[0, -1].shape)
    return changed


def added_with_a_falling_scale(unit, t, problem):
    return unit / t


def gradients_at_0(problem) -> np.ndarray:
    """Return the norm of each agent's gradient at 0 in the first run, [agents, 1]."""
    lengths_at_0 = lengths(problem.gradient(np.zeros((1, 1, problem.n_agents, problem.dim))))
    return lengths_at_0.reshape(-1, problem.n_agents, 1)[0]


def added_unless_gradients_vanish(unit, t, problem):
    """Return noise that is 0 for agents with a short gradient at 0."""
    short = gradients_at_0(problem) < QUIET_LENGTH * problem.record_gradient_change
    return unit * ~short.reshape(1, -1, *(1,) * (unit.ndim - 2))


def added_unless_gradients_are_long(unit, t, problem):
    """Return noise that is 0 for agents with a long gradient at 0."""
    max_norm = problem.records * problem.record_gradient_change
    long = gradients_at_0(problem) > LOUD_SHARE * max_norm
    return unit * ~long.reshape(1, -1, *(1,) * (unit.ndim - 2))


def signed_by_data(unit, t, problem):
    """Return noise multiplied by a sign that depends on data; its distribution stays."""
    point = np.full((1, 1, problem.n_agents, problem.dim), 0.25)
    slope = np.asarray(problem.gradient(point)).reshape(-1, problem.n_agents, problem.dim)[0]
    signs = np.where(slope[:, 0] > 0, 1.0, -1.0)
    return unit * signs.reshape(1, -1, *(1,) * (unit.ndim - 2))


class NoiseTold:
    """Fault: agents exchange the noise of each step after the step."""

    def step(self, state, problem, network, draw, t):
        after = super().step(state, problem, network, draw, t)
        with_noise(draw, lambda unit: told(network, unit))
        return after


def told(network, unit: np.ndarray) -> np.ndarray:
    """Exchange the noise of all agents."""
    network.mix(unit[None] if unit.ndim == 3 else unit.sum(-2)[None])
    return unit
