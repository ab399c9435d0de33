"""Checks of the arrays and numbers from which problems and networks are built.

Each check raises an :class:`.InvalidInput` that names the first invalid entry by its indices, such
as ``problem.labels[agent 2, record 5]``, with its value and the bound.
"""

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from .errors import InvalidInput, require

SINGLE_TOLERANCE, DOUBLE_TOLERANCE = 1e-6, 1e-9
"""Relative rounding error that a bound allows, for float32 and for float64."""


def tolerance_of(array: np.ndarray) -> float:
    """Return the relative rounding error that a bound on the entries of ``array`` allows."""
    return SINGLE_TOLERANCE if array.dtype == np.float32 else DOUBLE_TOLERANCE


def require_array(
    key: str,
    value: Any,
    axes: Sequence[str],
    *,
    optional: int = 0,
    kinds: str = "iuf",
    empty: bool = False,
) -> None:
    """Raise :class:`.InvalidInput` unless ``value`` is an array of numbers with these axes.

    Parameters
    ----------
    optional : int, default 0
        Number of leading axes that may be missing.
    kinds : str, default "iuf"
        Accepted kinds of dtypes: ``i`` and ``u`` integers, ``f`` floats, ``b`` booleans.
    empty : bool, default False
        True if axes may have length 0.
    """
    names = ", ".join(axes[optional:])
    shape = f"({names})" if not optional else f"([{', '.join(axes[:optional])},] {names})"
    content = {"b": "booleans", "iu": "integers"}.get(kinds, "real numbers")
    expected = f"an array of {content} of shape {shape}"
    # Comparisons and sums of a masked array skip the masked entries.
    is_masked = isinstance(value, np.ma.MaskedArray)
    require(not is_masked, key, "a masked array", "an array without a mask, such as value.filled()")
    is_array = isinstance(value, np.ndarray)
    require(is_array, key, value if isinstance(value, Real) else type(value).__name__, expected)
    require(value.dtype.kind in kinds, key, f"an array of {value.dtype}", expected)
    fits = len(axes) - optional <= value.ndim <= len(axes) and (empty or 0 not in value.shape)
    require(fits, key, value.shape, expected + ("" if empty else ", at least 1 along each axis"))


def float_array(
    key: str, value: Any, axes: Sequence[str], *, optional: int = 0, empty: bool = False
) -> np.ndarray:
    """Return an array of numbers in float32 or float64, without a copy if it has one of them.

    Other types become float64, since sums of short types overflow. The parameters are those of
    :func:`require_array`.
    """
    require_array(key, value, axes, optional=optional, empty=empty)
    return np.asarray(value, None if value.dtype in (np.float32, np.float64) else float)


def require_shape(key: str, value: np.ndarray, shape: tuple[int, ...], of: str) -> None:
    """Raise :class:`.InvalidInput` unless an array has the shape of a quantity."""
    require(value.shape == shape, key, value.shape, f"the shape {shape} of {of}")


def require_each(
    valid: np.ndarray, key: str, values: np.ndarray, axes: Sequence[str], expected: str
) -> None:
    """Raise :class:`.InvalidInput` for the first of ``values`` that is not ``valid``.

    If there are more names of axes than axes, the last names are used.
    """
    if valid.all():
        return
    position = tuple(map(int, np.unravel_index(int(np.argmin(valid)), valid.shape)))
    names = axes[len(axes) - len(position) :]
    indices = ", ".join(f"{name} {index}" for name, index in zip(names, position, strict=True))
    raise InvalidInput(f"{key}[{indices}]", np.asarray(values)[position].item(), expected)


def require_finite(key: str, array: np.ndarray, axes: Sequence[str]) -> None:
    """Raise :class:`.InvalidInput` for the first entry that is infinite or not a number."""
    with np.errstate(over="ignore", invalid="ignore"):
        # A sum is finite only if each term is; it needs no temporary array.
        if np.isfinite(array.sum()):
            return
    require_each(np.isfinite(array), key, array, axes, "a finite number")


def require_rows_within(key: str, rows: np.ndarray, bound: float, axes: Sequence[str]) -> None:
    """Raise :class:`.InvalidInput` for the first row that is not finite or has too large a norm.

    ``bound`` is the largest l2 norm of a row, up to rounding errors of :func:`tolerance_of`.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.einsum("...k,...k->...", rows, rows)
        within = squares <= (bound * (1 + tolerance_of(rows))) ** 2
    if within.all() and np.isfinite(squares).all():
        return
    require_finite(key, rows, axes)
    norms = np.sqrt(np.einsum("...k,...k->...", rows.astype(float), rows.astype(float)))
    within = norms <= bound * (1 + tolerance_of(rows))
    require_each(within, f"norm of {key}", norms, axes[:-1], f"an l2 norm of at most {bound:g}")
