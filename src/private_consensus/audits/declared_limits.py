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
from typing import Any, NamedTuple, TypeGuard

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
COUNTERS = {"t", "horizon", "iteration", "round", "state"}
"""Names whose comparison with a number is taken for a limit on iterations."""


class Limit(NamedTuple):
    """A number on which it depends from which iteration on an algorithm behaves otherwise.

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

    Parameters
    ----------
    algorithm : Algorithm
        Calibrated.
    horizon : int
        Number of iterations of the audit so far.
    problem, network
        Where the algorithm runs.

    Returns
    -------
    horizon : int
        At least the given one and, if it was extended, at most :data:`MAX_ITERATIONS`.
    untested : tuple of Untested
        Limits that are not reached.
    """
    if not isinstance(algorithm, Iterative):
        return horizon, ()
    limits = list(_in_source(type(algorithm), parameters(algorithm)))
    limits += _in_releases(algorithm, horizon, problem, network)
    limits += _in_messages(algorithm, horizon, problem, network, {name for name, _ in limits})
    most = max(horizon, MAX_ITERATIONS)
    reached = [limit.iterations for limit in limits if limit.iterations <= most]
    extended = max([horizon, *reached])
    missing = sorted({limit.name for limit in limits if limit.iterations > most})
    reason = f"not reached in {extended} iterations"
    return extended, tuple(Untested(name, reason) for name in missing)


# --- Declared releases --------------------------------------------------------------------------


def _in_releases(algorithm: Algorithm, horizon: int, problem, network) -> Iterator[Limit]:
    """Yield the first horizon beyond the audit's at which declared releases stop to grow."""
    try:
        costs = [
            sum(
                float(np.sum(np.broadcast_to(release.losses(), release.count) ** 2))
                if np.ndim(release.losses()) == 0
                else float(np.sum(np.square(release.losses())) * release.count)
                for release in algorithm.releases(problem, network, iterations)
            )
            for iterations in range(1, MAX_ITERATIONS + 1)
        ]
    except (AttributeError, InvalidInput, TypeError, ValueError):
        return  # releases with a privacy profile, or for this horizon only
    grows = np.diff([0.0, *costs]) > 1e-12 * max(costs)
    seen = set(grows[:horizon].tolist())
    for index in range(horizon, len(grows)):
        if grows[index] not in seen:
            yield Limit("declared releases", index + 1 + MARGIN)
            return


# --- Source code --------------------------------------------------------------------------------


def _in_source(kind: type, values: Mapping[str, Any]) -> Iterator[Limit]:
    """Yield limits with which the source code of a class compares the iteration number."""
    for base in kind.__mro__:
        module = sys.modules.get(base.__module__)
        if module is None or not issubclass(base, Algorithm) or base in (Algorithm, Iterative):
            continue
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(base)))
        except (OSError, SyntaxError, TypeError):
            continue
        known = {"self": {**_whole_numbers(vars(base)), **_whole_numbers(values)}}
        for node in ast.walk(tree):
            if _compares(node) and _names(node) & COUNTERS:
                is_period = isinstance(node, ast.BinOp)
                for name, value in _numbers(node, known["self"], vars(module)):
                    factor = 2 if is_period else 1
                    yield Limit(name, factor * value + MARGIN)


def _whole_numbers(values: Mapping[str, Any]) -> dict[str, int]:
    return {
        name: int(value)
        for name, value in values.items()
        if isinstance(value, int | np.integer) and not isinstance(value, bool) and value > 0
    }


def _compares(node: ast.AST) -> bool:
    """Return True for comparisons, remainders and quotients, and for minima and maxima."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Mod | ast.FloorDiv)
    if isinstance(node, ast.Call):
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        return name in {"min", "max", "minimum", "maximum", "clip", "ceil"}
    return isinstance(node, ast.Compare)


def _names(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _numbers(
    node: ast.AST, of_self: Mapping[str, int], of_module: Mapping[str, Any]
) -> Iterator[tuple[str, int]]:
    """Yield names and values of whole numbers in an expression."""
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and type(part.value) is int and part.value > 0:
            yield f"limit {part.value}", part.value
        elif isinstance(part, ast.Name) and part.id in _whole_numbers(of_module):
            yield f"limit {part.id} = {of_module[part.id]}", int(of_module[part.id])
        elif _is_of_self(part) and part.attr in of_self:
            yield f"parameter {part.attr} = {of_self[part.attr]}", of_self[part.attr]


def _is_of_self(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "self"


# --- Messages -----------------------------------------------------------------------------------


def _in_messages(
    algorithm: Algorithm, horizon: int, problem: Any, network: Any, known: set[str]
) -> Iterator[Limit]:
    """Yield whole-number parameters that change messages only after the audit's horizon."""
    whole = _whole_numbers(parameters(algorithm))
    larger = {
        name: value
        for name, value in whole.items()
        if value >= horizon and f"parameter {name} = {value}" not in known
    }
    if not larger:
        return
    base = _messages(algorithm, problem, network)
    for name, value in larger.items():
        try:
            changed = _messages(replace(algorithm, **{name: value + 1}), problem, network)
        except (ArithmeticError, InvalidInput, TypeError, ValueError, IndexError):
            continue
        differing = [t for t in base if t in changed and not np.array_equal(base[t], changed[t])]
        first = min(differing, default=None)
        if first is not None and first > horizon:
            yield Limit(f"parameter {name} = {value}", first + MARGIN)


def _messages(algorithm: Algorithm, problem: Any, network: Any) -> dict[int, np.ndarray]:
    """Return the messages of one run of :data:`MAX_ITERATIONS` iterations."""
    messages: dict[int, np.ndarray] = {}

    def keep(t: int, active: np.ndarray, observables: Mapping[str, Any]) -> None:
        if "released" in observables:
            messages[t] = np.array(observables["released"])

    streams = AuditStreams.labelled("limits", 1)
    with np.errstate(all="ignore"):
        run_batch(algorithm, problem, network, streams, MAX_ITERATIONS, keep)
    return messages
