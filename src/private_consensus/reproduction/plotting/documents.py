"""PDFs that are always the same: the renderer puts fonts and references in random order."""

from __future__ import annotations

import itertools
import re

OBJECT = re.compile(rb"(\d+) 0 obj\n")
PLACE = re.compile(rb"(\d{10}) 00000 n")
FONT = b"\n  /Subtype /Type0\n"
"""In what a page calls a font; what this refers to follows it, and nothing else refers to that."""
PARTS = 5
"""Objects of a font: its name on the page, its widths, its shape, its letters, its file."""
NAME = re.compile(rb"/BaseFont /[A-Z]+\+(\S+)")
REFERENCES = re.compile(rb"<<\n((?:\s+/\w+ \d+ \d+ R\n)+)")


def settled(document: bytes) -> bytes:
    """The same PDF with fonts in alphabetical order, numbered anew, and references sorted.

    Parameters
    ----------
    document : bytes
        As ``vl_convert`` writes it: objects one after the other, a font's in a row, and a table of
        where each of them begins.
    """
    objects, table, end = _parts(document)
    fonts = [i for i, content in enumerate(objects) if FONT in content]
    groups = [objects[i : i + PARTS] for i in fonts]
    numbers = [[_number(content) for content in group] for group in groups]
    order = sorted(range(len(groups)), key=lambda i: NAME.search(groups[i][0])[1])
    for place, pool, chosen in zip(fonts, numbers, order, strict=True):
        # Pages know a font by the number of its first object, which it keeps.
        anew = dict(zip(numbers[chosen][1:], pool[1:], strict=True))
        objects[place : place + PARTS] = [_renumbered(part, anew) for part in groups[chosen]]
    return _written([REFERENCES.sub(_sorted, content) for content in objects], table, end)


def _parts(document: bytes) -> tuple[list[bytes], bytes, bytes]:
    """Split a PDF document into the text before its cross-reference table, cut at each object,
    the table, and the rest.
    """
    begin = int(document.rpartition(b"startxref\n")[2].split()[0])
    table, trailer, end = document[begin:].partition(b"trailer\n")
    places = sorted(int(place) for place in PLACE.findall(table))
    cuts = [0, *places, begin]
    objects = [document[a:b] for a, b in itertools.pairwise(cuts)]
    return objects, table, trailer + end


def _written(objects: list[bytes], table: bytes, end: bytes) -> bytes:
    places, position = {}, len(objects[0])
    for content in objects[1:]:
        places[_number(content)] = position
        position += len(content)
    numbers = iter(sorted(places))
    table = PLACE.sub(lambda _: b"%010d 00000 n" % places[next(numbers)], table)
    end = re.sub(rb"startxref\n\d+", b"startxref\n%d" % position, end)
    return b"".join([*objects, table, end])


def _number(content: bytes) -> int:
    return int(OBJECT.match(content)[1])


def _renumbered(content: bytes, anew: dict[int, int]) -> bytes:
    """An object with other numbers for what it is and for what it refers to; no stream is read."""
    head, stream, rest = content.partition(b"\nstream\n")
    told = lambda found: b"%d %s" % (anew.get(int(found[1]), int(found[1])), found[2])  # noqa: E731
    return re.sub(rb"\b(\d+) (0 (?:obj|R))\b", told, head) + stream + rest


def _sorted(found: re.Match[bytes]) -> bytes:
    return b"<<\n" + b"".join(sorted(found[1].splitlines(keepends=True)))
