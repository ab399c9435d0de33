"""Read files of the workflow, with one error that names a missing or damaged file."""

import json
import os
import struct
import zipfile
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from .errors import InvalidInput, Refused

EXPECTED = "a file that this workflow wrote: delete it and run the command again"
DAMAGED = "a damaged file"
DAMAGE_ERRORS = (
    OSError, EOFError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError,
    MemoryError, RuntimeError, struct.error, zlib.error, zipfile.BadZipFile,
    pl.exceptions.PolarsError, pl.exceptions.PanicException,
)  # fmt: skip
"""Errors that readers raise for invalid contents; a panic of polars is not an Exception."""


@contextmanager
def readable(path: str | Path) -> Generator[None]:
    """Replace errors of reading a file within the context by ``InvalidInput`` with its name.

    The file may be missing, damaged, or may not be read.
    """
    try:
        yield
    except InvalidInput:
        raise
    except DAMAGE_ERRORS as error:
        if os.path.isdir(path):
            raise Refused([f"Cannot read {path}: a folder instead of a file"]) from None
        if isinstance(error, PermissionError):
            raise Refused([f"Cannot read {path}: permission denied"]) from None
        if isinstance(error, FileNotFoundError):
            text = "a file that this workflow writes: run the command that writes it"
            raise InvalidInput(str(path), None, text) from None
        raise InvalidInput(str(path), DAMAGED, EXPECTED) from None


def read_json(path: str | Path) -> Any:
    """Read a JSON file; raises the errors of :func:`readable`."""
    with readable(path):
        try:
            return json.loads(Path(path).read_text(encoding="utf-8"))
        except RecursionError:
            raise ValueError("JSON values are nested too deeply") from None


@contextmanager
def arrays_of(path: str | Path) -> Generator[np.lib.npyio.NpzFile]:
    """Open the arrays of an NPZ file without unpickling; raises the errors of :func:`readable`."""
    with readable(path):
        archive = np.load(path, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise ValueError("a single array instead of an archive of arrays")
        with archive:
            yield archive
