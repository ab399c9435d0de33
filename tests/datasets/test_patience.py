"""One purse of seconds for all hosts that do not answer."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from private_consensus.reproduction.datasets import patience
from private_consensus.reproduction.datasets.patience import (
    CONNECTION_TIMEOUT,
    Patience,
    Unavailable,
    address_of,
)


def check_reachable(purse: Patience, *urls: str) -> None:
    for url in urls:
        with pytest.raises(Unavailable):
            purse.check_reachable(url)


def test_all_hosts_together_cost_the_purse_and_no_more(waits):
    purse = Patience(8)
    check_reachable(purse, *(f"https://host{i}.example/" for i in range(20)))
    assert waits == pytest.approx([CONNECTION_TIMEOUT, CONNECTION_TIMEOUT, 2.0], abs=1e-5)
    assert sum(waits) <= 8 + 1e-5
    assert purse.left == 0


def test_a_host_that_was_silent_is_not_asked_again(waits):
    purse = Patience(10)
    check_reachable(purse, "https://host.example/a")
    check_reachable(purse, "https://host.example/b")
    assert waits == [CONNECTION_TIMEOUT]


def test_another_process_does_not_wait_again_within_a_minute(waits, tmp_path):
    state_file = tmp_path / "state_file.json"
    check_reachable(Patience(4, state_file), "https://a.example/", "https://b.example/")
    waits.clear()
    with pytest.raises(Unavailable, match="already spent"):
        Patience(4, state_file).check_reachable("https://c.example/")
    assert waits == []


def test_after_a_minute_all_is_forgotten(tmp_path, monkeypatch):
    state_file = tmp_path / "state_file.json"
    Patience(1.0, state_file).charge(1.0)
    assert Patience(1.0, state_file).left == 0
    later = time.time() + patience.MEMORY + 1
    monkeypatch.setattr(patience.time, "time", lambda: later)
    assert Patience(1.0, state_file).left == 1.0


def test_a_broken_ledger_is_an_empty_one(tmp_path):
    state_file = tmp_path / "state_file.json"
    state_file.write_text('[[1, "x"')
    assert Patience(2.0, state_file).left == 2.0


def test_a_name_service_that_hangs_does_not_hold_us(monkeypatch):
    """Its answer comes when nobody waits for it any longer."""
    given_up = threading.Event()
    answer = lambda *_: given_up.wait(60) and socket.socket()  # noqa: E731
    monkeypatch.setattr(socket, "create_connection", answer)
    with pytest.raises(Unavailable, match="no answer within"):
        Patience(0.2).check_reachable("https://host.example/")
    given_up.set()


def test_a_proxy_is_what_we_knock_at(monkeypatch):
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", "near.example")
    assert address_of("https://far.example/x") == ("proxy.example", 3128)
    assert address_of("https://near.example/x") == ("near.example", 443)
