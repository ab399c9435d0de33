"""Local HTTP server in place of a publisher, with configurable failures."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pooch
import pytest

MIRROR_VARIABLE = "PRIVATE_CONSENSUS_MIRROR"
MIRROR = os.environ.get(MIRROR_VARIABLE)

needs_mirror = pytest.mark.skipif(
    not MIRROR, reason=f"compares with real data: set {MIRROR_VARIABLE} to a mirror"
)


@dataclass
class Publisher:
    """Server with files by path, and per path the failures of the next requests, in order.

    Faults: an HTTP status; ``("cut", n)`` ends after n bytes; ``("stall", s)`` sends nothing for
    s seconds; ``("drip", n)`` sends n bytes ten times a second; ``("redirect", url)``.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    faults: dict[str, list] = field(default_factory=dict)
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    ranges: bool = True
    url: str = ""

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        path, byte_range = handler.path, handler.headers.get("Range")
        self.requests.append((path, byte_range))
        fault = self.faults[path].pop(0) if self.faults.get(path) else None
        if isinstance(fault, int):
            return self._empty(handler, fault)
        if path not in self.files and not isinstance(fault, tuple):
            return self._empty(handler, 404)
        kind, amount = fault or (None, None)
        if kind == "redirect":
            return self._empty(handler, 302, Location=amount)
        if kind == "stall":
            time.sleep(amount)
        body = self.files[path]
        start = (
            int(byte_range.removeprefix("bytes=").rstrip("-")) if byte_range and self.ranges else 0
        )
        if start >= len(body) > 0:
            return self._empty(handler, 416)
        handler.send_response(206 if start else 200)
        if start:
            handler.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        body = body[start:]
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        if kind == "cut":
            body = body[:amount]
        if kind != "drip":
            handler.wfile.write(body)
            return None
        for i in range(0, len(body), amount):
            handler.wfile.write(body[i : i + amount])
            handler.wfile.flush()
            time.sleep(0.1)
        return None

    @staticmethod
    def _empty(handler: BaseHTTPRequestHandler, status: int, **headers: str) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", "0")
        handler.end_headers()


@pytest.fixture
def publisher():
    """Start a local HTTP server in place of a publisher of data."""
    server_state = Publisher()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                server_state.answer(self)
            self.close_connection = True

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    server_state.url = f"http://127.0.0.1:{server.server_port}"
    yield server_state
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Hide the mirror, the cache, the keys and the proxy of the user from all tests."""
    proxies = [name for name in os.environ if name.lower().endswith("_proxy")]
    for name in (MIRROR_VARIABLE, "IPUMS_API_KEY", *proxies):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PRIVATE_CONSENSUS_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="session")
def mirror_path() -> str:
    """Return the mirror that the environment of the test run names."""
    if not MIRROR:
        pytest.skip(f"compares with real data: set {MIRROR_VARIABLE} to a mirror")
    return MIRROR


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Record the pauses between tries, and do not wait."""
    pauses: list[float] = []
    monkeypatch.setattr(pooch.core, "time", SimpleNamespace(sleep=pauses.append))
    return pauses
