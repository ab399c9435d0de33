"""Declaration of an algorithm's hyperparameters with their allowed values.

The functions of this module declare a field of an algorithm. A value that the field does not
allow raises an error with the key ``algorithm.<name>`` when the algorithm is constructed. If a
subclass changes only the default of a field, the rule of the field still applies. Algorithms
check conditions between fields in ``__post_init__``.

Numbers of a ``float`` or ``int`` field become Python numbers, and arrays become arrays of float64
or int64. Powers of integers and of shorter types overflow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, field, fields
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from private_consensus.common.errors import require

from .noise import Noise

if TYPE_CHECKING:
    from .base import Algorithm

RULE, NOISE = "rule", "noise"
FOR_CALIBRATION = {"calibration only": True}
"""Metadata of fields that affect the calibration of the noise only, not a run."""


class Rule(NamedTuple):
    """Validation rule of a field: a test of a value, and a description of the allowed values."""

    holds: Callable[[Any], bool]
    expected: str


def one_of(default: str | None, names: Iterable[str], *, calibration: bool = False) -> Any:
    """Declare a field with a fixed set of values; None is allowed if it is the default.

    A field with ``calibration`` affects only how the noise is set.
    """
    allowed = tuple(names)
    rule = Rule(partial(_is_one_of, allowed), f"one of {', '.join(allowed)}")
    return _field(default, rule, calibration)


def _is_one_of(allowed: tuple[str | None, ...], value: Any) -> bool:
    return isinstance(value, str | None) and value in allowed


def positive(default: Any, *, expected: str = "a number > 0", calibration: bool = False) -> Any:
    """Declare a number above 0; None is allowed if it is the default.

    ``expected`` describes the allowed values in error messages. A field with ``calibration``
    affects only how the noise is set.
    """
    return _field(default, Rule(_all(lambda v: v > 0), expected), calibration)


def nonnegative(default: Any, *, max_value: float = np.inf, calibration: bool = False) -> Any:
    """Declare a number from 0 to ``max_value``; None is allowed if it is the default.

    A field with ``calibration`` affects only how the noise is set.
    """
    expected = "a number >= 0" if np.isinf(max_value) else f"a number in [0, {max_value:g}]"
    return _field(default, Rule(_all(lambda v: (v >= 0) & (v <= max_value)), expected), calibration)


class NoiseDeclaration(NamedTuple):
    """Declared properties of a noise field, see :func:`noise_field`."""

    law: str | None
    added_to: str | None
    scheduled: bool


def noise_field(
    added_to: str | None = "message", law: str | None = "gaussian", *, scheduled: bool = False
) -> Any:
    """Declare a :class:`.noise.Noise` whose scale the calibration sets; the default scale is 0.

    The noise is added to the quantity ``added_to``, or to that of the algorithm's ``where`` if it
    is None. Its distribution is ``law``, or the algorithm's ``law`` if it is None. If
    ``scheduled``, the scale is divided by the algorithm's ``growth`` in every iteration.
    """
    declared = NoiseDeclaration(law, added_to, scheduled)
    return field(default=0.0, metadata={**nonnegative(0.0).metadata, NOISE: declared})


def fraction(
    default: Any = MISSING, *, below: float = 1.0, expected: str = "", calibration: bool = False
) -> Any:
    """Declare a number strictly between 0 and ``below``; None is allowed if it is the default.

    Without a default, the value is required. ``expected`` describes the allowed values in error
    messages. A field with ``calibration`` affects only how the noise is set.
    """
    expected = expected or f"a number in (0, {below:g})"
    return _field(default, Rule(_all(lambda v: (v > 0) & (v < below)), expected), calibration)


def unit_interval(default: Any) -> Any:
    """Declare a number above 0 and at most 1."""
    return _field(default, Rule(_all(lambda v: (v > 0) & (v <= 1)), "a number in (0, 1]"), False)


def positive_integer(default: Any, *, max_value: float = np.inf, calibration: bool = False) -> Any:
    """Declare a whole number from 1 to ``max_value``; None is allowed if it is the default.

    A field with ``calibration`` affects only how the noise is set.
    """
    expected = "a whole number >= 1" + (f" and <= {max_value}" if np.isfinite(max_value) else "")
    holds = _all(lambda v: (v >= 1) & (v <= max_value) & (v < np.inf) & (v == np.floor(v)))
    return _field(default, Rule(holds, expected), calibration)


def only(default: Any, because: str = "") -> Any:
    """Declare a number with a single allowed value, for a field that a subclass fixes.

    ``because`` is the reason for error messages.
    """
    expected = f"{default:g}{because and ': '}{because}"
    return _field(default, Rule(_all(lambda v: v == default), expected), False)


def check_parameters(algorithm: Any) -> None:
    """Raise ``InvalidInput`` for the first field that violates its rule or declared type.

    The key of the error is ``algorithm.<name>``.
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
"""Array kinds and description of each declared type of a field without a rule."""


