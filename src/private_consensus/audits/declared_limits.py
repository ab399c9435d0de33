"""Number of iterations after which every declared limit and period of an algorithm takes effect.

An audit of three iterations does not see a limit of ten. Limits are found in three ways: in the
declared releases, which stop to grow; in comparisons of the iteration number in the source code;
and in parameters whose change changes messages from some iteration on.
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from private_consensus.common.errors import InvalidInput
from private_consensus.core.algorithms.base import Algorithm, Iterative, parameters

from .execution import run_batch
from .result import Untested
from .streams import AuditStreams

MAX_ITERATIONS = 64
"""Iterations up to which an audit is extended."""
MARGIN = 2
"""Iterations after a limit that are executed."""
NEGLIGIBLE, FADED = 1e-12, 1e-9
"""Fractions of the declared cost: an iteration has no cost, or so little that it may end there."""
MAX_VALUES = 8
"""Largest number of entries of an array that are treated as limits."""
COUNTERS = {"t", "horizon", "iteration", "round", "state"}
"""Names of variables whose comparison with a number is treated as a limit on iterations."""


class Limit(NamedTuple):
    """Parameter or constant that changes the behaviour of an algorithm from some iteration on.

    Parameters
    ----------
    name : str
        Parameter or constant with its value, such as ``parameter limit = 10``.
    iterations : int
        Iterations after which the limit has taken effect.
    """

    name: str
    iterations: int


def audit_horizon(
    algorithm: Algorithm, horizon: int, problem: Any, network: Any
) -> tuple[int, tuple[Untested, ...]]:
    """Extend a horizon such that every declared limit takes effect.

    Return at most :data:`MAX_ITERATIONS`, or the given horizon if it is larger, and the limits that
    are not reached.
    """
    if not isinstance(algorithm, Iterative):
        return horizon, ()
    limits = list(_in_source(algorithm, problem, network))
    limits += _in_releases(algorithm, horizon, problem, network)
    limits += _in_messages(algorithm, horizon, problem, network, {name for name, _ in limits})
    max_horizon = max(horizon, MAX_ITERATIONS)
    reached = [limit.iterations for limit in limits if limit.iterations <= max_horizon]
    extended = max([horizon, *reached])
    missing = sorted({limit.name for limit in limits if limit.iterations > max_horizon})
    error = _failure(algorithm, problem, network, extended) if extended > horizon else ""
    if error:
        item = f"{extended} iterations, after which all declared limits take effect"
        return horizon, (Untested(item, f"their execution ends with an error: {error}"),)
    return extended, tuple(
        Untested(name, _effect(algorithm, name, extended, problem, network)) for name in missing
    )


def _failure(algorithm: Algorithm, problem: Any, network: Any, iterations: int) -> str:
    """Return the error with which an execution ends, or an empty text."""
    try:
        _messages(algorithm, problem, network, iterations)
    except Exception as error:  # code from outside may raise anything
        return f"{type(error).__name__}: {error}"
    return ""


def _effect(algorithm: Algorithm, limit: str, iterations: int, problem: Any, network: Any) -> str:
    """Return a text on the effect of a limit in the executed iterations."""
    executed = f"{iterations} iterations were executed"
    values = {
        f"parameter {n} = {v}": (n, v) for n, v in _whole_numbers(parameters(algorithm)).items()
    }
    if limit not in values:
        return f"{executed}, no effect of this limit was tested in them"
    name, value = values[limit]
    with_next, with_1 = (
        _first_difference(algorithm, {name: other}, iterations, problem, network)
        for other in (value + 1, 1)
    )
    if with_next:
        return f"{executed}, {name} = {value + 1} changes messages from iteration {with_next} on"
    equal_for = f"{value + 1} and 1" if with_1 == 0 else str(value + 1)
    return f"{executed}, their messages are equal for {name} = {equal_for}"


def _first_difference(
    algorithm: Algorithm, changes: dict[str, int], iterations: int, problem: Any, network: Any
) -> int | None:
    """Return the first iteration whose messages differ if parameters are changed.

    It is 0 if all messages are equal, and None if either algorithm does not run.
    """
    try:
        base = _messages(algorithm, problem, network, iterations)
        changed = _messages(replace(algorithm, **changes), problem, network, iterations)
    except (ArithmeticError, InvalidInput, TypeError, ValueError, IndexError):
        return None
    differing = [t for t in base if t in changed and not np.array_equal(base[t], changed[t])]
    return min(differing, default=0)


# --- Declared releases --------------------------------------------------------------------------


def _in_releases(algorithm: Algorithm, horizon: int, problem, network) -> Iterator[Limit]:
    """Yield the first horizon beyond the audit's at which declared releases start or stop to grow.

    Losses that decrease to 0 gradually, such as a geometric sequence, do not stop.
    """
    try:
        costs = [
            sum(
                float(np.sum(np.square(release.losses())) * release.count)
                for release in algorithm.releases(problem, network, iterations)
            )
            for iterations in range(1, MAX_ITERATIONS + 1)
        ]
    except (AttributeError, InvalidInput, TypeError, ValueError):
        return  # releases with a privacy profile, or for this horizon only
    added = np.diff([0.0, *costs]) / max(*costs, 1e-300)
    grows = added > NEGLIGIBLE
    tested_values = set(grows[:horizon].tolist())
    for index in range(horizon, len(grows)):
        is_abrupt = grows[index] or added[index - 1] > FADED
        if grows[index] not in tested_values and is_abrupt:
            yield Limit("declared releases", index + 1 + MARGIN)
            return


# --- Source code --------------------------------------------------------------------------------


def _in_source(algorithm: Algorithm, problem: Any, network: Any) -> Iterator[Limit]:
    """Yield limits with which the source code of a class compares the iteration number."""
    objects = {"self": algorithm, "problem": problem, "network": network}
    for base in type(algorithm).__mro__:
        module = sys.modules.get(base.__module__)
        if module is None or not issubclass(base, Algorithm) or base in (Algorithm, Iterative):
            continue
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(base)))
        except (OSError, SyntaxError, TypeError):
            continue
        for node in ast.walk(tree):
            if _compares(node) and _has_counter(node):
                factor = 2 if isinstance(node, ast.BinOp) else 1  # of a period
                for name, value in _numbers(node, {**vars(module), **objects}):
                    yield Limit(name, factor * value + MARGIN)


def _whole_numbers(values: Mapping[str, Any]) -> dict[str, int]:
    return {name: int(value) for name, value in values.items() if _is_whole(value)}


def _is_whole(value: Any) -> bool:
    """Return True for positive whole numbers, also as floats."""
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return bool(is_number and np.isfinite(value) and value > 0 and value == int(value))


def _compares(node: ast.AST) -> bool:
    """Return True for comparisons, remainders and quotients, and for minima and maxima."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Mod | ast.FloorDiv)
    if isinstance(node, ast.Call):
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else ast.unparse(function)
        return name in {"min", "max", "minimum", "maximum", "clip", "ceil"}
    return isinstance(node, ast.Compare)


