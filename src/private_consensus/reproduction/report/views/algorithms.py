"""One page per algorithm: its documentation with typeset formulas, and its privacy."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

from latex2mathml.converter import convert
from markupsafe import Markup

from private_consensus.core import algorithms

from ...experiments.citations import cited
from ..names import called
from ..reading import Results
from .figures import short
from .privacy import of_algorithm

ARG = re.compile(r"\\arg(?![a-z])")
"""LaTeX command that the converter does not support."""
MATH = re.compile(r":math:`([^`]+)`", re.S)
CODE = re.compile(r"``([^`]+)``")
ROLE = re.compile(r":\w+:`~?([^`]+)`")


def algorithm(name: str) -> dict[str, Any]:
    """Collect the content of an algorithm's page."""
    built = algorithms.load(name)
    module = sys.modules[built.__module__]
    return {
        "name": name,
        "title": called(name),
        "intro": prose(inspect.getdoc(module) or ""),
        "about": prose(_own_doc(built)),
        "source": getattr(built, "source", ""),
        "relation": _relation(built),
        "parameters": [
            {"name": field.name, "default": _default(field)} for field in dataclasses.fields(built)
        ] if dataclasses.is_dataclass(built) else [],
        "module": built.__module__.replace(".", "/") + ".py",
        "code": inspect.getsource(module),
    }  # fmt: skip


def known() -> list[str]:
    """Names that the registry resolves."""
    return algorithms.names()


def pages(used: Iterable[str], results: Results) -> list[dict[str, Any]]:
    """Return the pages of algorithms in alphabetical order, with delivered privacy and figures.

    Parameters
    ----------
    used : iterable of str
        Names of algorithms; unknown names are ignored.
    results : Results
        Results of one scale.

    Returns
    -------
    list of dict
        One dictionary of template variables per algorithm.
    """
    known = set(algorithms.names())
    return [
        {
            **algorithm(name),
            "promises": of_algorithm(name, results.privacy, results.papers),
            "figures": figures_with(name, results.papers),
        }
        for name in sorted(set(used) & known)
    ]


def figures_with(name: str, papers: Mapping[str, Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return the figures that have a curve of an algorithm.

    Parameters
    ----------
    name : str
        Name of the algorithm.
    papers : mapping
        Key to paper, with its figures.

    Returns
    -------
    list of dict
        Key and citation of the paper, name and title of each figure.
    """
    return [
        {"paper": key, "name": figure, "title": short(spec["title"], paper["paper"]["number"]),
         "cited": cited(paper["paper"])}
        for key, paper in papers.items()
        for figure, spec in paper["figures"].items()
        if any(curve["method"] == name for panel in spec["panels"] for curve in panel["curves"])
    ]  # fmt: skip


def _own_doc(built: type) -> str:
    """Return the docstring of the class itself, without those of its base classes."""
    return inspect.cleandoc(built.__dict__.get("__doc__") or "")


def _relation(built: type) -> str:
    try:
        return str(built().relation)
    except Exception:  # one that cannot be made without parameters keeps its relation to itself
        return str(getattr(built, "relation", ""))


def _default(field: dataclasses.Field) -> str:
    return "required" if field.default is dataclasses.MISSING else repr(field.default)


def prose(text: str) -> Markup:
    """Convert a docstring to HTML: paragraphs, formulas, code, and lists of parameters.

    Only the markup of these docstrings is converted; all other text is shown unchanged.
    """
    parts = [_block(block) for block in re.split(r"\n\s*\n", text.strip()) if block.strip()]
    return Markup("\n".join(parts))


def _block(block: str) -> str:
    lines = block.splitlines()
    if lines[0].strip().startswith(".. math::"):
        first = lines[0].strip().removeprefix(".. math::")
        inside = [line.strip() for line in lines[1:]]
        return _displayed(" ".join([first, *inside]))
    if len(lines) > 1 and re.fullmatch(r"\s*-{3,}\s*", lines[1]):
        rest = "\n".join(lines[2:])
        return f"<h3>{escape(lines[0].strip())}</h3>\n{_definitions(rest)}"
    for place, line in enumerate(lines):
        if line.strip().startswith(".. math::"):
            return _block("\n".join(lines[:place])) + _block("\n".join(lines[place:]))
    if lines[0].startswith("    "):
        return _displayed(" ".join(line.strip() for line in lines)) if "\\" in block else (
            f'<pre tabindex="0">{escape(inspect.cleandoc(block))}</pre>'
        )  # fmt: skip
    return f"<p>{inline(block)}</p>"


def _definitions(text: str) -> str:
    rows: list[list[str]] = []
    for line in text.splitlines():
        if line.startswith(" ") and rows:
            rows[-1][1] += f" {line.strip()}"
        else:
            rows.append([line, ""])
    return "<dl>" + "".join(
        f"<dt>{inline(name)}</dt><dd>{inline(meaning)}</dd>" for name, meaning in rows
    ) + "</dl>"  # fmt: skip


def inline(text: str) -> str:
    """Convert formulas and code of a paragraph to HTML, and escape the other text."""
    found: list[str] = []

    def keep(html: str) -> str:
        found.append(html)
        return f"\0{len(found) - 1}\0"

    text = MATH.sub(lambda m: keep(formula(m[1])), text)
    text = CODE.sub(lambda m: keep(f"<code>{escape(m[1])}</code>"), text)
    text = ROLE.sub(lambda m: keep(f"<code>{escape(m[1].rpartition('.')[2])}</code>"), text)
    return re.sub(r"\0(\d+)\0", lambda m: found[int(m[1])], escape(text))


def formula(latex: str, display: str = "inline") -> str:
    """Convert LaTeX to MathML, or return the LaTeX as code if that fails.

    Parameters
    ----------
    latex : str
        Formula without delimiters.
    display : {"inline", "block"}
        Display mode of the formula.

    Returns
    -------
    str
        HTML.
    """
    try:
        return convert(ARG.sub(r"\\mathrm{arg}", " ".join(latex.split())), display=display)
    except Exception:  # the converter names no errors of its own for every input
        return f"<code>{escape(latex)}</code>"


def _displayed(latex: str) -> str:
    lines = [part.replace("&", " ") for part in re.split(r"\\\\(?:\[[^\]]*\])?", latex)]
    if "\\begin" in latex:
        lines = [latex]
    return "".join(
        f'<div class="formula" tabindex="0" role="group" aria-label="formula">'
        f"{formula(line, 'block')}</div>"
        for line in lines
        if line.strip()
    )
