"""Connection timeouts: one budget of seconds for all hosts that do not answer.

What was spent is noted beside the cache for a minute, so that five data sets acquired one after
the other by five processes still wait once, not five times.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from private_consensus.common.errors import require
from private_consensus.common.provenance import write_json
from private_consensus.common.secrets import redacted

MEMORY = 60.0
"""Seconds after which time spent on a silent host is forgotten."""

CONNECTION_TIMEOUT = 3.0
"""Seconds that one host may take to accept a connection."""


class Unavailable(Exception):
    """Error of one download source, with the reason; the next source may be available.

    It ends in provenance, data cards and the report, and is free of secrets for that.
    """

    def __init__(self, reason: object):
        super().__init__(redacted(str(reason)))


class Patience:
    """A budget of seconds for unreachable hosts.

    Parameters
    ----------
    seconds : float
        What there is to spend, over all hosts.
    state_file : path, optional
        File that remembers what other processes spent in the last minute.
    """

    def __init__(self, seconds: float, state_file: Path | None = None):
        require(seconds >= 0, "data.patience", seconds, "a number of seconds >= 0")
        self.seconds, self.state_file = seconds, state_file
        self._spent = _read(state_file)
        self._silent: set[tuple[str, int]] = set()

    @property
    def left(self) -> float:
        """Seconds that may still be spent."""
        now = time.time()
        return max(0.0, self.seconds - sum(s for at, s in self._spent if abs(now - at) < MEMORY))

    def charge(self, seconds: float) -> None:
        """Note seconds spent in vain."""
        self._spent.append((time.time(), seconds))
        if self.state_file is not None:
            write_json(self.state_file, self._spent)

    @contextmanager
    def charged_on_failure(self) -> Iterator[None]:
        """Charge the block's duration if it raises."""
        start = time.monotonic()
        try:
            yield
        except BaseException:
            self.charge(time.monotonic() - start)
            raise

    def sleep(self, seconds: float) -> None:
        """Wait before another try, out of the same budget."""
        seconds = min(seconds, self.left)
        time.sleep(seconds)
        self.charge(seconds)

    def check_reachable(self, url: str) -> None:
        """Raise :class:`Unavailable` unless the host of ``url`` accepts a connection in time."""
        address = address_of(url)
        if address in self._silent:
            raise Unavailable(f"{address[0]} did not answer before")
        if self.left <= 0:
            raise Unavailable(f"{self.seconds:g} s were already spent on hosts that do not answer")
        try:
            with self.charged_on_failure():
                _connect(address, min(self.left, CONNECTION_TIMEOUT))
        except OSError as error:
            self._silent.add(address)
            raise Unavailable(f"{address[0]} cannot be reached ({_reason(error)})") from None


def address_of(url: str) -> tuple[str, int]:
    """Host and port that a request for ``url`` really connects to: a proxy's, where one is set."""
    address = urlsplit(url)
    host = address.hostname or ""
    proxy = getproxies().get(address.scheme)
    if proxy and not proxy_bypass(host):
        address = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    return address.hostname or "", address.port or (443 if address.scheme == "https" else 80)


def _connect(address: tuple[str, int], timeout: float) -> None:
    # The name service has no timeout of its own, hence the thread.
    outcome: list[OSError | None] = []

    def attempt() -> None:
        try:
            socket.create_connection(address, timeout).close()
            outcome.append(None)
        except OSError as error:
            outcome.append(error)

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(timeout)
    if not outcome:
        raise TimeoutError(f"no answer within {timeout:.1f} s")
    if outcome[0] is not None:
        raise outcome[0]


def _reason(error: OSError) -> str:
    return error.strerror or str(error) or type(error).__name__


def _read(state_file: Path | None) -> list[tuple[float, float]]:
    try:
        return [
            (float(at), float(s)) for at, s in json.loads(state_file.read_text(encoding="utf-8"))
        ]
    except (AttributeError, OSError, ValueError, TypeError):
        return []
