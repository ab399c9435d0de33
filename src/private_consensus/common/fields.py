"""Field types of configurations, without conversion between numbers, text and Boolean values.

YAML distinguishes these types. Pydantic would by default convert ``true`` and ``"1"`` to the number
1, so that a typing error would not be detected.
"""

import itertools
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    WithJsonSchema,
    field_validator,
)
from pydantic import Strict as NotConverted

from .errors import InvalidInput, Refused, nearest, require
from .grouping import grouped
from .secrets import redacted

M = TypeVar("M", bound=BaseModel)

MEASURE = re.compile(r"[a-z]\w*(\.[a-z]\w*)?")


def _not_nan(value: float) -> float:
    require(not math.isnan(value), "", value, "a number")
    return value


Whole = Annotated[int, NotConverted()]
Number = Annotated[float, NotConverted(), AfterValidator(_not_nan)]
Flag = Annotated[bool, NotConverted()]


def split_measure(measure: Any) -> tuple[str, str]:
    """Split a measure into quantity and metric; the default metric is ``value``."""
    if isinstance(measure, tuple):
        return measure
    is_measure = isinstance(measure, str) and MEASURE.fullmatch(measure)
    require(bool(is_measure), "", measure, "quantity.metric")
    quantity, _, metric = measure.partition(".")
    return quantity, metric or "value"


def measure_text(measure: tuple[str, str]) -> str:
    """Format a measure as ``quantity.metric``, without the default metric ``value``."""
    return ".".join(measure).removesuffix(".value")


def present(value: Any) -> Any:
    """Return a value; refuse a key without a value."""
    require(value is not None, "", value, "a value, or no such key")
    return value


Interpretation = Literal["resolved", "literal", "ablation"]
Slug = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
Name = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,99}$")]
"""Name of a figure, a table or a claim; it is also the name of its file and of its target."""
Measure = Annotated[
    tuple[str, str],
    BeforeValidator(split_measure),
    PlainSerializer(measure_text),
    WithJsonSchema({"type": "string", "pattern": f"^{MEASURE.pattern}$"}),
]
"""``quantity.metric``, or ``quantity`` for a quantity that is a number."""
Reference = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)?$")]
"""``algorithm.variant``, or an algorithm."""
Positive = Annotated[Whole, Field(ge=1)]
BatchSize = Annotated[Whole, Field(ge=1, le=10_000)]
Values = Annotated[list[Number | Whole | str], Field(min_length=1)]
Selection = dict[str, Any]
"""Selected values of each axis; a pair is a range."""


