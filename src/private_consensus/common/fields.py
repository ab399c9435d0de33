"""Field types of configurations, without conversion between numbers, text and Boolean values.

YAML distinguishes these types. Pydantic would by default convert ``true`` and ``"1"`` to the number
1, so that a typing error would not be detected.
"""

import itertools
import math
import re
from collections.abc import Collection, Iterator, Mapping
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

from .errors import Refused
from .secrets import redacted

M = TypeVar("M", bound=BaseModel)

MEASURE = re.compile(r"[a-z]\w*(\.[a-z]\w*)?")
TEXT_NUMBER = "YAML reads 1e-5 as a text: write 1.0e-5"


def _not_nan(value: float) -> float:
    if math.isnan(value):
        raise ValueError("expected a number")
    return value


Whole = Annotated[int, NotConverted()]
Number = Annotated[float, NotConverted(), AfterValidator(_not_nan)]
Flag = Annotated[bool, NotConverted()]


def split_measure(measure: Any) -> tuple[str, str]:
    """Split a measure into quantity and metric; the default metric is ``value``."""
    if isinstance(measure, tuple):
        return measure
    if not isinstance(measure, str) or not MEASURE.fullmatch(measure):
        raise ValueError("expected quantity.metric")
    quantity, _, metric = measure.partition(".")
    return quantity, metric or "value"


def measure_text(measure: tuple[str, str]) -> str:
    """Format a measure as ``quantity.metric``, without the default metric ``value``."""
    return ".".join(measure).removesuffix(".value")


def present(value: Any) -> Any:
    """Return a value; raise ``ValueError`` for a key without a value."""
    if value is None:
        raise ValueError("expected a value, or no such key")
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


class Open(BaseModel):
    """Mapping of a named object; unknown keys are its parameters."""

    model_config = ConfigDict(extra="allow", frozen=True, use_attribute_docstrings=True)


class FileEntry(Strict):
    """Mapping of a file that refuses unknown keys and keys without a value."""

    _each_key_has_a_value = field_validator("*", mode="before")(present)

    def override(self, changes: Self) -> Self:
        """Return the entry with the keys that another entry sets.

        The axes of ``where`` and ``grid`` and the keys of ``series`` are overridden one by one; a
        null value removes an axis.
        """
        values = {}
        for name in changes.model_fields_set:
            old, new = getattr(self, name), getattr(changes, name)
            if name in ("where", "grid"):
                new = {key: value for key, value in {**old, **new}.items() if value is not None}
            values[name] = old.override(new) if name == "series" else new
        return self.model_copy(update=values)

    def inherit(self, container: BaseModel, keys: Collection[str]) -> Self:
        """Return the entry with those of some keys that its container sets and it does not."""
        inherited = container.model_fields_set & set(keys) - self.model_fields_set
        return self.model_copy(update={key: getattr(container, key) for key in inherited})


class Product(FileEntry):
    """Entry of a list that stands for one entry per combination of the values in its grid."""

    grid: dict[str, Annotated[list[Any], Field(min_length=1)]] = Field(default={}, exclude=True)
    """Lists of values, by key of the entry or by axis. There is one entry per combination of
    values, and the first key varies slowest."""

    def set_keys(self) -> set[str]:
        """Return the keys that the entry sets, and the axes that it selects."""
        return {*self.model_fields_set, *getattr(self, "where", ())}

    @classmethod
    def keys(cls) -> set[str]:
        """Return the keys that an entry may have."""
        return set(cls.model_fields)

    def override(self, changes: Self) -> Self:
        """Return the entry with the keys that another entry sets.

        A key or an axis that is set replaces its values in the grid.
        """
        replaced = changes.set_keys()
        grid = {key: values for key, values in self.grid.items() if key not in replaced}
        return super(Product, self.model_copy(update={"grid": grid})).override(changes)

    def product(self, key_path: str) -> list[Self]:
        """Return one entry per combination of the values in the grid, without a grid.

        A value that is invalid for its key raises ``Refused`` with the key path of the grid.
        """
        combinations = itertools.product(*self.grid.values())
        points = [dict(zip(self.grid, values, strict=True)) for values in combinations]
        return [self._at(point, key_path) for point in points]

    def _at(self, point: dict[str, Any], key_path: str) -> Self:
        if not point:
            return self
        keys = self.keys()
        content = {key: value for key, value in point.items() if key in keys}
        content["where"] = {axis: value for axis, value in point.items() if axis not in keys}
        for name in {"title", "label"} & self.model_fields_set:
            content[name] = formatted(getattr(self, name), point, f"{key_path}.{name}")
        return self.override(validate(type(self), content, prefix=f"{key_path}.grid"))


