"""Test that no message, log or file contains keys or credentials after a failed request."""

from __future__ import annotations

import base64
import json
import logging
import os
import re
from pathlib import Path

import ipumspy
import pytest
import requests

from private_consensus.common.errors import InvalidInput
from private_consensus.common.job_logging import job_logging
from private_consensus.common.secrets import MIRROR_VARIABLE, key_in, redacted
from private_consensus.reproduction.datasets import (
    Acquisition,
    acquire,
    ipums,
    write_provenance,
)
from private_consensus.reproduction.datasets.catalogue import entry
from private_consensus.reproduction.datasets.downloads import Downloads
from private_consensus.reproduction.datasets.mirror import Mirror

KEY = "59cba10d8a5da536fc06b59d"
PASSWORD = "p@ss/w:rd%21"
QUOTED = "p%40ss%2Fw%3Ard%2521"


def everything_in(folder: Path) -> str:
    return "".join(
        f"{file}\n{file.read_bytes().decode(errors='replace')}\n"
        for file in folder.rglob("*")
        if file.is_file()
    )


@pytest.mark.parametrize("around", ["{}", "{}\r\n", " {}", "\t{} \n"])
def test_whitespace_around_a_key_is_removed(monkeypatch, around):
    monkeypatch.setenv(ipums.KEY, around.format(KEY))
    assert key_in(ipums.KEY) == KEY


@pytest.mark.parametrize("key", ["two words", "two\nlines", "schlüssel", "be\x07l"])
def test_an_invalid_key_is_refused_without_repeating_it(monkeypatch, tmp_path, key):
    monkeypatch.setenv(ipums.KEY, key)
    with pytest.raises(InvalidInput, match=f"{ipums.KEY}: found '\\*\\*\\*', expected") as error:
        Acquisition(cache=tmp_path).check()
    assert key not in str(error.value)


class Repeating:
    """Client whose error repeats its input, as HTTP libraries do for invalid headers."""

    def __init__(self, key, base_url):
        requests.Request("GET", base_url, headers={"Authorization": key}).prepare()
        raise requests.exceptions.InvalidHeader(
            f"Invalid header value: {key!r} or {' ' + key}, {key.encode()!r}"
        )


@pytest.mark.parametrize("around", ["{}", "{}\r\n", " {}"])
def test_a_key_is_in_no_output_of_an_acquisition(monkeypatch, tmp_path, caplog, capsys, around):
    monkeypatch.setenv(ipums.KEY, around.format(KEY))
    monkeypatch.setattr(ipumspy, "IpumsApiClient", Repeating)
    monkeypatch.setattr(Downloads, "check_reachable", lambda *_: None)
    acquisition = Acquisition(cache=tmp_path / "cache", surrogate_rows=1000)
    with caplog.at_level(logging.DEBUG), job_logging(tmp_path / "acquire.log"):
        _, provenance = acquire("brazil", acquisition)
        write_provenance(tmp_path / "brazil.provenance.json", provenance)
    assert "InvalidHeader: Invalid header value" in provenance.because
    output_text = caplog.text + "".join(capsys.readouterr()) + json.dumps(acquisition.to_dict())
    assert KEY not in everything_in(tmp_path) + output_text


def test_the_traceback_of_a_failed_job_does_not_contain_the_key(monkeypatch, tmp_path):
    monkeypatch.setenv(ipums.KEY, f"{KEY}\r\n")
    with pytest.raises(SystemExit) as stopped, job_logging(tmp_path / "job.log"):
        raise RuntimeError(f"sent {KEY}\r\n")
    assert "RuntimeError: sent ***" in stopped.value.code
    assert KEY not in stopped.value.code + (tmp_path / "job.log").read_text()


@pytest.fixture
def guarded(publisher, monkeypatch):
    """Return a mirror that requires a user name and a password, which its URL contains."""
    token = base64.b64encode(f"user:{PASSWORD}".encode()).decode()
    publisher.authorization = f"Basic {token}"
    monkeypatch.setenv(MIRROR_VARIABLE, publisher.url.replace("http://", f"http://user:{QUOTED}@"))
    return publisher


@pytest.mark.parametrize("fault", ["missing", "wrong", 500, 403, ("cut", 10), ("stall", 1.0)])
def test_credentials_of_a_mirror_are_in_no_output(guarded, tmp_path, caplog, fault):
    files = entry("adult").mirror.files
    for name in files:
        if fault != "missing":
            guarded.files[f"/{name}"] = b"contents of another file"
        if isinstance(fault, int | tuple):
            guarded.faults[f"/{name}"] = [fault] * 20
    acquisition = Acquisition(cache=tmp_path / "cache", connection_timeout_s=0.5, source="official")
    assert acquisition.to_dict()["mirror"].startswith("http://***@127.0.0.1")
    with (
        caplog.at_level(logging.DEBUG, logger="private_consensus"),
        pytest.raises(SystemExit) as stopped,
        job_logging(tmp_path / "log"),
    ):
        # Build the acquisition from plain values, as a job of the workflow does.
        acquire("adult", Acquisition(**acquisition.to_dict()))
    assert guarded.requests, "no request reached the mirror"
    output_text = everything_in(tmp_path) + caplog.text + str(stopped.value.code)
    assert not re.search(f"{re.escape(PASSWORD)}|{QUOTED}|user:", output_text), output_text


def test_requests_to_a_protected_mirror_send_the_credentials(guarded, tmp_path):
    name = next(iter(entry("adult").mirror.files))
    guarded.files[f"/{name}"] = b"adult"
    downloads = Downloads(folder=tmp_path, timeout_s=10.0)

    def mirror(location):
        return Mirror(location=location, files={name: {"file": "0"}}, downloads=downloads)

    with pytest.raises(InvalidInput, match=r"files can be downloaded .*HTTP status 401"):
        mirror(guarded.url).has()
    assert mirror(Acquisition(cache=tmp_path).mirror).has()
    with pytest.raises(InvalidInput, match="a URL without user and password"):
        Acquisition(mirror=os.environ[MIRROR_VARIABLE], cache=tmp_path)


@pytest.mark.parametrize("scheme", ["http", "https", "ftp", "file"])
def test_credentials_in_the_mirror_setting_are_refused_and_redacted(tmp_path, scheme):
    with pytest.raises(InvalidInput, match=r"data.mirror: found '\w+://\*\*\*@host/x'") as error:
        Acquisition(mirror=f"{scheme}://user:{PASSWORD}@host/x", cache=tmp_path)
    assert PASSWORD not in str(error.value)


def test_redaction_leaves_other_text_unchanged(monkeypatch):
    monkeypatch.setenv(ipums.KEY, KEY)
    assert redacted("as asked at 7 pm") == "as asked at 7 pm"
    assert redacted(f"<{KEY}> http://a:b@c/d?e=@f") == "<***> http://***@f"
    assert redacted("http://c/d and mail to someone@d") == "http://c/d and mail to someone@d"
