"""Shapes in which the fields of an algorithm broadcast against the arrays of a batch."""

from __future__ import annotations

from typing import Any

import numpy as np


def column(value: Any) -> Any:
    """Reshape a field so that it broadcasts against ``[settings, runs, agents, dim]``."""
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return value[:, None, None, None]
    return value


def per_agent(value: Any) -> Any:
    """Reshape a field so that it broadcasts against ``[settings, runs, agents]``."""
    array = column(value)
    return array[..., 0] if isinstance(array, np.ndarray) else array
