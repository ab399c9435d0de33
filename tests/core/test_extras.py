"""Test that computations need no optional package, and that errors name missing packages."""

import ast
import os
import runpy
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution

import private_consensus
from private_consensus.cli import OPTIONAL

ROOT = Path(__file__).parents[2]
SOURCE = Path(private_consensus.__file__).parent

WITHOUT = f"""
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {sorted(OPTIONAL)}:
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
audited = pc.audit(algorithm, problem, network, budget, 2, pairs=4)
print(audited.finding)
print(pc.__file__)
print(cli.main(["init", "mystudy"]), cli.main(["run", "muffliato", "--runs", "2"]))
print(cli.main(["data"]))
print(cli.main(["list"]))
"""


def build(folder: Path) -> None:
    """Write the files of a wheel to a folder."""
    wheel = Distribution({"script_name": "setup.py"})
    wheel.parse_config_files()
    builder = runpy.run_path("setup.py", run_name="not main")["WithWorkflow"](wheel)
    builder.build_lib = str(folder)
    builder.ensure_finalized()
    builder.run()


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
    assert 0 < float(lines[0]) <= 1.0 and lines[1] == "False" and lines[-1] == "0"
    assert lines[2] == str(tmp_path / "wheel" / "private_consensus" / "__init__.py")
    assert (tmp_path / "mystudy" / "src" / "mystudy" / "algorithm.py").is_file()
    assert "0 0" in lines and "2" in lines
    assert "pooch is not installed" in done.stderr


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
