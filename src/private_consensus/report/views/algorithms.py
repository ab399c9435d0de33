"""Pages of algorithms: documentation with typeset formulas, privacy, and figures."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys

from docutils import nodes
from docutils.core import publish_parts
from docutils.parsers.rst.roles import register_local_role
from markupsafe import Markup

from private_consensus.core import algorithms
from private_consensus.core.algorithms.base import Algorithm

from ..names import algorithm_title, short_title
from ..reading import Results
from .privacy import variant_rows

SETTINGS = {
    "file_insertion_enabled": False,
    "halt_level": 5,
    "initial_header_level": 3,
    "doctitle_xform": False,
    "math_output": "MathML",
    "raw_enabled": False,
    "report_level": 5,
    "syntax_highlight": "none",
}
"""Settings of docutils: a text cannot load files, and warnings are not part of the page."""
FORMULA = re.compile(r"<math\b.*?</math>", re.S)
TAGS = {
    r"<div>\n(?=<math)": '<div class="formula" tabindex="0" role="group" aria-label="formula">',
    r"<pre ": '<pre tabindex="0" ',
    r'<span class="docutils literal">(.*?)</span>': r"<code>\1</code>",
    r'<span class="classifier">': ' : <span class="classifier">',
    r' id="[^"]*"': "",
}
"""Pattern of a tag of docutils to its replacement: code is marked, identifiers are removed, and
elements that may be wider than a screen can be scrolled with the keyboard."""


def algorithm(name: str) -> dict[str, object]:
    """Collect the content of the page of an algorithm, without results."""
    algorithm_class = algorithms.load(name)
    module = sys.modules[algorithm_class.__module__]
    return {
        "name": name,
        "title": algorithm_title(name),
        "intro": prose(inspect.getdoc(module) or ""),
        # The docstring of the class itself, without those of its base classes.
        "about": prose(inspect.cleandoc(algorithm_class.__dict__.get("__doc__") or "")),
        "source": algorithm_class.source,
        "relation": _relation(algorithm_class),
        "parameters": [
            {"name": field.name, "default": _default(field)}
            for field in dataclasses.fields(algorithm_class)
        ],
        "module": algorithm_class.__module__.replace(".", "/") + ".py",
        "code": inspect.getsource(module),
    }  # fmt: skip


def page(name: str, results: Results) -> dict[str, object]:
    """Collect the content of the page of an algorithm, with delivered privacy and figures."""
    return {
        **algorithm(name),
        "privacy": [row for row in variant_rows(results) if row["name"] == name],
        "figures": figures_with(name, results),
    }


def figures_with(name: str, results: Results) -> list[dict[str, str]]:
    """List key of the paper, name and title of the figures that show an algorithm."""
    return [
        {"paper": key, "name": figure,
         "title": short_title(spec["title"], paper["paper"]["number"])}
        for key, paper in results.papers.items()
        for figure, spec in paper["figures"].items()
        if any(curve["method"] == name for panel in spec["panels"] for curve in panel["curves"])
    ]  # fmt: skip


def _relation(algorithm_class: type[Algorithm]) -> str:
    try:
        return str(algorithm_class().relation)
    except Exception:  # the algorithm has parameters without a default
        return str(algorithm_class.relation)


def _default(field: dataclasses.Field) -> str:
    return "required" if field.default is dataclasses.MISSING else repr(field.default)


def prose(text: str) -> Markup:
    """Convert a docstring to HTML with formulas as MathML; HTML in the docstring is escaped."""
    body = publish_parts(text, writer="html5", settings_overrides=SETTINGS)["body"]
    body = FORMULA.sub(lambda match: re.sub(r"\n\s*", "", match[0]), body)
    for pattern, tag in TAGS.items():
        body = re.sub(pattern, tag, body)
    return Markup(body)


def _code(role, rawtext, text, *_args) -> tuple[list[nodes.Node], list[nodes.Node]]:
    """Convert a reference such as ``:func:`.account``` to the name of its target, as code."""
    return [nodes.literal(rawtext, text.removeprefix("~").rpartition(".")[2])], []


for _role in ("attr", "class", "data", "exc", "func", "meth", "mod"):
    register_local_role(_role, _code)
