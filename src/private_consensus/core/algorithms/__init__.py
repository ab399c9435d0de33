"""Registry of algorithms by name.

Each algorithm has a module, whose constant ``ALGORITHM`` is the class. Names are resolved without
an import of these modules. Other packages add algorithms through the entry-point group
``private_consensus.algorithms``: the name of an entry point is the name of the algorithm, and its
value is the module.
"""

from __future__ import annotations

import pkgutil
import traceback
from collections import defaultdict
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from private_consensus.common.errors import Refused
from private_consensus.common.errors.arguments import choice

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
SHARED = {"base", "families"}
"""Modules of this package that define no algorithm."""


def names() -> list[str]:
    """Return the names of all algorithms, alphabetically."""
    return list(_modules())


def module_of(name: str) -> str:
    """Return the dotted name of the module that defines an algorithm; refuse an unknown name."""
    return _modules()[choice("algorithm.name", name, _modules())][0]


def load(name: str) -> type[Algorithm]:
    """Return the class of an algorithm; refuse an unknown name, and a module with an error."""
    module = module_of(name)
    try:
        return import_module(module).ALGORITHM
    except Exception as error:
        raise Refused([f"{_location(error)} (algorithm {name}, module {module})"]) from error


def _location(error: Exception) -> str:
    """Return the file and the line of an error in an imported module, and the error."""
    frames = traceback.extract_tb(error.__traceback__)[1:]
    frames = [frame for frame in frames if "importlib" not in frame.filename]
    lines = [f"{f.filename}, line {f.lineno}: " for f in frames if f.filename == frames[0].filename]
    if isinstance(error, SyntaxError):
        lines.append(f"{error.filename}, line {error.lineno}: ")
    return f"{''.join(lines[-1:])}{type(error).__name__}: {error}"


def collisions() -> dict[str, list[str]]:
    """Return the modules of each name that has several. The first is used."""
    return {name: modules for name, modules in _modules().items() if len(modules) > 1}


@cache
def _modules() -> dict[str, list[str]]:
    """Map each name to the modules that define it. A module of this package is the first."""
    modules = defaultdict(list, {name: [module] for name, module in ANALYSES.items()})
    for module in pkgutil.iter_modules(__path__):
        if module.name not in SHARED:
            modules[module.name].append(f"{__name__}.{module.name}")
    # A package that is installed twice has equal entry points, which count once.
    for point in sorted(entry_points(group=GROUP)):
        if point.value not in modules[point.name]:
            modules[point.name].append(point.value)
    return dict(sorted(modules.items()))
