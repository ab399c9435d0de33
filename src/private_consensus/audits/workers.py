"""Processes that execute only the first, or only the second, data set of each pair.

A cache of the audited code would make both executions equal and hide a fault. Therefore the second
data set is executed in a process that has never seen the first. The processes are forks, so that
classes of a notebook can be audited.
"""

import multiprocessing
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from pickle import PicklingError
from typing import Any

from numba.core.registry import cpu_target

from private_consensus.common.errors import InvalidInput

PATIENCE = 15.0
"""Seconds without computation after which a process counts as blocked."""
BLOCKED = (
    "the process waits and computes nothing. A library with threads, such as polars, does this if "
    "the session used it before the audit: audit in a new session, or use arrays"
)


class Worker(AbstractContextManager):
    """New process that evaluates a function of its tasks, in order, and ends with its context.

    The process inherits the function, so that it needs no pickling.
    """

    def __init__(self, function: Callable[..., Any]):
        context = multiprocessing.get_context("fork")
        self.connection, child = context.Pipe()
        self.process = context.Process(target=_serve, args=(function, child), daemon=True)
        self.process.start()
        child.close()

    def submit(self, *arguments: Any) -> None:
        """Send the arguments of a task."""
        try:
            self.connection.send(arguments)
        except (AttributeError, TypeError, PicklingError) as error:
            expected = "data that pickle can send to a process, with functions of a module only"
            raise InvalidInput("data of an audit", str(error), expected) from error

    def result(self) -> Any:
        """Return the result of the earliest task that has not been returned.

        Raises
        ------
        EOFError
            If the process ended, or if it is blocked, with a message.
        """
        used = None
        while not self.connection.poll(PATIENCE):
            earlier, used = used, _used_time(self.process.pid)
            if used is not None and used == earlier:
                raise EOFError(BLOCKED)
        return self.connection.recv()

    def call(self, *arguments: Any) -> Any:
        """Return the result of a task."""
        self.submit(*arguments)
        return self.result()

    def __exit__(self, *exception: Any) -> None:
        self.process.terminate()
        self.process.join()
        self.connection.close()


def _serve(function: Callable[..., Any], connection: Any) -> None:
    while True:
        try:
            arguments = connection.recv()
        except EOFError:
            return
        connection.send(function(*arguments))


def _used_time(process: int | None) -> tuple[str, ...] | None:
    """Return the processor time of a process, in user and system mode; None if unknown."""
    path = Path(f"/proc/{process}/stat")
    return tuple(path.read_text().rpartition(")")[2].split()[11:13]) if path.exists() else None


@contextmanager
def two_workers(function: Callable[..., Any]) -> Generator[tuple[Worker, Worker]]:
    """Yield a process for the first data sets and one for the second data sets."""
    # Processes inherit Numba's tables; each would need a second to load them.
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()
    with Worker(function) as first, Worker(function) as second:
        yield first, second
