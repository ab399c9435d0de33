"""Numerical tests of every numbered statement of the papers.

There is one module per paper or chapter, and one function per statement, named after its number in
the paper. Each function returns the measured quantities and the resulting verdict
(:class:`StatementResult`), and takes at most seconds. The methods are exact sums and moments,
quadrature, and searches for counterexamples. ``config/theorems.yaml`` states each theorem in one
sentence, and names the function that computes it or the reason why none can.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from inspect import getdoc, getmembers, isfunction
from types import ModuleType

from private_consensus.common.errors import arguments

from . import (
    admm,
    admm_remarks,
    concentrated,
    consensus_innovation,
    consensus_remarks,
    constrained,
    descent_remarks,
    functional,
    gradient_descent,
    local,
    local_remarks,
    objectives,
    schedules,
    sgd,
    sgd_remarks,
    zeroth_order,
    zeroth_order_remarks,
)
from .base import Part, StatementResult

STATEMENTS = (
    "theorem", "lemma", "proposition", "corollary", "gaussian_divergence", "serial_composition",
    "remark", "sentence", "equation", "footnote", "rate", "scales", "gaussian_against",
)  # fmt: skip
"""Prefixes of the names of functions that compute a statement."""

MODULES = (
    gradient_descent, schedules, descent_remarks, local, local_remarks, constrained, zeroth_order,
    zeroth_order_remarks, consensus_innovation, consensus_remarks, concentrated, admm, admm_remarks,
    objectives, sgd, sgd_remarks, functional,
)  # fmt: skip


def _computations_of(module: ModuleType) -> dict[str, Callable[..., StatementResult]]:
    """Return the functions of a module that compute a statement, by ``module.function``."""
    name = module.__name__.rpartition(".")[2]
    return {
        f"{name}.{key}": function
        for key, function in getmembers(module, isfunction)
        if function.__module__ == module.__name__ and key.startswith(STATEMENTS)
    }


COMPUTATIONS: dict[str, Callable[..., StatementResult]] = {
    name: function for module in MODULES for name, function in _computations_of(module).items()
}
"""Computations by name, ``module.function``."""


def compute(name: str, scale: float = 1.0) -> StatementResult:
    """Run the computation ``module.function`` and return its result.

    ``scale`` is a factor on the stated bounds; see :mod:`.base`.
    """
    arguments.choice("computation", name, COMPUTATIONS)
    computation = COMPUTATIONS[name]
    result = computation()
    _, _, documented = (getdoc(computation) or "").partition("\n\n")
    description = result.description or " ".join(documented.split())
    return replace(result, description=description).at(scale)


__all__ = ["COMPUTATIONS", "Part", "StatementResult", "compute"]
