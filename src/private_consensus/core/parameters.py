"""Validation of the parameters of algorithms and problems by their type hints.

A parameter is a number, such as ``float`` or ``Annotated[float, Gt(0)]``, a Boolean, one of several
texts, such as ``Literal["mean", "sum"]``, or one of these or None. The marker :data:`CALIBRATION`
means that the parameter affects only how the noise is set. Numbers of a batch are arrays.
"""

import math
import types
from collections.abc import Callable, Mapping
from functools import cache, wraps
from inspect import getfullargspec, unwrap
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    ParamSpec,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np
from annotated_types import Ge, Gt, Le, Lt

from private_consensus.common.errors import arguments, require

P = ParamSpec("P")
T = TypeVar("T")

CALIBRATION = "calibration"
"""Marker of fields that affect the calibration of the noise only, not a run."""

STEP = "step"
"""Marker of step sizes, which are compared with the smoothness of the problem."""

ASSUMED = "assumed"
"""Marker of assumed bounds on the gradients of records, which the data do not guarantee."""

Positive = Annotated[float, Gt(0)]
AssumedBound = Annotated[float, Gt(0), ASSUMED]
StepSize = Annotated[float, Gt(0), STEP]
NonNegative = Annotated[float, Ge(0)]
Fraction = Annotated[float, Gt(0), Lt(1)]
UnitInterval = Annotated[float, Gt(0), Le(1)]
PositiveInt = Annotated[int, Ge(1)]
Count = Annotated[int, Ge(1), Le(10**9)]
FinitePositive = Annotated[float, Gt(0), Lt(math.inf)]
FiniteNonNegative = Annotated[float, Ge(0), Lt(math.inf)]
Law = Literal["laplace", "gaussian", "gamma_norm"]
Calibration = Annotated[Literal["accountant", "formula", "given"], CALIBRATION]
"""Rule by which a budget sets the noise: accountant, formula of the paper, or unchanged noise."""

_TESTS = {
    Gt: (lambda value, limit: value > limit.gt, lambda limit: f"> {limit.gt:g}"),
    Ge: (lambda value, limit: value >= limit.ge, lambda limit: f">= {limit.ge:g}"),
    Lt: (lambda value, limit: value < limit.lt, lambda limit: f"< {limit.lt:g}"),
    Le: (lambda value, limit: value <= limit.le, lambda limit: f"<= {limit.le:g}"),
}


class Rule(NamedTuple):
    """Rule of a field: number type or allowed texts, limits, and whether None is allowed.

    ``marks`` are the annotations of the field, such as :data:`CALIBRATION`.
    """

    number: type | None
    texts: tuple[Any, ...]
    limits: tuple[Any, ...]
    optional: bool
    marks: tuple[Any, ...]

    @property
    def expected(self) -> str:
        """Description of the allowed values."""
        if self.texts:
            return f"one of {', '.join(map(str, self.texts))}"
        noun = "a whole number" if self.number is int else "a number"
        limits = " and ".join(_TESTS[type(limit)][1](limit) for limit in self.limits)
        return f"{noun} {limits}".rstrip()

    def allows(self, value: Any) -> bool:
        """Return True if a value, or every number of an array, is allowed."""
        if value is None:
            return self.optional
        if self.texts:
            return isinstance(value, str | bool) and value in self.texts
        array = np.asarray(value)
        if array.dtype.kind not in "iuf" or isinstance(value, list | tuple):
            return False
        if self.number is int and np.any(array != np.floor(array)):
            return False
        return all(bool(np.all(_TESTS[type(limit)][0](array, limit))) for limit in self.limits)


@cache
def rules_of(declaration: Any) -> dict[str, Rule]:
    """Return the rules of the fields of a class, or of the parameters of a function."""
    hints = get_type_hints(declaration, include_extras=True)
    return {name: rule for name, hint in hints.items() if (rule := rule_of(hint)) is not None}


def rule_of(stated: Any) -> Rule | None:
    """Return the rule of a type hint; None if it states no limits and no texts."""
    marks: tuple[Any, ...] = ()
    optional = False
    while True:
        if get_origin(stated) is Annotated:
            stated, *annotations = get_args(stated)
            marks = (*marks, *annotations)
        elif get_origin(stated) in (Union, types.UnionType):
            options = [option for option in get_args(stated) if option is not type(None)]
            optional = True
            if len(options) != 1:
                return None
            stated = options[0]
        else:
            break
    limits = tuple(mark for mark in marks if type(mark) in _TESTS)
    if get_origin(stated) is Literal:
        return Rule(None, get_args(stated), (), optional, marks)
    if stated is bool:
        return Rule(None, (True, False), (), optional, marks)
    if stated in (int, float):
        return Rule(stated, (), limits, optional, marks)
    return None


def validate(instance: Any, section: str) -> None:
    """Refuse the first field that its rule does not allow, and convert numbers.

    Raises
    ------
    InvalidInput
        With key ``<section>.<name>``.
    """
    for name, rule in rules_of(type(instance)).items():
        value = getattr(instance, name)
        require(rule.allows(value), f"{section}.{name}", value, rule.expected)
        if rule.number is None or value is None:
            continue
        is_array = isinstance(value, np.ndarray) and value.ndim > 0
        value = value.astype(rule.number, copy=False) if is_array else rule.number(value)
        object.__setattr__(instance, name, value)


def validated(build: Callable[P, T]) -> Callable[P, T]:
    """Return a function that builds a problem from keywords which their type hints allow.

    Other values, and unknown keywords, raise ``InvalidInput`` with key ``problem.<name>``.
    """

    @wraps(build)
    def checked(*args: P.args, **keywords: P.kwargs) -> T:
        require_allowed(build, keywords)
        return build(*args, **keywords)

    return checked


def require_allowed(build: Callable, keywords: Mapping[str, Any], section: str = "problem") -> None:
    """Refuse unknown names, values and missing values among the keywords of a function.

    The keys of messages are those of a ``section`` of the configuration.
    """
    rules, declared = rules_of(build), getfullargspec(unwrap(build))
    for name, value in keywords.items():
        require(bool(declared.kwonlyargs), f"{section}.{name}", value, "no parameters")
        arguments.choice(section, name, sorted(declared.kwonlyargs))
        if name in rules:
            require(rules[name].allows(value), f"{section}.{name}", value, rules[name].expected)
    for name in declared.kwonlyargs:
        is_set = name in keywords or name in (declared.kwonlydefaults or {})
        expected = rules[name].expected if name in rules else "a value"
        require(is_set, f"{section}.{name}", None, expected)
