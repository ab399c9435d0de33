"""Validation of arguments: each function returns the checked value or raises ``InvalidInput``.

Numbers are Python or NumPy numbers. Text, Boolean values, complex numbers and NaN are not accepted
as numbers.
"""

import math
import numbers
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache, wraps
from inspect import Signature, signature
from pathlib import Path
from types import UnionType
from typing import Any, ParamSpec, Self, TypeVar

import numpy as np

from . import InvalidInput, require

Check = Callable[[Any], Any]
Kind = type | tuple[type, ...] | UnionType
P = ParamSpec("P")
T = TypeVar("T")


def real(value: Any) -> float:
    """Return a number as a float, and NaN for any other object."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def number(key: str, value: Any, expected: str, holds: Check = lambda v: v == v) -> float:
    """Return a number as a float, or raise ``InvalidInput`` if ``holds`` is not true for it.

    NaN is never accepted.
    """
    converted = real(value)
    require(not math.isnan(converted) and bool(holds(converted)), key, value, expected)
    return converted


def array(key: str, value: Any, expected: str, holds: Check = lambda v: v == v) -> np.ndarray:
    """Return numbers of any shape as an array of floats, without a copy of such an array.

    ``holds`` returns True for each accepted number. NaN is never accepted.
    """
    try:
        numbers = np.asarray(value)
        if numbers.dtype.kind == "O" and all(is_real(item) for item in numbers.ravel()):
            numbers = numbers.astype(float)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(key, value, expected) from error
    is_numeric = numbers.dtype.kind in "iuf" and not isinstance(value, np.ma.MaskedArray)
    require(is_numeric, key, value, expected)
    numbers = np.asarray(numbers, dtype=float)
    with np.errstate(invalid="ignore"):
        accepted = np.asarray(holds(numbers))
    require(bool(np.all(accepted)) and not bool(np.isnan(numbers).any()), key, value, expected)
    return numbers


def is_real(item: Any) -> bool:
    """Return True for a real number that is not a Boolean value."""
    return isinstance(item, numbers.Real) and not isinstance(item, bool)


def whole(key: str, value: Any, low: int, high: int | None = None) -> int:
    """Return a whole number between ``low`` and ``high``; no upper limit if ``high`` is None."""
    is_whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    fits = is_whole and low <= value and (high is None or value <= high)
    limit = "" if high is None else f" and <= {high}"
    require(fits, key, value, f"a whole number >= {low}{limit}")
    return int(value)


def choice(key: str, value: Any, names: Collection[str]) -> str:
    """Return a text that is one of several names."""
    is_text = isinstance(value, str)
    representations = names if is_text or value is None else map(repr, names)  # 0 differs from "0"
    expected = f"one of {', '.join(representations)}"
    if not is_text and str(value) in names:
        expected = f"the text {str(value)!r}"
    require(is_text and value in names, key, value, expected)
    return value


def text(key: str, value: Any) -> str:
    """Return a text; refuse other types."""
    require(isinstance(value, str), key, value, "a text")
    return value


def path(key: str, value: Any, expected: str) -> Path:
    """Return the path of a file or folder, which ``expected`` describes in the message."""
    is_path = isinstance(value, str | Path) and "\0" not in str(value)
    require(is_path, key, value, expected)
    return Path(value)


def instance(key: str, value: Any, kind: Kind, expected: str) -> Any:
    """Return a value that is an instance of a type."""
    require(isinstance(value, kind), key, value, expected)
    return value


def items(key: str, value: Any, kind: Kind, expected: str) -> tuple:
    """Return the items of an ordered iterable, all of one type."""
    unordered_or_text = str | bytes | Mapping | set | frozenset
    several = isinstance(value, Iterable) and not isinstance(value, unordered_or_text)
    require(several, key, value, expected)
    collected = tuple(value)
    for item in collected:
        require(isinstance(item, kind), key, item, expected)
    return collected


def known_keywords(function: Callable[P, T]) -> Callable[P, T]:
    """Return the function; an unknown keyword argument raises ``InvalidInput``."""
    names = signature(function).parameters

    @wraps(function)
    def checked(*args: P.args, **keywords: P.kwargs) -> T:
        for name in keywords:
            choice(f"argument of {checked.__name__}", name, names)
        return function(*args, **keywords)

    return checked


class _SignatureOfInit:
    """Signature of a class for ``help`` and the documentation: that of ``__init__``."""

    def __get__(self, instance: object, owner: type) -> Signature:
        complete = signature(owner.__init__)
        return complete.replace(parameters=list(complete.parameters.values())[1:])


class KnownKeywords:
    """Base of classes that refuse unknown keyword arguments with ``InvalidInput``."""

    __signature__ = _SignatureOfInit()

    def __new__(cls, *args: Any, **keywords: Any) -> Self:
        for name in keywords:
            choice(f"argument of {cls.__name__}", name, _names(cls))
        return super().__new__(cls)


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(signature(kind).parameters)
