"""Hyperparameters that say which values they take, where they are declared.

A field of an algorithm is made by one of the functions here and refuses anything else with one
error, ``algorithm.<name>``, when the algorithm is made. A subclass that gives a field another
default keeps its rule. What holds between fields stays in ``__post_init__``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, field, fields
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ..errors import require

RULE = "rule"
FOR_CALIBRATION = {"calibration only": True}
"""Metadata of fields that decide how the noise is set and mean nothing to the running algorithm."""


class Rule(NamedTuple):
    """What a field takes: ``holds`` maps a value to a truth value, ``expected`` says it."""

    holds: Callable[[Any], bool]
    expected: str


def one_of(default: str | None, names: Iterable[str], *, calibration: bool = False) -> Any:
    """A switch; None is a value only where it is the default."""
    known = tuple(names)
    rule = Rule(lambda value: value in known, f"one of {', '.join(known)}")
    return _field(default, rule, calibration)


def positive(default: Any, *, expected: str = "a number > 0", calibration: bool = False) -> Any:
    """A number above 0."""
    return _field(default, Rule(_all(lambda v: v > 0), expected), calibration)


def nonnegative(default: Any, *, calibration: bool = False) -> Any:
    """A number of at least 0."""
    return _field(default, Rule(_all(lambda v: v >= 0), "a number >= 0"), calibration)


def fraction(
    default: Any = MISSING, *, below: float = 1.0, expected: str = "", calibration: bool = False
) -> Any:
    """A number strictly between 0 and ``below``; without a default it has to be given."""
    expected = expected or f"a number in (0, {below:g})"
    return _field(default, Rule(_all(lambda v: (v > 0) & (v < below)), expected), calibration)


def up_to_one(default: Any) -> Any:
    """A number above 0 and at most 1."""
    return _field(default, Rule(_all(lambda v: (v > 0) & (v <= 1)), "a number in (0, 1]"), False)


def whole(default: Any, *, most: float = np.inf, calibration: bool = False) -> Any:
    """A whole number of at least 1, and at most ``most``."""
    expected = "a whole number >= 1" + (f" and <= {most}" if np.isfinite(most) else "")
    holds = _all(lambda v: (v >= 1) & (v <= most) & (v == np.floor(v)))
    return _field(default, Rule(holds, expected), calibration)


def only(default: Any, because: str = "") -> Any:
    """A number that a subclass cannot change."""
    expected = f"{default:g}{because and ': '}{because}"
    return _field(default, Rule(_all(lambda v: v == default), expected), False)


def check_parameters(algorithm: Any) -> None:
    """Refuse the first field whose value its rule does not take.

    Raises
    ------
    InvalidInput
        With key ``algorithm.<name>``.
    """
    for name, (rule, optional) in rules(type(algorithm)).items():
        value = getattr(algorithm, name)
        if not (optional and value is None):
            require(rule.holds(value), f"algorithm.{name}", value, rule.expected)


@cache
def rules(kind: type) -> Mapping[str, tuple[Rule, bool]]:
    """By field, the rule of the class nearest to ``kind`` that declares one, and whether it may be
    None, as it is by default there."""
    found = {}
    for name in (own.name for own in fields(kind)):
        tables = (getattr(parent, "__dataclass_fields__", {}) for parent in kind.__mro__)
        declared = (table[name] for table in tables if name in table)
        for one in declared:
            if RULE in one.metadata:
                found[name] = one.metadata[RULE], one.default is None
                break
    return found


def _all(holds: Callable[[np.ndarray], np.ndarray]) -> Callable[[Any], bool]:
    def of_all(value: Any) -> bool:
        array = np.asarray(value)
        return array.dtype.kind in "biuf" and bool(np.all(holds(array)))

    return of_all


def _field(default: Any, rule: Rule, calibration: bool) -> Any:
    metadata = {RULE: rule, **(FOR_CALIBRATION if calibration else {})}
    return field(default=default, metadata=metadata)
