"""Test downloads against a local server with failures."""

from __future__ import annotations

import hashlib

import pytest

from private_consensus.reproduction.data.downloads import Downloads, Unavailable

CONTENTS = bytes(range(256)) * 1000
CHECKSUM = hashlib.sha256(CONTENTS).hexdigest()


def downloads(tmp_path, timeout_s=10.0) -> Downloads:
    return Downloads(folder=tmp_path / "files", timeout_s=timeout_s)


def left_behind(tmp_path) -> list[str]:
    return sorted(p.name for p in (tmp_path / "files").iterdir())


def test_a_file_is_fetched_checked_and_fetched_only_once(publisher, tmp_path):
    publisher.files["/a"] = CONTENTS
    for _ in range(2):
        path = downloads(tmp_path).fetch(f"{publisher.url}/a", "a", checksum=CHECKSUM)
        assert path.read_bytes() == CONTENTS
    assert len(publisher.requests) == 1
    assert left_behind(tmp_path) == ["a"]


def test_a_download_succeeds_after_two_503_responses(publisher, tmp_path):
    publisher.files["/a"], publisher.faults["/a"] = CONTENTS, [503, 503]
    path = downloads(tmp_path).fetch(f"{publisher.url}/a", "a", checksum=CHECKSUM)
    assert path.read_bytes() == CONTENTS
    assert len(publisher.requests) == 3


def test_an_interrupted_transfer_is_repeated(publisher, tmp_path):
    publisher.files["/a"] = CONTENTS
    publisher.faults["/a"] = [("cut", 100_000), ("cut", 50_000)]
    path = downloads(tmp_path).fetch(f"{publisher.url}/a", "a")
    assert path.read_bytes() == CONTENTS


def test_wrong_contents_are_refused_and_not_stored(publisher, tmp_path):
    publisher.files["/a"] = CONTENTS[:-1] + b"?"
    with pytest.raises(Unavailable, match="wrong contents") as error:
        downloads(tmp_path).fetch(f"{publisher.url}/a", "a", checksum=CHECKSUM)
    assert CHECKSUM in str(error.value) and "\n" not in str(error.value)
    assert left_behind(tmp_path) == []


def test_a_stalled_transfer_times_out(publisher, tmp_path):
    publisher.files["/a"], publisher.faults["/a"] = CONTENTS, [("stall", 0.6)] * 9
    with pytest.raises(Unavailable, match=r"transfer failed \(ReadTimeout\)"):
        downloads(tmp_path, timeout_s=0.2).fetch(f"{publisher.url}/a", "a")
    assert left_behind(tmp_path) == []


def test_an_unreachable_host_is_named_in_the_error(publisher, tmp_path):
    for call in (
        lambda: downloads(tmp_path).fetch("http://127.0.0.1:1/a", "a"),
        lambda: downloads(tmp_path).check_reachable("http://127.0.0.1:1/a"),
    ):
        with pytest.raises(Unavailable, match=r"127\.0\.0\.1 cannot be reached"):
            call()
    assert not publisher.requests
