"""Compilation with numba, a cache of machine code, and threads.

Numba stores machine code in its cache folder, or in the cache folder of the user. The path contains
a hash of this package's source files, because numba does not detect a change of a function that is
defined in another file. Compiled loops release the global interpreter lock and run in ordinary
threads.
"""

import hashlib
import os
from collections.abc import Callable, Generator
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
    } | overrides
    configured = _SETTINGS.CACHE_DIR
    _SETTINGS.CACHE_DIR = _cache_folder()  # numba reads it when a function is decorated
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no writable folder
        return numba.njit(**options)(function)
    finally:
        _SETTINGS.CACHE_DIR = configured


@cache
def _cache_folder() -> str:
    sources = sorted(Path(__file__).parent.glob("*.py"))
    digest = hashlib.sha256(b"\0".join(path.read_bytes() for path in sources)).hexdigest()[:12]
    root = _SETTINGS.CACHE_DIR or os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return os.path.join(root, "private-consensus-code", digest)


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


@contextmanager
def limited_threads(count: int) -> Generator[None]:
    """Limit the number of threads of compiled loops within the context."""
    before = _LIMIT.set(count)
    try:
        yield
    finally:
        _LIMIT.reset(before)


def threads() -> int:
    """Return the limit of :func:`limited_threads`, or the number of available processors."""
    available = getattr(os, "sched_getaffinity", None)  # not on macOS
    return _LIMIT.get() or (len(available(0)) if available else os.cpu_count() or 1)


def share_out(task: Callable[[int, int], Any], items: int) -> None:
    """Call ``task(begin, end)`` on contiguous parts of ``range(items)``, with one thread per part.

    The largest number of threads is :func:`threads`.
    """
    workers = min(threads(), items)
    bounds = [items * i // workers for i in range(workers + 1)]
    if workers == 1:
        task(0, items)
        return
    list(_pool(workers).map(task, bounds[:-1], bounds[1:]))


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers)
