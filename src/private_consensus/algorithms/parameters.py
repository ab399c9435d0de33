"""Hyperparameters that say which values they take, where they are declared.

A field of an algorithm is made by one of the functions here and refuses anything else with one
error, ``algorithm.<name>``, when the algorithm is made. A subclass that gives a field another
default keeps its rule. What holds between fields stays in ``__post_init__``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, field, fields
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from ..errors import require
from .noise import Noise

RULE, NOISE = "rule", "noise"
FOR_CALIBRATION = {"calibration only": True}
"""Metadata of fields that decide how the noise is set and mean nothing to the running algorithm."""


class Rule(NamedTuple):
    """Validation rule of a field: ``holds`` tests a value, ``expected`` describes it."""

    holds: Callable[[Any], bool]
    expected: str


def one_of(default: str | None, names: Iterable[str], *, calibration: bool = False) -> Any:
    """A switch; None is a value only where it is the default."""
    known = tuple(names)
    rule = Rule(partial(_is_one_of, known), f"one of {', '.join(known)}")
    return _field(default, rule, calibration)


def _is_one_of(known: tuple[str | None, ...], value: Any) -> bool:
    return isinstance(value, str | None) and value in known


def positive(default: Any, *, expected: str = "a number > 0", calibration: bool = False) -> Any:
    """A number above 0."""
    return _field(default, Rule(_all(lambda v: v > 0), expected), calibration)


def nonnegative(default: Any, *, calibration: bool = False) -> Any:
    """A number of at least 0."""
    return _field(default, Rule(_all(lambda v: v >= 0), "a number >= 0"), calibration)


class Declared(NamedTuple):
    """What a field says of its noise; where it says nothing, the algorithm's ``where`` and ``law``
    do. The scale changes with the algorithm's ``growth``, or not."""

    law: str | None
    added_to: str | None
    scheduled: bool


def noise_field(
    added_to: str | None = "message", law: str | None = "gaussian", *, scheduled: bool = False
) -> Any:
    """Noise that calibration sets, see :class:`.noise.Noise` and :class:`Declared`; none by
    default."""
    made, said = nonnegative(0.0), Declared(law, added_to, scheduled)
    return field(default=0.0, metadata={**made.metadata, NOISE: said})


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
    holds = _all(lambda v: (v >= 1) & (v <= most) & (v < np.inf) & (v == np.floor(v)))
    return _field(default, Rule(holds, expected), calibration)


def only(default: Any, because: str = "") -> Any:
    """A number that a subclass cannot change."""
    expected = f"{default:g}{because and ': '}{because}"
    return _field(default, Rule(_all(lambda v: v == default), expected), False)


def check_parameters(algorithm: Any) -> None:
    """Refuse the first field whose value its rule, or its declared type, does not take.

    Raises
    ------
    InvalidInput
        With key ``algorithm.<name>``.
    """
    for name, (rule, optional) in rules(type(algorithm)).items():
        value = _scale(getattr(algorithm, name))
        if not (optional and value is None):
            require(rule.holds(value), f"algorithm.{name}", value, rule.expected)
    for name, (holds, expected) in _typed(type(algorithm)).items():
        value = getattr(algorithm, name)
        require(holds(value), f"algorithm.{name}", value, expected)


_TYPES: Mapping[str, tuple[str, str]] = {
    "float": ("iuf", "a number"),
    "int": ("iuf", "a whole number"),
    "bool": ("b", "True or False"),
    "str": ("U", "a text"),
}
"""By the declared type of a field without a rule: kinds of arrays, and the type in words."""


@cache
def _typed(kind: type) -> Mapping[str, Rule]:
    """Build, for each field without a rule, a rule for values of the declared type.

    NaN is taken where it is the default.
    """
    found = {}
    for declared in fields(kind):
        stated = declared.type
        name = stated if isinstance(stated, str) else getattr(stated, "__name__", str(stated))
        base, _, optional = name.partition(" | ")
        if declared.name in rules(kind) or not declared.init or base not in _TYPES:
            continue
        default = declared.default
        open_ended = isinstance(default, float) and default != default
        kinds, expected = _TYPES[base]
        check = partial(_has_type, kinds=kinds, whole=base == "int", nan=open_ended)
        found[declared.name] = Rule(_or_none(check) if optional == "None" else check, expected)
    return found


def _or_none(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or check(value)


def _has_type(value: Any, kinds: str, whole: bool, nan: bool) -> bool:
    array = _array(value)
    if array is None or array.dtype.kind not in kinds:
        return False
    if array.dtype.kind != "f":
        return True
    if whole:
        return bool(np.all(np.isfinite(array) & (array == np.floor(array))))
    return nan or not np.isnan(array).any()


def _array(value: Any) -> np.ndarray | None:
    """Return a value as an array; None for rows of different lengths."""
    try:
        return np.asarray(value)
    except (TypeError, ValueError):
        return None


def set_noises(algorithm: Any) -> None:
    """Put an object for the number that was given, in each field that is a noise."""
    for name, said in noises(type(algorithm)).items():
        found = Noise(
            _scale(getattr(algorithm, name)),
            algorithm.law if said.law is None else said.law,
            algorithm.where if said.added_to is None else said.added_to,
            algorithm.growth if said.scheduled else 1.0,
        )
        object.__setattr__(algorithm, name, found)


def _scale(value: Any) -> Any:
    return value.scale if isinstance(value, Noise) else value


@cache
def noises(kind: type) -> Mapping[str, Declared]:
    """Return the declaration of each field that is a noise."""
    return {f.name: f.metadata[NOISE] for f in fields(kind) if NOISE in f.metadata}


@cache
def noiseless(kind: type) -> tuple[str, ...]:
    """The fields that are no noise."""
    return tuple(f.name for f in fields(kind) if f.name not in noises(kind))


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


def _all(holds: Callable[[Any], Any]) -> Callable[[Any], bool]:
    def of_all(value: Any) -> bool:
        if type(value) in (int, float):
            return _is_representable(value) and bool(holds(value))
        array = _array(value)
        return array is not None and array.dtype.kind in "iuf" and bool(np.all(holds(array)))

    return of_all


def _is_representable(value: float) -> bool:
    """Return True if the number is a float or an integer that converts to one."""
    try:
        float(value)
    except OverflowError:
        return False
    return True


def _field(default: Any, rule: Rule, calibration: bool) -> Any:
    metadata = {RULE: rule, **(FOR_CALIBRATION if calibration else {})}
    return field(default=default, metadata=metadata)
