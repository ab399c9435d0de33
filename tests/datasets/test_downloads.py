"""Downloads against a publisher that fails in the ways publishers do."""

from __future__ import annotations

import hashlib
import threading
import time
import zipfile
from types import SimpleNamespace

import pytest

from private_consensus.reproduction.datasets import downloads as module
from private_consensus.reproduction.datasets import patience
from private_consensus.reproduction.datasets.downloads import Downloads, unzipped
from private_consensus.reproduction.datasets.patience import Patience, Unavailable

CONTENTS = bytes(range(256)) * 1000
CHECKSUM = hashlib.sha256(CONTENTS).hexdigest()
STALL = 60
"""Seconds that a host is silent; patience of half a second ends before, on any machine."""


def downloads(tmp_path, seconds=10.0, **options) -> Downloads:
    options = {"backoff": 0.01, **options}
    return Downloads(folder=tmp_path / "files", patience=Patience(seconds), **options)


def left_behind(tmp_path) -> list[str]:
    return sorted(p.name for p in (tmp_path / "files").iterdir() if p.suffix != ".lock")


def test_a_file_is_fetched_checked_and_fetched_only_once(publisher, tmp_path):
    publisher.files["/a"] = CONTENTS
    for _ in range(2):
        path = downloads(tmp_path).fetch(f"{publisher.url}/a", "a", checksum=CHECKSUM)
        assert path.read_bytes() == CONTENTS
    assert len(publisher.requests) == 1
    assert left_behind(tmp_path) == ["a"]


def test_a_missing_file_is_not_asked_for_again(publisher, tmp_path):
    with pytest.raises(Unavailable, match="HTTP status 404"):
        downloads(tmp_path).fetch(f"{publisher.url}/a", "a")
    assert len(publisher.requests) == 1
    assert left_behind(tmp_path) == []


def test_503_twice_then_fine(publisher, tmp_path):
    publisher.files["/a"], publisher.faults["/a"] = CONTENTS, [503, 503]
    path = downloads(tmp_path).fetch(f"{publisher.url}/a", "a", checksum=CHECKSUM)
    assert path.read_bytes() == CONTENTS
    assert len(publisher.requests) == 3


def test_503_for_ever_ends(publisher, tmp_path):
    publisher.files["/a"], publisher.faults["/a"] = CONTENTS, [503] * 99
    with pytest.raises(Unavailable, match="HTTP status 503"):
        downloads(tmp_path, retries=2).fetch(f"{publisher.url}/a", "a")
    assert len(publisher.requests) == 3


def test_backoff_doubles(publisher, tmp_path, monkeypatch):
    publisher.faults["/a"] = [503] * 4
    pauses = []
    monkeypatch.setattr(Patience, "sleep", lambda self, seconds: pauses.append(seconds))
    with pytest.raises(Unavailable):
        downloads(tmp_path, backoff=0.5).fetch(f"{publisher.url}/a", "a")
    assert pauses == [0.5, 1.0, 2.0]


@pytest.mark.parametrize("ranges", [True, False])
def test_a_cut_transfer_is_completed(publisher, tmp_path, ranges):
    publisher.files["/a"], publisher.ranges = CONTENTS, ranges
    publisher.faults["/a"] = [("cut", 100_000), ("cut", 50_000)]
    path = downloads(tmp_path).fetch(f"{publisher.url}/a", "a", checksum=CHECKSUM)
    assert path.read_bytes() == CONTENTS
    asked = [wanted for _, wanted in publisher.requests]
    assert asked[:2] == [None, "bytes=100000-"]
    # Without ranges the host starts anew, and so does the file.
    assert asked[2] == ("bytes=150000-" if ranges else "bytes=50000-")


def test_a_later_call_goes_on_where_an_earlier_one_gave_up(publisher, tmp_path):
    publisher.files["/a"], publisher.faults["/a"] = CONTENTS, [("cut", 1000)]
    with pytest.raises(Unavailable):
        downloads(tmp_path, retries=0).fetch(f"{publisher.url}/a", "a")
    path = downloads(tmp_path).fetch(f"{publisher.url}/a", "a", checksum=CHECKSUM)
    assert path.read_bytes() == CONTENTS
    assert publisher.requests[-1] == ("/a", "bytes=1000-")


def test_the_beginning_of_another_file_is_thrown_away(publisher, tmp_path):
    publisher.files["/a"] = CONTENTS
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / ".a.part").write_bytes(b"something else")
    path = downloads(tmp_path).fetch(f"{publisher.url}/a", "a", checksum=CHECKSUM)
    assert path.read_bytes() == CONTENTS


