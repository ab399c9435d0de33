"""Module paths of earlier releases, as aliases of today's modules.

Packages with algorithms of their own import ``private_consensus.algorithms.base`` and similar
paths. These imports work for one more release and give a :class:`DeprecationWarning`.
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
    "claims": "reproduction.claims",
    "datasets": "reproduction.datasets",
    "errors": "common.errors",
    "exchange": "core.exchange",
    "experiments": "reproduction.experiments",
    "extras": "common.extras",
    "fast": "core.kernels",
    "fields": "common.fields",
    "job_logging": "common.job_logging",
    "large_graphs": "core.large_graphs",
    "large_networks": "core.large_networks",
    "library": "core.library",
    "multiplicity": "common.multiplicity",
    "networks": "core.networks",
    "observations": "audits.views",
    "plotting": "reproduction.plotting",
    "problems": "core.problems",
    "provenance": "common.provenance",
    "publishing": "reproduction.publishing",
    "quantization": "core.quantization",
    "randomness": "core.randomness",
    "readable": "common.readable",
    "report": "reproduction.report",
    "secrets": "common.secrets",
    "simulation": "core.simulation",
    "solvers": "core.solvers",
    "spelling": "common.spelling",
    "spreadsheets": "common.spreadsheets",
    "studies": "reproduction.studies",
    "synthetic": "core.synthetic",
    "terminal": "common.terminal",
    "theorems": "reproduction.statements",
    "usage": "common.usage",
    "yamls": "common.yamls",
}
"""Today's path below the package, by the name of a module of version 0.1.0."""


class _Aliases(MetaPathFinder, Loader):
    def __init__(self) -> None:
        self._specs: dict[str, ModuleSpec | None] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        root, *names = fullname.split(".")
        if root != PACKAGE or not names or names[0] not in MOVED:
            return None
        return ModuleSpec(fullname, self, origin=".".join([root, MOVED[names[0]], *names[1:]]))

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        if spec.origin is None:
            raise ModuleNotFoundError(spec.name)
        module = import_module(spec.origin)
        self._specs[module.__name__] = module.__spec__
        message = f"{spec.name} has moved to {spec.origin}"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has replaced the module's own specification by that of the alias.
        module.__spec__ = self._specs[module.__name__]


def install() -> None:
    """Let imports of the former module paths find the moved modules; a second call does nothing."""
    if not any(isinstance(finder, _Aliases) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Aliases())
