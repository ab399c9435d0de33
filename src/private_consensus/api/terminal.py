"""Format docstrings for a terminal: formulas as Unicode symbols, names without markup."""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
from typing import Any

from private_consensus.common.symbols import LOWERED, RAISED, SIGNS

TYPED = {r"\arg\min": r"\text{arg min}", r"\{": "⦃", r"\}": "⦄", r"\|": "‖", "&": ""}
"""First replacements; they distinguish literal braces from braces that group."""
END = "\0"
"""Mark after a command such as ``\\alpha``, which separates it from the following letters."""
ACCENTS = {"hat": "\u0302", "bar": "\u0304", "tilde": "\u0303", "dot": "\u0307"}

_SIZES = re.compile(r"\\(?:left|right|[bB]ig+[lrm]?|displaystyle)(?![A-Za-z])")
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\{[^}]*\}")
_ACCENT = re.compile(rf"\\({'|'.join(ACCENTS)})\s*(?:\{{([^{{}}]*)\}}|(\\[A-Za-z]+|\w))")
_FRACTION = re.compile(r"\\[td]?frac\s*(?:\{([^{}]*)\}|(\w))\s*(?:\{([^{}]*)\}|(\w))")
_ROOT = re.compile(r"\\sqrt\s*(?:\{([^{}]*)\}|(\\[A-Za-z]+|\w))")
_FACE = re.compile(r"\\(?:math\w+|text\w*|operatorname)\s*\{([^{}]*)\}")
_SCRIPT = re.compile(r"([_^])\s*(?:\{([^{}]*)\}|(\\[A-Za-z]+|[^\s{}\\]))")
_GROUP = re.compile(r"(?<![_^A-Za-z])\{([^{}]*)\}")
_SIGN = re.compile(r"\\([A-Za-z]+)( ?)")
_MATH = re.compile(r":math:`([^`]+)`", re.S)
_ROLE = re.compile(r":\w+:`~?([^`]+)`")
_DISPLAYED = re.compile(
    r"^( *)\.\. math::(.*(?:\n *\S.*)*(?:\n(?: *\n)*(?:\1 {4}.*(?:\n|\Z))+)*)", re.M
)
"""Displayed formula: lines up to an empty line, and the indented lines after it."""


def formula(latex: str) -> str:
    r"""Convert LaTeX to one line of symbols: ``\tfrac{a}{b} x_i^2`` gives ``a/b xᵢ²``."""
    text = " ".join(latex.split())
    for typed, symbol in TYPED.items():
        text = text.replace(typed, symbol)
    text = _ENVIRONMENT.sub("", _SIZES.sub("", text))
    text = re.sub(r"\\[,;:!]|\\ |\\q?quad(?![a-z])", " ", text.replace(r"\\", "\n"))
    before = ""
    while before != text:
        before = text
        for pattern, replacement in (
            (_ACCENT, _accented), (_FACE, _bare), (_ROOT, _root), (_SCRIPT, _script),
            (_FRACTION, _fraction), (_GROUP, _bare),
        ):  # fmt: skip
            text = pattern.sub(replacement, text)
    text = _SIGN.sub(_sign, text).replace(END, "")
    text = text.replace("⦃", "{").replace("⦄", "}")
    return re.sub(r" *\n *", "\n", re.sub(r" +", " ", text)).strip()


def inline(text: str) -> str:
    """Format a paragraph: formulas as Unicode symbols, names without markup."""
    text = _MATH.sub(lambda match: formula(match[1]), text)
    text = _ROLE.sub(lambda match: match[1].rpartition(".")[2], text)
    return text.replace("``", "")


def rendered(docstring: str) -> str:
    """Format a docstring; displayed formulas are separate lines."""

    def indented(match: re.Match[str]) -> str:
        lines = [line.strip() for line in formula(match[2]).splitlines()]
        return "\n" + textwrap.indent("\n".join(filter(None, lines)), match[1] + "    ") + "\n\n"

    return re.sub(r"\n{3,}", "\n\n", inline(_DISPLAYED.sub(indented, docstring))).strip("\n")


def first_sentence(docstring: str) -> str:
    """Return the first paragraph of a docstring in one line."""
    return inline(" ".join(docstring.strip().partition("\n\n")[0].split()))


def with_inherited_parameters(described: type[Any]) -> str:
    """Return the docstring of a dataclass, followed by the parameters of its base classes.

    The description of a parameter is that of the first base class that documents it. Parameters
    without a description are omitted.
    """
    docstring = inspect.getdoc(described) or ""
    stated = _parameter_entries(described)
    entries: dict[str, str] = {}
    for base in described.__mro__[1:]:
        entries = {**_parameter_entries(base), **entries}
    names = [field.name for field in dataclasses.fields(described)]
    inherited = dict.fromkeys(
        entries[name] for name in names if name in entries and name not in stated
    )
    if not inherited:
        return docstring
    title = "Inherited parameters"
    return "\n".join([docstring + "\n", title, "-" * len(title), *inherited])


def _parameter_entries(documented: type) -> dict[str, str]:
    """Map the parameters of a class's own docstring to their lines, in numpydoc format."""
    docstring = inspect.cleandoc(vars(documented).get("__doc__") or "")
    section = re.search(r"^Parameters\n-+\n(.*?)(?=\n\n\S|\Z)", docstring, re.M | re.S)
    if section is None:
        return {}
    lines = re.split(r"\n(?=\S)", section[1].rstrip())
    return {name: line for line in lines for name in line.partition(" :")[0].split(", ")}


def _sign(match: re.Match[str]) -> str:
    """Return the symbol of a command, or the name of a function such as min with its space."""
    name, space = match.groups()
    return SIGNS[name] if name in SIGNS else name + space


def _accented(match: re.Match[str]) -> str:
    letter = SIGNS.get((match[2] or match[3]).lstrip("\\"), (match[2] or match[3]).lstrip("\\"))
    return f"{letter[0]}{ACCENTS[match[1]]}{letter[1:]}"


def _bare(match: re.Match[str]) -> str:
    return END + match[1]


def _fraction(match: re.Match[str]) -> str:
    above, below = match[1] or match[2], match[3] or match[4]
    return f"{_closed(above)}/{_closed(below)}"


def _root(match: re.Match[str]) -> str:
    return f"√{_closed(match[1] or match[2])}"


def _closed(text: str) -> str:
    """Add parentheses to a text, unless it is a single term."""
    text = text.replace(END, "").strip()
    return text if re.fullmatch(r"\\?[^\W_]+|[\w₀-₉ₐ-ₜ⁰-⁹ᵀ]+", text) else f"({text})"


def _script(match: re.Match[str]) -> str:
    mark, text = match[1], match[2] if match[2] is not None else match[3]
    text = _SIGN.sub(_sign, text).replace(END, "").strip()
    if text in ("*", "ᵀ", "'"):
        return text
    small = text.replace(" ", "").translate(RAISED if mark == "^" else LOWERED)
    unchanged = set(small) & set(text)
    if not unchanged:
        return small
    return f"{mark}{text}" if len(text) == 1 else f"{mark}({text})"
