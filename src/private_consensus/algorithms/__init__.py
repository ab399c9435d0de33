"""One file an algorithm. The registry resolves a module by its name and imports none itself.

A package of somebody else adds algorithms through the entry-point group
``private_consensus.algorithms``, whose names are algorithm names and whose values are modules. A
module names its class in ``ALGORITHM``.
"""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from ..errors import InvalidInput

if TYPE_CHECKING:
    from .base import Algorithm

GROUP = "private_consensus.algorithms"
SHARED = {"base", "families", "noise", "parameters", "shapes"}
"""What algorithms share, and what is none itself."""


def names() -> list[str]:
    """Names of all algorithms that can be loaded, alphabetically."""
    own = {module.name for module in pkgutil.iter_modules(__path__)} - SHARED
    return sorted(own | set(_elsewhere()))


@cache
def module_of(name: str) -> str:
    """Dotted name of the module that defines an algorithm; what was found once is not looked for
    again."""
    if name in _elsewhere():
        return _elsewhere()[name]
    if name not in names():
        raise InvalidInput("algorithm.name", name, f"one of {', '.join(names())}")
    return f"{__name__}.{name}"


def modules() -> list[str]:
    """Dotted names of the modules of all algorithms."""
    return [module_of(name) for name in names()]


def load(name: str) -> type[Algorithm]:
    """The class of an algorithm."""
    return import_module(module_of(name)).ALGORITHM


@cache
def _elsewhere() -> dict[str, str]:
    return {point.name: point.module for point in entry_points(group=GROUP)}
