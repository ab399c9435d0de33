"""One form of every value for exact comparisons: type, dtype, shape and bytes."""

from __future__ import annotations

import dataclasses
import io
import pickle
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

BUILT_IN = np.ndarray, float, int, str, bytes, dict, list, tuple, set, frozenset


def freeze(value: Any) -> Any:
    """Return a hashable form of a value, which is equal for identical values only.

    The sign of zero, the payload of NaN, the type, the mask, sparse parts and the order of keys
    count. The form is a copy: later changes of a work array do not affect it.

    Parameters
    ----------
    value : object
        Array, number, text, container, dataclass, or any object that pickle accepts.

    Returns
    -------
    tuple
    """
    kind: Any = f"{type(value).__module__}.{type(value).__qualname__}"
    if isinstance(value, Iterator) and not isinstance(value, io.IOBase):
        value = list(value)
    if isinstance(value, BUILT_IN) and getattr(value, "__dict__", None):
        # An array or a container of a subclass may have attributes.
        kind = kind, freeze(vars(value))
    if isinstance(value, np.ma.MaskedArray):
        return kind, freeze(np.asarray(value.data)), freeze(np.ma.getmaskarray(value))
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        if array.dtype.hasobject:
            return kind, array.shape, tuple(freeze(entry) for entry in array.ravel())
        return kind, array.dtype.str, array.shape, np.ascontiguousarray(array).tobytes()
    if isinstance(value, float):
        return kind, np.float64(value).tobytes()
    if value is None or isinstance(value, bool | int | str | bytes):
        return kind, value
    if isinstance(value, Mapping):
        return kind, tuple((freeze(key), freeze(entry)) for key, entry in value.items())
    if isinstance(value, list | tuple):
        return kind, tuple(freeze(entry) for entry in value)
    if isinstance(value, set | frozenset):
        return kind, frozenset(freeze(entry) for entry in value)
    if hasattr(value, "indptr") and hasattr(value, "data"):
        return (
            kind,
            value.shape,
            *(freeze(getattr(value, n)) for n in ("indptr", "indices", "data")),
        )
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(value)]
        return kind, tuple((name, freeze(getattr(value, name))) for name in names)
    if callable(value):
        return kind, getattr(value, "__qualname__", "")
    try:
        return kind, pickle.dumps(value)
    except Exception:
        return kind, freeze(vars(value)) if hasattr(value, "__dict__") else repr(value)
