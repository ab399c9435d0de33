"""Fields of an algorithm as they broadcast against arrays of a batch."""

from __future__ import annotations

from typing import Any

import numpy as np


def column(value: Any) -> Any:
    """A field as it broadcasts against ``[settings, runs, agents, dim]``."""
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return value[:, None, None, None]
    return value


def per_agent(value: Any) -> Any:
    """A field as it broadcasts against ``[settings, runs, agents]``."""
    spread = column(value)
    return spread[..., 0] if isinstance(spread, np.ndarray) else spread
