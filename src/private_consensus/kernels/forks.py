"""Parallel execution of independent computations in forked processes."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from threading import Thread
from typing import Any


def map_in_forks(
    function: Callable[[Any], Any], items: Sequence[Any], processes: int
) -> Iterator[Any]:
    """Compute ``map(function, items)`` in forked processes, in the order of the items.

    Each fork uses one thread, also in linear algebra. With one process, and in a process that must
    not have children, nothing is forked. The function is inherited; its results and exceptions are
    pickled. The exception of the first item that fails is raised, and calls that have not started
    are cancelled.
    """
    processes = min(processes, len(items))
    if processes <= 1 or multiprocessing.current_process().daemon:
        return map(function, items)
    return _map_in_forks(function, items, processes)


def _map_in_forks(function, items, processes) -> Iterator[Any]:
    # Slow to import, and commands that only read a plan import this module too.
    from threadpoolctl import threadpool_limits

    from .compiling import limited_threads

    context = multiprocessing.get_context("fork")
    with (
        limited_threads(1),
        threadpool_limits(1, "blas"),
        ProcessPoolExecutor(processes, context, _initialise, (function,)) as pool,
    ):
        try:
            yield from pool.map(_apply, items)
        finally:
            pool.shutdown(cancel_futures=True)


def end_with_parent() -> None:
    """End this process as soon as its parent process ends.

    The process must have been started by ``multiprocessing``.
    """

    def watch() -> None:
        if (parent := multiprocessing.parent_process()) is not None:
            parent.join()
            os.kill(os.getpid(), signal.SIGKILL)

    Thread(target=watch, daemon=True).start()


_FUNCTION: list[Callable[[Any], Any]] = []
"""Function that a fork evaluates; it is inherited, so that it need not be picklable."""


def _initialise(function: Callable[[Any], Any]) -> None:
    end_with_parent()
    _FUNCTION[:] = [function]


def _apply(item: Any) -> Any:
    return _FUNCTION[0](item)
