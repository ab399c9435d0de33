"""Small images inside a page."""

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
    """Encode an image as a data address."""
    return f"data:image/png;base64,{base64.b64encode(png(rows)).decode()}"


def png(rows: Sequence) -> bytes:
    """Encode grey values [height, width] or RGB values [height, width, 3], 0 to 255, as PNG.

    The image is not compressed, so that its bytes do not depend on the compressor.
    """
    pixels = np.asarray(rows, np.uint8)
    height, width = pixels.shape[:2]
    kind = GREY if pixels.ndim == 2 else COLOUR
    # Each row starts with the number of its filter; 0 is no filter.
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
