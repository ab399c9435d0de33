"""Check of received values: agents receive recorded messages and nothing else.

The algorithm is executed on D and on D' with equal messages of the attacked agent
(:mod:`.replay`). Every message and iterate of every other agent then has to be equal. A difference
is a value of the attacked agent that reached another agent without being a message: by indexing, by
a matrix product outside of the network, or as a mean of all agents' states.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from private_consensus.core.algorithms.base import Algorithm

from .neighbours import Attack
from .replay import RELEASED, RUNS, Replays, Trace, equal, replays, tolerance_until
from .result import DIFFERS, CheckReport, Finding, Untested, listed

SITE = "values that agents receive"
MAX_LISTED = 5


Values = dict[tuple[int, str], np.ndarray]
"""Values with one row per agent, by iteration and name."""


def audit_received_state(
    algorithm: Algorithm, attack: Attack, horizon: int, *, seed: int
) -> CheckReport:
    """Test whether values reach other agents other than as recorded messages.

    At most one finding states the first iteration, and all agents that received such a value.
    """
    agents = attack.network.n_agents
    if agents < 2:
        return CheckReport()
    runs = replays(algorithm, attack, horizon, seed=seed)
    if runs.neighbour is None:
        return CheckReport(untested=(runs.not_tested(SITE),))
    differing = _differing(runs, runs.neighbour, attack.agent, agents)
    if not differing:
        return CheckReport(sites=(SITE,))
    first = min(t for t, _, _ in differing)
    loud = _changed_by_noise(runs, attack.agent, agents)
    without_noise = sorted({(agent, name) for t, agent, name in differing
                     if t == first and (t, agent, name) not in loud})  # fmt: skip
    if not without_noise:
        reason = (
            "agents use values of other agents without network.mix, network.neighbour_sum or "
            "network.gather, and these values carry noise"
        )
        return CheckReport(untested=(Untested(SITE, reason),))
    names = ", ".join(sorted({name for _, name in without_noise}))
    receivers = sorted({agent for agent, _ in without_noise})
    text = (
        f"a value of agent {attack.agent} reaches {listed(receivers)} in iteration {first} other "
        f"than through recorded messages, and without noise (seen in {names})"
    )
    return CheckReport((Finding(DIFFERS, text),), sites=(SITE,))


def audit_presence_of_noise(
    algorithm: Algorithm, attack: Attack, horizon: int, *, seed: int
) -> CheckReport:
    """Find messages of the attacked agent that depend on data and on no noise.

    The exact costs of all pairs decide better: they are needed for agents without these.
    """
    runs = replays(algorithm, attack, horizon, seed=seed)
    texts = _without_noise(runs, attack.agent, attack.network.n_agents)
    return CheckReport(tuple(Finding(DIFFERS, text) for text in texts))


def _without_noise(runs: Replays, attacked: int, agents: int) -> Iterator[str]:
    """Yield texts about messages of the attacked agent that depend on data and on no noise."""
    neighbour = runs.neighbour
    if neighbour is None:
        return
    text = _released_without_noise(runs, neighbour, attacked, agents)
    if text:
        yield text
        return
    loud = runs.loud
    for t, unreachable in neighbour.unreachable.items():
        if unreachable and loud is not None and not loud.unreachable.get(t, False):
            yield (
                f"a combination of the messages of iteration {t} depends on the data of agent "
                f"{attacked} and carries no noise: the noise of the agents cancels"
            )
            return
    if loud is None:
        return
    of_neighbour = _exchanged(neighbour, agents)
    for (t, name), rows in _exchanged(runs.recorded, agents).items():
        neighbour_values = of_neighbour.get((t, name))
        if neighbour_values is None or rows.shape != neighbour_values.shape:
            continue
        value = partial(_exchanged_value, agents=agents, attacked=attacked, key=(t, name))
        first, second = _runs_first(rows[attacked]), _runs_first(neighbour_values[attacked])
        if runs.lacks_noise(0, first, second, value):
            yield (
                f"agent {attacked} exchanges a value in iteration {t} that carries no noise of "
                f"its own ({name})"
            )
            return


def _released_without_noise(runs: Replays, neighbour: Trace, attacked: int, agents: int) -> str:
    """Return a text about the first released message that lacks noise on D or on D'."""
    for (name, t), values in runs.recorded.outputs.items():
        neighbour_values = neighbour.sampled_release(t)
        if name != RELEASED or t == "end" or not _is_per_agent(values, agents):
            continue
        if neighbour_values is None or values.shape != neighbour_values.shape:
            continue
        silent, is_noiseless = [], True
        for coordinate in np.ndindex(values.shape[2:]):
            index = slice(None), attacked, *coordinate
            value = partial(_released_value, t=t, shape=values.shape, index=index)
            first, second = values[index], neighbour_values[index]
            missing = [
                runs.lacks_noise(0, first, second, value),
                runs.lacks_noise(1, second, first, value),
            ]
            if any(missing):
                silent.append(coordinate)
                is_noiseless = is_noiseless and all(missing)
        if silent:
            listed = ", ".join(str(*coordinate) for coordinate in silent[:MAX_LISTED])
            where = f" in coordinates {listed}" if len(silent) < values[0, attacked].size else ""
            sets = "" if is_noiseless else " on one of the two data sets"
            return f"the message of agent {attacked} in iteration {t} carries no noise{where}{sets}"
    return ""


