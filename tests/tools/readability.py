"""Measure how readable the source is, and refuse a change that makes it worse.

``python -m tests.tools.readability`` prints the counts. With ``--check`` it compares them with
``readability_limits.json`` and fails if a count is above its limit. With ``--lower`` it replaces
each limit by a smaller count, so that limits only decrease.
"""

import argparse
import ast
import json
import re
import sys
from collections.abc import Iterator
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


def summary(node: ast.AST) -> str:
    """Return the first paragraph of the docstring of a class or function."""
    return (ast.get_docstring(node) or "").split("\n\n")[0].strip()


def is_weak(text: str) -> bool:
    """Return True if a summary opens with a clause or has fewer than three words."""
    first = re.split(r"[^A-Za-z]", text, maxsplit=1)[0].lower()
    return bool(text) and (first in WEAK_OPENERS or len(text.split()) < 3)


def assigned_names(tree: ast.AST) -> Iterator[str]:
    """Yield the names of variables and parameters."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def lacks_parameters(node: ast.AST) -> bool:
    """Return True for a public function of two or more parameters without their description."""
    if not isinstance(node, FUNCTIONS) or node.name.startswith("_"):
        return False
    arguments = [arg.arg for arg in (*node.args.args, *node.args.kwonlyargs)]
    needed = len([name for name in arguments if name not in ("self", "cls")]) >= 2
    return needed and "Parameters\n" not in (ast.get_docstring(node) or "")


def measure(texts: list[str]) -> dict[str, int]:
    """Return the counts of the defects that may only become fewer."""
    counts = {"weak summaries": 0, "empty names": 0, "functions without Parameters": 0}
    for tree in map(ast.parse, texts):
        nodes = [n for n in ast.walk(tree) if isinstance(n, FUNCTIONS | ast.ClassDef)]
        counts["weak summaries"] += sum(is_weak(summary(node)) for node in nodes)
        counts["empty names"] += sum(name in EMPTY_NAMES for name in assigned_names(tree))
        counts["functions without Parameters"] += sum(map(lacks_parameters, nodes))
    return counts


def measure_repository() -> dict[str, int]:
    """Return the counts of all Python files in ``src`` and ``workflow``."""
    files = (file for folder in ("src", "workflow") for file in (ROOT / folder).rglob("*.py"))
    return measure([file.read_text(encoding="utf-8") for file in sorted(files)])


def main(arguments: list[str] | None = None) -> int:
    """Print the counts, and check or lower their limits."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="fail if a count exceeds its limit")
    parser.add_argument("--lower", action="store_true", help="lower the limits to the counts")
    options = parser.parse_args(arguments)
    counts = measure_repository()
    limits = json.loads(LIMITS.read_text()) if LIMITS.exists() else counts
    for name, count in counts.items():
        print(f"{name}: {count} (at most {limits[name]})")
    if options.lower:
        lowered = {name: min(count, limits[name]) for name, count in counts.items()}
        LIMITS.write_text(json.dumps(lowered, indent=2) + "\n")
    return int(options.check and any(counts[name] > limits[name] for name in counts))


if __name__ == "__main__":
    sys.exit(main())
