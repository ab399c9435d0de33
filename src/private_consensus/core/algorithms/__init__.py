"""Registry of algorithms, one module per algorithm, resolved by name without importing any module.

Another package adds algorithms through the entry-point group
``private_consensus.algorithms``. The names of its entry points are algorithm names, and
their values are modules. A module names its class in ``ALGORITHM``. Built-in names take
precedence. An entry point is not used if it has the name of a built-in algorithm, or if
two packages use its name; :func:`unusable` states why.
"""

from __future__ import annotations

import inspect
import pkgutil
import re
from collections import defaultdict
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

from private_consensus.common.errors import InvalidInput, one_line
from private_consensus.common.errors.arguments import text

if TYPE_CHECKING:
    from .base import Algorithm

GROUP = "private_consensus.algorithms"
ANALYSES = {
    name: f"private_consensus.reproduction.analyses.{name}"
    for name in ("canary_audit", "dp_ci_moments", "release_audit")
}
"""Audits and analyses of methods, which experiments run like algorithms, with their modules."""
SHARED = {"base", "checked", "families", "noise", "parameters", "shapes"}
"""Modules that algorithms share and that define no algorithm."""
NAME = re.compile(r"[a-z][a-z0-9_]*")
"""Pattern of an algorithm's name."""


def names() -> list[str]:
    """Return the names of all algorithms that can be loaded, alphabetically."""
    return sorted(_built_in() | set(_elsewhere()))


def module_of(name: str) -> str:
    """Return the dotted name of the module that defines an algorithm.

    Parameters
    ----------
    name : str
        Name of the algorithm.

    Returns
    -------
    str

    Raises
    ------
    InvalidInput
        For an unknown name, and for an entry point that cannot be used.
    """
    return _module_of(text("algorithm.name", name))


@cache
def _module_of(name: str) -> str:
    if name in _built_in():
        return ANALYSES.get(name, f"{__name__}.{name}")
    if name in _elsewhere():
        return _elsewhere()[name]
    if name in (reasons := unusable()):
        raise InvalidInput("algorithm.name", name, f"a usable entry point: {reasons[name]}")
    raise InvalidInput("algorithm.name", name, f"one of {', '.join(names())}")


def modules() -> list[str]:
    """Return the dotted names of the modules of all algorithms."""
    return [module_of(name) for name in names()]


def load(name: str) -> type[Algorithm]:
    """Return the class of an algorithm.

    Parameters
    ----------
    name : str
        Name of the algorithm.

    Returns
    -------
    type
        Subclass of :class:`.base.Algorithm`.

    Raises
    ------
    InvalidInput
        For an unknown name, and for an entry point that cannot be used.
    """
    return import_module(module_of(name)).ALGORITHM


def unusable() -> dict[str, str]:
    """Return the entry points that are not used, each with the reason in one line.

    Returns
    -------
    dict
        Reason by name of the entry point. The name may be that of a built-in algorithm, which
        remains usable; the reason then names both modules.
    """
    return dict(sorted((collisions() | _broken()).items()))


@cache
def _built_in() -> frozenset[str]:
    methods = {module.name for module in pkgutil.iter_modules(__path__)} - SHARED
    return frozenset(methods | ANALYSES.keys())


@cache
def _elsewhere() -> dict[str, str]:
    """Map the name of each loadable algorithm of another package to its module."""
    unused = unusable()
    return {name: points[0].module for name, points in _points().items() if name not in unused}


def _points() -> dict[str, list[EntryPoint]]:
    """Return the entry points by name; equal entry points count once.

    A package that is installed twice has equal entry points.
    """
    points_by_name: dict[str, list[EntryPoint]] = defaultdict(list)
    for point in entry_points(group=GROUP):
        if all(point.value != previous.value for previous in points_by_name[point.name]):
            points_by_name[point.name].append(point)
    return points_by_name


def collisions() -> dict[str, str]:
    """Return the entry points that share their name with a built-in algorithm or with each other.

    Returns
    -------
    dict
        For each name, a sentence that lists all modules of that name.
    """
    reasons = {}
    for name, points in _points().items():
        sources = [_described(point) for point in points]
        if name in _built_in():
            sources = [f"{_module_of(name)} (built in, used)", *sources]
        if len(sources) > 1:
            reasons[name] = f"{' and '.join(sources)} have the same name"
    return reasons


def _broken() -> dict[str, str]:
    """Map each entry point that defines no algorithm to the reason."""
    reasons = {}
    for name, (point, *duplicates) in _points().items():
        if not duplicates and name not in _built_in() and (reason := _failure(name, point)):
            reasons[name] = f"{_described(point)} cannot be loaded: {reason}"
    return reasons


def _failure(name: str, point: EntryPoint) -> str:
    """Return why an entry point defines no algorithm; empty if it defines one."""
    from .base import Algorithm

    if not NAME.fullmatch(name) or name in SHARED:
        return "its name has other characters than a-z, 0-9 and _, or it is reserved"
    try:
        candidate = import_module(point.module).ALGORITHM
    except (Exception, SystemExit) as error:  # a foreign module may raise anything
        return one_line(f"{type(error).__name__}: {error}")
    fits = inspect.isclass(candidate) and issubclass(candidate, Algorithm)
    return "" if fits else "ALGORITHM is no subclass of Algorithm"


def _described(point: EntryPoint) -> str:
    package = "" if point.dist is None else f" ({point.dist.name})"
    return one_line(f"{point.value}{package}")
