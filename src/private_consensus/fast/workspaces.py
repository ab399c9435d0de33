"""Arrays to work in, the same every round: having new ones zeroed takes as long as filling them."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Hashable
from typing import TypeVar

import numpy as np

from .vectors import aligned

_LOCAL = threading.local()
Made = TypeVar("Made")


def workspace(name: str, shape: tuple[int, ...], kind=np.float32) -> np.ndarray:
    """An array of this thread under a name: zeros at first, and then what was left in it."""
    found = getattr(_LOCAL, name, None)
    if found is None or found.shape != shape or found.dtype != kind:
        found = aligned(math.prod(shape), kind).reshape(shape)
        setattr(_LOCAL, name, found)
    return found


def kept(name: str, key: Hashable, make: Callable[[], Made]) -> Made:
    """What was made in this thread under a name, made again where the key is another one."""
    found = getattr(_LOCAL, name, None)
    if found is None or found[0] != key:
        found = key, make()
        setattr(_LOCAL, name, found)
    return found[1]
