"""Checks of inputs that an execution does not show: data in ``calibrate``, and kept variables.

An audit calibrates once and executes the result on both data sets. Parameters that depend on
private records are then equal in both executions. Variables of a module that an execution changes
are those of an earlier execution in all later ones, on whatever data it was.
"""

from __future__ import annotations

import ast
import inspect
from collections import Counter
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from private_consensus.core.algorithms.base import Algorithm
from private_consensus.privacy import Budget

from .neighbours import Attack
from .replay import source_files
from .result import DIFFERS, CheckReport, Finding, Untested

EQUAL = 1e-9
"""Largest relative difference of equal parameters: a sum in another order has rounding errors."""
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
CHANGING = {
    "append", "add", "clear", "extend", "insert", "pop", "popitem", "remove", "setdefault",
    "update",
}  # fmt: skip
"""Methods that change a list, a set or a dictionary."""


def audit_calibration(
    algorithm: Algorithm, attacks: Iterable[Attack], budget: Budget, horizon: int
) -> CheckReport:
    """Test that the parameters that ``calibrate`` sets are equal on neighbouring data sets."""
    for attack in attacks:
        try:
            first, second = (
                algorithm.calibrate(budget, problem, attack.network, horizon)
                for problem in attack.pair
            )
        except Exception as error:  # code from outside may raise anything
            reason = f"{type(error).__name__}: {error}"
            return CheckReport(untested=(Untested("calibration on neighbouring data", reason),))
        for name in (field.name for field in fields(first)):
            values = getattr(first, name), getattr(second, name)
            if not _equal(*values):
                shown = " and ".join(f"{value:.6g}" if isinstance(value, float) else str(value)
                                     for value in values)  # fmt: skip
                text = (
                    f"calibrate reads private records: two data sets that differ in a record of "
                    f"agent {attack.agent} have the values {shown} of {name}"
                )
                return CheckReport((Finding(DIFFERS, text),))
    return CheckReport(sites=("calibration",))


def _equal(first: Any, second: Any) -> bool:
    """Return True if two parameters are equal but for rounding errors."""
    if is_dataclass(first) and is_dataclass(second):
        names = [field.name for field in fields(first)]
        return type(first).__name__ == type(second).__name__ and all(
            _equal(getattr(first, name), getattr(second, name)) for name in names
        )
    try:
        return np.shape(first) == np.shape(second) and bool(
            np.allclose(first, second, rtol=EQUAL, atol=0.0, equal_nan=True)
        )
    except TypeError:  # no numbers
        return bool(np.all(first == second))


def kept_variables(kind: type) -> tuple[Untested, ...]:
    """List variables of modules and classes that code from outside of this package changes.

    They are decisive: the effect of an earlier execution on a later one is not tested.
    """
    package, source = Path(inspect.getfile(Algorithm)).parents[2], inspect.getsourcefile(kind)
    found, trees = [], {}
    for file in sorted(source_files(kind)):
        if package in Path(file).parents and file != source:
            continue
        with suppress(OSError, SyntaxError, ValueError):
            trees[file] = ast.parse(Path(file).read_text(encoding="utf-8"))
    ignored = _run_at_import(trees.values())
    for file, tree in trees.items():
        for name, line in _changed_variables(tree, ignored):
            item = f"variable {name}, which {Path(file).name}:{line} changes"
            reason = (
                "it keeps a value of earlier executions in the same process; keep such values in "
                "the state of the algorithm"
            )
            found.append(Untested(item, reason))
    return tuple(found)


def _run_at_import(trees: Iterable[ast.Module]) -> set[ast.AST]:
    """Return functions that only decorate classes and functions while a module is imported.

    Executions may call the functions that a decorator defines. A decorator with arguments defines
    the function that decorates.
    """
    nodes = [node for tree in trees for node in ast.walk(tree)]
    inside = {part for node in nodes if isinstance(node, FUNCTION)
              for child in node.body for part in ast.walk(child)}  # fmt: skip
    uses = Counter(filter(None, map(_name, nodes)))
    decorators = [decorator for node in nodes if node not in inside
                  for decorator in getattr(node, "decorator_list", ())]  # fmt: skip
    with_arguments = [node.func for node in decorators if isinstance(node, ast.Call)]
    without = Counter(map(_name, decorators))
    decorates = without + Counter(map(_name, with_arguments))
    ignored: set[ast.AST] = set()
    for node in nodes:
        if isinstance(node, FUNCTION) and 0 < uses[node.name] == decorates[node.name]:
            ignored.add(node)
            if not without[node.name]:
                ignored.update(child for child in node.body if isinstance(child, FUNCTION))
    return ignored


def _name(node: ast.AST) -> str:
    """Return the name of a variable or of an attribute; empty for other code."""
    return getattr(node, "id", "") or getattr(node, "attr", "")


def _changed_variables(
    tree: ast.Module, ignored: Container[ast.AST] = ()
) -> Iterator[tuple[str, int]]:
    """Yield variables of a module or its classes that a function changes, with the first line."""
    targets = (target for node in tree.body for target in _targets(node))
    kept = {target.id for target in targets if isinstance(target, ast.Name)}
    kept |= {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    changed: dict[str, int] = {}
    for function in ast.walk(tree):
        if not isinstance(function, FUNCTION | ast.Lambda) or function in ignored:
            continue
        stated = {name for node in ast.walk(function) if isinstance(node, ast.Global)
                  for name in node.names}  # fmt: skip
        local = _local_names(function) - stated
        for node in ast.walk(function):
            for name in _changes(node, stated):
                if name in kept | stated and name not in local:
                    changed[name] = min(node.lineno, changed.get(name, node.lineno))  # ty: ignore
    yield from changed.items()


def _targets(node: ast.AST) -> Iterator[ast.expr]:
    """Yield what a statement assigns."""
    if isinstance(node, ast.Assign):
        yield from node.targets
    elif isinstance(node, ast.AnnAssign | ast.AugAssign):
        yield node.target


def _local_names(function: FUNCTION | ast.Lambda) -> set[str]:
    """Return the names of arguments and of variables that a function assigns."""
    arguments = function.args
    names = {argument.arg for argument in
             (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}  # fmt: skip
    return names | {
        node.id for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }  # fmt: skip


def _changes(node: ast.AST, stated: set[str]) -> Iterator[str]:
    """Yield the names whose objects a statement or a call changes."""
    for target in _targets(node):
        if isinstance(target, ast.Name) and target.id in stated:
            yield target.id
        while isinstance(target, ast.Subscript | ast.Attribute):
            target = target.value
            if isinstance(target, ast.Name):
                yield target.id
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        owner = node.func.value
        if node.func.attr in CHANGING and isinstance(owner, ast.Name):
            yield owner.id