def _has_counter(node: ast.AST) -> bool:
    return any(isinstance(inner, ast.Name) and inner.id in COUNTERS for inner in ast.walk(node))


def _numbers(node: ast.AST, namespace: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield names and values of whole numbers in the parts of an expression without a counter."""
    if isinstance(node, ast.expr) and not _has_counter(node):
        try:
            expression = compile(ast.Expression(node), "<expression>", "eval")
            values = np.ravel(eval(expression, dict(namespace)))[:MAX_VALUES].tolist()
        except Exception:  # local variables, or code from outside, which may raise anything
            values = []
        is_named = isinstance(node, ast.Constant | ast.Name | ast.Attribute)
        for value in filter(_is_whole, values):
            if is_named or value <= MAX_ITERATIONS:  # of an expression, a number may be any bound
                yield _name_of(node, int(value)), int(value)
    for inner in ast.iter_child_nodes(node):
        yield from _numbers(inner, namespace)


def _name_of(node: ast.expr, value: int) -> str:
    """Return the name of a limit: ``limit 3``, ``limit LAST = 3`` or ``parameter last = 3``."""
    if isinstance(node, ast.Constant):
        return f"limit {value}"
    if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self":
        return f"parameter {node.attr} = {value}"
    return f"limit {ast.unparse(node)} = {value}"


# --- Messages -----------------------------------------------------------------------------------


def _in_messages(
    algorithm: Algorithm, horizon: int, problem: Any, network: Any, known_names: set[str]
) -> Iterator[Limit]:
    """Yield whole-number parameters that change messages only after the audit's horizon."""
    whole_numbers = _whole_numbers(parameters(algorithm))
    larger = {
        name: value
        for name, value in whole_numbers.items()
        if value >= horizon and f"parameter {name} = {value}" not in known_names
    }
    for name, value in larger.items():
        changes = {name: value + 1}
        first = _first_difference(algorithm, changes, MAX_ITERATIONS, problem, network)
        if first and first > horizon:
            yield Limit(f"parameter {name} = {value}", first + MARGIN)


def _messages(
    algorithm: Algorithm, problem: Any, network: Any, iterations: int
) -> dict[int, np.ndarray]:
    """Return the messages of one run, by iteration."""
    messages: dict[int, np.ndarray] = {}

    def keep(t: int, active: np.ndarray, observables: Mapping[str, Any]) -> None:
        if "released" in observables:
            messages[t] = np.array(observables["released"])

    streams = AuditStreams.labelled("limits", 1)
    with np.errstate(all="ignore"):
        run_batch(algorithm, problem, network, streams, iterations, keep)
    return messages
