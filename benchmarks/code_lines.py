"""Lines of code by room: without blanks, comments and docstrings.

``python -m benchmarks.code_lines`` counts this tree, with another folder as argument that one.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "private_consensus"
SKIPPED = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENCODING, tokenize.ENDMARKER,
}  # fmt: skip


def code_lines(text: str) -> int:
    """Lines of a module that hold code."""
    told = set()
    for node in ast.walk(ast.parse(text)):
        constant = node.value if isinstance(node, ast.Expr) else None
        if isinstance(constant, ast.Constant) and isinstance(constant.value, str):
            told |= set(range(node.lineno, node.end_lineno + 1))
    held: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SKIPPED:
            held |= set(range(token.start[0], token.end[0] + 1))
    return len(held - told)


def by_room(folder: Path) -> Counter[str]:
    """Lines of code by the rooms of the package in a folder."""
    found: Counter[str] = Counter()
    for file in folder.rglob("*.py"):
        room = file.relative_to(folder).parts[0].removesuffix(".py")
        found[room] += code_lines(file.read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    counted = by_room(Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE)
    for room, lines in counted.most_common():
        print(f"{lines:6} {room}")
    print(f"{sum(counted.values()):6} in all")
