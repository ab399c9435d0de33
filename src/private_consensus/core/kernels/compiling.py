"""Compilation with numba, and a cache of machine code.

Machine code is cached in a folder whose name contains a hash of this package's sources. The hash is
necessary because numba does not detect a change in a function that another file calls. Loops
release the interpreter's lock and run in ordinary threads, which need no threading layer.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

import numba

from private_consensus.common.errors import require

disabled = bool(numba.config.DISABLE_JIT)
require(not disabled, "NUMBA_DISABLE_JIT", 1, "0 or unset: compiled code is required")

CHECKED = os.environ.get("PRIVATE_CONSENSUS_CHECKED_KERNELS", "") == "1"
"""True if compiled code checks each index, for tests: an index outside of an array raises an
IndexError. The results are unchanged, and computing them takes longer."""

_LIMIT: ContextVar[int] = ContextVar("threads", default=0)
STRICT = {"contract", "nsz"}
"""No reordering of sums: newly compiled code and cached code might otherwise differ in
the order of a sum."""


def compiled(function: Callable, **overrides: Any) -> Callable:
    """Compile a function to machine code at its first call, cached for later processes."""
    options = {"nogil": True, "fastmath": STRICT, "error_model": "numpy", **overrides}
    if CHECKED:
        options["boundscheck"] = True
    try:
        with _kept_in(folder()):
            dispatcher = numba.njit(cache=True, **options)(function)
            _distrust(dispatcher._cache)
            return dispatcher
    except (OSError, RuntimeError):  # no writable folder
        return numba.njit(**options)(function)


def begin() -> None:
    """Initialise the compiler of numba, which takes a quarter of a second.

    A process calls it before it forks, so that the forks need not repeat it.
    """
    numba.njit(lambda: None).compile(())


def uncounted(function: Callable, **overrides: Any) -> Callable:
    """Compile a function that allocates no arrays, without reference counting.

    Reference counting takes a tenth of a microsecond in a call that passes on slices of ten arrays.
    """
    return compiled(function, _nrt=False, **overrides)


def inlined(function: Callable) -> Callable:
    """Compile a function as :func:`uncounted` and inline it; calls pass each array in parts."""
    return uncounted(function, forceinline=True)


@cache
def folder() -> Path:
    """Return the cache folder for machine code of the present sources, writable for this user only.

    Machine code is unpickled, and unpickling can execute arbitrary code. If other users own the
    usual folders, a temporary folder of this process is created.
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
    alone = tempfile.mkdtemp(prefix="private-consensus-")
    atexit.register(shutil.rmtree, alone, ignore_errors=True)
    return Path(alone)


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


def _distrust(overload_cache: Any) -> None:
    """Make numba's cache of a function verify checksums, and recompile if a file is damaged.

    Each file has a checksum file next to it. Machine code with a wrong bit may load and run.
    """
    files = overload_cache._cache_file
    save, load, overload = files._save_data, files._load_data, overload_cache.load_overload

    def save_data(name: str, data: Any) -> None:
        save(name, data)
        path = Path(files._data_path(name))
        checksum = hashlib.sha256(path.read_bytes()).hexdigest()
        with files._open_for_write(_sum_of(path)) as stream:
            stream.write(checksum.encode())

    def load_data(name: str) -> Any:
        path = Path(files._data_path(name))
        if _sum_of(path).read_bytes() != hashlib.sha256(path.read_bytes()).hexdigest().encode():
            raise ValueError(f"{path} is damaged")
        return load(name)

    def load_overload(*arguments: Any) -> Any:
        try:
            return overload(*arguments)
        except Exception:  # a damaged pickle may raise anything
            overload_cache.flush()
            return None

    files._save_data, files._load_data, overload_cache.load_overload = (
        save_data,
        load_data,
        load_overload,
    )


def _sum_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


@contextmanager
def _kept_in(path: Path) -> Iterator[None]:
    # numba reads the folder when a function is decorated.
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(path)
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before


@contextmanager
def limited_threads(count: int) -> Iterator[None]:
    """Limit the number of threads within the context, to the number that the job was given.

    With one thread, parts are computed one after the other, in order.
    """
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

    Parameters
    ----------
    task : callable
        Computes the items from ``begin`` to before ``end``.
    items : int
        Number of items, at least 1.
    workers : int, optional
        Largest number of threads; by default :func:`threads`.
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
