"""Argument checks of compiled code, which accesses memory without bounds checks."""

from __future__ import annotations

from typing import Any

import numpy as np

from private_consensus.common.errors import InvalidInput


def require_layout(
    kernel: str, name: str, array: Any, shape: tuple[int, ...], kind: Any = None
) -> None:
    """Raise :class:`.InvalidInput` unless an array has the shape and type that a kernel requires.

    A length of -1 stands for any length. An array with a required dtype ``kind`` must be
    C-contiguous and aligned; without one, any layout is valid.
    """
    actual = np.shape(array)
    fits = len(actual) == len(shape) and all(
        length in (-1, actual_length) for length, actual_length in zip(shape, actual, strict=True)
    )
    if not fits:
        required = ", ".join("any" if length == -1 else str(length) for length in shape)
        raise InvalidInput(f"{kernel}.{name}", actual, f"an array of shape ({required})")
    if kind is None:
        return
    flags = array.flags
    if array.dtype != kind or not (flags.c_contiguous and flags.aligned):
        expected = f"a contiguous, aligned array of {np.dtype(kind)}"
        layout = "contiguous" if flags.c_contiguous else "not contiguous"
        raise InvalidInput(f"{kernel}.{name}", f"{array.dtype}, {layout}", expected)


def require_indices(kernel: str, name: str, indices: np.ndarray, end: int) -> None:
    """Raise :class:`.InvalidInput` unless all indices are integers from 0 to ``end`` - 1."""
    indices = np.asarray(indices)
    if indices.dtype.kind not in "iu":
        raise InvalidInput(f"{kernel}.{name}", f"an array of {indices.dtype}", "whole numbers")
    if indices.size and (indices.min() < 0 or indices.max() >= end):
        outside = indices[(indices < 0) | (indices >= end)]
        raise InvalidInput(f"{kernel}.{name}", int(outside[0]), f"an index from 0 to {end - 1}")
