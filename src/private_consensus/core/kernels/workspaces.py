"""Arrays and objects that each thread reuses in every round, since allocation takes time."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import numpy as np

from .vectors import aligned

T = TypeVar("T")


class _ThreadCache(threading.local):
    """Arrays and other objects of one thread, by name."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self.objects: dict[str, tuple[Hashable, Any]] = {}


_CACHE = _ThreadCache()


def workspace(name: str, shape: tuple[int, ...], kind=np.float32) -> np.ndarray:
    """Return the array of this thread with a given name; its contents persist between calls.

    Parameters
    ----------
    name : str
        Name of the array within the thread.
    shape : tuple of int
        Required shape. Another shape or dtype allocates a new array.
    kind : dtype
        Required dtype.

    Returns
    -------
    ndarray
        Zeros at the first call, aligned to 64 bytes; later the contents of the last use.
    """
    array = _CACHE.arrays.get(name)
    if array is None or array.shape != shape or array.dtype != kind:
        array = _CACHE.arrays[name] = aligned(math.prod(shape), kind).reshape(shape)
    return array


def cached(name: str, key: Hashable, build: Callable[[], T]) -> T:
    """Return the cached object of this thread with a given name; build it if the key has changed.

    Parameters
    ----------
    name : str
        Name of the object within the thread.
    key : hashable
        Key of the object.
    build : callable
        Function without arguments that builds the object.

    Returns
    -------
    object
    """
    if name not in _CACHE.objects or _CACHE.objects[name][0] != key:
        _CACHE.objects[name] = key, build()
    return _CACHE.objects[name][1]
