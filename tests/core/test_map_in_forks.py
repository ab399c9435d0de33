"""Test the parallel execution in forked processes."""

import multiprocessing
import os

import pytest

from private_consensus.kernels.forks import map_in_forks


def process_of(item):
    return item, os.getpid()


@pytest.mark.parametrize("processes", [1, 2, 7])
def test_results_have_the_order_of_the_items(processes):
    results = list(map_in_forks(process_of, range(5), processes))
    assert [item for item, _ in results] == list(range(5))
    assert any(process == os.getpid() for _, process in results) is (processes == 1)


def _report_processes(connection):
    connection.send((os.getpid(), list(map_in_forks(process_of, range(3), 2))))


def test_a_daemonic_process_computes_all_items_itself():
    """Such a process must not have children."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_report_processes, args=(sender,), daemon=True)
    process.start()
    assert receiver.poll(60)
    own, results = receiver.recv()
    process.join()
    assert results == [(0, own), (1, own), (2, own)]
