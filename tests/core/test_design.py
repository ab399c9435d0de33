"""Test that the imports follow the layers of docs/explanation/architecture.md."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "private_consensus"
DESIGN = (ROOT / "docs" / "explanation" / "architecture.md").read_text()
FAMILIES = PACKAGE / "core" / "algorithms" / "families"
LAYERS = DESIGN.partition("## Layers")[2].partition("## Algorithms")[0]
PARTS = [
    part_name
    for _, part_name in sorted(
        (int(order), part_name)
        for order, part_name in re.findall(r"^\| (\d+) \| `(\w+)` \|", LAYERS, flags=re.MULTILINE)
    )
]
"""Parts of the package in the order of their imports."""


def layers() -> dict[str, int]:
    """Return the layer of each module or package within a part, by its path ``part/name``."""
    rows = re.findall(r"^\| (\d+) \| (`\w+/.+) \|$", LAYERS, flags=re.MULTILINE)
    return {
        unit: int(layer)
        for layer, listed in rows
        for unit in re.findall(r"`(\w+/\w+)`", re.sub(r"\([^()]*\)", "", listed))
    }


def imported(file: Path, package: Path = PACKAGE) -> set[tuple[str, ...]]:
    """Return the names that a file imports from the package, split at the dots."""
    package_path = ("private_consensus", *file.relative_to(PACKAGE).parts[:-1])
    imported_names = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom):
            base = package_path[: len(package_path) - node.level + 1] if node.level else ()
            base += tuple(node.module.split(".")) if node.module else ()
            imported_names |= {(*base, alias.name) for alias in node.names}
        elif isinstance(node, ast.Import):
            imported_names |= {tuple(alias.name.split(".")) for alias in node.names}
    return {name[1:] for name in imported_names if name[0] == "private_consensus" and len(name) > 1}


def unit_of(path: str) -> str:
    """Return the first two parts of a module path, which the table of layers lists."""
    return "/".join(path.split("/")[:2]).removesuffix(".py")


FILES = [
    file
    for file in sorted(PACKAGE.rglob("*.py"))
    if file.parent != PACKAGE and "template" not in file.parts
]


def higher_parts(file: Path) -> set[str]:
    """Return the imported parts of the package that are in higher layers than the file."""
    part_name = file.relative_to(PACKAGE).parts[0]
    return {
        name[0]
        for name in imported(file)
        if name[0] in PARTS and PARTS.index(name[0]) > PARTS.index(part_name)
    }


def test_the_layer_tables_list_every_part_and_unit():
    names = {file.relative_to(PACKAGE).parts[0].removesuffix(".py") for file in FILES}
    assert sorted(PARTS) == sorted(names)
    layered = {unit.split("/")[0] for unit in layers()}
    inside = {unit_of(file.relative_to(PACKAGE).as_posix()) for file in FILES}
    inside = {unit for unit in inside if unit.split("/")[0] in layered}
    assert sorted(layers()) == sorted(unit for unit in inside if not unit.endswith("__init__"))


@pytest.mark.parametrize("part_name", PARTS)
def test_a_part_imports_from_earlier_parts_only(part_name):
    files = [file for file in FILES if file.relative_to(PACKAGE).parts[0] == part_name]
    assert files
    assert {file.name: higher for file in files if (higher := higher_parts(file))} == {}


@pytest.mark.parametrize("unit", sorted(layers()))
def test_a_unit_imports_from_lower_layers_of_its_part_only(unit):
    layer = layers()
    files = [file for file in FILES if unit_of(file.relative_to(PACKAGE).as_posix()) == unit]
    used = {"/".join(name[:2]) for file in files for name in imported(file)} & set(layer) - {unit}
    assert {name for name in used if layer[name] >= layer[unit]} == set()


def test_known_imports_are_detected_by_the_parser():
    assert ("privacy", "Release") in imported(PACKAGE / "core" / "algorithms" / "base.py")
    assert ("core", "algorithms", "base", "column") in imported(FAMILIES / "admm.py")
    assert PARTS.index("privacy") < PARTS.index("core")
