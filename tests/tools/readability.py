"""Measure how readable the source is, and refuse a change that makes it worse.

``python -m tests.tools.readability`` prints the counts. With ``--check`` it compares them with
``readability_limits.json``. If a count is above its limit, it prints file and line of each defect
and fails. With ``--lower`` it replaces each limit by a smaller count, so that limits only decrease.
"""

import argparse
import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIMITS = Path(__file__).with_name("readability_limits.json")
_OPENERS = (
    "what whatever which who whom whose where whether when how why of as for by from with without "
    "in on at to among between beside besides those these that this it its they their there one "
    "ones another others other same each every both none nothing nobody everybody if until while "
    "not alone only more most less least such so than"
)
_NAMES = (
    "found given asked own known told named chosen kept said made called one ones each some shown "
    "wanted whole part parts here there rest more most others other apart place places who what "
    "which spent held seen heard taken left meant settled owed lent besides everything anything "
    "something thing things stuff every own_"
)
WEAK_OPENERS = frozenset(_OPENERS.split())
"""First words of a summary that name neither an action nor a thing."""
EMPTY_NAMES = frozenset(_NAMES.split())
"""Names of variables that do not say which quantity they hold."""
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
_PARAMETERS = """algorithm attack budget delta draw epsilon horizon network problem release
settings state streams t"""
DOCUMENTED_ONCE = frozenset(_PARAMETERS.split())
"""Parameters that the methods of ``Algorithm`` describe for all functions."""
REPEATED = 5
"""Number of times from which a docstring line counts as repeated."""
COUNTS = (
    "weak summaries",
    "empty names",
    "functions without Parameters",
    "overrides with Parameters",
    "repeated docstring lines",
)


def summary(node: ast.AST) -> str:
    """Return the first paragraph of the docstring of a class or function."""
    return (ast.get_docstring(node) or "").split("\n\n")[0].strip()


def is_weak(text: str) -> bool:
    """Return True if a summary opens with a clause or has fewer than three words."""
    first = re.split(r"[^A-Za-z]", text, maxsplit=1)[0].lower()
    return bool(text) and (first in WEAK_OPENERS or len(text.split()) < 3)


def has_empty_name(node: ast.AST) -> bool:
    """Return True for a variable or parameter whose name states no quantity."""
    if isinstance(node, ast.Name):
        return isinstance(node.ctx, ast.Store) and node.id in EMPTY_NAMES
    return isinstance(node, ast.arg) and node.arg in EMPTY_NAMES


def has_parameters(node: ast.AST) -> bool:
    """Return True for a function whose docstring describes its parameters."""
    return isinstance(node, FUNCTIONS) and "Parameters\n" in (ast.get_docstring(node) or "")


def interface(module: ast.AST) -> set[ast.AST]:
    """Return the public functions of a module and the public methods of its public classes."""
    public = [n for n in module.body if not getattr(n, "name", "_").startswith("_")]
    methods = [m for n in public if isinstance(n, ast.ClassDef) for m in n.body]
    return {n for n in (*public, *methods) if isinstance(n, FUNCTIONS) and n.name[0] != "_"}


def lacks_parameters(node: ast.AST) -> bool:
    """Return True for a function with a parameter that has neither a type nor a description.

    A description is a section ``Parameters``, a sentence with the name of the parameter, or a link
    to a function that describes it. Functions with fewer than two parameters need none.
    """
    arguments = (*node.args.args, *node.args.kwonlyargs)
    names = {a.arg for a in arguments} - {"self", "cls"}
    typed = {a.arg for a in arguments if a.annotation}
    text = ast.get_docstring(node) or ""
    needed = names - typed - DOCUMENTED_ONCE - set(re.findall(r"\w+", text))
    return len(names) >= 2 and bool(needed) and not (has_parameters(node) or ":func:" in text)


def overrides(classes: list[ast.ClassDef]) -> set[ast.AST]:
    """Return the methods that a base class, found by its name, defines as well."""
    by_name: dict[str, list[ast.ClassDef]] = {}
    for node in classes:
        by_name.setdefault(node.name, []).append(node)

    def defined(name: str, subclasses: frozenset[str] = frozenset()) -> set[str]:
        """Return the methods of a class and of its bases, which are none of its subclasses."""
        methods = set()
        for node in by_name.get(name, []) if name not in subclasses else []:
            methods |= {method.name for method in node.body if isinstance(method, FUNCTIONS)}
            methods |= {m for base in bases(node) for m in defined(base, subclasses | {name})}
        return methods

    return {
        method
        for node in classes
        for base in bases(node)
        for method in node.body
        if isinstance(method, FUNCTIONS) and method.name in defined(base, frozenset({node.name}))
    }


def docstring_lines(node: ast.AST) -> list[str]:
    """Return the lines of the docstring of a function that have more than twelve characters."""
    lines = (ast.get_docstring(node) or "").splitlines() if isinstance(node, FUNCTIONS) else []
    return [line.strip() for line in lines if len(line.strip()) > 12]


def bases(node: ast.ClassDef) -> list[str]:
    """Return the names of the base classes, without their modules and type parameters."""
    return [ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases]


def defects(texts: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the locations of the defects that may only become fewer, from texts by file."""
    trees = {file: list(ast.walk(ast.parse(text))) for file, text in texts.items()}
    overridden = overrides([n for t in trees.values() for n in t if isinstance(n, ast.ClassDef)])
    frequency = Counter(line for t in trees.values() for n in t for line in docstring_lines(n))
    locations: dict[str, list[str]] = {name: [] for name in COUNTS}
    for file, tree in trees.items():
        public = interface(tree[0])
        for node in tree:
            has_summary = isinstance(node, FUNCTIONS | ast.ClassDef)
            is_override = node in overridden
            is_described = node not in public or is_override or not lacks_parameters(node)
            for name, count in {
                "weak summaries": has_summary and is_weak(summary(node)),
                "empty names": has_empty_name(node),
                "functions without Parameters": not is_described,
                "overrides with Parameters": is_override and has_parameters(node),
                "repeated docstring lines": sum(
                    frequency[line] >= REPEATED for line in docstring_lines(node)
                ),
            }.items():
                locations[name] += [f"{file}:{node.lineno}"] * count if count else []
    return locations


def repository_texts() -> dict[str, str]:
    """Return the texts of all Python files in ``src`` and ``workflow`` by relative path."""
    files = (file for folder in ("src", "workflow") for file in (ROOT / folder).rglob("*.py"))
    return {str(f.relative_to(ROOT)): f.read_text(encoding="utf-8") for f in sorted(files)}


def main(arguments: list[str] | None = None) -> int:
    """Print the counts, and check or lower their limits."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="fail if a count exceeds its limit")
    parser.add_argument("--lower", action="store_true", help="lower the limits to the counts")
    options = parser.parse_args(arguments)
    locations = defects(repository_texts())
    counts = {name: len(lines) for name, lines in locations.items()}
    limits = json.loads(LIMITS.read_text()) if LIMITS.exists() else counts
    for name, count in counts.items():
        print(f"{name}: {count} (at most {limits[name]})")
        if options.check and count > limits[name]:
            print("\n".join(locations[name]))
    if options.lower:
        lowered = {name: min(count, limits[name]) for name, count in counts.items()}
        LIMITS.write_text(json.dumps(lowered, indent=2) + "\n")
    return int(options.check and any(counts[name] > limits[name] for name in counts))


if __name__ == "__main__":
    sys.exit(main())
