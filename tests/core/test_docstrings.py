"""Test that exported objects have complete docstrings and that public functions have types."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import private_consensus
from private_consensus.privacy import observers

EXPORTED = {
    f"{package.__name__}.{name}": getattr(package, name)
    for package in (private_consensus, observers)
    for name in package.__all__
    if callable(getattr(package, name))
}


SOURCE = Path(private_consensus.__file__).parent
ANNOTATED = (
    "api", "audits", "cli.py", "common/multiplicity.py", "common/spreadsheets.py",
    "privacy/aggregation.py", "privacy/audit", "privacy/observers",
    "reproduction/audits", "reproduction/claims", "reproduction/experiments",
    "reproduction/observers", "reproduction/publishing", "reproduction/report",
    "reproduction/statements",
)  # fmt: skip
"""Where everything public has types."""


def sections(text: str) -> dict[str, str]:
    """Return the underlined sections of a numpydoc docstring by title."""
    parts = re.split(r"^([A-Z]\w+)\n-{3,}\n", inspect.cleandoc(text), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def described(section: str) -> list[str]:
    """Return the names in a section that have a type, a shape or a description."""
    rows = re.findall(r"^(\w[\w, *]*)( : .+)?$((?:\n+    .+)*)", section, re.MULTILINE)
    return [name for names, kind, text in rows if kind or text for name in names.split(", ")]


def taken(found) -> list[str]:
    """Return the parameter names of a callable."""
    exception = isinstance(found, type) and issubclass(found, Exception)
    own = inspect.signature(found.__init__ if exception else found).parameters
    return [name for name in own if name != "self"]


def missing(found) -> set[str]:
    """Return the parameters, results and exceptions that a docstring does not describe."""
    told = sections(found.__doc__ or "")
    left = set(taken(found)) - set(described(told.get("Parameters", "")))
    for base in getattr(found, "__mro__", ())[1:]:  # fields are described where they are declared
        left -= set(described(sections(base.__doc__ or "").get("Parameters", "")))
    if inspect.isfunction(found) and found.__annotations__.get("return") not in (None, "None"):
        left |= {"Returns"} - set(told)
    return left


def invented(found) -> set[str]:
    """Return the parameters that a docstring describes and the function does not have."""
    return set(described(sections(found.__doc__ or "").get("Parameters", ""))) - set(taken(found))


def test_what_is_exported_is_described():
    assert {name for name, found in EXPORTED.items() if missing(found)} == set()
    assert all(found.__doc__ for found in EXPORTED.values())


def test_nothing_is_described_that_is_not_taken():
    assert {name: left for name, found in EXPORTED.items() if (left := invented(found))} == {}


def test_a_parameter_and_a_result_that_are_left_out_are_noticed():
    def doubled(x: float, times: int) -> float:
        """Twice.

        Parameters
        ----------
        x : float
        y : float
        """
        return 2 * x * times

    assert missing(doubled) == {"times", "Returns"} and invented(doubled) == {"y"}


def public(node: ast.AST) -> Iterator[ast.FunctionDef]:
    """Yield the public functions and methods of a module."""
    for part in ast.iter_child_nodes(node):
        named = isinstance(part, ast.ClassDef | ast.FunctionDef) and part.name[0] != "_"
        if named and isinstance(part, ast.ClassDef):
            yield from public(part)
        elif named:
            yield part


def untyped(text: str) -> list[str]:
    """Return public functions without the type of an argument or of the result."""
    found = []
    for function in public(ast.parse(text)):
        own = function.args
        named = [*own.posonlyargs, *own.args, *own.kwonlyargs, own.vararg, own.kwarg]
        names = [arg for arg in named if arg and arg.arg not in ("self", "cls")]
        if function.returns is None or any(arg.annotation is None for arg in names):
            found.append(function.name)
    return found


def test_everything_public_has_types():
    files = [file for name in ANNOTATED for file in sorted((SOURCE / name).rglob("*.py"))]
    files += [SOURCE / name for name in ANNOTATED if name.endswith(".py")]
    assert len(files) > 90
    assert {file.name: left for file in files if (left := untyped(file.read_text()))} == {}


def test_what_has_no_type_is_noticed():
    assert untyped("class A:\n def b(self, c) -> int: ...\ndef d(): ...") == ["b", "d"]
    assert untyped("def _e(f): ...\nclass G:\n def __init__(self, h): ...") == []
