"""Pictures in the page, taken apart again."""

from __future__ import annotations

import base64
import struct
import zlib
from itertools import pairwise

import numpy as np
import pytest

from private_consensus.reproduction.report.pictures import SIGNATURE, data_uri, png

GREY = np.arange(28 * 28).reshape(28, 28) % 256
COLOUR = np.arange(4 * 5 * 3).reshape(4, 5, 3)


def chunks(content: bytes) -> dict[bytes, bytes]:
    """Chunks by name, each checked by its own checksum."""
    assert content.startswith(SIGNATURE)
    position, found = len(SIGNATURE), {}
    while position < len(content):
        size, name = struct.unpack_from(">I4s", content, position)
        body = content[position + 8 : position + 8 + size]
        assert struct.unpack_from(">I", content, position + 8 + size)[0] == zlib.crc32(name + body)
        found[name] = body
        position += size + 12
    return found


@pytest.mark.parametrize("pixels", [GREY, COLOUR, [[0]], [[[255, 0, 128]]]])
def test_what_is_written_can_be_read(pixels):
    pixels, found = np.asarray(pixels), chunks(png(pixels))
    assert list(found) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, depth, kind = struct.unpack(">IIBB", found[b"IHDR"][:10])
    assert (height, width, depth) == (*pixels.shape[:2], 8)
    assert kind == (0 if pixels.ndim == 2 else 2)
    lines = np.frombuffer(zlib.decompress(found[b"IDAT"]), np.uint8).reshape(height, -1)
    assert not lines[:, 0].any()
    assert lines[:, 1:].reshape(pixels.shape).tolist() == pixels.tolist()


def test_an_address_holds_the_picture():
    kind, _, content = data_uri(GREY.tolist()).partition(",")
    assert kind == "data:image/png;base64"
    assert base64.b64decode(content) == png(GREY)


def test_pixels_are_stored_as_they_are():
    """No compressor, so no version of one, has a say in the bytes."""
    written = png(COLOUR)
    places = [written.index(row.astype(np.uint8).tobytes()) for row in COLOUR]
    assert all(b - a == 5 * 3 + 1 for a, b in pairwise(places))
