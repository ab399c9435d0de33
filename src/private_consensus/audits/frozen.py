"""One form of every value for exact comparisons: type, dtype, shape and bytes."""

import dataclasses
import gc
import io
import os
import pickle
import pickletools
import sys
from collections.abc import Iterator, Mapping
from hashlib import sha256
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

BUILT_IN = np.ndarray, float, int, str, bytes, dict, list, tuple, set, frozenset


def freeze(value: Any) -> Any:
    """Return a hashable form of a value, which is equal for identical values only.

    The sign of zero, the payload of NaN, the type, the mask, sparse parts and the order of keys
    count. The form is a copy: later changes of a work array do not affect it. Objects of other
    types have a :func:`digest`.
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
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
        return kind, tuple((name, freeze(getattr(value, name))) for name in names)
    return kind, digest(value)


def digest(value: Any) -> str:
    """Return a hash of an object and of everything that it refers to.

    A function refers to its closure, defaults, attributes, and the variables and attributes of
    modules that its code names; a class to its attributes and bases; a module to its variables.
    Functions, classes and modules of installed packages have a name only.
    """
    return sha256(_pickled(value)).hexdigest()


def named_directories(function: Any) -> set[str]:
    """Return the working directory, and directories that a function or its variables name."""
    operations = pickletools.genops(_pickled(function))
    texts = {text for _, text, _ in operations if isinstance(text, str)}
    paths = texts | {os.path.dirname(text) for text in texts}
    return {os.getcwd(), *(os.path.abspath(path) for path in paths if os.path.isdir(path))}


def _pickled(value: Any) -> bytes:
    stream = io.BytesIO()
    try:
        _Pickler(stream, pickle.HIGHEST_PROTOCOL).dump(value)
    except (RecursionError, pickle.PicklingError):
        return pickle.dumps(repr(value))
    return stream.getvalue()


class _Pickler(pickle.Pickler):
    """Pickler of every object, which need not be loaded again."""

    def reducer_override(self, value: Any) -> Any:
        name = getattr(value, "__qualname__", getattr(value, "__name__", type(value).__qualname__))
        if isinstance(value, os.PathLike):
            return str, (os.fsdecode(value),)
        if value is str:
            return NotImplemented
        if isinstance(value, type | FunctionType | ModuleType):
            owner = value.__name__ if isinstance(value, ModuleType) else value.__module__
            return str, (f"{owner}.{name}",), None if _is_installed(owner) else _referents(value)
        try:
            reduced = value.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        except Exception:
            reduced = name
        if isinstance(reduced, str):
            # Locks, properties, caches and other objects that pickle refuses or names only.
            return str, (reduced,), gc.get_referents(value)
        return reduced


def _is_installed(module: str | None) -> bool:
    package = (module or "").partition(".")[0]
    path = getattr(sys.modules.get(package), "__file__", None) or ""
    return package in {*sys.stdlib_module_names, "private_consensus"} or "-packages" in path


def _referents(value: Any) -> Any:
    """Return the values that a function, class or module of the user refers to."""
    if not isinstance(value, FunctionType):
        return dict(vars(value)), getattr(value, "__bases__", ())
    codes, names = [value.__code__], set()
    for code in codes:
        names |= {*code.co_names, *(c for c in code.co_consts if isinstance(c, str))}
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    named = [value.__globals__.get(name, sys.modules.get(name)) for name in sorted(names)]
    modules = [module for module in named if isinstance(module, ModuleType)]
    attributes = [vars(module).get(name) for module in modules for name in sorted(names)]
    defaults = value.__defaults__, value.__kwdefaults__
    return named, attributes, defaults, value.__closure__, vars(value)
