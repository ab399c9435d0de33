"""Convert the Markdown pages of ``docs/`` to HTML."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape

from markdown_it import MarkdownIt
from markupsafe import Markup

TABLE = '<div class="scroll" tabindex="0" role="group" aria-label="table"><table class="dense">\n'
TAGS = {
    "table_open": TABLE,
    "table_close": "</table></div>\n",
    "th_open": '<th scope="col">',
    # The report does not contain the targets of links; only their text is shown.
    "link_open": "",
    "link_close": "",
}
"""HTML of the elements whose default rendering is replaced."""


def title(text: str) -> str:
    """Return the first heading of a Markdown text; empty without headings."""
    heading = re.search(r"^# (.+)$", text, re.M)
    return heading[1] if heading else ""


def titles(documents: Mapping[str, str]) -> dict[str, str]:
    """Map the name of each page to its title; a page without a heading is called by its name."""
    return {name: title(text) or name for name, text in documents.items()}


def html(text: str) -> Markup:
    """Convert Markdown with tables to HTML; HTML in the Markdown is escaped."""
    return Markup(_converter().render(text))


def _converter() -> MarkdownIt:
    converter = MarkdownIt("commonmark", {"html": False}).enable("table")
    for name, tag in TAGS.items():
        converter.add_render_rule(name, lambda *_, tag=tag: tag)
    for name in ("fence", "code_block"):
        converter.add_render_rule(name, _code)
    converter.add_render_rule("image", lambda _, tokens, index, *__: escape(tokens[index].content))
    return converter


def _code(_, tokens, index: int, *__) -> str:
    return f'<pre tabindex="0">{escape(tokens[index].content.rstrip())}</pre>\n'
