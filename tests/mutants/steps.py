"""Gradients, minimisers and clipping that are not what the sensitivity is for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from private_consensus.core.algorithms.families.decentralized_sgd import at

from .tampering import Answered, OwnNoise, dressed

STEPS = 40.0
"""Length of a step of one's own choice, in changes of a record."""
STRIDE = 400.0
"""The same of the way to a minimiser, whose direction changes less."""


def own_step(problem) -> dict[str, Callable]:
    """Steps of equal length, whatever the gradient."""

    def gradient(x):
        found = problem.gradient(x)
        length = np.linalg.norm(found, axis=-1, keepdims=True)
        return STEPS * problem.record_gradient_change * found / np.maximum(length, 1e-12)

    return {"gradient": gradient}


def own_stride(problem) -> dict[str, Callable]:
    """The same towards a minimiser: what has been found tells how far to go."""

    def proximal(linear, penalty, centre, start, *tolerance, **options):
        found = problem.proximal(linear, penalty, centre, start, *tolerance, **options) - centre
        length = np.linalg.norm(found, axis=-1, keepdims=True)
        reach = STRIDE * problem.record_gradient_change / penalty
        return centre + reach * found / np.maximum(length, 1e-12)

    return {"proximal": proximal}


def weighed(problem) -> dict[str, Callable]:
    """A weight of 2, of which no sensitivity knows."""

    def gradient(x):
        return 2.0 * problem.gradient(x)

    def proximal(linear, penalty, centre, start, *tolerance, **options):
        given = linear / 2.0, penalty / 2.0, centre, start
        return problem.proximal(*given, *tolerance, **options)

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
    """Clipped gradients, times 2."""

    def clipped_gradient(*arguments, **options):
        found = problem.clipped_gradient(*arguments, **options)
        found *= 2.0
        return found

    return {"clipped_gradient": clipped_gradient}


def each_gradient(problem, x, rows) -> np.ndarray:
    """Gradients of single records, not clipped; [agents, records, dim]."""
    one = np.ones(len(rows), int)
    parts = [problem.clipped_gradient(x, rows[:, [i]], one, np.inf) for i in range(rows.shape[1])]
    return np.stack(parts, axis=1)


