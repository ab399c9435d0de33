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
from private_consensus.common.job_logging import MAX_SETTINGS, job_logging
from private_consensus.common.secrets import MIRROR_VARIABLE, key_in, redacted
from private_consensus.reproduction.datasets import (
    Acquisition,
    acquire,
    ipums,
    summary,
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
def test_blanks_around_a_key_are_no_part_of_it(monkeypatch, around):
    monkeypatch.setenv(ipums.KEY, around.format(KEY))
    assert key_in(ipums.KEY) == KEY


@pytest.mark.parametrize("empty", ["", " \r\n"])
def test_an_empty_key_is_none(monkeypatch, empty):
    monkeypatch.setenv(ipums.KEY, empty)
    assert key_in(ipums.KEY) is None


@pytest.mark.parametrize("key", ["two words", "two\nlines", "schlüssel", "be\x07l"])
def test_what_can_be_no_key_is_refused_without_being_said(monkeypatch, tmp_path, key):
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


def test_a_job_that_fails_says_its_trace_without_the_key(monkeypatch, tmp_path):
    monkeypatch.setenv(ipums.KEY, f"{KEY}\r\n")
    with pytest.raises(SystemExit) as stopped, job_logging(tmp_path / "job.log"):
        raise RuntimeError(f"sent {KEY}\r\n")
    assert "RuntimeError: sent ***" in stopped.value.code
    assert KEY not in stopped.value.code + (tmp_path / "job.log").read_text()


def test_a_job_that_fails_repeats_the_beginning_of_its_settings_without_the_key(
    monkeypatch, tmp_path
):
    """Snakemake prints the log of a failed job, and the key is at the cut of the settings."""
    monkeypatch.setenv(ipums.KEY, KEY)
    begin = "x" * (MAX_SETTINGS - len(KEY) // 2)
    with pytest.raises(SystemExit), job_logging(tmp_path / "job.log", [begin + KEY, "y" * 30_000]):
        raise InvalidInput("horizon", 0, "a whole number >= 1")
    log = (tmp_path / "job.log").read_text()
    assert len(log) < 2000 and "horizon: found 0" in log
    assert KEY[:5] not in log


def test_credentials_are_hidden_in_a_path_that_was_made_of_a_url():
    assert redacted(str(Path("http://user:password@host/x"))) == "http:/***@host/x"


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
        # As in a job, the acquisition is built from the plain values of the workflow.
        acquire("adult", Acquisition(**acquisition.to_dict()))
    assert guarded.requests, "the mirror was not asked"
    output_text = everything_in(tmp_path) + caplog.text + str(stopped.value.code)
    assert not re.search(f"{re.escape(PASSWORD)}|{QUOTED}|user:", output_text), output_text


def test_a_guarded_mirror_is_asked_with_the_credentials(guarded, tmp_path):
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
def test_credentials_outside_the_environment_are_refused_without_being_said(tmp_path, scheme):
    with pytest.raises(InvalidInput, match=r"data.mirror: found '\w+://\*\*\*@host/x'") as error:
        Acquisition(mirror=f"{scheme}://user:{PASSWORD}@host/x", cache=tmp_path)
    assert PASSWORD not in str(error.value)


def test_the_summary_says_none(guarded, tmp_path, capsys):
    with pytest.raises(InvalidInput) as error:
        guarded.faults = {f"/{name}": [500] * 9 for name in entry("adult").mirror.files}
        summary(Acquisition(cache=tmp_path))
    assert QUOTED not in str(error.value) and "user" not in str(error.value)


def test_redaction_leaves_the_rest_of_a_text_alone(monkeypatch):
    monkeypatch.setenv(ipums.KEY, KEY)
    assert redacted("as asked at 7 pm") == "as asked at 7 pm"
    assert redacted(f"<{KEY}> http://a:b@c/d?e=@f") == "<***> http://***@f"
    assert redacted("http://c/d and mail to someone@d") == "http://c/d and mail to someone@d"
