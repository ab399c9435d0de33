"""Field types of configurations, without conversion between numbers, text and Boolean values.

YAML distinguishes these types. Pydantic would by default convert ``true`` and ``"1"`` to the number
1, so that a typing error would not be detected.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

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
"""``algorithm.variant``, or the algorithm if the key ``variant`` names the variant."""
References = Annotated[list[Reference], Field(min_length=1)]
Names = Annotated[list[str], Field(min_length=1)]
Positive = Annotated[Whole, Field(ge=1)]
BatchSize = Annotated[Whole, Field(ge=1, le=10_000)]
Values = Annotated[list[Number | Whole | str], Field(min_length=1)]
Grid = dict[Slug, Values]
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


def validate(model: type[M], content: Mapping[str, Any], *, prefix: str = "") -> M:
    """Build a model from a configuration, or raise ``Refused`` with one line per invalid key.

    Each error line starts with the key ``prefix``.
    """
    try:
        return model.model_validate(content)
    except ValidationError as error:
        raise Refused([error_line(prefix, e) for e in error.errors()]) from None


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
