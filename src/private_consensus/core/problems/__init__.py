"""Optimisation problems, one module per problem, found by name.

Each module has a function ``build(streams, agents, **parameters)``, whose return type is the class
of the problem, and parameters of an ``EXAMPLE``. A parameter ``partition`` is "shared" if all runs
share one partition of the records, or "per_run".
"""

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from inspect import signature
from types import ModuleType
from typing import Any, get_type_hints

from private_consensus.common.errors.arguments import choice, text

from .base import Problem as Problem


def names() -> list[str]:
    """Return the names of the available problems."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name != "base")


def module_of(name: str) -> str:
    """Return the dotted name of a problem's module; valid names are cached."""
    return _module_of(text("problem.name", name))


@cache
def _module_of(name: str) -> str:
    choice("problem.name", name, names())
    return f"{__name__}.{name}"


def load(name: str) -> ModuleType:
    """Import and return the module of a problem."""
    return import_module(module_of(name))


@cache
def class_of(name: str) -> type[Problem]:
    """Return the class that the ``build`` function of a problem returns."""
    return get_type_hints(load(name).build)["return"]


def name_of(problem: object) -> str | None:
    """Return the name of a problem of the library or of a subclass; None for another object."""
    for kind in type(problem).__mro__:
        package, _, module = kind.__module__.partition(f"{__name__}.")
        if not package and module and kind is not Problem:
            return module.partition(".")[0]
    return None


def shared_by_runs(module: ModuleType, parameters: Mapping[str, Any]) -> bool:
    """Return True if a problem with these parameters of ``build`` is equal in all runs."""
    options = signature(module.build).parameters
    if "partition" in options:
        return parameters.get("partition", options["partition"].default) == "shared"
    # Without random data, the class has no number of runs.
    return not get_type_hints(module.build)["return"].offers("n_runs")
