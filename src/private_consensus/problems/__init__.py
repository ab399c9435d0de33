"""What is minimised: a module a problem, resolved by name.

Each has a function ``build(streams, agents, **parameters)``, the names of its ``METRICS``,
parameters of an ``EXAMPLE``. ``SHARED_BY_RUNS = True``, or ``shared_by_runs(parameters)``, says
that what it builds is the same for every run. ``RESCALED`` names parameters that its data do not
depend on: ``rescaled(problem, **parameters)`` is another problem with the same data.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, get_type_hints

from ..errors import InvalidInput
from ..errors.arguments import instance, text
from .base import Problem

__all__ = ["Problem", "class_of", "load", "module_of", "modules", "names", "shared_by_runs"]


def names() -> list[str]:
    """Names of the problems there are."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name != "base")


def module_of(name: str) -> str:
    """Dotted name of the module of a problem; what was found once is not looked for again."""
    return _module_of(text("problem.name", name))


@cache
def _module_of(name: str) -> str:
    if name not in names():
        raise InvalidInput("problem.name", name, f"one of {', '.join(names())}")
    return f"{__name__}.{name}"


def modules() -> list[str]:
    """Dotted names of the modules of all problems."""
    return [module_of(name) for name in names()]


def load(name: str) -> ModuleType:
    """The module of a problem."""
    return import_module(module_of(name))


def class_of(name: str) -> type[Problem]:
    """Return the class that the ``build`` function of a problem returns."""
    return get_type_hints(load(name).build)["return"]


def shared_by_runs(module: ModuleType, parameters: Mapping[str, Any]) -> bool:
    """Return True if a problem with these parameters is equal in all runs."""
    instance("module", module, ModuleType, "the module of a problem")
    instance("parameters", parameters, Mapping, "a mapping of parameters")
    decide = getattr(module, "shared_by_runs", None)
    return decide(parameters) if decide else getattr(module, "SHARED_BY_RUNS", False)
