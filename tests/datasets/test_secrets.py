"""Test that no message, log or file contains keys after a failed request."""

import json
import logging
from pathlib import Path

import ipumspy
import pytest
import requests

from private_consensus.common.errors import InvalidInput
from private_consensus.common.job_logging import job_logging
from private_consensus.common.secrets import IPUMS_KEY, ipums_key, redacted
from private_consensus.reproduction.data import downloads, write_provenance
from private_consensus.reproduction.data.acquisition import Acquisition, acquire

KEY = "59cba10d8a5da536fc06b59d"


def everything_in(folder: Path) -> str:
    return "".join(
        f"{file}\n{file.read_bytes().decode(errors='replace')}\n"
        for file in folder.rglob("*")
        if file.is_file()
    )


@pytest.mark.parametrize("around", ["{}", "{}\r\n", " {}", "\t{} \n"])
def test_whitespace_around_a_key_is_removed(monkeypatch, around):
    monkeypatch.setenv(IPUMS_KEY, around.format(KEY))
    assert ipums_key() == KEY


@pytest.mark.parametrize("key", ["two words", "two\nlines", "schlüssel", "be\x07l"])
def test_an_invalid_key_is_refused_without_repeating_it(monkeypatch, tmp_path, key):
    monkeypatch.setenv(IPUMS_KEY, key)
    with pytest.raises(InvalidInput, match=f"{IPUMS_KEY}: found '\\*\\*\\*', expected") as error:
        Acquisition(cache=str(tmp_path)).check()
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
    monkeypatch.setenv(IPUMS_KEY, around.format(KEY))
    monkeypatch.setattr(ipumspy, "IpumsApiClient", Repeating)
    monkeypatch.setattr(downloads, "require_reachable", lambda *_: None)
    acquisition = Acquisition(cache=str(tmp_path / "cache"), surrogate_rows=1000)
    with caplog.at_level(logging.DEBUG), job_logging(tmp_path / "acquire.log"):
        _, provenance = acquire("brazil", acquisition)
        write_provenance(tmp_path / "brazil.provenance.json", provenance)
    assert "InvalidHeader: Invalid header value" in provenance.because
    output_text = caplog.text + "".join(capsys.readouterr()) + json.dumps(acquisition.to_dict())
    assert KEY not in everything_in(tmp_path) + output_text


def test_the_traceback_of_a_failed_job_does_not_contain_the_key(monkeypatch, tmp_path):
    monkeypatch.setenv(IPUMS_KEY, f"{KEY}\r\n")
    with pytest.raises(SystemExit) as stopped, job_logging(tmp_path / "job.log"):
        raise RuntimeError(f"sent {KEY}\r\n")
    assert "RuntimeError: sent ***" in stopped.value.code
    assert KEY not in stopped.value.code + (tmp_path / "job.log").read_text()


def test_redaction_leaves_other_text_unchanged(monkeypatch):
    monkeypatch.setenv(IPUMS_KEY, KEY)
    assert redacted("as asked at 7 pm") == "as asked at 7 pm"
    assert redacted(f"<{KEY}> http://a:b@c/d?e=@f") == "<***> http://***@f"
    assert redacted("http://c/d and mail to someone@d") == "http://c/d and mail to someone@d"
