"""Test the static site: links, and reports without PDF files."""

from dataclasses import replace

import pytest

from private_consensus.report import static, write_site


def write(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.html").write_text(text)
    return folder


@pytest.mark.parametrize(
    ("link", "is_dead"),
    [
        ("b.html", False), ("b.html#x", False), ("b.html?q=1#x", False), ("#top", False),
        ("https://example.org/none", False), ("mailto:a@example.org", False), ("sub", False),
        ("b.html#y", True), ("c.html", True), ("#bottom", True), ("sub/none.png", True),
    ],
)  # fmt: skip
def test_links_to_missing_files_and_anchors_are_detected(tmp_path, link, is_dead):
    write(tmp_path / "sub", index="<p>")
    write(tmp_path, a=f'<p id="top"><a href="{link}">', b='<p id="x">')
    assert list(static.dead_links(tmp_path)) == ([f"a.html: {link}"] if is_dead else [])


def test_a_published_report_has_no_dead_links(results, run_folder, tmp_path):
    for file in (run_folder / "figures").glob("*.pdf"):
        file.unlink()
    published = replace(results, is_reference=True)
    write(tmp_path / static.DOCS, index="<p>")
    write_site(published, run_folder, tmp_path / static.REPORT)
    assert list(static.dead_links(tmp_path)) == []
