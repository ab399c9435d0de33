"""Words of our own are defined in the glossary, and those that were given up are gone."""

import ast
import re
from pathlib import Path
from typing import get_args

import pytest

from private_consensus import cli
from private_consensus.audits.views.epsilon import LABELS
from private_consensus.privacy import AUDIT_VERDICTS, VERDICTS
from private_consensus.privacy.budget import CHANGES, UNITS
from private_consensus.reproduction.claims.schema import Kind, Quantifier
from private_consensus.reproduction.claims.words import CONFIRMED, CONTRADICTED, MEANINGS, TIED
from private_consensus.reproduction.experiments.schema import Reading
from private_consensus.reproduction.observers.drawn import SHOWN

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"
PLAIN = {
    "decreasing", "increasing", "falls", "slope", "trend", "below", "lower", "ratio", "difference",
    "differs", "level", "largest", "smallest", "private",
}  # fmt: skip
"""Kinds of tests that say in the field's words what they test."""
GIVEN_UP = re.compile(
    r"\blet(s|ting)? out\b|\bpurse\b|\bcurrenc(y|ies)\b|\bnobody's business\b|\bwho asks\b|"
    r"\boverheard\b|\bturned round\b|\blouder\b|\bknock|\bthe honest option\b|\bis a hope\b|"
    r"\bdealt\b|\bledger\b"
)
"""What pages, help and descriptions said before they said it in the field's words."""


def entries() -> list[tuple[str, str, str]]:
    """Term, meaning and place of each row of the glossary's tables."""
    rows = re.findall(r"^\| (.+?) \| (.+) \| (.+?) \|$", GLOSSARY.read_text(), re.MULTILINE)
    return [row for row in rows if row[0] != "term"]


def terms() -> dict[str, str]:
    """Meanings by term, without what sets a term apart from another sense of the word."""
    return {re.sub(r" \(.+\)$", "", term): meaning for term, meaning, _ in entries()}


def printed() -> set[str]:
    """Words for verdicts, states, readings and observers, as the code writes them."""
    observers = {re.sub(r" of \d+$", "", name) for name in SHOWN}
    audited = {"flagged", "not flagged", *AUDIT_VERDICTS, "note"}
    states = {CONFIRMED, CONTRADICTED, TIED}
    kinds = set(get_args(Kind)) - PLAIN
    words = {*MEANINGS, *VERDICTS, *LABELS.values(), *get_args(Quantifier), *get_args(Reading)}
    return words | observers | audited | states | kinds


def test_every_word_that_the_report_prints_is_defined():
    assert printed() - set(terms()) == set()


def test_each_term_is_defined_once_in_words_that_are_not_its_own():
    names = [term for term, _, _ in entries()]
    assert len(names) > 80 and len(set(names)) == len(names)
    for term, meaning, place in entries():
        assert len(meaning) > 15 and meaning.lower() != term.lower() and place


def test_units_and_changes_of_the_relation_are_named():
    for word in (*UNITS, *CHANGES):
        assert f"`{word}`" in terms()["relation"]


def test_places_that_are_files_exist():
    files = set(re.findall(r"`((?:docs|config)/[\w./]+|README\.md)`", GLOSSARY.read_text()))
    assert files and all((ROOT / name).exists() for name in files)


def texts() -> dict[str, str]:
    """All that a reader is shown: pages, templates, configuration, help, algorithms' docstrings."""
    source = ROOT / "src" / "private_consensus"
    files = [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "config/README.md")),
        *(ROOT / "docs").glob("*.*"), *(ROOT / "config").rglob("*.yaml"),
        *(source / "report" / "templates").glob("*"),
    ]  # fmt: skip
    found = {str(file.relative_to(ROOT)): file.read_text() for file in files if file.is_file()}
    for file in (source / "algorithms").glob("*.py"):
        found[file.stem] = "\n".join(docstrings(file))
    return found | {"--help": cli._parser().format_help()}


def docstrings(file: Path) -> list[str]:
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef
    nodes = (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, kinds))
    return [ast.get_docstring(node) or "" for node in nodes]


@pytest.mark.parametrize("text", ["It lets out one value.", "curves turned round", "a purse"])
def test_words_that_were_given_up_are_recognised(text):
    assert GIVEN_UP.search(text)


def test_words_that_were_given_up_are_gone():
    left = {name: found[0] for name, text in texts().items() if (found := GIVEN_UP.search(text))}
    assert left == {}
