"""Test that the README shows the code and output of the example with a wrong algorithm."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples" / "2_catch_a_wrong_algorithm.py"


def single_spaced(text: str) -> str:
    """Return a text with single spaces."""
    return " ".join(text.split())


def test_the_audit_catches_the_wrong_algorithm_and_the_readme_shows_its_output(capsys):
    runpy.run_path(str(SCRIPT))
    output = capsys.readouterr().out
    correct, wrong, reason = output.splitlines()
    assert correct == "GradientDescent: not contradicted"
    assert wrong == "Wrong: leaks" and "the message of agent 0 in iteration 1" in reason
    code = SCRIPT.read_text(encoding="utf-8")
    readme = single_spaced((ROOT / "README.md").read_text(encoding="utf-8"))
    step = single_spaced(code[code.index("def step") : code.index("\n\n\nmeans")])
    assert single_spaced(output) in readme and step in readme
