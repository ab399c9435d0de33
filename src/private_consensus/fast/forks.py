"""Independent parts of a computation side by side, each in a fork of the process."""

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
    """``map(function, items)``, in order, by so many forks, which have what the function refers to.

    A fork uses one thread, of linear algebra too: those of a pool that was begun before it are not
    in it, and Snakemake allows each library as many as the job has. With one process nothing is
    forked.

    Parameters
    ----------
    function : callable
        Whatever it returns or raises can be pickled; itself it need not be.

    Raises
    ------
    Exception
        That of the first item that raised one; what has not begun then never will.
    """
    processes = min(processes, len(items))
    if processes <= 1:
        yield from map(function, items)
        return
    # Slow to import, and whoever reads a plan is here.
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


def fewest(items: int, most: int) -> int:
    """As few processes as take no more turns than ``most`` of them, for so many items: the others
    would hold cores and wait."""
    turns = -(-items // most)
    return -(-items // turns)


def end_with_parent() -> None:
    """End this process as soon as its parent has ended. `multiprocessing` must have started it.

    The parent holds one end of a pipe. A thread waits until the pipe is closed.
    """

    def watch() -> None:
        multiprocessing.parent_process().join()
        os.kill(os.getpid(), signal.SIGKILL)

    Thread(target=watch, daemon=True).start()


_FUNCTION: list[Callable[[Any], Any]] = []
"""What a fork was made for. A queue would have to pickle it; a fork has it."""


def _keep(function: Callable[[Any], Any]) -> None:
    end_with_parent()
    _FUNCTION[:] = [function]


def _apply(item: Any) -> Any:
    return _FUNCTION[0](item)
