"""Faults in random draws: changes of unit noise and of seeds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from private_consensus.core.randomness import Streams

from .tampering import Change, fingerprint


def times(factor: float) -> Change:
    return lambda drawn, horizon: factor * drawn[-1]


def half(drawn, horizon):
    units = drawn[-1].copy()
    units[..., ::2] = 0.0
    return units


def without(quiet: Callable[[int, int], bool]) -> Change:
    return lambda drawn, horizon: drawn[-1] * (not quiet(len(drawn), horizon))


def third_is_first(drawn, horizon):
    return drawn[0] if len(drawn) == 3 else drawn[-1]


def second_agent_is_first(drawn, horizon):
    units = drawn[-1].copy()
    units[:, 1] = units[:, 0]
    return units


def taken_back(drawn, horizon):
    return drawn[-1] - drawn[-2] if len(drawn) > 1 else drawn[-1]


def one_for_all_coordinates(drawn, horizon):
    return np.broadcast_to(drawn[-1][..., :1], drawn[-1].shape).copy()


def another_order(drawn, horizon):
    """Return noise in which agent 1 has the reversed and negated noise of agent 0."""
    units = drawn[-1].copy()
    backwards = units[..., ::-1] if units.ndim > 2 else units
    units[:, 1] = -backwards[:, 0]
    return units


def folded(drawn, horizon):
    """Return noise without values above 2: larger values are halved until they are below 2."""
    lengths = np.maximum(np.abs(drawn[-1]), 1.0)
    return drawn[-1] / 2.0 ** np.ceil(np.log2(lengths / 2.0)).clip(0.0)


def in_nine_runs_of_ten(drawn, horizon):
    units = drawn[-1].copy()
    units[::10] = 0.0
    return units


def fixed(streams, problem) -> Streams:
    return Streams(20_260, tuple(streams.runs))


def one_seed(streams, problem) -> Streams:
    return Streams(20_260, (0,) * len(streams.runs))


def of_data(streams, problem) -> Streams:
    return Streams(fingerprint(problem), tuple(streams.runs))


def kept(drawn, horizon):
    return drawn[0]
