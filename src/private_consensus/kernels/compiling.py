"""Compilation with numba, a cache of machine code, and threads.

The name of the cache folder contains a hash of this package's source files, because numba does not
detect a change of a function that is defined in another file. Compiled loops release the global
interpreter lock and run in ordinary threads.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

import numba

from private_consensus.common.errors import require

_SETTINGS: Any = numba.config  # its attributes are set when it is imported
require(not _SETTINGS.DISABLE_JIT, "NUMBA_DISABLE_JIT", 1, "0 or unset: compiled code is required")

CHECKED = os.environ.get("PRIVATE_CONSENSUS_CHECKED_KERNELS", "") == "1"
"""True if compiled code checks each index, for tests: an index outside of an array raises an
IndexError. The results are unchanged, and computing them takes longer."""

_LIMIT: ContextVar[int] = ContextVar("threads", default=0)
STRICT = {"contract", "nsz"}
"""Permitted floating-point transformations. Sums are not reordered, since newly compiled and cached
code might otherwise differ in their order."""


def compiled(function: Callable, **overrides: Any) -> Callable:
    """Compile a function to machine code at its first call, cached for later processes."""
    options: dict[str, Any] = {
        "nogil": True,
        "fastmath": STRICT,
        "error_model": "numpy",
        **overrides,
    }
    if CHECKED:
        options["boundscheck"] = True
    try:
        with _cache_folder(folder()):
            return numba.njit(cache=True, **options)(function)
    except (OSError, RuntimeError):  # no writable folder
        return numba.njit(**options)(function)


def begin() -> None:
    """Initialise the compiler of numba before a process is forked.

    The initialisation takes a quarter of a second, which each fork would otherwise need.
    """
    numba.njit(lambda: None).compile(())


def uncounted(function: Callable, **overrides: Any) -> Callable:
    """Compile a function without reference counting, which has a cost per call.

    The function must not allocate arrays.
    """
    return compiled(function, _nrt=False, **overrides)


def inlined(function: Callable) -> Callable:
    """Compile a function without reference counting and inline it into its callers."""
    return uncounted(function, forceinline=True)


@cache
def folder() -> Path:
    """Return the cache folder for machine code of the present sources.

    Only this user may have write access, since unpickling machine code can execute arbitrary code.
    If no usual folder satisfies this condition, a temporary folder of this process is created.
    """
    sources = sorted(Path(__file__).parent.glob("*.py"))
    contents = [*(path.read_bytes() for path in sources), b"checked" * CHECKED]
    digest = hashlib.sha256(b"\0".join(contents)).hexdigest()[:12]
    for root in _roots():
        path = root / "private-consensus-code" / digest
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.mkdir(mode=0o700, exist_ok=True)
            if _is_own(path.parent) and _is_own(path) and os.access(path, os.W_OK):
                return path
        except OSError:
            continue
    temporary = tempfile.mkdtemp(prefix="private-consensus-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    return Path(temporary)


def _is_own(path: Path) -> bool:
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode):
        return False
    writable = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not writable)


def _roots() -> Iterator[Path]:
    if cache_home := os.environ.get("XDG_CACHE_HOME"):
        yield Path(cache_home)
    if home := os.environ.get("HOME"):
        yield Path(home) / ".cache"
    yield Path(tempfile.gettempdir())


@contextmanager
def _cache_folder(path: Path) -> Generator[None]:
    # numba reads the folder when a function is decorated.
    before = _SETTINGS.CACHE_DIR
    _SETTINGS.CACHE_DIR = str(path)
    try:
        yield
    finally:
        _SETTINGS.CACHE_DIR = before


@contextmanager
def limited_threads(count: int) -> Generator[None]:
    """Limit the number of threads of compiled loops within the context."""
    before = _LIMIT.set(count)
    try:
        yield
    finally:
        _LIMIT.reset(before)


def threads() -> int:
    """Return the number of threads to use.

    It is the limit of :func:`limited_threads`, else ``PRIVATE_CONSENSUS_THREADS``, else the number
    of processors that this process may use.
    """
    if _LIMIT.get():
        return _LIMIT.get()
    variable = os.environ.get("PRIVATE_CONSENSUS_THREADS", "")
    if variable.isdigit() and int(variable) > 0:
        return int(variable)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def share_out(task: Callable[[int, int], Any], items: int, workers: int | None = None) -> None:
    """Call ``task(begin, end)`` on contiguous parts of ``range(items)``, with one thread per part.

    The largest number of threads is ``workers``, by default :func:`threads`.
    """
    workers = min(workers or threads(), items)
    bounds = [items * i // workers for i in range(workers + 1)]
    if workers == 1:
        task(0, items)
        return
    list(_pool(workers).map(task, bounds[:-1], bounds[1:]))


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers)
