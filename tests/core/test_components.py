"""Test that the bill of materials lists every locked package with licence and checksums."""

from importlib.metadata import distribution
from pathlib import Path

from private_consensus.reproduction.publishing.components import (
    NO_LICENCE,
    bill_of_materials,
    components,
    licence,
    locked,
    table,
)

ROOT = Path(__file__).parents[2]
LOCK = """\
a.b_c==1.0 ; python_version < "3.12" \\
    --hash=sha256:00aa \\
    --hash=sha256:11bb
numpy==2.2.0 \\
    --hash=sha256:22cc
"""


def test_a_lock_file_is_read_by_name_version_and_checksums():
    assert locked(LOCK) == {
        "a-b-c": {"version": "1.0", "sha256": ["00aa", "11bb"]},
        "numpy": {"version": "2.2.0", "sha256": ["22cc"]},
    }


def test_every_package_of_the_lock_that_is_installed_is_told_with_its_licence():
    numpy = distribution("numpy")
    rows = components(locked(LOCK), [numpy])
    assert [(row["name"], row["version"]) for row in rows] == [("numpy", numpy.version)]
    assert "BSD" in rows[0]["licence"]
    [component] = bill_of_materials(rows)["components"]
    assert component["purl"] == f"pkg:pypi/numpy@{numpy.version}"
    assert component["properties"] == [{"name": "sha256", "value": "22cc"}]
    assert table(rows).splitlines()[2].startswith("| numpy | ")


def test_what_the_project_is_built_on_is_locked_and_says_its_licence():
    lock = locked((ROOT / "requirements.txt").read_text())
    for name in ("numpy", "scipy", "polars", "numba", "snakemake", "dp-accounting", "hypothesis"):
        assert lock[name]["sha256"]
        assert licence(distribution(name)) != NO_LICENCE