@cache
def _typed(kind: type[Algorithm]) -> Mapping[str, Rule]:
    """Return a rule for the declared type of each field that has no rule.

    NaN is allowed only if it is the default.
    """
    typed_rules = {}
    for declared in fields(kind):
        base, optional = _declared_type(declared)
        if declared.name in rules(kind) or not declared.init or base not in _TYPES:
            continue
        default = declared.default
        open_ended = isinstance(default, float) and default != default
        kinds, expected = _TYPES[base]
        check = partial(_has_type, kinds=kinds, integral=base == "int", nan=open_ended)
        typed_rules[declared.name] = Rule(_or_none(check) if optional else check, expected)
    return typed_rules


def _or_none(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or check(value)


def _has_type(value: Any, kinds: str, integral: bool, nan: bool) -> bool:
    if isinstance(value, list | tuple):
        return False
    array = np.asarray(value)
    if array.dtype.kind not in kinds:
        return False
    if array.dtype.kind != "f":
        return True
    if integral:
        return bool(np.all(np.isfinite(array) & (array == np.floor(array))))
    return nan or not np.isnan(array).any()


def convert_values(algorithm: Any) -> None:
    """Convert the checked numbers of all fields, and set the :class:`.noise.Noise` of noise fields.

    The number in a noise field becomes the scale of the noise.
    """
    for name, number_type in _number_types(type(algorithm)).items():
        value = _scale(getattr(algorithm, name))
        if value is not None:
            is_array = isinstance(value, np.ndarray) and value.ndim > 0
            value = value.astype(number_type, copy=False) if is_array else number_type(value)
            object.__setattr__(algorithm, name, value)
    for name, declared in noises(type(algorithm)).items():
        noise = Noise(
            getattr(algorithm, name),
            algorithm.law if declared.law is None else declared.law,
            algorithm.where if declared.added_to is None else declared.added_to,
            algorithm.growth if declared.scheduled else 1.0,
        )
        object.__setattr__(algorithm, name, noise)


@cache
def _number_types(kind: type[Algorithm]) -> Mapping[str, type[int | float]]:
    """Return the type of each field that is declared as a number."""
    declared_types = {f.name: _declared_type(f)[0] for f in fields(kind) if f.init}
    number_types: Mapping[str, type[int | float]] = {"float": float, "int": int, "Noise": float}
    return {n: number_types[t] for n, t in declared_types.items() if t in number_types}


def _declared_type(declared: Field) -> tuple[str, bool]:
    """Return the name of the declared type of a field, and True if the field may be None."""
    stated = declared.type
    name = stated if isinstance(stated, str) else getattr(stated, "__name__", str(stated))
    base, _, optional = name.partition(" | ")
    return base, optional == "None"


def _scale(value: Any) -> Any:
    return value.scale if isinstance(value, Noise) else value


@cache
def noises(kind: type[Algorithm]) -> Mapping[str, NoiseDeclaration]:
    """Return the declared properties of each noise field, by name."""
    return {f.name: f.metadata[NOISE] for f in fields(kind) if NOISE in f.metadata}


@cache
def rules(kind: type[Algorithm]) -> Mapping[str, tuple[Rule, bool]]:
    """Return the rule of each field, and True if the field may be None.

    The rule of a field is that of the nearest class in the method resolution order that declares
    one. The field may be None if its default in that class is None.
    """
    nearest_rules = {}
    for name in (declared_field.name for declared_field in fields(kind)):
        tables = (getattr(parent, "__dataclass_fields__", {}) for parent in kind.__mro__)
        declared = (table[name] for table in tables if name in table)
        for candidate in declared:
            if RULE in candidate.metadata:
                nearest_rules[name] = candidate.metadata[RULE], candidate.default is None
                break
    return nearest_rules


def _all(holds: Callable[[Any], Any]) -> Callable[[Any], bool]:
    def holds_everywhere(value: Any) -> bool:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return _is_representable(value) and bool(holds(value))
        if not isinstance(value, np.ndarray | np.number):
            return False
        return value.dtype.kind in "iuf" and bool(np.all(holds(value)))

    return holds_everywhere


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
