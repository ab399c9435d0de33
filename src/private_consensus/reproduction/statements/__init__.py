"""Numerical tests of the statements of the papers, numbered or not, and of their errata.

There is one function per statement, named after its number in the paper. It returns the
inequalities of the statement (:class:`.base.Part`) and takes at most seconds. The methods are exact
sums and moments, quadrature, and searches for counterexamples. An inequality that does not hold is
the counterexample of an erratum. ``config/statements.yaml`` states each statement in one sentence,
and names the function that computes it or the reason why none can.
"""

from collections.abc import Callable
from functools import cache
from inspect import getdoc

from private_consensus.common.errors import arguments

from . import (
    admm,
    concentrated,
    consensus_innovation,
    functional,
    gradient_descent,
    local,
    sgd,
    zeroth_order,
)
from .base import Part, Parts

MODULES = (
    admm, concentrated, consensus_innovation, functional, gradient_descent, local, sgd,
    zeroth_order,
)  # fmt: skip
COMPUTATIONS: dict[str, Callable[[], Parts]] = {
    f"{module.__name__.rpartition('.')[2]}.{name}": function
    for module in MODULES
    for name, function in vars(module).items()
    if getattr(function, "__annotations__", {}).get("return") == Parts and name[0] != "_"
}
"""Computations of statements by name, ``module.function``."""


@cache
def compute(name: str) -> Parts:
    """Run the computation ``module.function`` and return its inequalities."""
    arguments.choice("computation", name, COMPUTATIONS)
    return COMPUTATIONS[name]()


def description_of(name: str) -> str:
    """Return the description of a computation: its docstring in one line."""
    return " ".join((getdoc(COMPUTATIONS[name]) or "").split())


__all__ = ["COMPUTATIONS", "Part", "Parts", "compute", "description_of"]
