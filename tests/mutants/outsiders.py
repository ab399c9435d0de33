"""Installation of the package in ``outside``, which is written independently of the audit.

Its authors read the documentation of the interface alone. Its algorithms are found as those of any
installed package: by entry points.
"""

from __future__ import annotations

import importlib
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path

from private_consensus import algorithms
from private_consensus.audits.examples import Example, examples

from .outside.catalogue import BROKEN, CORRECT

HERE = Path(__file__).parent / "outside"
_installed: list[str] = []
"""Folders that :func:`install` put on the path."""


def install() -> None:
    """Put the package and its entry points on the path, as an installation does."""
    if _installed:
        return
    project = tomllib.loads((HERE / "pyproject.toml").read_text())["project"]
    points = project["entry-points"][algorithms.GROUP]
    folder = Path(tempfile.mkdtemp(prefix="outside-"))
    name = project["name"].replace("-", "_")
    dist_info = folder / f"{name}-{project['version']}.dist-info"
    dist_info.mkdir()
    metadata = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (dist_info / "METADATA").write_text(metadata)
    lines = [f"[{algorithms.GROUP}]", *(f"{key} = {value}" for key, value in points.items())]
    (dist_info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    _installed.extend([str(HERE), str(folder)])
    sys.path[:0] = _installed
    _forget()


def uninstall() -> None:
    """Take the package from the path again."""
    for folder in _installed:
        sys.path.remove(folder)
    if _installed:
        shutil.rmtree(_installed[1])
    _installed.clear()
    _forget()


def _forget() -> None:
    importlib.invalidate_caches()
    algorithms._elsewhere.cache_clear()
    algorithms._module_of.cache_clear()


def example_of(module: str, *, by_name: bool = False) -> Example:
    """Return an algorithm of the package and the setting of its claim.

    Parameters
    ----------
    module : str
        Name of its entry point.
    by_name : bool, default False
        Whether to return the example that the module names instead, as in
        ``private-consensus audit NAME``.

    Returns
    -------
    Example
    """
    install()
    if by_name:
        return examples(module)[0]
    setting = (CORRECT | BROKEN)[module]
    algorithm = algorithms.load(module)(**setting.options)
    return Example(
        module, algorithm, setting.build_problem(), setting.build_network(), setting.budget,
        setting.horizon,
    )  # fmt: skip
