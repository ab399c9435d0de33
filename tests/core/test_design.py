"""Test that the imports follow the layers of docs/explanation/architecture.md."""

import ast
import re
from abc import ABC
from pathlib import Path

import pytest

from private_consensus import algorithms
from private_consensus.core.algorithms.base import METHOD, Algorithm

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


def test_families_import_no_algorithm():
    for file in FAMILIES.glob("*.py"):
        algorithm_modules = {
            name[2] for name in imported(file) if name[:2] == ("core", "algorithms")
        }
        assert algorithm_modules <= {"base", "noise", "parameters", "families"}, file.name


def test_dp_admm_and_exact_admm_do_not_import_d_zoa():
    for name in ("dp_admm", "exact_admm"):
        imports = imported(PACKAGE / "core" / "algorithms" / f"{name}.py")
        assert ("core", "algorithms", "d_zoa") not in {module_path[:3] for module_path in imports}


def test_the_architecture_page_names_each_family():
    families = {file.stem for file in FAMILIES.glob("*.py")} - {"__init__"}
    assert families == set(re.findall(r"families/(\w+)", DESIGN))


def depth(kind: type) -> int:
    """Return the length of the inheritance chain from ``Algorithm`` to a class."""
    return 0 if kind in (object, ABC) else 1 + max(map(depth, kind.__bases__))


def files_above(kind: type) -> set[str]:
    """Return the modules of other algorithms from which a class inherits."""
    modules = {base.__module__ for base in kind.__mro__[1:] if issubclass(base, Algorithm)}
    shared = (
        "private_consensus.core.algorithms.base",
        "private_consensus.core.algorithms.families.",
    )
    return {module for module in modules - {kind.__module__} if not module.startswith(shared)}


@pytest.mark.parametrize("name", algorithms.names())
def test_an_inheritance_chain_has_at_most_five_classes_and_no_other_method(name):
    kind = algorithms.load(name)
    assert depth(kind) <= 5
    assert kind.kind != METHOD or not files_above(kind)


def test_a_longer_inheritance_chain_and_another_method_as_base_are_detected():
    kind = algorithms.load("ipp_admm")
    assert depth(Algorithm) == 1 and depth(kind) == 5
    subclass = type("Own", (kind,), {})
    assert depth(subclass) == 6
    assert files_above(subclass) == {kind.__module__} and files_above(kind) == set()


def test_the_families_of_methods_on_the_architecture_page_are_correct():
    rows = re.findall(r"^\| `families/(\w+)` \| [^|`]+ \| (`.+`) \|$", DESIGN, re.MULTILINE)
    listed_families = {
        name: family for family, names in rows for name in re.findall(r"`(\w+)`", names)
    }
    nearest = {}
    for name in algorithms.names():
        above = [base.__module__ for base in algorithms.load(name).__mro__[1:]]
        family_modules = [module.rpartition(".")[2] for module in above if ".families." in module]
        if family_modules and algorithms.load(name).kind == METHOD:
            nearest[name] = family_modules[0]
    page = "docs/explanation/architecture.md: the table of families"
    assert listed_families.items() <= nearest.items(), (
        f"{page} names another family of an algorithm"
    )
    assert set(listed_families.values()) >= set(nearest.values()), f"{page} lacks a family"
