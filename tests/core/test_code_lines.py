"""Test that blank lines, comments and docstrings are not counted as lines of code."""

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


def test_only_lines_with_code_are_counted():
    assert code_lines(MODULE) == 7
    assert code_lines("") == code_lines('"""Only this."""\n# and that\n') == 0


def test_lines_are_summed_by_top_level_module(tmp_path):
    (tmp_path / "solvers/b").mkdir(parents=True)
    for name, text in {"errors": MODULE, "solvers/a": MODULE, "solvers/b/c": "x = 1"}.items():
        (tmp_path / f"{name}.py").write_text(text)
    assert by_room(tmp_path) == {"errors": 7, "solvers": 8}
    assert (SOURCE / "common" / "errors" / "__init__.py").exists()
