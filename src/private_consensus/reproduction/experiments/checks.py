"""Check the settings of a cell before any computation: types, ranges and sizes."""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any, get_args, get_type_hints

import numpy as np

from private_consensus.common.errors import (
    InvalidInput,
    Refused,
    arguments,
    representation,
    require,
)
from private_consensus.core import algorithms, networks, problems, synthetic
from private_consensus.core.randomness import Streams
from private_consensus.privacy import Budget

MAX_SIZES = {
    "settings": 100_000,
    "horizon": 10_000_000,
    "runs": 1_000_000,
    "agents": 10_000,
    "measurements": 1_000_000_000,
    "numbers": 1_000_000_000,
}
"""Largest allowed sizes of a cell. A larger size is most likely a typing error, and its computation
would not end."""


def integer_errors(key: str, value: Any, minimum: int, maximum: int | None = None) -> Iterator[str]:
    """Yield an error line if a value is not an integer in a range.

    Parameters
    ----------
    key : str
        Name of the value in the message.
    value : object
        The value to check.
    minimum : int
        Smallest allowed value.
    maximum : int, optional
        Largest allowed value; unbounded if omitted.

    Returns
    -------
    iterator of str
        One line, or none if the value is valid.
    """
    expectation = f"a whole number >= {minimum}" + (f" and <= {maximum}" if maximum else "")
    if not arguments.is_whole(value) or value < minimum or (maximum and value > maximum):
        yield f"{key}: found {representation(value)}, expected {expectation}"


def too_many(limit_key: str, factors: Mapping[str, int]) -> Iterator[str]:
    """Yield an error line, with the resulting size, if a product of factors exceeds its limit.

    Parameters
    ----------
    limit_key : str
        Key of :data:`MAX_SIZES`, whose entry is the limit.
    factors : mapping of str to int
        Name of each factor to its size.

    Returns
    -------
    iterator of str
        One line, or none if the product is within the limit.
    """
    size = math.prod(factors.values())
    if size > MAX_SIZES[limit_key]:
        product = " x ".join(f"{count:,} {name}" for name, count in factors.items())
        yield f"{product} = {size:,} {limit_key}, expected at most {MAX_SIZES[limit_key]:,}"


def wrong_horizon(horizon: Any) -> Iterator[str]:
    """Yield an error line if a horizon is not an integer from 1 to the allowed maximum."""
    yield from integer_errors("horizon", horizon, 1, MAX_SIZES["horizon"])


def require_settings(cell: Mapping[str, Any]) -> None:
    """Raise :class:`InvalidInput` with one line per error if the settings of a cell are invalid."""
    if lines := list(wrong_settings(cell)):
        raise Refused(lines)


def wrong_settings(cell: Mapping[str, Any]) -> Iterator[str]:
    """Yield one line per error in the settings of a cell, each error once."""
    yield from integer_errors("seed", cell["seed"], 0)
    yield from integer_errors("runs", cell["runs"], 1, MAX_SIZES["runs"])
    built = algorithms.load(cell["algorithm"])
    unnamed = [
        f"{part}.name: found {setting[part].get('name')!r}, expected a text"
        for setting in cell["settings"]
        for part in ("problem", "network")
        if not isinstance(setting[part].get("name"), str | None)
    ]
    if unnamed:
        yield from dict.fromkeys(unnamed)
        return
    wrong = [*_wrong_parts(built, cell["settings"]), *_wrong_problems(built, cell["settings"])]
    yield from wrong
    if not wrong:
        yield from _wrong_data(cell["settings"])
    yield from too_many("measurements", {
        "settings": len(cell["settings"]), "runs": cell["runs"],
        "iterations": len(cell["iterations"]) + 1, "measures": len(cell["measures"]),
    })  # fmt: skip


