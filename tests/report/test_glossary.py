"""Test that the documentation defines the report's terms and avoids abandoned terms."""

import ast
import re
from pathlib import Path
from typing import get_args

import pytest

from private_consensus.cli.parser import build_parser
from private_consensus.common.fields import Interpretation
from private_consensus.privacy import AUDIT_VERDICTS, VERDICTS
from private_consensus.privacy.budget import CHANGES, UNITS
from private_consensus.reproduction.claims.schema import Quantifier
from private_consensus.reproduction.claims.words import CONFIRMED, CONTRADICTED, MEANINGS, TIED

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "reference" / "glossary.md"
DEFINING = (GLOSSARY, ROOT / "docs" / "explanation" / "verdicts.md")
"""Pages that define terms of the report."""
MAX_ENTRIES = 50
GIVEN_UP = re.compile(
    r"\blet(s|ting)? out\b|\bpurse\b|\bcurrenc(y|ies)\b|\bnobody's business\b|\bwho asks\b|"
    r"\boverheard\b|\bturned round\b|\blouder\b|\bknock|\bthe honest option\b|\bis a hope\b|"
    r"\bdealt\b|\bledger\b"
)
"""Private terms that published texts no longer use."""


def entries() -> list[tuple[str, str]]:
    """Return term and meaning of each row of the glossary."""
    rows = re.findall(r"^\| (.+?) \| (.+) \|$", GLOSSARY.read_text(), re.MULTILINE)
    return [row for row in rows if row[0] != "term"]


def defined() -> set[str]:
    """Return the terms that tables, emphasis or code of the defining pages introduce."""
    texts = [page.read_text() for page in DEFINING]
    cells = [cell.strip(" `") for text in texts for cell in re.findall(r"(?<=\|)[^|\n]+", text)]
    marked = [word for text in texts for word in re.findall(r"[*`]([^*`\n]+)[*`]", text)]
    return {*cells, *marked}


def printed() -> set[str]:
    """Return the terms for verdicts, states and options that the report contains."""
    audited = {"flagged", "not flagged", *AUDIT_VERDICTS, "note"}
    states = {CONFIRMED, CONTRADICTED, TIED}
    options = {*get_args(Quantifier), *get_args(Interpretation)}
    return {*MEANINGS, *VERDICTS} | options | audited | states


def test_every_term_for_verdicts_and_options_is_defined():
    assert printed() - defined() == set()


def test_the_glossary_is_short_and_sorted_and_defines_each_term_once():
    names = [term for term, _ in entries()]
    assert len(names) <= MAX_ENTRIES and names == sorted(set(names))
    for term, meaning in entries():
        assert len(meaning) > 15 and meaning.lower() != term.lower()


def test_the_glossary_lists_units_and_changes_of_neighbouring_relations():
    for word in (*UNITS, *CHANGES):
        assert f"`{word}`" in dict(entries())["relation"]


def texts() -> dict[str, str]:
    """Return all published texts: pages, templates, configuration, help and docstrings."""
    source = ROOT / "src" / "private_consensus"
    files = [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "config/README.md")),
        *(ROOT / "docs").rglob("*.md"), *(ROOT / "config").rglob("*.yaml"),
        *(source / "report" / "templates").glob("*"),
    ]  # fmt: skip
    texts_by_name = {
        str(file.relative_to(ROOT)): file.read_text() for file in files if file.is_file()
    }
    for file in (source / "core" / "algorithms").glob("*.py"):
        texts_by_name[file.stem] = "\n".join(docstrings(file))
    return texts_by_name | {"--help": build_parser().format_help()}


def docstrings(file: Path) -> list[str]:
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef
    nodes = (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, kinds))
    return [ast.get_docstring(node) or "" for node in nodes]


@pytest.mark.parametrize("text", ["It lets out one value.", "curves turned round", "a purse"])
def test_the_pattern_matches_abandoned_terms(text):
    assert GIVEN_UP.search(text)


def test_published_texts_contain_no_abandoned_terms():
    abandoned = {
        name: match[0] for name, text in texts().items() if (match := GIVEN_UP.search(text))
    }
    assert abandoned == {}
