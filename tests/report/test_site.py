"""Test the folder of the report."""

import hashlib
import re
from pathlib import Path

import polars as pl
import pytest

from private_consensus.report import write_site


@pytest.fixture
def site(results, run_folder, tmp_path) -> Path:
    folder = tmp_path / "report"
    write_site(results, run_folder, folder)
    return folder


def test_two_reports_of_the_same_results_are_byte_identical(site, results, run_folder, tmp_path):
    write_site(results, run_folder, tmp_path / "again")
    assert digests(site) == digests(tmp_path / "again")


def digests(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in folder.rglob("*") if path.is_file()}  # fmt: skip


def test_figure_data_are_available_as_csv(site):
    numbers = pl.read_csv(site / "figures" / "first_fig1.csv")
    assert numbers.select("x", "y", "runs").rows() == [(1.0, 0.5, 20), (2.0, 0.25, 20)]


def test_every_page_has_a_content_security_policy_and_no_inline_script(site):
    page_files = list(site.rglob("*.html"))
    for page in page_files:
        text = page.read_text()
        [policy] = re.findall(
            r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', text
        )
        assert text.index(policy) < text.index("<link")
        sources_by_directive = dict(
            directive.strip().split(" ", 1) for directive in policy.split(";")
        )
        assert sources_by_directive["default-src"] == "'none'"
        assert "unsafe-inline" not in sources_by_directive.get("script-src", "")
        assert "<script" not in text or "script-src" in sources_by_directive
        assert not re.search(r"<script(?![^>]*\bsrc=)|<[^>]*\son[a-z]+=|javascript:", text)
    assert len(page_files) > 3