class Strict(BaseModel):
    """Mapping that refuses unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class FileEntry(Strict):
    """Mapping of a file that refuses unknown keys and keys without a value."""

    _each_key_has_a_value = field_validator("*", mode="before")(present)

    def set_keys(self) -> set[str]:
        """Return the keys that the entry and its series set, and the axes that they select."""
        series = getattr(self, "series", None)
        nested_keys = series.set_keys() if series else set()
        return {*self.model_fields_set, *getattr(self, "where", ()), *nested_keys}

    def inherit(self, base: BaseModel, keys: Collection[str] | None = None) -> Self:
        """Return the entry with those of some keys of another entry that it does not set.

        The axes of ``where`` and ``grid`` and the keys of ``series`` are inherited one by one. A
        key or an axis that the entry sets replaces its values in the grid.
        """
        inherited = base.model_fields_set if keys is None else base.model_fields_set & set(keys)

        def value_of(name: str) -> Any:
            old, value = getattr(base, name), getattr(self, name)
            if name == "grid":
                return {k: v for k, v in old.items() if k not in self.set_keys()} | value
            if name not in self.model_fields_set:
                return old
            if name == "where":
                return old | value
            return value.inherit(old) if name == "series" else value

        return self.model_copy(update={name: value_of(name) for name in inherited})


class Product(FileEntry):
    """Entry of a list that stands for one entry per combination of the values in its grid."""

    grid: dict[str, Annotated[list[Any], Field(min_length=1)]] = Field(default={}, exclude=True)
    """Lists of values, by key of the entry or by axis. There is one entry per combination of
    values, and the first key varies slowest."""

    @classmethod
    def keys(cls) -> set[str]:
        """Return the keys that an entry may have."""
        return set(cls.model_fields)

    def product(self, key_path: str) -> list[Self]:
        """Return one entry per combination of the values in the grid, without a grid.

        A value that is invalid for its key raises ``Refused`` with the key path of the grid.
        """
        combinations = itertools.product(*self.grid.values())
        points = [dict(zip(self.grid, values, strict=True)) for values in combinations]
        return [self._at(point, key_path) for point in points] if self.grid else [self]

    def _at(self, point: dict[str, Any], key_path: str) -> Self:
        content = {key: value for key, value in point.items() if key in self.keys()}
        content["where"] = {axis: value for axis, value in point.items() if axis not in content}
        for name in {"title", "label"} & self.model_fields_set:
            content[name] = formatted(getattr(self, name), point, f"{key_path}.{name}")
        return validate(type(self), content, f"{key_path}.grid.").inherit(self)


def validate(model: type[M], content: Any, location: str = "") -> M:
    """Build a model from a configuration, or raise ``Refused`` with one line per mistake.

    Each line starts with the text ``location``, such as the name of the file.
    """
    try:
        return model.model_validate(content)
    except ValidationError as error:
        errors = grouped(error.errors(), lambda e: _path_of(e, content))
    # The errors within a value are more precise than those of a value with several allowed types,
    # and an unknown key is often the misspelled name of a missing key.
    kinds = {path: same[0]["type"] for path, same in errors.items()}
    misspelled = {path[:-1] for path, kind in kinds.items() if kind == "extra_forbidden"}
    implied = {path[:end] for path in errors for end in range(len(path))}
    implied |= {p for p, kind in kinds.items() if kind == "missing" and p[:-1] in misspelled}
    raise refused(
        ("".join([location, *(f"{key}." for key in path[:-1])]), _problem(path, same, model))
        for path, same in errors.items()
        if path not in implied
    )


def refused(errors: Iterable[tuple[str, str]]) -> Refused:
    """Return an error with one line per mistake: its first location, the problem and a count.

    ``errors`` are pairs of a location and a problem. Problems with the same value are one mistake.
    """
    mistakes = grouped(errors, lambda error: error[1].partition(", expected")[0])
    return Refused([
        f"{location}{problem}" + (f" (first of {1 + len(others)} places)" if others else "")
        for (location, problem), *others in mistakes.values()
    ])  # fmt: skip


def _path_of(error: Mapping[str, Any], content: Any) -> tuple[str | int, ...]:
    """Return the location of a validation error as keys and indices of the content."""
    path = []
    for step in error["loc"]:
        content = dict(enumerate(content)) if isinstance(content, list) else content
        if isinstance(content, Mapping) and step in content:
            content = content[step]
            path.append(step)
    return (*path, error["loc"][-1]) if error["type"] == "missing" else tuple(path)


EXPECTED = {
    "int_type": "a whole number", "float_type": "a number", "bool_type": "true or false",
    "string_type": "a text", "list_type": "a list", "tuple_type": "a list",
    "dict_type": "keys with values", "model_type": "keys with values", "missing": "a value",
    "greater_than": "a number > {gt}", "greater_than_equal": "a number >= {ge}",
    "less_than": "a number < {lt}", "less_than_equal": "a number <= {le}",
    "too_short": "at least {min_length} entries", "literal_error": "one of {expected}",
    "string_pattern_mismatch": "a text that matches {pattern}",
}  # fmt: skip
"""Descriptions of valid values, by type of the error of Pydantic."""


def _problem(
    path: tuple[str | int, ...], errors: Sequence[Mapping[str, Any]], model: type[BaseModel]
) -> str:
    """Describe the errors at one location of a configuration, beginning with its last key."""
    key, first = str(path[-1]) if path else "content", errors[0]
    if first["type"] == "extra_forbidden":
        schemas = model.model_json_schema().get("$defs", {}).values()
        names = {*model.model_fields, *(name for s in schemas for name in s.get("properties", ()))}
        return "; ".join(filter(None, [f"{key}: unknown key", nearest(key, names - {key})]))
    expected = " or ".join(dict.fromkeys(map(_expectation, errors)))
    value = None if first["type"] == "missing" else first["input"]
    return redacted(str(InvalidInput(key, value, expected)))


def _expectation(error: Mapping[str, Any]) -> str:
    context = error.get("ctx", {})
    if isinstance(invalid := context.get("error"), InvalidInput):
        return invalid.expected
    text = EXPECTED.get(error["type"], error["msg"]).format_map(context)
    return text.replace("'", "").replace(" or ", ", ") if "expected" in context else text


def nested(content: Any, field: str, keys: Collection[str]) -> Any:
    """Return the content of an entry with some of its keys moved into the mapping of one field."""
    if not isinstance(content, Mapping) or not isinstance(content.get(field, {}), Mapping):
        return content
    inner = {key: value for key, value in content.items() if key in keys}
    outer = {key: value for key, value in content.items() if key not in keys}
    return {**outer, field: {**outer.get(field, {}), **inner}} if inner else content


def formatted(text: str, fields: Mapping[str, Any], key_path: str) -> str:
    """Return a text in which each {name} is replaced by the field of this name."""
    try:
        return text.format_map(fields)
    except (KeyError, ValueError, IndexError, AttributeError):
        names = ", ".join(fields) or "(none)"
        raise InvalidInput(key_path, text, f"fields among {names}") from None


def split_method(content: Any) -> Any:
    """Return the keys of a method ``algorithm.variant``, a text or the key of an entry."""
    content = {"method": content} if isinstance(content, str) else content
    if not isinstance(content, Mapping) or not isinstance(content.get("method"), str):
        return content
    algorithm, dot, variant = content["method"].partition(".")
    return {**content, "method": algorithm, "variant": variant} if dot else content
