"""Parallel execution of independent computations in forked processes."""

from __future__ import annotations

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
    """Compute ``map(function, items)``, in order, in forks that inherit the state of ``function``.

    A fork uses one thread, also in linear algebra. It does not inherit the threads of existing
    pools, and Snakemake allows each library as many threads as the job has. With one process
    nothing is forked.

    Parameters
    ----------
    function : callable
        Its results and exceptions must be picklable; the function itself need not be.
    items : sequence
        Arguments, one per call.
    processes : int
        Largest number of forks.

    Yields
    ------
    object
        Result of the next item.

    Raises
    ------
    Exception
        The exception of the first item that fails; calls that have not started are cancelled.
    """
    processes = min(processes, len(items))
    if processes <= 1:
        yield from map(function, items)
        return
    # Slow to import, and commands that only read a plan import this module too.
    from threadpoolctl import threadpool_limits

    from .compiling import limited_threads

    context = multiprocessing.get_context("fork")
    with (
        limited_threads(1),
        threadpool_limits(1, "blas"),
        ProcessPoolExecutor(processes, context, _keep, (function,)) as pool,
    ):
        try:
            yield from pool.map(_apply, items)
        finally:
            pool.shutdown(cancel_futures=True)


def fewest(items: int, limit: int) -> int:
    """Return the smallest number of processes that needs no more rounds than ``limit`` processes.

    Further processes would occupy cores and wait.

    Parameters
    ----------
    items : int
        Number of items, at least 1.
    limit : int
        Largest number of processes.

    Returns
    -------
    int
    """
    rounds = -(-items // limit)
    return -(-items // rounds)


def end_with_parent() -> None:
    """End this process as soon as its parent has ended. `multiprocessing` must have started it.

    The parent holds one end of a pipe. A thread waits until the pipe is closed.
    """

    def watch() -> None:
        multiprocessing.parent_process().join()
        os.kill(os.getpid(), signal.SIGKILL)

    Thread(target=watch, daemon=True).start()


_FUNCTION: list[Callable[[Any], Any]] = []
"""Function that a fork evaluates. A queue would have to pickle it; a fork inherits it."""


def _keep(function: Callable[[Any], Any]) -> None:
    end_with_parent()
    _FUNCTION[:] = [function]


def _apply(item: Any) -> Any:
    return _FUNCTION[0](item)
