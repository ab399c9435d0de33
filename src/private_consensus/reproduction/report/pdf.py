"""Typeset the report as PDF, with the content of the front page and of the papers."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from private_consensus.common.provenance import atomic_write

from .page import shared_content
from .reading import Results
from .views.verdicts import HEADINGS

TEMPLATE = "report.typ"


def write_pdf(results: Results, source: str | Path, path: str | Path) -> None:
    """Typeset the report as PDF; equal results of one commit give byte-identical files.

    Parameters
    ----------
    results : Results
        Results of one scale.
    source : path
        Folder of the scale, which contains the subfolder ``figures``.
    path : path
        Target file.
    """
    import typst

    content = as_text({**shared_content(results), "headings": HEADINGS})
    template = files("private_consensus.reproduction.report") / "templates" / TEMPLATE
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "figures").mkdir()
        for name in results.facts:
            shutil.copy(Path(source, "figures", f"{name}.svg"), folder / "figures")
        (folder / TEMPLATE).write_text(template.read_text(encoding="utf-8"), encoding="utf-8")
        (folder / "report.json").write_text(json.dumps(content), encoding="utf-8")
        typeset = typst.compile(str(folder / TEMPLATE), root=str(folder))
    with atomic_write(path) as temporary:
        temporary.write_bytes(typeset)


def as_text(content: Any) -> Any:
    """Convert all values of nested mappings and lists to text, so that none is read as markup."""
    if isinstance(content, Mapping):
        return {str(key): as_text(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [as_text(value) for value in content]
    return "" if content is None else str(content)
