"""Test the folder of the report."""

from __future__ import annotations

import hashlib
import re
import zipfile
from pathlib import Path

import pytest

from private_consensus.report import (
    CHECKSUMS,
    FILES,
    read_results,
    write_site,
)
from private_consensus.report.page import TOPICS
from private_consensus.report.site import write_zipped

from .conftest import write_result
from .html_tree import Tree

DOWNLOADS = ("svg", "png", "pdf", "parquet", "csv.zip")
"""File name extensions in ``report/figures``."""

ASSETS = ("report.css", "report.js")
"""Style and script of a report."""


@pytest.fixture
def site(results, run_folder, tmp_path) -> Path:
    folder = tmp_path / "report"
    write_site(results, run_folder, folder)
    return folder


def test_the_report_folder_contains_exactly_the_expected_files(site, results):
    files = {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file()}
    figures = {f"figures/{name}.{kind}" for name in results.facts for kind in DOWNLOADS}
    common_files = {
        "index.html",
        CHECKSUMS,
        *FILES,
        *(f"{name}.html" for name in TOPICS),
    }
    settings = {f"privacy/{key}.csv" for key in results.papers}
    papers = {f"papers/{key}.html" for key in results.papers}
    assert files == {
        *common_files,
        *settings,
        *papers,
        *(f"assets/{name}" for name in ASSETS),
        *figures,
    }


def test_every_linked_file_is_in_the_report_folder(site):
    for page in site.rglob("*.html"):
        tree = Tree(page.read_text())
        links = [
            link
            for link in tree.all("href") + tree.all("src")
            if not link.startswith(("#", "data:", "http"))
        ]
        assert links
        missing = [name for name in links if not (page.parent / name.partition("#")[0]).is_file()]
        assert missing == []


def test_the_front_page_loads_less_than_100_kb(site):
    tree = Tree((site / "index.html").read_text())
    loaded = [*tree.attributes("script", "src"), *tree.attributes("img", "src")]
    loaded += [link for link in tree.attributes("link", "href") if not link.startswith("data:")]
    assert loaded == ["assets/report.js", "assets/report.css"]
    # The claims are on the page of the scorecard, not on the front page.
    assert sum((site / name).stat().st_size for name in ("index.html", *loaded)) < 100_000


def test_two_reports_of_the_same_results_are_byte_identical(site, results, run_folder, tmp_path):
    write_site(results, run_folder, tmp_path / "again")
    assert digests(site) == digests(tmp_path / "again")


def digests(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in folder.rglob("*") if path.is_file()}  # fmt: skip


def test_figure_data_are_available_as_zipped_csv(site, tmp_path):
    file = site / "figures" / "first_fig1.csv.zip"
    with zipfile.ZipFile(file) as archive:
        assert archive.namelist() == ["first_fig1.csv"]
        text = archive.read("first_fig1.csv").decode()
    assert text.splitlines()[:2] == ["x,y,runs,interval", "1.0,0.5,20,mean +- standard error"]
    write_zipped(tmp_path / file.name, text)
    assert (tmp_path / file.name).read_bytes() == file.read_bytes()
    write_zipped(tmp_path / "long.csv.zip", 1000 * text)
    assert (tmp_path / "long.csv.zip").stat().st_size < 100 * len(text)


def test_read_results_collects_figure_metadata_and_timings(run_folder, results, tmp_path):
    import polars as pl

    write_result(pl.DataFrame(results.claims), tmp_path / "claims.parquet")
    write_result(pl.DataFrame(results.privacy), tmp_path / "privacy.parquet")
    (tmp_path / "job.tsv").write_text("s\tcpu_time\tmax_rss\n1.5\t1.0\t100.0\n")
    plan = {"papers": results.papers, "labels": {}, "config": {"seed": 7},
            "timings": [tmp_path / "job.tsv", tmp_path / "missing.tsv"]}  # fmt: skip
    files = {
        "claims": tmp_path / "claims.parquet",
        "privacy": tmp_path / "privacy.parquet",
        "numbers": [run_folder / "data" / "first_fig1.parquet"],
        "svg": [run_folder / "figures" / "first_fig1.svg"],
        "cards": [],
    }
    read = read_results(plan, files, scale="smoke", commit="c")
    assert read.seed == 7
    fact = read.facts["first_fig1"]
    assert fact["source"] == results.facts["first_fig1"]["source"]
    assert fact["runs"] == (20, 20)
    assert fact["width"] > 700
    assert read.timings == [{"job": "job", "seconds": 1.5, "memory": 100.0}]


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
