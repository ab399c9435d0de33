"""Convert the Markdown of the pages of ``docs/`` to HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import escape

from markupsafe import Markup

from .algorithms import inline as _docstring_inline


def title(text: str) -> str:
    """Return the first heading; empty without headings."""
    found = re.search(r"^# (.+)$", text, re.M)
    return found[1] if found else ""


def titles(documents: Mapping[str, str]) -> dict[str, str]:
    """Map the names of pages to their titles."""
    return {name: title(text) or name for name, text in documents.items()}


def html(text: str) -> Markup:
    """Convert headings, paragraphs, lists, tables and code; show all other text unchanged."""
    return Markup("\n".join(_block(*part) for part in _blocks(text)))


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield code blocks, and blocks of lines between empty lines."""
    for position, part in enumerate(re.split(r"^```.*$\n?", text, flags=re.M)):
        if position % 2:
            yield "code", part
        else:
            yield from (("text", block) for block in re.split(r"\n\s*\n", part) if block.strip())


def _block(kind: str, text: str) -> str:
    if kind == "code" or text.startswith("    "):
        return f'<pre tabindex="0">{escape(text.rstrip())}</pre>'
    lines = text.strip("\n").splitlines()
    if heading := re.match(r"(#{1,4}) (.+)", lines[0]):
        level = len(heading[1])
        rest = "\n".join(lines[1:])
        return f"<h{level}>{inline(heading[2])}</h{level}>" + (
            _block("text", rest) if rest.strip() else ""
        )
    if lines[0].startswith("|") and len(lines) > 1:
        return _table(lines)
    if re.match(r"[-*] |\d+\. ", lines[0]):
        items = re.split(r"^(?:[-*] |\d+\. )", text, flags=re.M)[1:]
        return "<ul>" + "".join(f"<li>{inline(item)}</li>" for item in items) + "</ul>"
    return f"<p>{inline(text)}</p>"


def _table(lines: list[str]) -> str:
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines]
    head = "".join(f'<th scope="col">{inline(cell)}</th>' for cell in rows[0])
    body = "".join(
        "<tr>" + "".join(f"<td>{inline(cell)}</td>" for cell in row) + "</tr>" for row in rows[2:]
    )
    return (
        '<div class="scroll" tabindex="0" role="group" aria-label="table"><table class="dense">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def inline(text: str) -> str:
    """Code and emphasis; links to files of the repository keep their words only."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = _docstring_inline(re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", text))
    return re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", text)
