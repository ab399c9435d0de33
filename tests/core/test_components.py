"""Test that the bill of materials lists every locked package with licence and checksums."""

from importlib.metadata import distribution
from pathlib import Path

from private_consensus.publishing.components import (
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


def test_a_lock_file_is_parsed_into_names_versions_and_checksums():
    assert locked(LOCK) == {
        "a-b-c": {"version": "1.0", "sha256": ["00aa", "11bb"]},
        "numpy": {"version": "2.2.0", "sha256": ["22cc"]},
    }


def test_installed_locked_packages_are_listed_with_licence_and_checksum():
    numpy = distribution("numpy")
    rows = components(locked(LOCK), [numpy])
    assert [(row["name"], row["version"]) for row in rows] == [("numpy", numpy.version)]
    assert "BSD" in rows[0]["licence"]
    [component] = bill_of_materials(rows)["components"]
    assert component["purl"] == f"pkg:pypi/numpy@{numpy.version}"
    assert component["properties"] == [{"name": "sha256", "value": "22cc"}]
    assert table(rows).splitlines()[2].startswith("| numpy | ")


def test_main_dependencies_are_locked_with_checksums_and_have_a_licence():
    lock = locked((ROOT / "requirements.txt").read_text())
    for name in ("numpy", "scipy", "polars", "numba", "snakemake", "dp-accounting", "hypothesis"):
        assert lock[name]["sha256"]
        assert licence(distribution(name)) != NO_LICENCE
