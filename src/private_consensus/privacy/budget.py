"""Privacy budgets and neighbouring relations."""

import math
from dataclasses import dataclass

from private_consensus.common.errors import arguments

UNITS = ("record", "agent", "measurement", "stream")
CHANGES = ("replace", "add_remove")


@dataclass(frozen=True)
class Budget(arguments.KnownKeywords):
    """(epsilon, delta) budget for everything that one agent releases.

    Parameters
    ----------
    epsilon : float
        Positive; ``inf`` requests the non-private run.
    delta : float
        In [0, 1); zero requests pure differential privacy.

    Raises
    ------
    InvalidInput
        With key ``budget.epsilon`` or ``budget.delta``.
    """

    epsilon: float
    delta: float = 0.0

    def __post_init__(self):
        above = "a number above 0 (inf: no privacy)"
        epsilon = arguments.number("budget.epsilon", self.epsilon, above, lambda v: v > 0)
        within = "a number in [0, 1)"
        delta = arguments.number("budget.delta", self.delta, within, lambda v: 0 <= v < 1)
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "delta", delta)

    @property
    def private(self) -> bool:
        """Return True if epsilon is finite."""
        return math.isfinite(self.epsilon)

    def __str__(self) -> str:
        return f"({self.epsilon:g}, {self.delta:g})-DP" if self.private else "non-private"


@dataclass(frozen=True)
class Relation(arguments.KnownKeywords):
    """Neighbouring relation: the data of one ``unit`` may ``change``.

    Parameters
    ----------
    unit : {"record", "agent", "measurement", "stream"}
        Protected unit: one record of one agent, or all records of one agent; for data that arrive
        over time, the measurement of one agent at one time, or its measurements at all times.
    change : {"replace", "add_remove"}
        The unit takes another value, or it appears or disappears.

    Raises
    ------
    InvalidInput
        With key ``relation.unit`` or ``relation.change``.
    """

    unit: str
    change: str

    def __post_init__(self):
        arguments.choice("relation.unit", self.unit, UNITS)
        arguments.choice("relation.change", self.change, CHANGES)

    def __str__(self) -> str:
        verb = "replace" if self.change == "replace" else "add or remove"
        return f"{verb} one {self.unit}"
