"""Test that code hashes ignore formatting, and that files are complete or absent."""

import importlib
import sys

import pytest

from private_consensus.common import provenance
from private_consensus.common.provenance import (
    atomic_write,
    changed,
    checksums,
    code_hash,
    files_hash,
    imported_modules,
    settings_hash,
)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Create a small package in place of the project: a imports b, c imports nothing."""
    root = tmp_path / "small"
    (root / "sub").mkdir(parents=True)
    (root / "__init__.py").write_text("")
    (root / "sub" / "__init__.py").write_text("")
    (root / "a.py").write_text("from . import b\nfrom .sub.d import value\n")
    (root / "b.py").write_text('"""Words."""\n\nN = 1\n\n\ndef f(x):\n    return x + 1\n')
    (root / "c.py").write_text("x = 1\n")
    (root / "sub" / "d.py").write_text("from ..c import x as value\n")
    monkeypatch.setattr(provenance, "PACKAGE", "small")
    monkeypatch.syspath_prepend(tmp_path)
    forget()
    yield root
    monkeypatch.undo()
    forget()


def forget():
    for name in ("imported_modules", "_file_of", "_syntax", "_direct_imports"):
        getattr(provenance, name).cache_clear()


def uncached_hash(*modules, **options) -> str:
    forget()
    return code_hash(*modules, **options)


def test_indirect_imports_are_followed(package):
    assert imported_modules("small.a") == {
        "small", "small.a", "small.b", "small.c", "small.sub", "small.sub.d",
    }  # fmt: skip
    assert imported_modules("small.c") == {"small", "small.c"}


@pytest.mark.parametrize("file", ["a.py", "b.py", "c.py", "sub/d.py"])
def test_an_edit_changes_only_the_hashes_of_modules_that_import_the_file(package, file):
    before = {name: uncached_hash(f"small.{name}") for name in "abc"}
    (package / file).write_text((package / file).read_text() + "\nadded = 1\n")
    changed = {name for name in "abc" if uncached_hash(f"small.{name}") != before[name]}
    assert changed == {"a.py": {"a"}, "b.py": {"a", "b"}}.get(
        file, {"a", "c"} if file == "c.py" else {"a"}
    )


def test_layout_comments_and_docstrings_do_not_change_the_hash(package):
    before = uncached_hash("small.a")
    (package / "b.py").write_text(
        '# why\n"""Other words."""\n\nN = 1\n"""Number."""\n\n\ndef f(x):\n    return (x + 1)\n'
    )
    assert uncached_hash("small.a") == before
    (package / "b.py").write_text("def f(x):\n    return x + 2\n")
    assert uncached_hash("small.a") != before


def test_the_hash_of_a_script_covers_its_indirect_imports(package, tmp_path):
    script = tmp_path / "script.py"
    script.write_text("from small.sub.d import value\n")
    before = uncached_hash(files=[script])
    (package / "b.py").write_text("def f(x):\n    return 0\n")
    assert uncached_hash(files=[script]) == before
    (package / "c.py").write_text("x = 2\n")
    assert uncached_hash(files=[script]) != before


def test_settings_are_hashed_by_value_not_by_order():
    assert settings_hash({"a": 1, "b": [1.0, None]}) == settings_hash({"b": [1.0, None], "a": 1})
    assert settings_hash({"a": 1}) != settings_hash({"a": 2})
    assert settings_hash({"epsilon": float("inf")}) != settings_hash({"epsilon": 1.0})


def test_a_failed_write_leaves_the_old_file_unchanged(tmp_path):
    target = tmp_path / "result.txt"
    target.write_text("old")
    with pytest.raises(RuntimeError), atomic_write(target) as temporary:
        temporary.write_text("half")
        assert target.read_text() == "old"
        raise RuntimeError
    assert target.read_text() == "old"
    with atomic_write(target) as temporary:
        temporary.write_text("new")
    assert target.read_text() == "new"
    assert [file.name for file in tmp_path.iterdir()] == ["result.txt"]


@pytest.fixture
def foreign(package, monkeypatch):
    """Create an external package whose module imports its own helper and module c."""
    root = package.parent / "others" / "elsewhere"
    (root / "part").mkdir(parents=True)
    (root / "__init__.py").write_text("")
    (root / "method.py").write_text("from small.c import x\nfrom .part import helper\n")
    (root / "part" / "helper.py").write_text("y = 1\n")  # a namespace: no __init__.py
    (root / "unused.py").write_text("z = 1\n")
    for name in [name for name in sys.modules if name.partition(".")[0] == "elsewhere"]:
        monkeypatch.delitem(sys.modules, name)  # an earlier test may have imported the module
    monkeypatch.syspath_prepend(str(root.parent))
    importlib.invalidate_caches()
    return root


@pytest.mark.parametrize(
    ("file", "changes"), [("method.py", True), ("part/helper.py", True), ("unused.py", False)]
)
def test_imports_of_an_external_module_are_followed_in_its_package(foreign, file, changes):
    before = uncached_hash("elsewhere.method")
    (foreign / file).write_text((foreign / file).read_text() + "added = 1\n")
    assert (uncached_hash("elsewhere.method") != before) is changes


def test_the_hash_of_files_depends_on_their_content_and_not_on_their_order(tmp_path):
    first, second = tmp_path / "one.npz", tmp_path / "two.npz"
    first.write_bytes(b"1")
    second.write_bytes(b"2")
    assert files_hash([]) == ""
    assert files_hash([first, second]) == files_hash([second, first]) != files_hash([first])
    before = files_hash([first])
    first.write_bytes(b"3")
    assert files_hash([first]) != before
    with pytest.raises(FileNotFoundError):
        files_hash([tmp_path / "three.npz"])


def test_files_changed_or_deleted_after_their_checksum_are_listed(tmp_path):
    first, second = tmp_path / "a" / "one", tmp_path / "two"
    first.parent.mkdir()
    (tmp_path / "b").mkdir()
    first.write_text("1")
    second.write_text("2")
    recorded = checksums([second, first], tmp_path / "b")
    assert list(recorded) == ["../a/one", "../two"]
    assert changed(recorded, tmp_path / "b") == []
    second.unlink()
    first.write_text("3")
    assert changed(recorded, tmp_path / "b") == [str(first), str(second)]
