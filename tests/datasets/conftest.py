"""Local HTTP server in place of a publisher, with configurable failures."""

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


@dataclass
class Publisher:
    """Server with files by path, and per path the failures of the next requests, in order.

    Faults: an HTTP status; ``("cut", n)`` ends after n bytes; ``("stall", s)`` waits s seconds.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    faults: dict[str, list] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    url: str = ""

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        path = handler.path
        self.requests.append(path)
        fault = self.faults[path].pop(0) if self.faults.get(path) else None
        kind, amount = fault if isinstance(fault, tuple) else (None, None)
        status = fault if isinstance(fault, int) else 200 if path in self.files else 404
        body = self.files[path] if status == 200 else b""
        if kind == "stall":
            time.sleep(amount)
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body[:amount] if kind == "cut" else body)


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
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def mirror_path() -> str:
    """Return the mirror that the environment of the test run names."""
    if not MIRROR:
        pytest.skip(f"compares with real data: set {MIRROR_VARIABLE} to a mirror")
    return MIRROR


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait between tries."""
    monkeypatch.setattr(pooch.core, "time", SimpleNamespace(sleep=lambda seconds: None))
