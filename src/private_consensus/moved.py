"""Aliases for the former paths of modules that algorithms of other packages import.

Imports of paths such as ``private_consensus.algorithms.base`` work for one more release, with a
:class:`DeprecationWarning`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

PACKAGE = "private_consensus"
MOVED = {
    "algorithms": "core.algorithms",
    "arrays": "common.arrays",
    "datasets": "reproduction.datasets",
    "datasets.partition": "core.partition",
    "errors": "common.errors",
    "exchange": "core.exchange",
    "fast": "kernels",
    "fields": "common.fields",
    "large_graphs": "core.large_graphs",
    "large_networks": "core.large_networks",
    "library": "api.results",
    "networks": "core.networks",
    "observations": "audits.views",
    "problems": "core.problems",
    "quantization": "core.quantization",
    "randomness": "core.randomness",
    "simulation": "core.simulation",
    "solvers": "core.solvers",
    "splitting": "core.splitting",
    "synthetic": "core.synthetic",
}
"""Present path of a module below the package, by its path in an earlier release."""


def moved_path(path: str) -> str | None:
    """Return the present path of a module below the package; None if the module has not moved."""
    package, modules = path, ""
    while package and package not in MOVED:
        package, _, name = package.rpartition(".")
        modules = f".{name}{modules}"
    return MOVED[package] + modules if package else None


class _Aliases(MetaPathFinder, Loader):
    """Import hook that loads moved modules under their former names."""

    def __init__(self) -> None:
        self._specs: dict[str, ModuleSpec | None] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        root, _, path_below = fullname.partition(".")
        new_path = moved_path(path_below) if root == PACKAGE else None
        return ModuleSpec(fullname, self, origin=f"{PACKAGE}.{new_path}") if new_path else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(str(spec.origin))
        self._specs[module.__name__] = module.__spec__
        message = f"{spec.name} has moved to {spec.origin}"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has replaced the module's specification by that of the alias.
        module.__spec__ = self._specs[module.__name__]


def install() -> None:
    """Install the import hook for former module paths, once per process."""
    if not any(isinstance(finder, _Aliases) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Aliases())
