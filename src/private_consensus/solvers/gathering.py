"""Tasks that go on together where each asks for what is best computed of all at once.

Batches of settings with different algorithms have local problems over the same records, which are
solved eight at a time: a batch alone leaves registers empty. Each task has a thread, of which one
runs at a time, until it asks; what it computes is what it would compute alone, in the same order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from contextvars import ContextVar, copy_context
from threading import Semaphore, Thread
from typing import Any, NamedTuple

Solve = Callable[[Sequence[Any]], Sequence[Any]]
"""Answers to several requests, each of which is as it would be alone."""


class _Request(NamedTuple):
    key: Hashable
    solve: Solve
    asked: Any


class _Stopped(BaseException):
    """Ends a task since another one failed."""


class _Task:
    """Task in a thread of its own; its request waits in ``request``."""

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
        except BaseException as error:  # goes on in the thread that began the task
            self.error = error
        self.ended = True
        self.waits.release()

    def ask(self, request: _Request) -> Any:
        """Wait in the task's thread for the answer, which comes when all tasks wait or have
        ended.
        """
        self.request = request
        self.waits.release()
        self.goes.acquire()
        if self.stopped:
            raise _Stopped
        return self.answer

    def go_on(self) -> None:
        """Resume the task until it requests or ends."""
        self.running = True
        self.goes.release()
        self.waits.acquire()
        self.running = False

    def stop(self) -> None:
        """End a waiting task; do not wait for a task that computes when the user interrupts."""
        self.stopped = True
        self.goes.release()
        if not self.running:
            self.thread.join()


_TASK: ContextVar[_Task | None] = ContextVar("task", default=None)


def together(tasks: Sequence[Callable[[], Any]]) -> None:
    """Execute tasks so that those which ask (:func:`gathered`) are answered together.

    Raises
    ------
    Exception
        That of the first task which raises one; the others end where they are.
    """
    if len(tasks) == 1:
        tasks[0]()
        return
    every = [_Task(work) for work in tasks]
    for task in every:
        task.thread.start()
    waiting = every
    try:
        while waiting:
            for task in waiting:
                task.go_on()
                if task.error:
                    raise task.error
            waiting = [task for task in waiting if not task.ended]
            _answer(waiting)
    finally:
        for task in every:
            task.stop()


def _answer(waiting: Sequence[_Task]) -> None:
    alike: dict[Hashable, list[_Task]] = defaultdict(list)
    for task in waiting:
        alike[task.request.key].append(task)
    for asking in alike.values():
        answers = asking[0].request.solve([task.request.asked for task in asking])
        for task, answer in zip(asking, answers, strict=True):
            task.answer = answer


def gathered(key: Hashable, solve: Solve, asked: Any) -> Any:
    """``solve([asked])[0]``, together with what other tasks ask for under the same key."""
    task = _TASK.get()
    return solve([asked])[0] if task is None else task.ask(_Request(key, solve, asked))
