"""Files that are not what was written: one clear error, whatever a library makes of them."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from .errors import InvalidInput

EXPECTED = "a file that this workflow has written: delete it and call again"
DAMAGED = "a damaged file"
SIGNS = (
    OSError, EOFError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError,
    MemoryError, RuntimeError, struct.error, zlib.error, zipfile.BadZipFile,
    pl.exceptions.PolarsError, pl.exceptions.PanicException,
)  # fmt: skip
"""What readers raise at contents that they do not understand; a panic of polars is no Exception."""


@contextmanager
def readable(path: str | Path) -> Iterator[None]:
    """Around whatever reads a file of the workflow, and does nothing else.

    Raises
    ------
    InvalidInput
        Names a file that is not there, may not be read, or is damaged.
    """
    try:
        yield
    except InvalidInput:
        raise
    except FileNotFoundError:
        raise InvalidInput(str(path), "nothing", EXPECTED) from None
    except PermissionError:
        raise InvalidInput(str(path), "a file of somebody else", "one that may be read") from None
    except SIGNS:
        raise InvalidInput(str(path), DAMAGED, EXPECTED) from None


def read_json(path: str | Path) -> Any:
    """Read a JSON file; raises the errors of :func:`readable`."""
    with readable(path):
        try:
            return json.loads(Path(path).read_text(encoding="utf-8"))
        except RecursionError:
            raise ValueError("nested too deep") from None


@contextmanager
def arrays_of(path: str | Path) -> Iterator[np.lib.npyio.NpzFile]:
    """The arrays of an NPZ file, of which none is unpickled; raises as :func:`readable`."""
    with readable(path):
        archive = np.load(path, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise ValueError("a single array")
        with archive:
            yield archive