def test_a_beginning_longer_than_the_file_is_thrown_away(publisher, tmp_path):
    publisher.files["/a"] = CONTENTS
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / ".a.part").write_bytes(CONTENTS + b"more")
    path = downloads(tmp_path).fetch(f"{publisher.url}/a", "a", checksum=CHECKSUM)
    assert path.read_bytes() == CONTENTS


def test_wrong_bytes_are_refused_and_not_kept(publisher, tmp_path):
    publisher.files["/a"] = CONTENTS[:-1] + b"?"
    with pytest.raises(Unavailable, match="wrong contents"):
        downloads(tmp_path).fetch(f"{publisher.url}/a", "a", checksum=CHECKSUM)
    assert left_behind(tmp_path) == []


def test_a_redirect_is_followed(publisher, tmp_path):
    publisher.files["/new"] = CONTENTS
    publisher.faults["/old"] = [("redirect", "/new")]
    path = downloads(tmp_path).fetch(f"{publisher.url}/old", "a", checksum=CHECKSUM)
    assert path.read_bytes() == CONTENTS


@pytest.fixture
def reached(monkeypatch):
    """The loopback's host, without the time that a busy machine takes to reach it."""
    monkeypatch.setattr(patience, "_connect", lambda address, timeout: None)


@pytest.mark.usefixtures("reached")
def test_a_stalled_host_costs_no_more_than_our_patience(publisher, tmp_path):
    publisher.files["/a"], publisher.faults["/a"] = CONTENTS, [("stall", STALL)] * 9
    start = time.monotonic()
    with pytest.raises(Unavailable, match="no patience is left"):
        downloads(tmp_path, seconds=0.5).fetch(f"{publisher.url}/a", "a")
    assert time.monotonic() - start < STALL


@pytest.mark.usefixtures("reached")
def test_a_host_that_drips_costs_no_more_than_our_patience(publisher, tmp_path):
    publisher.files["/a"], publisher.faults["/a"] = CONTENTS, [("drip", 10)] * 9
    start = time.monotonic()
    with pytest.raises(Unavailable, match=r"bytes a second|no byte"):
        downloads(tmp_path, seconds=0.5).fetch(f"{publisher.url}/a", "a")
    assert time.monotonic() - start < STALL


def test_slow_but_steady_is_fine_beyond_our_patience(publisher, tmp_path, monkeypatch):
    """By a clock that is a hundred times as fast, with limits that no busy machine reaches."""
    clock = SimpleNamespace(monotonic=lambda: 100 * time.monotonic())
    monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(module, "SLOWEST", 1)
    publisher.files["/a"], publisher.faults["/a"] = CONTENTS, [("drip", 25_600)]
    start = clock.monotonic()
    path = downloads(tmp_path, seconds=60.0).fetch(f"{publisher.url}/a", "a", checksum=CHECKSUM)
    assert clock.monotonic() - start > 60.0
    assert path.read_bytes() == CONTENTS


def test_a_dead_port_is_named_in_the_reason(publisher, tmp_path):
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1 cannot be reached"):
        downloads(tmp_path).fetch("http://127.0.0.1:1/a", "a")
    assert not publisher.requests


def test_two_downloads_at_once_do_not_mix(publisher, tmp_path):
    """Both write; what is placed in the end is whole."""
    publisher.files["/a"], publisher.faults["/a"] = CONTENTS, [("drip", 40_000), ("drip", 40_000)]
    found = []

    def fetch():
        path = downloads(tmp_path).fetch(f"{publisher.url}/a", "a", checksum=CHECKSUM)
        found.append(path.read_bytes() == CONTENTS)

    threads = [threading.Thread(target=fetch) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True, True]
    assert len(publisher.requests) == 1


@pytest.mark.parametrize("announced", [True, False])
def test_a_file_without_end_is_refused(publisher, tmp_path, monkeypatch, announced):
    monkeypatch.setattr(module, "LARGEST", 200_000)
    publisher.files["/a"] = CONTENTS
    if not announced:
        monkeypatch.setattr(module, "_length", lambda response: 0)
    with pytest.raises(Unavailable, match=r"/a: the file .*, expected at most 200,000 bytes"):
        downloads(tmp_path).fetch(f"{publisher.url}/a", "a")
    assert left_behind(tmp_path) == []
    assert len(publisher.requests) == 1


def test_a_member_without_end_is_cut_off(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", bytes(1_000_000))
    monkeypatch.setattr(module, "LARGEST", 1000)
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        assert unzipped(archive, "a") == bytes(1000)
