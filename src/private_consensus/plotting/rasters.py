"""Pictures made small: a chart has few colours, which a palette of 256 keeps."""

from __future__ import annotations

import struct
import zlib

import numpy as np

SIGNATURE = b"\x89PNG\r\n\x1a\n"
COLOURS = 256
RGBA, PALETTE, SAME, LEFT = 6, 3, 0, 1
"""Codes of the format: two kinds of pixels, and rows kept as they are or as differences."""


def compact(content: bytes) -> bytes:
    """The same picture on white, its colours reduced to a palette.

    Parameters
    ----------
    content : bytes
        A PNG as ``vl_convert`` writes it: RGBA, 8 bits, each row as differences to the left pixel.
    """
    return written(*reduced(on_white(pixels(content))))


def pixels(content: bytes) -> np.ndarray:
    """Red, green, blue and opacity, (height, width, 4)."""
    header, packed = b"", b""
    for name, body in chunks(content):
        header = body if name == b"IHDR" else header
        packed += body if name == b"IDAT" else b""
    width, height, depth, kind = struct.unpack(">IIBB", header[:10])
    rows = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, -1)
    filters = set(rows[:, 0].tolist())
    if (depth, kind) != (8, RGBA) or not filters <= {SAME, LEFT}:
        raise ValueError(f"found depth {depth}, kind {kind}, filters {sorted(filters)}")
    found = rows[:, 1:].reshape(height, width, 4)
    summed = np.cumsum(found, axis=1, dtype=np.uint8)
    return np.where((rows[:, 0] == LEFT)[:, None, None], summed, found)


def chunks(content: bytes):
    """Name and body of each part of a PNG."""
    position = len(SIGNATURE)
    while position < len(content):
        size, name = struct.unpack_from(">I4s", content, position)
        yield name, content[position + 8 : position + 8 + size]
        position += size + 12


def on_white(picture: np.ndarray) -> np.ndarray:
    """Red, green and blue of a picture on a white ground."""
    if (picture[..., 3] == 255).all():
        return picture[..., :3]
    opacity = picture[..., 3:].astype(np.uint32)
    mixed = picture[..., :3] * opacity + 255 * (255 - opacity)
    return ((mixed + 127) // 255).astype(np.uint8)


def reduced(picture: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The place of each pixel's colour in a palette, and the palette.

    Colours of one cell of 8 x 8 x 8 are one; the most frequent cells stay, each with the mean of
    its pixels, and all others become the nearest of them.
    """
    colours, lengths = runs_of(picture)
    cells = (colours >> 3).astype(np.uint32) @ np.array([1024, 32, 1], np.uint32)
    counts, *sums = (
        np.bincount(cells, lengths * part, minlength=32768) for part in (1, *colours.T)
    )
    used = np.flatnonzero(counts)
    means = np.stack(sums, axis=1)[used] / counts[used, None]
    kept = np.argsort(-counts[used], kind="stable")[:COLOURS]
    distances = ((means[:, None, :] - means[None, kept, :]) ** 2).sum(axis=2)
    places = np.zeros(32768, np.uint8)
    places[used] = distances.argmin(axis=1)
    shown = np.repeat(places[cells], lengths).reshape(picture.shape[:2])
    return shown, np.rint(means[kept]).astype(np.uint8)


def runs_of(picture: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Colours of pixels that follow each other, a row after the other, and of how many each is."""
    flat = picture.reshape(-1, picture.shape[-1])
    codes = flat.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], np.uint32)
    first = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
    return flat[first], np.diff(np.r_[first, len(codes)])


def written(places: np.ndarray, palette: np.ndarray) -> bytes:
    """A PNG of places in a palette."""
    height, width = places.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), places], axis=1).tobytes()
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, PALETTE, 0, 0, 0)),
        (b"PLTE", palette.tobytes()),
        (b"IDAT", zlib.compress(rows, 9)),
        (b"IEND", b""),
    ]
    return SIGNATURE + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in parts
    )
