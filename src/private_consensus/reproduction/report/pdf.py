"""Typeset the report as a PDF, from the same content as the pages."""

from __future__ import annotations

import json
import tempfile
from importlib.resources import files
from pathlib import Path
from typing import Any

from private_consensus.common.provenance import atomic_write

from .reading import Results
from .views.verdicts import HEADINGS

TEMPLATE = "report.typ"


def write_pdf(results: Results, made: str | Path, path: str | Path) -> None:
    """Typeset the report; equal results give equal bytes except for wall times and the commit.

    Parameters
    ----------
    made : path
        Folder with ``figures`` of this scale.
    """
    import typst

    made = Path(made)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "figures").mkdir()
        for name in results.facts:
            text = (made / "figures" / f"{name}.svg").read_text(encoding="utf-8")
            (folder / "figures" / f"{name}.svg").write_text(text, encoding="utf-8")
        template = files("private_consensus.reproduction.report") / "templates" / TEMPLATE
        (folder / TEMPLATE).write_text(template.read_text(encoding="utf-8"), encoding="utf-8")
        (folder / "report.json").write_text(json.dumps(content(results)), encoding="utf-8")
        typeset = typst.compile(str(folder / TEMPLATE), root=str(folder))
    with atomic_write(path) as part:
        part.write_bytes(typeset)


def content(results: Results) -> dict[str, Any]:
    """Return the content of the template as strings only, so that text from a configuration is
    never markup.
    """
    from .page import context

    found = context(results)
    names = {paper["key"]: paper["short"] for paper in found["papers"]}
    row = ("id", "claim", "verdict", "remark", "shown", "interval", "interval_holm", "short",
           "runs")  # fmt: skip
    promise = ("algorithm", "variant", "reading", "verdict", "count", "settings",
               "excess")  # fmt: skip
    return {
        "scale": found["scale"],
        "commit": found["commit"],
        "command": found["command"],
        "one_figure": found["one_figure"],
        "answer": found["answer"],
        "surrogates": "; ".join(found["surrogates"]),
        "counts": [{key: str(c[key]) for key in ("verdict", "count")} for c in found["counts"]],
        "scorecard": [
            {**{key: str(r[key]) for key in row}, "holm": "stands" if r["stands"] else "open",
             "paper": names[r["paper"]]}
            for r in found["scorecard"]
        ],
        "promises": [
            {"paper": names[r["paper"]], **{key: str(r[key]) for key in promise}}
            for r in found["promises"]
        ],
        "papers": [_paper(paper) for paper in found["papers"]],
    }  # fmt: skip


def _paper(paper: dict[str, Any]) -> dict[str, Any]:
    return {
        "title": f"{paper['short']} – {paper['title']}" if paper["number"] else paper["title"],
        "summary": paper.get("summary") or "",
        "outcome": [
            {"title": title, "claims": [r["claim"] for r in paper["outcome"][look]]}
            for look, title in HEADINGS.items()
        ],
        "choices": [{key: str(c[key]) for key in ("about", "literal", "resolved", "because")}
                    for c in paper["choices"]],
        "figures": [{key: str(f[key]) for key in
                     ("name", "heading", "caption", "alt", "source", "runs", "command")}
                    for f in paper["figures"]],
        "tables": [{"heading": t["heading"], "caption": t["caption"], "titles": list(t["titles"]),
                    "rows": [[str(cell) for cell in r] for r in t["rows"]]}
                   for t in paper["tables"]],
    }  # fmt: skip
