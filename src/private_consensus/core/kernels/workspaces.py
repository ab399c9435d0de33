"""Arrays that are reused in every round; allocating zeroed arrays takes as long as filling them."""

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
    """Return the array of this thread with a given name; its contents persist between calls.

    Parameters
    ----------
    name : str
        Name of the array within the thread.
    shape : tuple of int
        Required shape; another shape or dtype allocates a new array.
    kind : dtype
        Required dtype.

    Returns
    -------
    ndarray
        Zeros at first, aligned to 64 bytes; later the contents that the last user left.
    """
    array = getattr(_LOCAL, name, None)
    if array is None or array.shape != shape or array.dtype != kind:
        array = aligned(math.prod(shape), kind).reshape(shape)
        setattr(_LOCAL, name, array)
    return array


def kept(name: str, key: Hashable, make: Callable[[], Made]) -> Made:
    """Return the cached object of this thread with a given name; build it if the key has changed.

    Parameters
    ----------
    name : str
        Name of the object within the thread.
    key : hashable
        Key of the object.
    make : callable
        Builds the object; it has no arguments.

    Returns
    -------
    object
    """
    entry = getattr(_LOCAL, name, None)
    if entry is None or entry[0] != key:
        entry = key, make()
        setattr(_LOCAL, name, entry)
    return entry[1]
