"""Files that a block of code changes: their contents, and their restoration."""

import os
import sys
import tempfile
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

from .execution import Refused

WRITING = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC
CHANGES = "os.rename os.link os.symlink os.remove os.truncate os.mkdir os.rmdir sqlite3.connect"
OUTSIDE = "subprocess.Popen os.system os.exec os.posix_spawn socket.connect"
"""Audit events of Python that change files, and those with effects that cannot be compared."""


@contextmanager
def changed_files(directories: Iterable[str]) -> Generator[dict[str, Any]]:
    """Yield a mapping that has the content of each file that a block changes, after the block.

    Files that Python opens are restored. Other libraries are observed in ``directories`` only.
    """
    earlier: dict[str, Any] = {}
    changed: dict[str, Any] = {}
    is_active = True

    def observe(event: str, arguments: tuple[Any, ...]) -> None:
        if is_active and event in OUTSIDE.split():
            raise Refused(f"{event} has effects outside of the process")
        is_writing = event == "open" and arguments[2] & WRITING
        if is_active and (is_writing or event in CHANGES.split()):
            paths = [path for path in arguments if isinstance(path, str | bytes | os.PathLike)]
            for path in map(os.path.abspath, map(os.fsdecode, paths)):
                earlier.setdefault(path, _content(path))

    # The names of temporary files must not differ between executions.
    names = (f"{os.getppid()}_{number}" for number in count())
    tempfile._name_sequence = names  # ty: ignore[missing-attribute]
    # Open files, such as logs, grow with every execution.
    open_files = {os.path.realpath(f"/dev/fd/{number}") for number in os.listdir("/dev/fd")}
    listed = _listing(directories)
    sys.addaudithook(observe)
    try:
        yield changed
    finally:
        is_active = False
        unopened = (
            {path for path, *_ in _listing(directories) - listed} - earlier.keys() - open_files
        )
        changed |= {path: _content(path) for path in sorted(earlier.keys() | unopened)}
        for path in reversed(earlier):
            if earlier[path] == changed[path]:
                del changed[path]
            else:
                _restore(path, earlier[path])
        if unopened:
            # Longer than the resolution of the time of a change.
            time.sleep(0.02)


def _content(path: str) -> Any:
    """Return the content of a file, True for a directory, and None without either."""
    return Path(path).read_bytes() if os.path.isfile(path) else os.path.isdir(path) or None


def _restore(path: str, content: Any) -> None:
    with suppress(OSError):
        if isinstance(content, bytes):
            Path(path).write_bytes(content)
        else:
            (os.rmdir if os.path.isdir(path) else os.remove)(path)


def _listing(directories: Iterable[str]) -> set[tuple[str, int, int]]:
    """Return the path, time of change and size of each file in directories."""
    files = set()
    for entry in (entry for directory in directories for entry in os.scandir(directory)):
        # Another process may delete a file.
        with suppress(OSError):
            if entry.is_file():
                files.add((entry.path, entry.stat().st_mtime_ns, entry.stat().st_size))
    return files
