"""Comparison of a recorded execution with its replay on a neighbouring data set."""

from collections.abc import Mapping
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from private_consensus.privacy.mechanisms import Mechanism

from .execution import Event, Execution
from .frozen import freeze

ROUNDING = 1e-6
"""Relative excess of a cost over the declared loss that counts as rounding."""
EQUAL, UNMOVED = 1e-11, 1e-9
"""Differences of two values, relative to the value or the largest query, and costs of other agents,
relative to the declared loss, that count as rounding."""


class Excess(NamedTuple):
    """Ratio of cost and declared loss above 1, and a sentence on it; 0 and empty without one."""

    ratio: float = 0.0
    text: str = ""


def leak_between(
    first: Execution, second: Execution, agent: int | slice | None, agents: int
) -> str:
    """Return the first difference that an observer sees between two executions; empty if none.

    Both executions have the same outputs of all mechanisms, so that every message, output and
    state of other agents must be identical up to rounding. The records of ``agent`` differ, and its
    states may differ; it is None for equal data. The sentence names the fault.
    """
    if first.declaration != second.declaration:
        return f"the declared mechanisms depend on records of agent {agent}"
    largest = max((_largest(release.evidence) for release in first.releases), default=0.0)
    for event, replayed in zip_longest(first.events, second.events):
        if event is None or replayed is None or event[:3] != replayed[:3]:
            if second.leak or second.error:
                break
            t = (event or replayed).t
            return f"the sequence of messages of iteration {t} depends on records of agent {agent}"
        if freeze(event.value) != freeze(replayed.value) and (
            text := _described(event, replayed, agent, agents, largest)
        ):
            return text
    if bool(first.error) != bool(second.error):
        error = first.error or second.error
        return f"an error occurs on one of two data sets: {error} (records of agent {agent} differ)"
    return f"{second.leak} (records of agent {agent} differ)" if second.leak else ""


def _largest(value: Any) -> float:
    """Return the largest finite magnitude of an array of real numbers, 0 for other values."""
    if not (isinstance(value, np.ndarray) and value.dtype.kind == "f"):
        return 0.0
    return float(np.abs(value).max(initial=0.0, where=np.isfinite(value)))


def _described(event: Event, replayed: Event, agent: Any, agents: int, query: float) -> str:
    """Return a sentence on two values that differ; empty if no observer sees the difference."""
    a, b = event.value, replayed.value
    size_text, differs = "", np.array(True)
    are_arrays = isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
    if are_arrays and (a.dtype, a.shape) == (b.dtype, b.shape):
        is_real = a.dtype.kind == "f"
        # Other types, such as integers, have no rounding.
        differs = np.asarray(a != b)
        if is_real:
            # Per entry, so that a large entry does not hide a leak in a small one.
            size = np.maximum(np.maximum(np.abs(a), np.abs(b)), query)
            differs = ~np.isclose(a, b, rtol=0.0, atol=EQUAL * size, equal_nan=True)
        if event.kind == "state" and a.shape[2:3] == (agents,) and agent is not None:
            differs[:, :, agent] = False
        if not differs.any():
            return ""
        if is_real:
            difference = np.abs(a[differs] - b[differs]).max()
            size_text = f": values up to {_largest(a[differs]):.2g} differ by {difference:.2g}"
    beside = f"depends on records of agent {agent} beside the mechanisms{size_text}"
    if event.kind == "state":
        of_others = " of other agents" if differs.shape[2:3] == (agents,) else ""
        return f"the state {event.name!r}{of_others} after iteration {event.t} {beside}"
    if event.kind == "message":
        axis = 2 if differs.shape[2:3] == (agents,) else max(differs.ndim - 2, 0)
        indices = np.argwhere(differs) if differs.ndim else ()
        names = ", ".join(map(str, sorted({int(index[axis]) for index in indices})))
        owner = f"agent {names}" if names.isdigit() else f"agents {names or 'unknown'}"
        return f"the message of {owner} in iteration {event.t} {beside}"
    return f"the output {event.name!r} of iteration {event.t} {beside}"


def costs_of(
    recorded: Execution,
    replay: Execution,
    mechanisms: Mapping[str, Mechanism],
    agent: int | None,
    row: int | None = None,
) -> tuple[dict[str, float], Excess]:
    """Return the largest ratio of cost and declared loss per mechanism, and the largest excess.

    The records of ``agent`` differ in the ``replay``, or, if ``row`` is known, one record of it.
    The excess is infinite for a query that depends on records of other agents, or on a record
    outside of its sampled batch.
    """
    reached: dict[str, float] = {}
    excess = Excess()
    totals: dict[str, list[tuple[float, float]]] = {}

    def add(name: str, cost: Any, loss: Any, event: str, limit: str) -> None:
        nonlocal excess
        with np.errstate(invalid="ignore", divide="ignore"):
            ratios = np.where(cost == 0, 0.0, np.divide(cost, loss))
        ratio = float(np.max(np.where(np.isnan(ratios), np.inf, ratios), initial=0.0))
        reached[name] = max(reached.get(name, 0.0), ratio)
        if ratio > max(excess.ratio, 1 + ROUNDING):
            excess = Excess(ratio, f"{event} {ratio:.6g} times {limit}")

    for release, (name, t, cost, loss) in zip(recorded.releases, replay.costs, strict=False):
        mechanism = mechanisms[name]
        cost, loss = np.broadcast_arrays(cost, np.asarray(loss, float))
        # A release without noise has no guarantee that a change could exceed.
        cost = np.where(np.isinf(loss), 0.0, cost)
        rounding = UNMOVED * np.max(loss)
        separate = mechanism.separates_agents and "agents" in mechanism.shape
        # Written so that NaN is a dependence.
        if separate and not np.all(_of_others(cost, agent) <= rounding):
            text = (
                f"the query {name!r} of another agent in iteration {t} depends on records of "
                f"agent {agent} that were not released"
            )
            return reached, Excess(np.inf, text)
        in_batch = np.asarray(row is None or mechanism.uses(release, row))
        if not np.all(np.where(in_batch, 0.0, cost) <= rounding):
            text = (
                f"the query {name!r} of iteration {t} depends on a record of agent {agent} outside "
                f"of the sampled batch"
            )
            return reached, Excess(np.inf, text)
        if mechanism.touched is None:
            limit = f"its declared sensitivity (records of agent {agent} differ)"
            add(name, cost, loss, f"{name!r} of iteration {t} changes by", limit)
        else:
            totals.setdefault(name, []).append((float(np.max(cost)), float(np.max(loss))))
    for name, pairs in totals.items():
        touched = mechanisms[name].touched
        declared = sum(sorted((loss for _, loss in pairs), reverse=True)[:touched])
        limit = (
            f"the declared loss of the {touched} releases that one change may affect (data of "
            f"agent {agent} differ)"
        )
        cost = sum(cost for cost, _ in pairs)
        add(name, cost, declared, f"all releases of {name!r} together cost", limit)
    return reached, excess


def _of_others(cost: np.ndarray, agent: int | None) -> Any:
    """Return the costs of the other agents; empty if the cost is that of all agents together."""
    if cost.ndim < 3 or cost.shape[2] <= 1:
        return np.zeros(0)
    return cost if agent is None else np.delete(cost, agent, axis=2)
