"""Blanks, comments and docstrings are no lines of code."""

from benchmarks.code_lines import SOURCE, by_room, code_lines

MODULE = '''"""What it is.

More of it.
"""

from os import sep  # the one of this machine


def joined(
    parts,
):
    """One text."""
    # a comment
    text = """two
lines"""

    return sep.join(parts) + text
'''


def test_what_holds_code_is_counted_and_nothing_else():
    assert code_lines(MODULE) == 7
    assert code_lines("") == code_lines('"""Only this."""\n# and that\n') == 0


def test_rooms_add_up():
    counted = by_room(SOURCE)
    assert counted["errors"] == code_lines((SOURCE / "errors.py").read_text())
    assert counted["algorithms"] > counted["solvers"] > 0
