"""Cooperative tasks whose requests are answered in batches.

Batches of settings with different algorithms have local problems over the same records. The
solver processes eight such problems per SIMD register, and a single batch does not fill them.
Each task has its own thread. Only one thread runs at a time, until it makes a request or ends.
Every task computes the same values in the same order as it would compute alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from contextvars import ContextVar, copy_context
from threading import Semaphore, Thread
from typing import Any, NamedTuple

Solve = Callable[[Sequence[Any]], Sequence[Any]]
"""Answers several requests; each answer is independent of the other requests."""


class _Request(NamedTuple):
    key: Hashable
    solve: Solve
    asked: Any


class _Stopped(BaseException):
    """Exception that ends a task after another task has failed."""


class _Task:
    """Task that runs in its own thread; its pending request is in ``request``."""

    def __init__(self, work: Callable[[], Any]):
        self.work = work
        self.request: _Request
        self.answer: Any = None
        self.error: BaseException | None = None
        self.running = self.ended = self.stopped = False
        self.goes, self.waits = Semaphore(0), Semaphore(0)
        self.thread = Thread(target=copy_context().run, args=(self._run,), daemon=True)

    def _run(self) -> None:
        _TASK.set(self)
        try:
            self.goes.acquire()
            if not self.stopped:
                self.work()
        except BaseException as error:  # raised again in the thread that started the task
            self.error = error
        self.ended = True
        self.waits.release()

    def ask(self, request: _Request) -> Any:
        """Submit a request and wait, in the task's thread, for the answer.

        The answer arrives when all tasks are waiting or have ended.
        """
        self.request = request
        self.waits.release()
        self.goes.acquire()
        if self.stopped:
            raise _Stopped
        return self.answer

    def go_on(self) -> None:
        """Resume the task until it makes a request or ends."""
        self.running = True
        self.goes.release()
        self.waits.acquire()
        self.running = False

    def stop(self) -> None:
        """End a waiting task.

        Do not wait for a task that is computing when the user interrupts.
        """
        self.stopped = True
        self.goes.release()
        if not self.running:
            self.thread.join()


_TASK: ContextVar[_Task | None] = ContextVar("task", default=None)


def together(tasks: Sequence[Callable[[], Any]]) -> None:
    """Execute tasks and answer their simultaneous requests (:func:`gathered`) in batches.

    Parameters
    ----------
    tasks : sequence of callable
        Functions without arguments; their return values are ignored.

    Raises
    ------
    Exception
        The exception of the first task that fails; the other tasks stop at their current request.
    """
    if len(tasks) == 1:
        tasks[0]()
        return
    all_tasks = [_Task(work) for work in tasks]
    for task in all_tasks:
        task.thread.start()
    waiting = all_tasks
    try:
        while waiting:
            for task in waiting:
                task.go_on()
                if task.error:
                    raise task.error
            waiting = [task for task in waiting if not task.ended]
            _answer(waiting)
    finally:
        for task in all_tasks:
            task.stop()


def _answer(waiting: Sequence[_Task]) -> None:
    alike: dict[Hashable, list[_Task]] = defaultdict(list)
    for task in waiting:
        alike[task.request.key].append(task)
    for asking in alike.values():
        answers = asking[0].request.solve([task.request.asked for task in asking])
        for task, answer in zip(asking, answers, strict=True):
            task.answer = answer


def gathered(key: Hashable, solve: Solve, request: Any) -> Any:
    """Return ``solve([request])[0]``, solved together with requests of other tasks under this key.

    Parameters
    ----------
    key : hashable
        Only requests with equal keys are solved in one call.
    solve : callable
        Maps a sequence of requests to a sequence of answers. An answer does not depend on the
        other requests.
    request : object
        Request of the calling task.

    Returns
    -------
    object
        Answer to the request.
    """
    task = _TASK.get()
    return solve([request])[0] if task is None else task.ask(_Request(key, solve, request))
