"""Test downloads against a local server with failures."""

import hashlib

import pytest

from private_consensus.reproduction.data.downloads import Unavailable, download, require_reachable

CONTENTS = bytes(range(256)) * 1000
CHECKSUM = hashlib.sha256(CONTENTS).hexdigest()


def fetch(tmp_path, url, checksum=None, timeout_s=10.0) -> bytes:
    """Download the file ``a`` and return its contents."""
    download(tmp_path / "files", url, {"a": checksum}, timeout_s)
    return (tmp_path / "files" / "a").read_bytes()


def left_behind(tmp_path) -> list[str]:
    return sorted(p.name for p in (tmp_path / "files").iterdir())


def test_a_file_is_fetched_checked_and_fetched_only_once(publisher, tmp_path):
    publisher.files["/a"] = CONTENTS
    for _ in range(2):
        assert fetch(tmp_path, publisher.url, CHECKSUM) == CONTENTS
    assert len(publisher.requests) == 1
    assert left_behind(tmp_path) == ["a"]


def test_a_download_succeeds_after_two_503_responses(publisher, tmp_path):
    publisher.files["/a"], publisher.faults["/a"] = CONTENTS, [503, 503]
    assert fetch(tmp_path, publisher.url, CHECKSUM) == CONTENTS
    assert len(publisher.requests) == 3


def test_an_interrupted_transfer_is_repeated(publisher, tmp_path):
    publisher.files["/a"] = CONTENTS
    publisher.faults["/a"] = [("cut", 100_000), ("cut", 50_000)]
    assert fetch(tmp_path, publisher.url) == CONTENTS


def test_wrong_contents_are_refused_and_not_stored(publisher, tmp_path):
    publisher.files["/a"] = CONTENTS[:-1] + b"?"
    with pytest.raises(Unavailable, match="wrong contents") as error:
        fetch(tmp_path, publisher.url, CHECKSUM)
    assert CHECKSUM in str(error.value) and "\n" not in str(error.value)
    assert left_behind(tmp_path) == []


def test_a_stalled_transfer_times_out(publisher, tmp_path):
    publisher.files["/a"], publisher.faults["/a"] = CONTENTS, [("stall", 0.6)] * 9
    with pytest.raises(Unavailable, match=r"transfer failed \(ReadTimeout\)"):
        fetch(tmp_path, publisher.url, timeout_s=0.2)
    assert left_behind(tmp_path) == []


def test_an_unreachable_host_is_named_in_the_error(publisher, tmp_path):
    for call in (
        lambda: fetch(tmp_path, "http://127.0.0.1:1"),
        lambda: require_reachable("http://127.0.0.1:1", 10.0),
    ):
        with pytest.raises(Unavailable, match=r"127\.0\.0\.1 cannot be reached"):
            call()
    assert not publisher.requests
