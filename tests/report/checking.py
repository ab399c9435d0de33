"""Check a report: sizes and lengths of pages, accessibility, readability of figures.

``python -m tests.report.checking results/paper`` lists the findings, and fails if there are any.
``--some`` checks one page of each kind and one figure per paper. Without a browser, only
sizes are checked.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from . import chromium

LARGEST_REPORT, LARGEST_PAGE = 40_000_000, 600_000
"""Largest sizes in bytes."""
LONGEST_PAGE = {1280: 8.0, 390: 20.0}
"""Largest length of a page before unfolding, in screens, by width of the window in pixels."""
WITHOUT_BROWSER = "No browser is installed: only sizes are checked. Install chromium."
SMALLEST_TEXT = 9.0
"""Pixels of a drawing that is shown at its own size."""
TOUCH = 1.5
"""Allowed overlap of the boxes of two texts, in pixels; boxes are higher than the letters."""
WINDOWS = ((1280, 900, "light"), (1280, 900, "dark"), (390, 844, "light"))

TIMEOUT_S = 300.0
"""Time limit for the accessibility rules of one page, in seconds."""
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
  return {
    frame: box(document.documentElement),
    texts: shown.map((one) => ({
      text: one.textContent, box: box(one), size: parseFloat(getComputedStyle(one).fontSize),
    })),
    marks: [...document.querySelectorAll('.role-mark.mark-symbol path')].map((one) => ({
      box: box(one), clipped: Boolean(one.closest('[clip-path]')),
    })),
  };
})()"""


def sizes(report: Path) -> Iterator[str]:
    """Yield a finding if the folder or a page has too many bytes."""
    total_bytes = sum(file.stat().st_size for file in report.rglob("*") if file.is_file())
    if total_bytes > LARGEST_REPORT:
        yield f"the report has {total_bytes / 1e6:.1f} MB, at most {LARGEST_REPORT / 1e6:.0f}"
    for page in sorted(report.rglob("*.html")):
        if (size := page.stat().st_size) > LARGEST_PAGE:
            name, limit = page.relative_to(report), LARGEST_PAGE / 1e3
            yield f"{name} has {size / 1e3:.0f} kB, at most {limit:.0f}"


def accessible(tab: chromium.Tab) -> Iterator[str]:
    """Yield the violations of the axe accessibility rules on the open page."""
    tab.value((files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8") + "; 0")
    with tab.patient(TIMEOUT_S):
        tab.value(RUN)
        tab.until("window.found")
    for rule in tab.value("window.found"):
        yield f"{rule['id']}: {rule['help']} ({rule['count']}, as {rule['first']})"


def readable(figure: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts of a figure that are small, cut or overlapping, and the cut marks."""
    min_x, top, right, bottom = figure["frame"]
    texts = figure["texts"]
    for text in texts:
        if text["size"] < SMALLEST_TEXT:
            yield f"{text['text']!r} has {text['size']:g} pixels"
        x, y, end, low = text["box"]
        if x < min_x - 1 or y < top - 1 or end > right + 1 or low > bottom + 1:
            yield f"{text['text']!r} is cut"
    for i, text in enumerate(texts):
        for later_text in texts[i + 1 :]:
            if _overlap(text["box"], later_text["box"]) > TOUCH:
                yield f"{text['text']!r} lies on {later_text['text']!r}"
    for mark in figure["marks"]:
        x, y, end, low = mark["box"]
        if mark["clipped"] or x < min_x or y < top or end > right or low > bottom:
            yield "a mark is cut"
            break


def _overlap(box: Iterable[float], other_box: Iterable[float]) -> float:
    """Return the smaller side of the intersection of two boxes."""
    (a, b, c, d), (e, f, g, h) = box, other_box
    return min(min(c, g) - max(a, e), min(d, h) - max(b, f))


def check(results: Path, *, sample: bool = False) -> list[str]:
    """Return all problems of the report of a scale."""
    report = results / "report"
    pages = sorted(report.rglob("*.html"))
    figures = sorted(file for file in (report / "figures").glob("*.svg"))
    windows = WINDOWS
    if sample:
        # The smallest page of each kind, and the front page.
        smallest = sorted(pages, key=lambda page: -page.stat().st_size)
        pages = [*{page.parent: page for page in smallest}.values(), report / "index.html"]
        first = {file.stem.partition("_")[0]: file for file in reversed(figures)}
        figures, windows = list(first.values()), WINDOWS[1:2]
    findings = list(sizes(report))
    if chromium.find() is None:
        print(WITHOUT_BROWSER, file=sys.stderr)
        return findings
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        chromium.browser(Path(folder) / "p") as tab,
    ):
        for width, height, scheme in windows:
            tab.look(width, height, scheme)
            for page in sorted(pages):
                tab.open(page)
                length = tab.value("document.documentElement.scrollHeight") / height
                name = page.relative_to(report).as_posix()
                if length > LONGEST_PAGE[width] and scheme == "light":
                    limit = f"at most {LONGEST_PAGE[width]:g}"
                    findings.append(f"{name}: {length:.1f} screens at {width} pixels, {limit}")
                location = f"{page.relative_to(report)}, {width} pixels, {scheme}"
                findings += [f"{location}: {line}" for line in accessible(tab)]
                if tab.value("document.documentElement.scrollWidth") > width:
                    findings.append(f"{location}: wider than the window")
        tab.look(1600, 900, "light")
        for figure in figures:
            tab.open(figure)
            drawn = tab.value(IN_A_FIGURE)
            findings += [f"{figure.stem}: {line}" for line in dict.fromkeys(readable(drawn))]
    return findings


def main() -> int:
    parser = argparse.ArgumentParser(description="Check a report, and list the findings.")
    parser.add_argument("results", type=Path, help="folder of a scale, such as results/paper")
    parser.add_argument("--some", action="store_true", help="a page per kind, a figure per paper")
    options = parser.parse_args()
    findings = check(options.results, sample=options.some)
    print(*findings, f"{len(findings)} findings", sep="\n")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
