"""Test the predicted duration of a run on several cores against known cases."""

import itertools

import pytest
from benchmarks.makespan import BEFORE_BLOCKS, Job, _split, makespan

from private_consensus.kernels.forks import fewest


def test_the_makespan_of_a_chain_is_the_sum_of_its_jobs_and_queue_times():
    chain = {"a": Job(3.0), "b": Job(4.0, ["a"]), "c": Job(5.0, ["b", "there already"])}
    assert [makespan(chain, cores) for cores in (1, 8)] == [12.0, 12.0]
    assert makespan(chain, 8, queue=25.0) == 12.0 + 3 * 25.0


def test_equal_jobs_are_distributed_over_the_cores():
    jobs = {str(i): Job(2.0) for i in range(10)}
    assert [makespan(jobs, cores) for cores in (1, 4, 10, 64)] == [20.0, 6.0, 2.0, 2.0]
    assert makespan(jobs, 4, queue=1.0) == 7.0


def test_makespans_satisfy_the_lower_bound_and_the_upper_bound_of_graham():
    sizes = (7.0, 1.0, 3.0, 5.0, 2.0)
    for order in itertools.permutations(range(5), 3):
        jobs = {str(i): Job(size) for i, size in enumerate(sizes)}
        for early, late in itertools.pairwise(order):
            jobs[str(late)] = Job(sizes[late], [str(early)])
        assert makespan(jobs, 1) == sum(sizes)
        chain = max(sum(sizes[i] for i in order), max(sizes))
        # Graham: on m cores, list scheduling takes at most 2 - 1/m times the optimum.
        for cores in (2, 3):
            best = max(chain, sum(sizes) / cores)
            assert best <= makespan(jobs, cores) <= (2 - 1 / cores) * best


def test_a_job_of_several_cores_waits_until_they_are_free():
    jobs = {"long": Job(5.0), "short": Job(1.0), "wide": Job(2.0, cores=2)}
    assert makespan(jobs, 2) == 7.0
    assert makespan(jobs, 4) == 5.0
    # A job that requests more cores than the machine has uses all cores.
    assert makespan({"wide": Job(2.0, cores=9), "other": Job(1.0)}, 2) == 3.0


@pytest.mark.parametrize("cores, processes, rounds", [(2, 1, 10), (16, 4, 3), (64, 10, 1)])
def test_a_cell_is_split_over_processes_by_blocks_of_runs(cores, processes, rounds):
    split = _split(Job(200.0), {"runs": 95, "runs_per_batch": 10}, cores)
    assert split.cores == processes
    assert split.seconds == pytest.approx(200 * (BEFORE_BLOCKS + (1 - BEFORE_BLOCKS) * rounds / 10))


@pytest.mark.parametrize("items", range(1, 25))
@pytest.mark.parametrize("max_processes", [1, 3, 4, 16])
def test_the_smallest_number_of_processes_with_minimal_rounds_is_used(items, max_processes):
    def turns(processes):
        return -(-items // processes)

    process_count = fewest(items, max_processes)
    assert process_count <= max_processes and turns(process_count) == turns(max_processes)
    assert process_count == 1 or turns(process_count - 1) > turns(max_processes)
