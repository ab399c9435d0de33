"""Data sets of linear observation: streams of measurements."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from private_consensus.core.problems.linear_observation import LinearObservation


@dataclass(frozen=True)
class Measured(LinearObservation):
    """Observations whose measurements of one agent are moved, at one time or at all times."""

    agent: int = 0
    at: int | None = None
    moved: Any = 0.0

    def data(self, t: float, unit: np.ndarray) -> np.ndarray:
        values = np.array(super().data(t, unit))
        if self.at is None or self.at == t:
            values[..., self.agent, :] += self.moved
        return values


def measurements(
    problem: LinearObservation, change: float, unit: str, rng: np.random.Generator, horizon: int
) -> Iterator[tuple[Any, Any, int, str]]:
    """Yield pairs of measurements that differ by the largest change, without end.

    ``change`` is the largest change of a measurement in the l1 norm. If ``unit`` is "stream", all
    measurements of the agent differ, else one.
    """
    constants = {f.name: getattr(problem, f.name) for f in fields(LinearObservation) if f.init}
    number = 0
    while True:
        agent = number % problem.n_agents
        at = None if unit == "stream" else int(rng.integers(0, horizon))
        rows = np.abs(problem.matrices(0 if at is None else at))[agent].sum(-1)
        moved = np.zeros(len(rows))
        moved[int(rows.argmax()) if number < 4 * problem.n_agents else rng.integers(len(rows))] = 1
        sign = rng.choice([-1.0, 1.0])
        first, second = (
            Measured(**constants, agent=agent, at=at, moved=factor * change * sign * moved)
            for factor in (0.0, 1.0)
        )
        where = "all measurements" if at is None else f"measurement {at}"
        yield first, second, agent, f"{where} of agent {agent}"
        number += 1
