"""Registry of algorithms by name.

Each algorithm has a module, whose constant ``ALGORITHM`` is the class. Names are resolved without
an import of these modules. Other packages add algorithms through the entry-point group
``private_consensus.algorithms``: the name of an entry point is the name of the algorithm, and its
value is the module. An entry point is not used if a built-in algorithm or an entry point of another
package has the same name; :func:`unusable` states the reasons.
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
    name: f"private_consensus.audits.analyses.{name}"
    for name in (
        "canary_audit", "dp_ci_moments", "observer_losses", "release_audit", "walk_losses",
    )
}  # fmt: skip
"""Modules of the audits and analyses that experiments run like algorithms, by name."""
SHARED = {"base", "families", "noise"}
"""Modules of this package that define no algorithm."""
NAME = re.compile(r"[a-z][a-z0-9_]*")
"""Pattern of an algorithm's name."""


def names() -> list[str]:
    """Return the names of all algorithms that can be loaded, alphabetically."""
    return sorted(_built_in() | set(_elsewhere()))


def module_of(name: str) -> str:
    """Return the dotted name of the module that defines an algorithm.

    An unknown name, and an entry point that cannot be used, raise ``InvalidInput``.
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


def load(name: str) -> type[Algorithm]:
    """Return the class of an algorithm.

    An unknown name, and an entry point that cannot be used, raise ``InvalidInput``.
    """
    return import_module(module_of(name)).ALGORITHM


def unusable() -> dict[str, str]:
    """Return the reason, in one line, for each entry point that is not used.

    A built-in algorithm of its name remains usable; the reason then states both modules.
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
    """Return the distinct entry points by name.

    A package that is installed twice has equal entry points, which are listed once.
    """
    points_by_name: dict[str, list[EntryPoint]] = defaultdict(list)
    for point in entry_points(group=GROUP):
        if all(point.value != previous.value for previous in points_by_name[point.name]):
            points_by_name[point.name].append(point)
    return points_by_name


def collisions() -> dict[str, str]:
    """Return a sentence for each name that several modules claim, one of which may be built in."""
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
    """Return the reason why an entry point defines no algorithm; empty if it defines one."""
    from .base import Algorithm

    if not NAME.fullmatch(name) or name in SHARED:
        return "its name is reserved, or has characters other than a-z, 0-9 and _"
    try:
        candidate = import_module(point.module).ALGORITHM
    except (Exception, SystemExit) as error:  # a foreign module may raise anything
        return one_line(f"{type(error).__name__}: {error}")
    fits = inspect.isclass(candidate) and issubclass(candidate, Algorithm)
    return "" if fits else "ALGORITHM is not a subclass of private_consensus.Algorithm"


def _described(point: EntryPoint) -> str:
    package = "" if point.dist is None else f" ({point.dist.name})"
    return one_line(f"{point.value}{package}")
