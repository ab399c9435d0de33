"""Files of a new algorithm: its module, its test and its entry in the design or in a package.

The written files run unchanged. The update of the algorithm belongs in ``step``.
"""

from __future__ import annotations

import keyword
import re
from pathlib import Path
from string import Template

from private_consensus.common import yamls
from private_consensus.common.errors import require
from private_consensus.common.provenance import write_text
from private_consensus.core import algorithms

DESIGN = "config/comparison.yaml"
NAME = re.compile(r"[a-z][a-z0-9_]*")

ALGORITHM = Template('''r"""$title: replace this line by a summary of the algorithm.

.. math:: x_i^{t+1} = \\sum_j w_{ij} x_j^t
    - \\eta\\bigl(\\mathrm{clip}_C(\\nabla f_i(\\cdot)) + N(0, \\sigma^2 I)\\bigr)

Each agent sends a noisy gradient step from the weighted mean of the messages of the previous round.
To an eavesdropper, T rounds are T composed Gaussian mechanisms. Replacing a record changes the
clipped gradient of an agent by at most ``change`` in l2 norm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from ${package}families.clipped_descent import ClippedDescent

EXAMPLE = "logistic_regression"
"""Small problem on which the algorithm is tested and audited."""


class State(NamedTuple):
    """Messages of the last round, [settings, runs, agents, dim]."""

    x: np.ndarray


@dataclass(frozen=True, kw_only=True)
class $kind(ClippedDescent):
    """$title; ``eta``, ``clip`` and ``noise`` are the parameters of its base class."""

    source: ClassVar[str] = "paper, section, equation"

    def losses(self, problem, network, horizon):
        return np.full(horizon, self.change(problem))

    def start(self, problem, network, streams, settings):
        return State(np.zeros((settings, len(streams.runs), problem.n_agents, problem.dim)))

    def step(self, state, problem, network, draw, t):
        mixed = network.mix(state.x)
        return State(self.descent(problem, mixed) + self.message_scale * draw)


ALGORITHM = $kind
''')

TEST = Template('''"""Tests of $title: conformance to the interface, audit and convergence."""

import numpy as np

from private_consensus import Budget, audit, simulate
from private_consensus.audits.conformance import check, world_of
from private_consensus.audits.examples import examples

NAME = "$name"


def test_it_conforms_to_the_interface():
    check(NAME)


def test_an_audit_does_not_contradict_it():
    (example,) = examples(NAME)
    result = audit(*example.world, runs=200, confidence=0.99, delta=example.budget.delta)
    assert not result.flagged, result.lines()


def test_the_error_decreases_without_noise():
    instance = world_of(NAME)
    algorithm, problem, network = instance.algorithm, instance.problem, instance.network
    simulation = simulate(algorithm, problem, network, Budget(np.inf), 50, runs=1)
    errors = simulation.measurements.sort("t")["value"]
    assert errors[-1] < errors[0]
''')

PROJECT = Template("""[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "$project"
version = "0.1.0"
dependencies = ["private-consensus"]

[project.entry-points."private_consensus.algorithms"]
$name = "$name"

[tool.setuptools]
py-modules = ["$name"]
""")


def new_algorithm(name: str, folder: str | Path = ".", *, package: bool = False) -> list[Path]:
    """Write the files of a new algorithm.

    Parameters
    ----------
    name : str
        Name of the algorithm in the registry.
    folder : path
        Folder of the repository, or, for a ``package``, a folder for it.
    package : bool, default False
        True to write a separate package. Once installed, its entry point registers it.

    Returns
    -------
    list of paths
        Written files: algorithm, test, and the file with the entry.

    Raises
    ------
    InvalidInput
        For an invalid or existing name, a folder that is no repository, or an existing file. No
        file is written in this case.
    """
    expected = "lower-case letters, digits and underscores, first a letter, no keyword of Python"
    is_valid = bool(NAME.fullmatch(name)) and not keyword.iskeyword(name)
    require(is_valid, "NAME", name, expected)
    existing = {*algorithms.names(), *algorithms.SHARED}
    require(name not in existing, "NAME", name, "a name that no algorithm has")
    folder = Path(folder)
    files = _package(name, folder) if package else _repository(name, folder)
    for path in files:
        entry = not package and path == folder / DESIGN
        require(entry or not path.exists(), "NAME", name, f"no file {path} yet")
    for path, text in files.items():
        write_text(path, text)
    return list(files)


def _words(name: str) -> dict[str, str]:
    words = [word for word in name.split("_") if word]
    return {
        "name": name,
        "title": " ".join(words).capitalize(),
        "kind": "".join(word.capitalize() for word in words),
        "project": name.replace("_", "-").strip("-"),
    }


def _repository(name: str, folder: Path) -> dict[Path, str]:
    design, package = folder / DESIGN, folder / "src" / "private_consensus" / "core" / "algorithms"
    is_repository = design.is_file() and package.is_dir()
    require(
        is_repository, "folder", str(folder), f"a repository with {DESIGN}; or --package FOLDER"
    )
    words = _words(name)
    return {
        package / f"{name}.py": ALGORITHM.substitute(words, package="."),
        folder / "tests" / "core" / f"test_{name}.py": TEST.substitute(words),
        design: with_method(design.read_text(encoding="utf-8"), name, words["title"]),
    }


def _package(name: str, folder: Path) -> dict[Path, str]:
    words = _words(name)
    absolute_package = "private_consensus.core.algorithms."
    return {
        folder / f"{name}.py": ALGORITHM.substitute(words, package=absolute_package),
        folder / f"test_{name}.py": TEST.substitute(words),
        folder / "pyproject.toml": PROJECT.substitute(words),
    }


def with_method(text: str, name: str, title: str) -> str:
    """Return the text of a design with one more method at the end; all other text is unchanged.

    Parameters
    ----------
    text : str
        Text of the design's YAML file.
    name : str
        Name of the algorithm.
    title : str
        Title of the method.

    Returns
    -------
    str

    Raises
    ------
    InvalidInput
        If the design has no block of methods, or already has a method of this name.
    """
    lines = text.splitlines(keepends=True)
    starts = [i for i, line in enumerate(lines) if line.rstrip() == "methods:"]
    require(len(starts) == 1, DESIGN, len(starts), "exactly one line `methods:` with a block")
    after = range(starts[0] + 1, len(lines))
    # Unindented comments belong to the key that follows.
    end = next((i for i in after if re.match(r"\S", lines[i])), len(lines))
    entry = f"  {name}: {{title: {title}, algorithm: {{name: {name}}}}}\n"
    extended = "".join([*lines[:end], entry, *lines[end:]])
    # The parser refuses a repeated name.
    yamls.parse(extended, DESIGN)
    return extended