def mean_of(gradients: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    taken = np.arange(gradients.shape[1]) < sizes[:, None]
    return (gradients * taken[..., None]).sum(1) / np.maximum(sizes, 1)[:, None]


def lengths(gradients: np.ndarray) -> np.ndarray:
    return np.linalg.norm(gradients, axis=-1, keepdims=True)


Clip = Callable[[np.ndarray, float], np.ndarray]
"""From gradients [agents, records, dim] and K to clipped ones."""


def clipped_otherwise(clip: Clip) -> Callable[[Any], dict[str, Callable]]:
    def make(problem):
        def clipped_gradient(x, rows, sizes, K=np.inf, out=None):
            found = mean_of(clip(each_gradient(problem, x, rows), K), sizes)
            out = np.empty_like(x) if out is None else out
            out[:] = found
            return out

        return {"clipped_gradient": clipped_gradient}

    return make


def not_at_all(gradients, K):
    """Unchanged."""
    return gradients


def by_norm(gradients, K):
    return gradients / np.maximum(1.0, lengths(gradients) / K)


def by_largest_coordinate(gradients, K):
    return np.clip(gradients, -K, K)


def by_own_median(gradients, K):
    own = np.median(lengths(gradients), axis=1, keepdims=True)
    return by_norm(gradients, own)


def only_long_ones(gradients, K):
    """The mean over those records of the batch whose gradient is long."""
    found = lengths(gradients)
    long = found >= np.median(found, axis=1, keepdims=True)
    share = long.mean(1, keepdims=True)
    return by_norm(gradients, K) * long / share


class ClipsAfterNoise(OwnNoise):
    """What :class:`ClippedAfterNoise` runs."""

    def sampled_gradient(self, s, x, problem, here, clip):
        sizes = self.sizes(s, here.speeds)
        gradient = problem.clipped_gradient(x, here.rows, sizes, np.inf, here.gradient)
        gradient += self.noise_of_round(s, sizes, here)
        gradient /= np.maximum(1.0, lengths(gradient) / float(at(self.K, s)))
        return gradient, sizes


class ClippedAfterNoise:
    """The noised mean is clipped, not the records."""

    def run(self, problem, network, streams, horizon, observe):
        runs = dressed(self, self.honest, ClipsAfterNoise)
        runs.run(problem, network, streams, horizon, observe)


class ClippedMean:
    """The mean is clipped, not the records."""

    def sampled_gradient(self, s, x, problem, here, clip):
        gradient, sizes = super().sampled_gradient(s, x, problem, here, np.inf)
        gradient /= np.maximum(1.0, lengths(gradient) / float(at(self.K, s)))
        return gradient, sizes


# Noise as it is added: an audit that takes the steps again meets these faults again.

QUIET_LENGTH = 0.9
"""Gradient at 0, in changes of a record, below which the noise is left out."""
LOUD_SHARE = 0.2
"""Gradient at 0, in changes of all records, above which the noise is left out."""

Addition = Callable[[np.ndarray, int, Any], np.ndarray]
"""From unit noise [runs, agents, ...], iteration and problem to the noise that is added."""


def noise_added(addition: Addition) -> type:
    """A class whose steps add other noise than they are given."""

    class NoiseAdded:
        def step(self, state, problem, network, draw, t):
            added = with_noise(draw, lambda unit: addition(unit, t, problem))
            return super().step(state, problem, network, added, t)

    return NoiseAdded


def with_noise(draw, change: Callable[[np.ndarray], np.ndarray]):
    """The draw with its noise changed, in whichever part an algorithm has it."""
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
    """Noise of one agent times a factor; noise of pairs [runs, agents, agents, dim] as well."""
    changed = np.array(unit, float)
    changed[:, agent] *= factor
    if unit.ndim == 4 and unit.shape[1] == unit.shape[2]:
        others = np.arange(unit.shape[2]) != agent
        changed[:, others, agent] *= factor
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
    """Length of each agent's gradient at 0, [agents, 1], of the first run."""
    lengths_at_0 = lengths(problem.gradient(np.zeros((1, 1, problem.n_agents, problem.dim))))
    return lengths_at_0.reshape(-1, problem.n_agents, 1)[0]


def added_unless_gradients_vanish(unit, t, problem):
    """No noise from an agent whose gradient at 0 is short."""
    short = gradients_at_0(problem) < QUIET_LENGTH * problem.record_gradient_change
    return unit * ~short.reshape(1, -1, *(1,) * (unit.ndim - 2))


def added_unless_gradients_are_long(unit, t, problem):
    """No noise from an agent most of whose records agree."""
    most = problem.records * problem.record_gradient_change
    long = gradients_at_0(problem) > LOUD_SHARE * most
    return unit * ~long.reshape(1, -1, *(1,) * (unit.ndim - 2))


def signed_by_data(unit, t, problem):
    """Noise with a sign of the agent's data: its distribution is symmetric and stays."""
    point = np.full((1, 1, problem.n_agents, problem.dim), 0.25)
    slope = np.asarray(problem.gradient(point)).reshape(-1, problem.n_agents, problem.dim)[0]
    signs = np.where(slope[:, 0] > 0, 1.0, -1.0)
    return unit * signs.reshape(1, -1, *(1,) * (unit.ndim - 2))


class NoiseTold:
    """The noise of each step is exchanged after it."""

    def step(self, state, problem, network, draw, t):
        after = super().step(state, problem, network, draw, t)
        with_noise(draw, lambda unit: told(network, unit))
        return after


def told(network, unit: np.ndarray) -> np.ndarray:
    """Exchange the noise of all agents."""
    network.mix(unit[None] if unit.ndim == 3 else unit.sum(-2)[None])
    return unit
