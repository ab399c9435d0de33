"""A report as a reader meets it: how large it is, whether everyone can use it, whether its figures
can be read.

``python -m tests.report.checking results/paper`` says what is wrong, and fails if anything is;
``--some`` looks at a page of each kind and a figure of each paper.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from private_consensus.reproduction.plotting.symbols import typeset

from . import chromium

LARGEST_REPORT, LARGEST_PAGE = 40_000_000, 500_000
"""Bytes."""
SMALLEST_TEXT = 9.0
"""Pixels of a drawing that is shown at its own size."""
TOUCH = 1.5
"""Pixels by which the boxes of two texts may overlap: they are higher than their letters."""
LOOKS = ((1280, 900, "light"), (1280, 900, "dark"), (390, 844, "light"))
MARK = " †"

PATIENCE = 300.0
"""Seconds for the rules of one page."""
RUN = """window.found = null;
// Rows of a table and items of a list are alike: of each some are enough.
for (const many of document.querySelectorAll('tbody, main ul, main dl')) {
  for (const one of [...many.children].slice(12)) one.remove();
}
axe.run(document, {resultTypes: ['violations']}).then(({ violations }) => {
  window.found = violations.map(({ id, help, nodes }) => (
    { id, help, count: nodes.length, first: String(nodes[0].target[0]) }));
}); 0"""

IN_A_FIGURE = """(() => {
  const box = (one) => {
    const { left, top, right, bottom } = one.getBoundingClientRect();
    return [left, top, right, bottom];
  };
  const shown = [...document.querySelectorAll('text')].filter((one) => one.textContent.trim()
    && getComputedStyle(one).opacity !== '0');
  const entries = [...document.querySelectorAll('.role-legend-entry .role-scope > g > g')];
  return {
    frame: box(document.documentElement),
    texts: shown.map((one) => ({
      text: one.textContent, box: box(one), size: parseFloat(getComputedStyle(one).fontSize),
    })),
    marks: [...document.querySelectorAll('.role-mark.mark-symbol path')].map((one) => ({
      box: box(one), clipped: Boolean(one.closest('[clip-path]')),
    })),
    names: entries.flatMap((one) => {
      const symbol = one.querySelector('.role-legend-symbol path');
      const label = one.querySelector('.role-legend-label text');
      return symbol && label ? [{
        name: label.textContent,
        look: `${symbol.getAttribute('stroke')} ${symbol.getAttribute('stroke-dasharray') ?? ''}`,
      }] : [];
    }),
  };
})()"""


def sizes(report: Path) -> Iterator[str]:
    """Of the folder, and of each page."""
    whole = sum(file.stat().st_size for file in report.rglob("*") if file.is_file())
    if whole > LARGEST_REPORT:
        yield f"the report has {whole / 1e6:.1f} MB, at most {LARGEST_REPORT / 1e6:.0f}"
    for page in sorted(report.rglob("*.html")):
        if (size := page.stat().st_size) > LARGEST_PAGE:
            yield f"{page.relative_to(report)} has {size / 1e3:.0f} kB, at most 500"


def accessible(tab: chromium.Tab) -> Iterator[str]:
    """What the rules of axe find on the page that is open."""
    tab.value((files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8") + "; 0")
    with tab.patient(PATIENCE):
        tab.value(RUN)
        tab.until("window.found")
    for rule in tab.value("window.found"):
        yield f"{rule['id']}: {rule['help']} ({rule['count']}, as {rule['first']})"


def readable(figure: Mapping[str, Any]) -> Iterator[str]:
    """Of what :data:`IN_A_FIGURE` finds: texts that are small, cut or on each other; cut marks."""
    left, top, right, bottom = figure["frame"]
    texts = figure["texts"]
    for one in texts:
        if one["size"] < SMALLEST_TEXT:
            yield f"{one['text']!r} has {one['size']:g} pixels"
        x, y, end, low = one["box"]
        if x < left - 1 or y < top - 1 or end > right + 1 or low > bottom + 1:
            yield f"{one['text']!r} is cut"
    for i, one in enumerate(texts):
        for other in texts[i + 1 :]:
            if _overlap(one["box"], other["box"]) > TOUCH:
                yield f"{one['text']!r} lies on {other['text']!r}"
    for mark in figure["marks"]:
        x, y, end, low = mark["box"]
        if mark["clipped"] or x < left or y < top or end > right or low > bottom:
            yield "a mark is cut"
            break


def _overlap(one: Iterable[float], other: Iterable[float]) -> float:
    """The smaller side of what two boxes have in common."""
    (a, b, c, d), (e, f, g, h) = one, other
    return min(min(c, g) - max(a, e), min(d, h) - max(b, f))


def unlike(names: Mapping[str, Iterable[Mapping[str, str]]], methods: Iterable[str]) -> list[str]:
    """Methods that do not have one colour and dash in all figures."""
    known = {typeset(method) for method in methods}
    seen: dict[str, dict[str, str]] = {}
    for figure, entries in names.items():
        for entry in entries:
            name = entry["name"].removesuffix(MARK)
            if name in known:
                seen.setdefault(name, {}).setdefault(entry["look"], figure)
    return [f"{name} looks otherwise in {', '.join(looks.values())}"
            for name, looks in seen.items() if len(looks) > 1]  # fmt: skip


def check(results: Path, *, some: bool = False) -> list[str]:
    """All that is wrong with the report of a scale."""
    report = results / "report"
    pages = sorted(report.rglob("*.html"))
    figures = sorted(file for file in (report / "figures").glob("*.svg"))
    looks = LOOKS
    if some:
        # The shortest of each kind.
        smallest = sorted(pages, key=lambda page: -page.stat().st_size)
        pages = [*{page.parent: page for page in smallest}.values(), report / "index.html"]
        first = {file.stem.partition("_")[0]: file for file in reversed(figures)}
        figures, looks = list(first.values()), LOOKS[1:2]
    found = list(sizes(report))
    if chromium.find() is None:
        print("no browser is installed: pages and figures are not looked at", file=sys.stderr)
        return found
    labels = json.loads((results / "plan.json").read_text(encoding="utf-8"))["labels"]
    names: dict[str, list[dict[str, str]]] = {}
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        chromium.browser(Path(folder) / "p") as tab,
    ):
        for width, height, scheme in looks:
            tab.look(width, height, scheme)
            for page in sorted(pages):
                tab.open(page)
                place = f"{page.relative_to(report)}, {width} pixels, {scheme}"
                found += [f"{place}: {line}" for line in accessible(tab)]
                if tab.value("document.documentElement.scrollWidth") > width:
                    found.append(f"{place}: wider than the window")
        tab.look(1600, 900, "light")
        for figure in figures:
            tab.open(figure)
            drawn = tab.value(IN_A_FIGURE)
            names[figure.stem] = drawn["names"]
            found += [f"{figure.stem}: {line}" for line in dict.fromkeys(readable(drawn))]
    return found + unlike(names, labels.values())


def main() -> int:
    parser = argparse.ArgumentParser(description="What is wrong with a report.")
    parser.add_argument("results", type=Path, help="folder of a scale, such as results/paper")
    parser.add_argument("--some", action="store_true", help="a page of each kind, a figure a paper")
    options = parser.parse_args()
    found = check(options.results, some=options.some)
    print(*found, f"{len(found)} findings", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
