"""Types of a configuration's fields, of which none is taken for another.

YAML tells numbers, words and truth values apart. Left to itself pydantic makes 1 of ``true`` and
of ``"1"``, so that a slip of the pen would be a setting.
"""

from __future__ import annotations

import math
from typing import Annotated

from pydantic import AfterValidator, Strict

INFINITE = 1e300
"""Number that stands for infinity in JSON, which has none."""


def _a_number(value: float) -> float:
    if math.isnan(value):
        raise ValueError("expected a number")
    return value


Whole = Annotated[int, Strict()]
Number = Annotated[float, Strict(), AfterValidator(_a_number)]
Flag = Annotated[bool, Strict()]
