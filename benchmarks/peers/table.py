"""The table and the plot of what was measured of peers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .. import measuring

KEPT = measuring.ROOT / "benchmarks" / "measured" / "peers.jsonl"
PLOT = measuring.ROOT / "docs" / "images" / "peers.svg"
PARTS = ("local_problems", "clipping", "normals", "accounting")
ABSENT = {"decent-bench": ("whole iterations", ": it requires Python 3.13")}
"""What a peer would be measured for, and what is known to stand against it."""


def pages(kept: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The table of what was measured, and who is missing."""
    last = kept[-1]
    versions = ", ".join(f"{name} {version}" for name, version in last["versions"].items())
    yield f"{last['day']}, one core of {last['machine']}; {versions}."
    if last["missing"]:
        yield f"Could not be installed here, and so not measured: {', '.join(last['missing'])}."
    yield ""
    head = ["what", "peer", "ours", "peer's", "peer's / ours", "results", ""]
    absent = [_absent(name) for name in last["missing"]]
    yield from measuring.rows(head, *map(_row, lines_of(kept)), *absent)
    yield f"\n![Time of peers over ours](../images/{PLOT.name})"


def lines_of(kept: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Lines of all parts, in the order of parts."""
    of = {part["part"]: part["lines"] for part in kept}
    return [line for part in PARTS for line in of.get(part, ())]


def _absent(peer: str) -> list[str]:
    what, why = ABSENT.get(peer, ("", ""))
    return [what, peer, "", "", "", "not measured", f"cannot be installed here{why}"]


def _row(line: Mapping[str, Any]) -> list[str]:
    ratio = f"{line['ratio']:.2g}" if line["ratio"] < 100 else f"{line['ratio']:,.0f}"
    least = "> " if line.get("longer") else ""
    ours, theirs = (spelled(line[key]) for key in ("ours", "theirs"))
    what = [line["what"], line["peer"], ours, least + theirs, least + ratio]
    return [*what, line["same"], line["note"]]


def spelled(seconds: float) -> str:
    """A time with its unit."""
    units = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))
    unit, size = next((pair for pair in units if seconds >= pair[1]), units[-1])
    return f"{seconds / size:.3g} {unit}"


def write_page() -> None:
    """Table and plot."""
    from ..plots import ratio_plot, write

    kept = measuring.read(KEPT)
    measuring.replace_page("peers", "\n".join(pages(kept)) + "\n", measuring.PEERS_PAGE)
    write(ratio_plot(lines_of(kept)), PLOT)
