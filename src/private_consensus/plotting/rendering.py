"""The renderer of specifications: this process's own, or one that has started long ago.

Vega's renderer takes longer to start than to draw a small figure, and its threads survive no fork,
so that jobs which are forks would start it one by one. A process that lives as long as the workflow
draws for all of them; where none is named, or it has ended, a process draws for itself. The drawing
is the same but for names that the renderer counts on from one to the next, see `theme.save`.
"""

from __future__ import annotations

import json
import os
import select
import socket
import time
from contextlib import suppress
from typing import Any, BinaryIO

from ..usage import took_elsewhere

RENDERER = "PRIVATE_CONSENSUS_RENDERER"
"""Variable with the address of a renderer that others share, a socket."""
HEAD = 8
"""Bytes that say how long a message is."""


def svg_of(specification: str) -> str:
    """Drawing of a Vega-Lite specification, which is JSON.

    Raises
    ------
    ValueError
        For what cannot be drawn, with the renderer's words.
    """
    address = os.environ.get(RENDERER)
    answer = _asked(address, specification) if address else None
    if answer is None:
        return _drawn(specification)
    took_elsewhere(answer["seconds"])
    if "error" in answer:
        raise ValueError(answer["error"])
    return answer["svg"]


def _drawn(specification: str) -> str:
    import vl_convert as vlc

    return vlc.vegalite_to_svg(specification)


def _asked(address: str, specification: str) -> dict[str, Any] | None:
    """The answer of a shared renderer; none of one that is not there, or ends before it answers."""
    with socket.socket(socket.AF_UNIX) as renderer, suppress(OSError, EOFError):
        renderer.connect(address)
        with renderer.makefile("rwb") as stream:
            _send(stream, specification.encode())
            return json.loads(_received(stream))
    return None


def serve(listener: socket.socket, end: Any) -> None:
    """Draw for whoever asks at a socket, until there is something to read at ``end``.

    Several processes may listen at one socket, which does not block: each takes what another has
    not taken yet.
    """
    while True:
        ready, _, _ = select.select([listener, end], [], [])
        if end in ready:
            return
        with suppress(OSError, EOFError):
            asker, _ = listener.accept()
            asker.setblocking(True)
            with asker, asker.makefile("rwb") as stream:
                _send(stream, json.dumps(_answer(_received(stream).decode())).encode())


def _answer(specification: str) -> dict[str, Any]:
    """The drawing, or what is wrong, and CPU seconds of all threads of this process."""
    begin = time.process_time()
    try:
        found = {"svg": _drawn(specification)}
    except ValueError as error:
        found = {"error": str(error)}
    return {**found, "seconds": time.process_time() - begin}


def _send(stream: BinaryIO, content: bytes) -> None:
    stream.write(len(content).to_bytes(HEAD, "big") + content)
    stream.flush()


def _received(stream: BinaryIO) -> bytes:
    size = int.from_bytes(_exactly(stream, HEAD), "big")
    return _exactly(stream, size)


def _exactly(stream: BinaryIO, size: int) -> bytes:
    content = stream.read(size)
    if len(content) < size:
        raise EOFError
    return content
