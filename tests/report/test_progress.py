"""How long a run still takes."""

import pytest

from private_consensus.report.progress import tell_time_left, time_left


@pytest.mark.parametrize(
    ("done", "of", "seconds", "line"),
    [
        (0, 100, 60.0, ""),
        (100, 100, 60.0, ""),
        (50, 100, 30.0, "50 of 100 jobs done; less than a minute left at this pace"),
        (250, 1000, 240.0, "250 of 1,000 jobs done; about 12 min left at this pace"),
        (10, 1010, 120.0, "10 of 1,010 jobs done; about 3.3 h left at this pace"),
    ],
)
def test_time_left_follows_the_pace_so_far(done, of, seconds, line):
    assert time_left(done, of, seconds) == line


def test_it_is_told_until_the_run_ends():
    told = []

    def say(line):
        told.append(line)
        ended.set()

    ended = tell_time_left(lambda: (1, 3), say, every=0.01)
    assert ended.wait(5.0)
    assert told[0].startswith("1 of 3 jobs done")