def _exchanged_value(
    trace: Trace, *, agents: int, attacked: int, key: tuple[int, str]
) -> np.ndarray | None:
    """Return the value of an agent in an exchange, if there is one."""
    rows = _exchanged(trace, agents).get(key)
    return None if rows is None else _runs_first(rows[attacked])


def _released_value(
    trace: Trace, *, t: int, shape: tuple[int, ...], index: tuple[Any, ...]
) -> np.ndarray | None:
    """Return a part of the messages of an iteration, if they have the shape."""
    released = trace.sampled_release(t)
    return None if released is None or released.shape != shape else released[index]


def _runs_first(values: np.ndarray) -> np.ndarray:
    """Return exchanged values [..., runs, dim] with the axis of runs first, if there is one."""
    axes = [axis for axis, size in enumerate(values.shape[:-1]) if size == RUNS]
    return np.moveaxis(values, axes[-1], 0) if axes else values


def _differing(
    runs: Replays, replayed: Trace, attacked: int, agents: int
) -> list[tuple[int, int, str]]:
    """Return iteration, agent and name of values that differ from the recorded execution."""
    differing = []
    of_replayed = _values(replayed, agents)
    for (t, name), rows in _values(runs.recorded, agents).items():
        replayed_rows = of_replayed.get((t, name))
        if replayed_rows is None or replayed_rows.shape != rows.shape:
            continue  # a matter of control flow
        tolerance = tolerance_until(replayed, t)
        scale = float(np.abs(rows).max(initial=0))
        for agent in set(range(agents)) - {attacked}:
            near = np.abs(rows[agent] - replayed_rows[agent]).max(initial=0) <= tolerance * scale
            if not near and not equal(rows[agent], replayed_rows[agent], tolerance):
                differing.append((t, agent, name))
    return differing


def _changed_by_noise(runs: Replays, attacked: int, agents: int) -> set[tuple[int, int, str]]:
    """Return values of other agents that depend on the noise of the attacked agent."""
    if runs.loud_agent is None:
        values = _values(runs.recorded, agents)
        return {(t, agent, name) for t, name in values for agent in range(agents)}
    return set(_differing(runs, runs.loud_agent, attacked, agents))


def _values(trace: Trace, agents: int) -> Values:
    """Return all values of a trace that have one row per agent."""
    return _exchanged(trace, agents) | {
        (t, name): np.moveaxis(values, 1, 0)
        for (name, t), values in trace.outputs.items()
        if t != "end" and _is_per_agent(values, agents)
    }


def _exchanged(trace: Trace, agents: int) -> Values:
    """Return exchanged values that have one row per agent."""
    return {
        (t, f"exchange {number}"): np.moveaxis(values, axis, 0)
        for t, exchanged in trace.exchanges.items()
        for number, values in enumerate(exchanged, 1)
        if (axis := _axis(values, agents)) is not None
    }


def _is_per_agent(values: Any, agents: int) -> bool:
    return values.ndim >= 3 and values.shape[1] == agents and values.dtype.kind in "fiub"


def _axis(values: np.ndarray, agents: int) -> int | None:
    """Return the axis of agents of exchanged values: the last but one, or the last that fits."""
    if values.dtype.kind not in "fiub":
        return None
    if values.ndim >= 2 and values.shape[-2] == agents:
        return values.ndim - 2
    axes = [axis for axis, size in enumerate(values.shape) if size == agents]
    return axes[-1] if axes else None