def validate(model: type[M], content: Any, *, prefix: str = "") -> M:
    """Build a model from a configuration, or raise ``Refused`` with one line per invalid key.

    Each error line starts with the key ``prefix``. An error in a mapping that several keys share by
    an alias of YAML has one line, with the path of its anchor.
    """
    try:
        return model.model_validate(content)
    except ValidationError as error:
        paths = dict(_first_paths(content, (), set()))
        errors = [{**e, "loc": _path_of(e, content, paths)} for e in error.errors()]
    # Of a value with several allowed types, the errors within the value are the precise ones.
    outer = {e["loc"][:end] for e in errors for end in range(len(e["loc"]))}
    lines = [error_line(prefix, e) for e in errors if e["loc"] not in outer]
    raise Refused(list(dict.fromkeys(lines)))


Path = tuple[str | int, ...]


def _first_paths(content: Any, path: Path, visited: set[int]) -> Iterator[tuple[int, Path]]:
    """Yield the identity and the first path of each mapping and each list in a content."""
    if isinstance(content, Mapping | list) and id(content) not in visited:
        visited.add(id(content))
        yield id(content), path
        for step, value in content.items() if isinstance(content, Mapping) else enumerate(content):
            yield from _first_paths(value, (*path, step), visited)


def _path_of(error: Mapping[str, Any], content: Any, paths: Mapping[int, Path]) -> Path:
    """Return the location of a validation error as keys and indices of the content."""
    path: Path = ()
    for step in error["loc"]:
        inside = isinstance(content, Mapping) and step in content
        inside |= isinstance(content, list) and isinstance(step, int) and step < len(content)
        if inside:
            content = content[step]
            path = paths.get(id(content), (*path, step))
    return (*path, error["loc"][-1]) if error["type"] == "missing" else path


def error_line(prefix: str, error: Mapping[str, Any]) -> str:
    """Format an entry of ``ValidationError.errors()`` as a line with key, message and value."""
    key = ".".join(str(step) for step in (prefix, *error["loc"]) if step != "")
    message = error["msg"].removeprefix("Value error, ")
    if error["type"] == "missing":
        return f"{key}: missing, expected a value"
    if error["type"] == "extra_forbidden":
        return f"{key}: unknown key (found {quoted(error['input'])})"
    if error["type"] == "float_type" and isinstance(error["input"], str):
        message += f" ({TEXT_NUMBER})"
    return f"{key}: {message} (found {quoted(error['input'])})"


def quoted(value: Any) -> str:
    """Return a value as text of at most 60 characters without secrets, for an error message."""
    text = redacted(repr(value))
    return text if len(text) <= 60 else text[:57] + "..."


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
        expected = f"fields among {', '.join(fields) or '(none)'}"
        raise Refused([f"{key_path}: found {quoted(text)}, expected {expected}"]) from None


def split_method(content: Any) -> Any:
    """Return the content of an entry with ``method: algorithm.variant`` split into two keys."""
    if not isinstance(content, Mapping) or not isinstance(content.get("method"), str):
        return content
    algorithm, dot, variant = content["method"].partition(".")
    return {**content, "method": algorithm, "variant": variant} if dot else content
