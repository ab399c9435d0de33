r"""What a whole transcript says for one data set and against its neighbour.

Every message is a function of earlier messages, of the data and of noise. Whoever hears all of them
and supposes some data knows what the agent would have sent without noise, and how likely the rest
is: the logarithm of this likelihood under one data set, minus that under the other, is the best
statistic there is. It is known

* where noise is added to what is sent: of the differences to the two messages without noise;
* where it enters a minimisation: of the noises with which either data set has this minimum, see
  :mod:`.recovery`. Neighbours that differ in a label have the same Jacobian;
* of Laplace noise on an aggregate with random weights: the density of uniform plus Laplace,
  :func:`..aggregation.log_mass`.

Nothing else is known in closed form (noise in two places, minima of noisy coefficients, noise that
is not drawn once an iteration).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np

from ..aggregation import log_mass
from ..algorithms.admm import ADMM
from ..algorithms.base import stack
from ..algorithms.noise import RandomlyWeighted
from ..algorithms.pp_admm import PlausiblyPrivateADMM
from ..privacy.audit import LAWS, log_likelihood_ratio
from .recovery import noise_in_minimum, output_scales
from .transcripts import Together, repeated, silent

NEVER = 1e-12
"""Scale of no noise, relative to the largest: what is let out exactly decides."""


class Heard(NamedTuple):
    """Log-likelihood ratio of D to D', [runs] (None: not known), and messages of the agent and the
    mean of the others', along a direction, [runs, iterations, 2]."""

    ratio: np.ndarray | None
    projected: np.ndarray


def overheard(
    algorithm: Any, pair: tuple[Any, Any], world: int, network: Any, horizon: int,
    direction: np.ndarray, streams: Together,
) -> Heard:  # fmt: skip
    """Runs of one algorithm on one of two neighbouring data sets.

    Parameters
    ----------
    world : {0, 1}
        Which data set is the true one.
    """
    pair = tuple(repeated(problem, len(streams.runs)) for problem in pair)
    own = pair[world]
    draws = islice(stack([algorithm]).draws(own, streams), horizon)
    first = next(draws)
    judge = None if first is None else _judge(algorithm, pair, network, horizon)
    algorithm = _plain(algorithm)
    state = algorithm.start(own, network, streams, 1)
    total, projected = np.zeros(len(streams.runs)), []
    for t, draw in enumerate(chain([first], draws), 1):
        before, state = state, algorithm.step(state, own, network, draw, t)
        sent = broadcast(algorithm, state, own, t, horizon)
        if judge:
            total += judge(before, sent, draw, t)
        along = sent @ direction
        projected.append(np.stack([along[:, 0], along[:, 1:].mean(-1)], axis=-1))
    return Heard(total if judge else None, np.stack(projected, axis=1))


def broadcast(algorithm: Any, state: Any, problem: Any, t: int, horizon: int) -> np.ndarray:
    """What is sent in an iteration, [runs, agents, dim]; of paper 000's algorithm, the last message
    is the one that its second stage begins with."""
    if t == horizon and hasattr(algorithm, "stage_two_start"):
        return algorithm.stage_two_start(state)[0]
    return algorithm.seen(state, problem, t)["released"][0]


def _plain(algorithm: Any) -> Any:
    """A batch of one that does not add up its own losses; random weights come with the draws."""
    random = isinstance(algorithm, RandomlyWeighted)
    return stack([replace(algorithm, weights="fixed") if random else algorithm])


def _law(algorithm, problem, network, horizon: int) -> str:
    released = algorithm.releases(problem, network, horizon)[0].mechanism
    return getattr(algorithm, "law", released if released in LAWS else LAWS[0])


class Case(NamedTuple):
    """What both data sets have in common, and the two."""

    algorithm: Any
    pair: tuple[Any, Any]
    network: Any
    horizon: int
    law: str


Judge = Callable[[Any, np.ndarray, Any, int], Any]
"""From the state before, what was sent, the draw and t to the log-likelihood ratio, [runs]."""


def _judge(algorithm, pair, network, horizon: int) -> Judge | None:
    if isinstance(algorithm, PlausiblyPrivateADMM):
        return None
    law = _law(algorithm, pair[0], network, horizon)
    case = Case(algorithm, pair, network, horizon, law)
    if isinstance(algorithm, ADMM) and algorithm.where != "output":
        return _of_minima(case)
    random = isinstance(algorithm, RandomlyWeighted) and algorithm.weights == "random"
    return _of_aggregates(case) if random else _of_messages(case)


def _of_minima(case: Case) -> Judge:
    batch = _plain(case.algorithm)
    charged = set(case.algorithm.charged(case.horizon))

    def judge(before, sent, draw, t):
        if t not in charged:
            return 0.0
        public = sent, before.dual[0], batch.centre(before, case.network, draw)[0], t
        units = (
            noise_in_minimum(case.algorithm, problem, case.network, *public)
            for problem in case.pair
        )
        return log_likelihood_ratio(*units, 1.0, law=case.law)

    return judge


def _of_messages(case: Case) -> Judge:
    bare, scales = _bare(case), _scales(case)

    def judge(before, sent, draw, t):
        residuals = (sent - bare(before, problem, draw, t) for problem in case.pair)
        return log_likelihood_ratio(*residuals, scales[t - 1], law=case.law)

    return judge


def _of_aggregates(case: Case) -> Judge:
    bare, scales = _bare(case), _scales(case)

    def judge(before, sent, draw, t):
        def end(problem, weight):
            return bare(before, problem, draw._replace(weights=weight * one), t)

        one = np.ones_like(draw.weights)
        lows = [end(problem, 0.0) for problem in case.pair]
        span = end(case.pair[0], 1.0) - lows[0]  # public: data move the interval only
        first, second = (
            log_mass(np.abs(sent - low - span / 2), np.abs(span), 1.0 / scales[t - 1])
            for low in lows
        )
        return (first - second).sum((-1, -2))

    return judge


def _bare(case: Case) -> Callable[[Any, Any, Any, int], np.ndarray]:
    """What would have been sent without noise, [runs, agents, dim]."""
    batch = _plain(case.algorithm)

    def bare(before, problem, draw, t):
        after = batch.step(before, problem, case.network, silent(draw), t)
        return broadcast(batch, after, problem, t, case.horizon)

    return bare


def _scales(case: Case) -> np.ndarray:
    """[iterations, agents, 1]."""
    scales = output_scales(case.algorithm, case.pair[0], case.network, case.horizon)
    scales = np.broadcast_to(scales, (case.horizon, case.pair[0].n_agents, 1))
    return np.maximum(scales, NEVER * (scales.max() or 1.0))
