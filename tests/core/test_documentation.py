"""The documentation's pages lead to each other, and list what there is."""

import re
from pathlib import Path

import private_consensus as pc

DOCS = Path(__file__).parents[2] / "docs"
MADE = ("tutorials/index", "api/algorithms/index")
"""Pages that ``make docs`` writes."""


def entries(page: Path) -> list[str]:
    """What a page's tables of contents list."""
    blocks = re.findall(r"^\.\. toctree::\n((?:(?:   .*)?\n)+)", page.read_text(), re.MULTILINE)
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line and not line.startswith(":")]


def test_every_page_is_listed_once_and_every_entry_is_a_page():
    listed = [entry for page in DOCS.glob("*.rst") for entry in entries(page)]
    assert len(set(listed)) == len(listed)
    written = {path.stem for path in DOCS.iterdir() if path.suffix in (".md", ".rst")}
    assert set(listed) == (written - {"index"}) | {"api/index", *MADE}


def test_the_page_of_the_library_lists_every_name_once():
    text = (DOCS / "api/index.rst").read_text()
    assert sorted(re.findall(r"^   (\w+)$", text, re.MULTILINE)) == sorted(pc.__all__)


def test_links_between_pages_lead_somewhere():
    for page in DOCS.glob("*.md"):
        for target in re.findall(r"\]\(([\w./-]+)(?:#[\w-]*)?\)", page.read_text()):
            assert (DOCS / target).exists(), (page.name, target)


def test_nothing_is_loaded_from_elsewhere():
    text = (DOCS / "conf.py").read_text()
    assert "intersphinx" not in text and "http" not in text
    assert '"write_computation_times": False' in text  # its page loads scripts
