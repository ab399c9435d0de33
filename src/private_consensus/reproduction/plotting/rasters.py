"""Pictures made small: a chart has few colours, which a palette of 256 keeps."""

from __future__ import annotations

import struct
import zlib

import numpy as np

SIGNATURE = b"\x89PNG\r\n\x1a\n"
COLOURS = 256
RGBA, PALETTE, SAME, LEFT = 6, 3, 0, 1
"""Codes of the format: two kinds of pixels, and rows kept as they are or as differences."""


EFFORT = 6
"""Of packing, up to 9, which takes seven times as long for a twelfth less."""


def compact(content: bytes, effort: int = EFFORT) -> bytes:
    """The same picture on white, its colours reduced to a palette.

    Parameters
    ----------
    content : bytes
        A PNG as ``vl_convert`` writes it: RGBA, 8 bits, each row as differences to the left pixel.
    effort : int
        Of packing, from 1 to 9.
    """
    colours, lengths, shape = runs_of(content)
    places, palette = reduced(on_white(colours), lengths)
    return written(np.repeat(places, lengths).reshape(shape), palette, effort)


def runs_of(content: bytes) -> tuple[np.ndarray, np.ndarray, tuple[int, int]]:
    """Red, green, blue and opacity of pixels that follow each other, row after row, of how many
    each is, and height and width.

    Of a chart nearly all pixels are as the one to their left, which is a difference of 0: what is
    summed is the others alone.
    """
    steps = _steps(content)
    height, width = steps.shape[:2]
    changed = steps.view(np.uint32)[..., 0] != 0
    changed[:, 0] = True
    first = np.flatnonzero(changed)
    sums = np.cumsum(steps.reshape(-1, 4)[first], axis=0, dtype=np.uint8)
    # A row begins anew: what the rows above it have come to is taken off again, modulo 256.
    ends = np.cumsum(np.count_nonzero(changed, axis=1))
    above = np.concatenate([np.zeros((1, 4), np.uint8), sums[ends[:-1] - 1]])
    colours = sums - above[first // width]
    return colours, np.diff(np.append(first, height * width)), (height, width)


def _steps(content: bytes) -> np.ndarray:
    """Compute the difference of each pixel to its left neighbour, modulo 256, (height, width,
    4).
    """
    header, packed = b"", b""
    for name, body in chunks(content):
        header = body if name == b"IHDR" else header
        packed += body if name == b"IDAT" else b""
    width, height, depth, kind = struct.unpack(">IIBB", header[:10])
    rows = np.frombuffer(zlib.decompress(packed), np.uint8).reshape(height, -1)
    filters = set(rows[:, 0].tolist())
    if (depth, kind) != (8, RGBA) or not filters <= {SAME, LEFT}:
        raise ValueError(f"found depth {depth}, kind {kind}, filters {sorted(filters)}")
    steps = np.ascontiguousarray(rows[:, 1:]).reshape(height, width, 4)
    same = np.flatnonzero(rows[:, 0] == SAME)
    steps[same, 1:] -= steps[same, :-1]
    return steps


def chunks(content: bytes):
    """Name and body of each part of a PNG."""
    position = len(SIGNATURE)
    while position < len(content):
        size, name = struct.unpack_from(">I4s", content, position)
        yield name, content[position + 8 : position + 8 + size]
        position += size + 12


def on_white(colours: np.ndarray) -> np.ndarray:
    """Red, green and blue of colours on a white ground."""
    if (colours[..., 3] == 255).all():
        return colours[..., :3]
    opacity = colours[..., 3:].astype(np.uint32)
    mixed = colours[..., :3] * opacity + 255 * (255 - opacity)
    return ((mixed + 127) // 255).astype(np.uint8)


def reduced(colours: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Reduce colours to a palette and return the palette index of each colour.

    Colours in one cell of 8 x 8 x 8 values are merged. The most frequent cells form the palette,
    each with the mean of its pixels. Other cells get the nearest palette colour.

    Parameters
    ----------
    colours : ndarray of uint8 [n, 3]
        Red, green and blue.
    lengths : ndarray of int [n]
        Number of pixels of each colour.

    Returns
    -------
    indices, palette : ndarray of uint8
        Indices [n] and colours [k, 3].
    """
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
    return places[cells], np.rint(means[kept]).astype(np.uint8)


def written(places: np.ndarray, palette: np.ndarray, effort: int) -> bytes:
    """Encode an indexed image as PNG.

    Parameters
    ----------
    places : ndarray of uint8 [height, width]
        Palette index of each pixel.
    palette : ndarray of uint8 [k, 3]
        Red, green and blue.
    effort : int
        Compression level of zlib.

    Returns
    -------
    bytes
    """
    height, width = places.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), places], axis=1).tobytes()
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, PALETTE, 0, 0, 0)),
        (b"PLTE", palette.tobytes()),
        (b"IDAT", zlib.compress(rows, effort)),
        (b"IEND", b""),
    ]
    return SIGNATURE + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in parts
    )
