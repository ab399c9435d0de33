"""Every numbered statement of the papers against a computation.

A module a paper, or a chapter of one; a function a statement, named as the paper numbers it. Each
returns what it measured and the verdict that follows (:class:`Finding`), and is seconds long at
most: exact sums and moments, quadrature, a search for counterexamples. ``config/theorems.yaml``
says in a sentence what is stated, and which function computes it or why none can.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import getmembers, isfunction
from types import ModuleType

from ..errors import require
from . import (
    admm,
    concentrated,
    consensus_innovation,
    constrained,
    functional,
    gradient_descent,
    local,
    objectives,
    observers,
    schedules,
    sgd,
    sgd_remarks,
    zeroth_order,
)
from .base import Finding, Part

STATEMENTS = (
    "theorem", "lemma", "proposition", "corollary", "gaussian_divergence", "serial_composition",
    "remark", "equation", "footnote", "rate", "scales", "gaussian_against",
    "muffliato", "chebyshev", "secure_sums", "decor", "mafalda", "zip_dl",
)  # fmt: skip
"""How the names of computations begin; other public functions are what errata use of them."""

MODULES = (
    gradient_descent,
    schedules,
    local,
    constrained,
    zeroth_order,
    consensus_innovation,
    concentrated,
    admm,
    objectives,
    sgd,
    sgd_remarks,
    functional,
    observers,
)


def _own(module: ModuleType) -> dict[str, Callable[..., Finding]]:
    name = module.__name__.rpartition(".")[2]
    return {
        f"{name}.{key}": function
        for key, function in getmembers(module, isfunction)
        if function.__module__ == module.__name__ and key.startswith(STATEMENTS)
    }


COMPUTATIONS: dict[str, Callable[..., Finding]] = {
    name: function for module in MODULES for name, function in _own(module).items()
}
"""``module.function`` to the computation."""


def compute(name: str, scale: float = 1.0) -> Finding:
    """The finding of a computation; ``scale`` falsifies what is stated where it is below 1."""
    require(name in COMPUTATIONS, "computation", name, f"one of {', '.join(COMPUTATIONS)}")
    return COMPUTATIONS[name](scale)


__all__ = [
    "COMPUTATIONS",
    "Finding",
    "Part",
    "compute",
]
