"""Test that computations need no optional package, and that errors name missing packages."""

import ast
import os
import re
import runpy
import subprocess
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

from setuptools import Distribution

import private_consensus
from private_consensus import cli
from private_consensus.api import extras
from private_consensus.cli import describing
from private_consensus.reproduction.datasets import acquisition

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SOURCE = Path(private_consensus.__file__).parent
BROUGHT = {
    "llvmlite": "numba",
    "markupsafe": "jinja2",
    "requests": "pooch",
}
"""Imported packages that are not direct dependencies, and the dependency that installs each."""
WITHOUT_EXTRA = {"pandas"}
"""Optional packages that belong to no extra."""
MOST = 12
"""Maximum number of direct dependencies of an installation without extras."""

WITHOUT = f"""
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {sorted(extras.EXTRA_OF)}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())

import numpy as np
import private_consensus as pc
from private_consensus import cli

for name in pc.__all__:
    getattr(pc, name)
for room in (pc.algorithms, pc.problems):
    for name in room.names():
        room.load(name)
streams = pc.Streams(0, (0,))
problem = pc.problems.class_of("mean_estimation")(np.ones((1, 4, 2)) / 9, records=50, box=1.0)
network = pc.networks.build(streams, "ring", 4)
algorithm = pc.algorithms.load("gradient_descent")(calibration="gaussian_dp")
budget = pc.Budget(1.0, 1e-5)
done = pc.simulate(algorithm, problem, network, budget, 2, runs=2)
releases = done.algorithm.releases(problem, network, 2)
print(pc.account(releases, 1e-5).epsilon)
audited = pc.audit(algorithm, problem, network, budget, 2, runs=40, confidence=0.99, delta=1e-5)
print(audited.flagged)
print(pc.__file__)
print(cli.main(["init", "mystudy"]), cli.main(["run", "muffliato", "--runs", "2"]))
print(cli.main(["data"]))
print(cli.main(["list"]), cli.main(["privacy", "--scale", "2"]))
"""


def build(folder: Path) -> None:
    """Write the files of a wheel to a folder."""
    wheel = Distribution({"script_name": "setup.py"})
    wheel.parse_config_files()
    builder = runpy.run_path("setup.py", run_name="not main")["WithWorkflow"](wheel)
    builder.build_lib = str(folder)
    builder.ensure_finalized()
    builder.run()


@cache
def distributions_of_modules() -> dict[str, set[str]]:
    return {
        name: {distribution.lower() for distribution in distributions}
        for name, distributions in packages_distributions().items()
    }


def requirement_names(requirements) -> set[str]:
    return {re.match(r"[\w.-]+", text)[0].lower() for text in requirements}


def test_a_wheel_works_without_extras_and_outside_the_repository(tmp_path, monkeypatch):
    """Simulation, accounting, audit and command line run from an unrelated folder."""
    monkeypatch.chdir(ROOT)
    build(tmp_path / "wheel")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, cwd=tmp_path,
        # With a mirror, `data` would not need pooch, and the expected error would be missing.
        env={**os.environ, "PYTHONPATH": str(tmp_path / "wheel"), "PRIVATE_CONSENSUS_MIRROR": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert 0 < float(lines[0]) <= 1.0 and lines[1] == "False" and lines[-1] == "0 0"
    assert lines[2] == str(tmp_path / "wheel" / "private_consensus" / "__init__.py")
    assert (tmp_path / "mystudy" / "src" / "mystudy" / "algorithm.py").is_file()
    assert "0 0" in lines and "2" in lines
    assert " is not installed: pip install 'pooch" in done.stderr


def test_the_core_has_few_dependencies_and_each_is_imported():
    core = requirement_names(PROJECT["dependencies"])
    assert len(core) <= MOST
    owners = distributions_of_modules()
    imported_distributions = set().union(*(owners.get(name, set()) for name in imported()))
    assert core <= imported_distributions


@cache
def imported() -> frozenset[str]:
    """Return the top-level names of all external imports of the library."""
    text = "\n".join(file.read_text() for file in SOURCE.rglob("*.py"))
    module_names = set(re.findall(r"^ *(?:import|from) (\w+)(?:[. ].*)?$", text, re.MULTILINE))
    module_names |= set(re.findall(r"import_module\(\"(\w+)", text))
    return frozenset(module_names & set(distributions_of_modules()))


def test_optional_imports_are_listed_and_their_extras_install_them():
    owners = distributions_of_modules()
    direct = {
        name: requirement_names(texts) for name, texts in PROJECT["optional-dependencies"].items()
    }
    core = requirement_names(PROJECT["dependencies"])
    outside = {name for name in imported() - {"private_consensus"} if not owners[name] & core}
    optional = {*extras.EXTRA_OF, *WITHOUT_EXTRA}
    assert outside - set(BROUGHT) == optional - set(BROUGHT) - {"snakemake"}
    for name in outside - set(BROUGHT) - WITHOUT_EXTRA:
        assert owners[name] & direct[extras.EXTRA_OF[name]], name


def test_the_error_for_a_missing_package_states_the_install_command(monkeypatch, capsys):
    def missing():
        raise ModuleNotFoundError("No module named 'pooch'", name="pooch")

    monkeypatch.setattr(acquisition, "default_cache", missing)
    monkeypatch.setattr(describing, "data", lambda options: acquisition.default_cache())
    assert cli.main(["data"]) == 2
    error_message = capsys.readouterr().err
    command = " ".join(f"'{text}'" for text in PROJECT["optional-dependencies"]["data"])
    line = f"private-consensus: pooch is not installed: pip install {command}"
    assert error_message == f"{line}; without data sets: --source surrogate\n"


def test_install_commands_do_not_name_the_unpublished_project():
    """The extra of an unpublished project would be looked up in a package index."""
    for package in extras.EXTRA_OF:
        message = extras.how_to_install(ModuleNotFoundError("missing", name=package))
        _, _, command = message.partition("pip install ")
        assert command and extras.PROJECT not in command
    workflow = set(extras.packages_of("workflow"))
    assert workflow == {
        text
        for extra in ("data", "report", "workflow")
        for text in PROJECT["optional-dependencies"][extra]
        if not text.startswith(extras.PROJECT)
    }
    for file in SOURCE.rglob("*"):
        if file.suffix in {".py", ".yaml", ".in", ".j2"}:
            assert not re.search(r"pip install \S*private[-_]consensus", file.read_text()), file


def test_the_type_stub_lists_every_exported_name_with_its_module():
    tree = ast.parse((SOURCE / "__init__.pyi").read_text())
    stub_names = {
        alias.asname: (node.module or "", alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert set(stub_names) == set(private_consensus.__all__)
    for name, (module, attribute) in stub_names.items():
        stub_module = __import__(f"private_consensus.{module}".rstrip("."), fromlist=[attribute])
        assert getattr(stub_module, attribute, None) is getattr(private_consensus, name)
