"""Tasks that ask together: each gets what it would get alone, and one that fails ends them all."""

import signal
import threading

import numpy as np
import pytest

from private_consensus.core.solvers.gathering import gathered, together

CALLS = []


def squares(asked):
    CALLS.append(len(asked))
    return [one**2 for one in asked]


def chain(out, place, start, length, key="squares"):
    """A task that asks several times, each time for what it got before plus one."""

    def work():
        value = start
        for _ in range(length):
            value = gathered(key, squares, value) + 1
        out[place] = value

    return work


def alone(start, length):
    for _ in range(length):
        start = start**2 + 1
    return start


@pytest.fixture(autouse=True)
def no_calls():
    CALLS.clear()


def test_each_gets_what_it_gets_alone_though_they_end_at_different_times():
    lengths, found = [1, 4, 0, 3], {}
    together([chain(found, i, i / 4, length) for i, length in enumerate(lengths)])
    assert found == {i: alone(i / 4, length) for i, length in enumerate(lengths)}
    assert CALLS == [3, 2, 2, 1]


def test_what_has_another_key_is_asked_apart():
    found = {}
    together([chain(found, i, i, 2, key=i % 2) for i in range(3)])
    assert CALLS == [2, 1, 2, 1]


def test_one_task_needs_no_thread():
    seen = []
    together([lambda: seen.append(threading.current_thread())])
    assert seen == [threading.main_thread()]
    assert gathered("squares", squares, 3) == 9


def test_an_error_comes_out_and_no_thread_stays():
    before, found = set(threading.enumerate()), {}

    def broken():
        gathered("squares", squares, 1)
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        together([chain(found, 0, 1, 5), broken, chain(found, 2, 1, 5)])
    assert set(threading.enumerate()) <= before  # those of earlier tests may end meanwhile
    assert not found


def test_an_error_of_the_answer_comes_out():
    def impossible(asked):
        raise ArithmeticError("no answer")

    with pytest.raises(ArithmeticError, match="no answer"):
        together([lambda: gathered("x", impossible, 1)] * 2)


def test_tasks_see_the_context_they_were_begun_in():
    seen = []
    with np.errstate(over="raise"):
        together([lambda: seen.append(np.geterr()["over"])] * 2)
    assert seen == ["raise", "raise"]


def test_who_interrupts_does_not_wait_for_a_task_that_computes():
    noticed, release, ended = threading.Event(), threading.Event(), threading.Event()

    def interrupted(*_):
        if not noticed.is_set():
            noticed.set()
            raise KeyboardInterrupt

    def long():
        # An interrupt just before the main thread waits is not seen before the next one.
        while not noticed.wait(0.1):
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        release.wait(60)
        ended.set()

    # Processes among which tests are shared out ignore interrupts.
    before = signal.signal(signal.SIGINT, interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            together([long, lambda: None])
        assert not ended.is_set()
    finally:
        signal.signal(signal.SIGINT, before)
        release.set()
