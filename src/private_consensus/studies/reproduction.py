"""``private-consensus reproduce``: figures, claims, privacy and audits of a study."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from ..algorithms import GROUP
from ..errors import InvalidInput, require
from ..provenance import write_text
from .places import HOME

KEPT = Path(".snakemake", "private-consensus")
"""Folder of what a study's own package is found by, where it is not installed."""


def reproduce(study: str | Path, scale: str | None, cores: int) -> int:
    """Make everything that a study asks for, by the workflow that this package brings.

    Parameters
    ----------
    study : str or Path
        Its folder.
    scale : str, optional
        One of its scales; that of its configuration if none is named.
    cores : int
        How many jobs may run side by side.

    Returns
    -------
    int
        The exit code of Snakemake.

    Raises
    ------
    InvalidInput
        For a folder without a study.
    ModuleNotFoundError
        Where Snakemake is not installed.
    """
    require("\0" not in str(study), "STUDY", str(study), "a folder with a Snakefile")
    folder = Path(study).absolute()
    snakefile = folder / "Snakefile"
    expected = "a folder with a Snakefile, as private-consensus init writes it"
    require(snakefile.is_file(), "STUDY", str(study), expected)
    require(cores >= 1, "--cores", cores, "a number >= 1")
    if find_spec("snakemake") is None:
        raise ModuleNotFoundError("No module named 'snakemake'", name="snakemake")
    done = subprocess.run(
        command(folder, scale, cores), cwd=folder, env=environment(folder), check=False
    )
    return done.returncode


def command(folder: Path, scale: str | None, cores: int) -> list[str]:
    """The call of Snakemake, as a user would type it in the study's folder."""
    chosen = [] if scale is None else ["--config", f"scale={scale}"]
    profile = ["--workflow-profile", str(HOME / "profiles" / "default")]
    executor = ["--executor", "forks" if sys.platform == "linux" else "local"]
    return [sys.executable, "-m", "snakemake", "--cores", str(cores), *executor, *profile, *chosen]


def environment(folder: Path) -> dict[str, str]:
    """Variables with which the study's own package is found, installed or not.

    An installation is a folder on the path and what it says of itself; both are there already.
    """
    _describe(folder)
    own = [str(folder / KEPT), str(folder / "src"), os.getenv("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, own))}


def _describe(folder: Path) -> None:
    """Write down what ``pip install`` would: a name, a version, entry points."""
    project = _project(folder)
    points = project.get("entry-points", {}).get(GROUP, {})
    name, version = project.get("name", folder.name), project.get("version", "0")
    place = folder / KEPT / f"{name.replace('-', '_')}-{version}.dist-info"
    lines = [f"[{GROUP}]", *(f"{point} = {module}" for point, module in points.items())]
    write_text(place / "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    write_text(place / "entry_points.txt", "\n".join(lines) + "\n")


def _project(folder: Path) -> Mapping:
    file = folder / "pyproject.toml"
    try:
        text = file.read_text(encoding="utf-8") if file.is_file() else ""
        return tomllib.loads(text).get("project", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(str(file), str(error), "TOML") from error
