"""Headless Chromium by its DevTools protocol, with the standard library only."""

import base64
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-port=0",
)  # fmt: skip
PATIENCE = 120.0


def find() -> str | None:
    """Return the path of an installed Chromium browser, or None."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next(filter(None, map(shutil.which, names)), None)


class Tab:
    """Browser page that receives commands over a websocket and records events."""

    def __init__(self, url: str):
        host, _, path = url.removeprefix("ws://").partition("/")
        name, _, port = host.partition(":")
        self._socket = socket.create_connection((name, int(port)), timeout=PATIENCE)
        self._read = self._socket.makefile("rb")
        key = base64.b64encode(os.urandom(16)).decode()
        self._socket.sendall(
            f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        while self._read.readline().strip():
            pass
        self._count = 0
        self._patience = PATIENCE
        self.events: list[dict[str, Any]] = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self(f"{domain}.enable")

    def __call__(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Run a command and wait for its answer."""
        self._count += 1
        self._send({"id": self._count, "method": method, "params": parameters})
        while True:
            message = self._receive()
            if message.get("id") == self._count:
                assert "error" not in message, message
                return message["result"]
            self.events.append(message)

    def value(self, expression: str) -> Any:
        """Return the value of a JavaScript expression, or of the promise that it returns."""
        response = self(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in response, response["exceptionDetails"]
        return response["result"].get("value")

    def until(self, expression: str) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + self._patience
        while not self._now(f"Boolean({expression})"):
            assert time.monotonic() < end, f"not within {self._patience} s: {expression}"
            time.sleep(0.05)

    @contextmanager
    def patient(self, seconds: float) -> Iterator[None]:
        """Extend the time limit of answers to ``seconds`` within the block."""
        self._socket.settimeout(seconds)
        self._patience = seconds
        try:
            yield
        finally:
            self._socket.settimeout(PATIENCE)
            self._patience = PATIENCE

    def _now(self, expression: str) -> bool:
        """Return True if a JavaScript expression is true; False while the page is navigating."""
        try:
            return self.value(expression)
        except AssertionError as error:
            if "navigated" not in str(error) and "context was destroyed" not in str(error):
                raise
            return False

    def look(self, width: int, height: int, scheme: str) -> None:
        """Set the window size and the colour scheme; a narrow window simulates a phone."""
        self("Emulation.setDeviceMetricsOverride", width=width, height=height,
             deviceScaleFactor=1, mobile=width < 600)  # fmt: skip
        self("Emulation.setEmulatedMedia",
             features=[{"name": "prefers-color-scheme", "value": scheme}])  # fmt: skip

    def open(self, file: Path) -> None:
        """Open a local file and wait until it is loaded."""
        self.events.clear()
        self("Page.navigate", url=file.resolve().as_uri())
        self.until("document.readyState === 'complete' && location.protocol === 'file:'")

    def complaints(self) -> list[str]:
        """Return errors of the console, of scripts and of resources that failed to load."""
        messages = []
        for event in self.events:
            parameters = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                messages.append(str(parameters["exceptionDetails"]))
            if parameters.get("type") in ("error", "warning", "assert") and "args" in parameters:
                messages.append(str(parameters["args"]))
            if event.get("method") == "Log.entryAdded":
                messages.append(str(parameters["entry"]))
        return messages

    def requested(self) -> list[str]:
        """Return the addresses that the page requested."""
        return [
            event["params"]["request"]["url"]
            for event in self.events
            if event.get("method") == "Network.requestWillBeSent"
        ]

    def _send(self, message: dict[str, Any]) -> None:
        data = json.dumps(message).encode()
        mask = os.urandom(4)
        size = len(data)
        head = struct.pack(
            "!BB", 0x81, 0x80 | (size if size < 126 else 126 if size < 65536 else 127)
        )
        if size >= 126:
            head += struct.pack("!H" if size < 65536 else "!Q", size)
        body = bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))
        self._socket.sendall(head + mask + body)

    def _receive(self) -> dict[str, Any]:
        text = b""
        while True:
            first, second = self._read.read(2)
            size = second & 0x7F
            if size >= 126:
                code, length = ("!H", 2) if size == 126 else ("!Q", 8)
                (size,) = struct.unpack(code, self._read.read(length))
            payload = self._read.read(size)
            if first & 0x0F in (0, 1, 2):
                text += payload
                if first & 0x80:
                    return json.loads(text)


@contextmanager
def browser(profile: Path) -> Iterator[Tab]:
    """Start a browser with one empty page and end it afterwards."""
    command = [find(), *FLAGS, f"--user-data-dir={profile}", "about:blank"]
    with open(profile.parent / "chromium.log", "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        yield Tab(_page_of(profile))
    finally:
        process.terminate()
        process.wait(PATIENCE)
        with suppress(ProcessLookupError):  # its children may write to the profile for longer
            os.killpg(process.pid, signal.SIGKILL)


def _page_of(profile: Path) -> str:
    ready = profile / "DevToolsActivePort"
    end = time.monotonic() + PATIENCE
    while True:
        assert time.monotonic() < end, "the browser did not start"
        lines = ready.read_text().split() if ready.exists() else []
        if lines:
            address = f"http://127.0.0.1:{lines[0]}/json/list"
            try:
                opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
                with opener.open(address, timeout=5) as answer:
                    pages = [page for page in json.load(answer) if page["type"] == "page"]
                if pages:
                    return pages[0]["webSocketDebuggerUrl"]
            except OSError:
                pass
        time.sleep(0.1)
