"""Values that JSON can represent."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import PurePath

import numpy as np


def plain(value: object) -> object:
    """Convert a value to the types of JSON.

    Arrays become lists, infinity becomes the text ``inf`` and NaN becomes None. Objects of other
    types are converted to text.
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return value.as_posix() if isinstance(value, PurePath) else str(value)


def to_json(value: object) -> str:
    """Return a value as indented JSON; see :func:`plain`."""
    return json.dumps(plain(value), indent=1, allow_nan=False)
