"""Write documentation and published results as one static site, and check its links.

``python -m private_consensus.report.static results/docs results/site`` copies the
documentation, writes the report of ``results/reference``, and fails if a link is dead.
"""

import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from html import unescape
from pathlib import Path
from urllib.parse import unquote

from private_consensus.common.provenance import write_text
from private_consensus.common.readable import read_json
from private_consensus.reproduction.configuration.plan import load
from private_consensus.reproduction.configuration.schema import read_yaml

from .reading import REFERENCE, Results, read_results
from .site import write_site

REPORT, DOCS = f"{REFERENCE}/report", "docs"
"""Folders of the site."""
IGNORED = (".*", "_sources", "webpack-macros.html")
"""Files of the documentation that are not pages."""
LINK = re.compile(r'\b(?:href|src)="([^"]*)"')
NAME = re.compile(r'\b(?:id|name)="([^"]*)"')
REMOTE = re.compile(r"(?i)^(?:[a-z]+:|//)")
INDEX = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>private-consensus</title>
<meta http-equiv="refresh" content="0; url={report}/index.html"></head>
<body><p><a href="{report}/index.html">Report</a>, <a href="{docs}/index.html">documentation</a></p>
</body></html>
"""


def reference_results(root: Path) -> Results:
    """Read the published results of a repository.

    Figures and claims of the configuration that the reference does not contain are omitted, and
    settings of the reference that the configuration does not contain any more. Data and versions
    are those of the manifest.
    """
    folder = root / "results" / REFERENCE
    manifest = read_json(folder / "manifest.json")
    plan = load(read_yaml(root / "config" / "config.yaml"), root / "config")
    published = {path.stem for path in (folder / "data").glob("*.parquet")}
    figures = [name for name in plan.figures if name in published]
    tables = [name for name in plan.tables if name in published]
    papers = {name: paper.model_dump(mode="json") for name, paper in plan.papers.items()}
    for paper in papers.values():
        for kind in ("figures", "tables"):
            paper[kind] = {name: spec for name, spec in paper[kind].items() if name in published}
    described = {
        "papers": papers,
        "labels": {name: style.label for name, style in plan.styles.items()},
        "config": {"seed": manifest["seed"]},
    }
    files = {
        "claims": folder / "claims.parquet",
        "privacy": folder / "privacy.parquet",
        "numbers": [folder / "data" / f"{name}.parquet" for name in figures],
        "tables": [folder / "data" / f"{name}.parquet" for name in tables],
        "audit": sorted((folder / "audit").glob("*.parquet")),
        "statements": folder / "statements.parquet",
        "cards": (),
        "compared": sorted((folder / "comparison").glob("*.parquet")),
    }
    results = read_results(described, files, scale=manifest["scale"], commit=manifest["commit"])
    configured = {"", *plan.experiments}
    audits = [row for row in results.audit["audits"] if row["experiment"] in configured]
    return replace(
        results,
        claims=[row for row in results.claims if row["figure"] in published],
        privacy=[row for row in results.privacy if row["experiment"] in configured],
        audit={**results.audit, "audits": audits},
        cards=manifest["data"],
        versions=manifest["versions"],
        is_reference=True,
    )


def write_static(root: Path, documentation: Path, site: Path) -> None:
    """Write documentation, the HTML pages of ``make docs``, and reference report as one site.

    An existing site is replaced.
    """
    shutil.rmtree(site, ignore_errors=True)
    shutil.copytree(documentation, site / DOCS, ignore=shutil.ignore_patterns(*IGNORED))
    results = reference_results(root)
    published = root / "results" / REFERENCE
    write_site(results, published, site / REPORT)
    write_text(site / "index.html", INDEX.format(report=REPORT, docs=DOCS))


def dead_links(site: Path) -> Iterator[str]:
    """Yield each link whose target file, or whose target element in a page, does not exist."""
    texts = {file.resolve(): file.read_text(encoding="utf-8") for file in site.rglob("*.html")}
    names = {file: set(map(unescape, NAME.findall(text))) for file, text in texts.items()}
    for file, text in sorted(texts.items()):
        links = sorted(set(map(unescape, LINK.findall(text))))
        for link in (link for link in links if not REMOTE.match(link)):
            path, _, name = link.partition("#")
            target = (file.parent / unquote(path.partition("?")[0])).resolve() if path else file
            target = target / "index.html" if target.is_dir() else target
            has_name = not name or target not in names or unquote(name) in names[target]
            if not (target.is_file() and has_name):
                yield f"{file.relative_to(site.resolve())}: {link}"


def main() -> int:
    """Write the site, and print its dead links."""
    documentation, site = map(Path, sys.argv[1:])
    write_static(Path(), documentation, site)
    links = list(dead_links(site))
    print(*links, f"{len(links)} dead links", sep="\n")
    return 1 if links else 0


if __name__ == "__main__":
    sys.exit(main())