def _wrong_problems(built: type, settings: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield one line for each problem that lacks a feature that the algorithm needs."""
    for name in dict.fromkeys(setting["problem"]["name"] for setting in settings):
        offers = problems.class_of(name).offers
        lacking = [need for need in getattr(built, "needs", ()) if not offers(need)]
        if lacking:
            yield f"problem.name: found {name!r}, expected a problem with {', '.join(lacking)}"


def _has_kind(value: Any, kinds: Sequence[type]) -> bool:
    """Return True if a value has one of the types; integers are also numbers, Booleans are not."""
    if isinstance(value, bool):
        return bool in kinds
    return isinstance(value, (*kinds, int) if float in kinds else tuple(kinds))


def _wrong_parts(built: type, settings: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield one line per error in a single part of a setting."""
    for key, check in PARTS.items():
        distinct = {repr(setting[key]): setting[key] for setting in settings}
        for value in distinct.values():
            yield from dict.fromkeys(check(built, value))


def _wrong_data(settings: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield one line per error in the data that a setting assigns to its agents."""
    distinct = {
        (repr(setting["problem"]), setting["network"]["agents"]): setting["problem"]
        for setting in settings
    }
    for (_, agents), problem in distinct.items():
        holders = None if problem["name"] in synthetic.TOTALS else agents
        sizes = {"agents": holders, "records": problem.get("records"), "dim": problem.get("dim")}
        given_sizes = {key: size for key, size in sizes.items() if size is not None}
        lines = [f"problem: {line}" for line in too_many("numbers", given_sizes)]
        yield from lines
        if not lines and math.prod(given_sizes.values()) <= QUICK:
            yield from _unbuildable(json.dumps(problem), agents)


@cache
def _unbuildable(problem: str, agents: int) -> list[str]:
    """Build the problem of one run with placeholders for prepared data; return its errors.

    Results are cached, since many cells have the same problem.
    """
    parameters = json.loads(problem)
    name = parameters.pop("name")
    if "prepared" in parameters and name not in STAND_INS:
        return []
    build, _ = _building(name)

    def build_problem():
        data = {"prepared": STAND_INS[name](parameters, agents)} if "prepared" in parameters else {}
        return build(Streams(0, (0,)), agents, **{**parameters, **data})

    with np.errstate(all="ignore"):  # a run reports an overflow if it stops the run
        return _messages_of(build_problem)


def _signed(parameters: Mapping[str, Any], agents: int) -> SimpleNamespace:
    rows = agents * _records(parameters) + 1
    return SimpleNamespace(features=np.zeros((rows, 2)), labels=np.resize([-1, 1], rows))


def _classes(parameters: Mapping[str, Any], agents: int) -> SimpleNamespace:
    rows = max(_records(parameters), agents)
    splits = {"train": np.arange(rows), "test": np.arange(1)}
    return SimpleNamespace(features=np.zeros((rows, 2)), labels=np.arange(rows) % 10, splits=splits)


def _grouped(parameters: Mapping[str, Any], _: int) -> SimpleNamespace:
    """Return placeholder rows with both labels in both groups of each protected attribute."""
    from ..datasets.catalogue import module_of
    from ..datasets.preparation import preparation

    if parameters["prepared"] == synthetic.NAME:
        return synthetic.rows_of_setting("fair_classification", parameters, 1)
    rows, how = np.arange(1000), preparation(parameters["prepared"])
    expected = "a table with protected attributes"
    require(how.encoding != "pixels", "problem.prepared", how.name, expected)
    names = module_of(how.dataset).SCHEMA.protected
    return SimpleNamespace(
        features=np.zeros((len(rows), 2)),
        labels=np.where(rows % 2, 1, -1),
        protected=dict.fromkeys(names, rows // 2 % 2),
        columns_of=lambda *_: np.array([], int),
    )


def _records(parameters: Mapping[str, Any]) -> int:
    return max(parameters.get("records", 1), 1)


QUICK = 10_000_000
"""Largest number of array elements for which the problem of one run is built as a check."""
STAND_INS = {
    "logistic_regression": _signed,
    "perceptron": _classes,
    "fair_classification": _grouped,
}
"""For each problem, a function that returns placeholder data of the requested size."""


def _wrong_budget(_: type, budget: Mapping[str, Any]) -> Iterator[str]:
    yield from _messages_of(lambda: Budget(**budget))


def _wrong_network(_: type, network: Mapping[str, Any]) -> Iterator[str]:
    lines = list(integer_errors("network.agents", network["agents"], 1, MAX_SIZES["agents"]))
    yield from lines or _messages_of(lambda: networks.require_buildable(**network))


def _wrong_problem(_: type, problem: Mapping[str, Any]) -> Iterator[str]:
    values = dict(problem)
    build, parameters = _building(values.pop("name"))
    for parameter in parameters:
        if parameter.default is parameter.empty and parameter.name not in values:
            yield f"problem.{parameter.name}: missing, expected a value"
    yield from _unknown("problem", {p.name for p in parameters}, values)
    yield from _wrong_types("problem", _hints(build), values)


@cache
def _building(problem: str) -> tuple[Callable, list[inspect.Parameter]]:
    """Return the function that builds a problem, and the parameters that a configuration may
    set.
    """
    build = problems.load(problem).build
    return build, list(inspect.signature(build).parameters.values())[2:]


def _wrong_algorithm(built: type, values: Mapping[str, Any]) -> Iterator[str]:
    allowed = {field.name for field in dataclasses.fields(built) if field.init}
    lines = [
        *_unknown("algorithm", allowed, values), *_wrong_types("algorithm", _hints(built), values)
    ]  # fmt: skip
    yield from lines or _messages_of(lambda: built(**values))


PARTS: dict[str, Callable[[type, Any], Iterator[str]]] = {
    "horizon": lambda _, horizon: wrong_horizon(horizon),
    "budget": _wrong_budget,
    "network": _wrong_network,
    "problem": _wrong_problem,
    "algorithm": _wrong_algorithm,
}


def _messages_of(make: Callable[[], object]) -> list[str]:
    """Return the messages of the errors that a constructor raises."""
    try:
        make()
    except InvalidInput as error:
        return [str(error)]
    except (TypeError, ValueError, ArithmeticError) as error:
        return [" ".join(str(error).split())]
    return []


def _unknown(section: str, allowed: set[str], values: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(set(values) - allowed):
        expectation = f"one of {', '.join(sorted(allowed)) or 'none'}"
        yield f"{section}: found {representation(name)}, expected {expectation}"


@cache
def _hints(built: Callable) -> dict[str, Any]:
    return get_type_hints(built)


WORDS = {float: "a number", int: "a whole number", bool: "true or false", str: "a word"}


def _wrong_types(
    section: str, hints: Mapping[str, Any], values: Mapping[str, Any]
) -> Iterator[str]:
    """Yield one line per number, string or Boolean whose type differs from the declared type."""
    for name, value in values.items():
        kinds = get_args(hints.get(name)) or (hints.get(name),)
        if not set(kinds) <= {*WORDS, type(None)}:
            continue
        if not _has_kind(value, kinds) or value != value:
            expectation = " or ".join(WORDS[kind] for kind in kinds if kind in WORDS)
            yield f"{section}.{name}: found {representation(value)}, expected {expectation}"
