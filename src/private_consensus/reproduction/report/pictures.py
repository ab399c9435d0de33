"""Small pictures that stand in the page itself."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence

import numpy as np

SIGNATURE = b"\x89PNG\r\n\x1a\n"
GREY, COLOUR = 0, 2
"""Colour types of a PNG."""


def data_uri(rows: Sequence) -> str:
    """A picture as an address that holds it."""
    return f"data:image/png;base64,{base64.b64encode(png(rows)).decode()}"


def png(rows: Sequence) -> bytes:
    """A PNG of grey values ``[height, width]`` or RGB values ``[height, width, 3]``, 0 to 255.

    Not compressed: the bytes then do not depend on the compressor, and the pictures are small.
    """
    pixels = np.asarray(rows, np.uint8)
    height, width = pixels.shape[:2]
    kind = GREY if pixels.ndim == 2 else COLOUR
    # Each row begins with its filter: none.
    lines = np.column_stack([np.zeros(height, np.uint8), pixels.reshape(height, -1)])
    header = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    return SIGNATURE + b"".join(
        _chunk(name, content)
        for name, content in (
            (b"IHDR", header),
            (b"IDAT", zlib.compress(lines.tobytes(), level=0)),
            (b"IEND", b""),
        )
    )


def _chunk(name: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(name + content)
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", checksum)
