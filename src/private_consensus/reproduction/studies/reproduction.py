"""Run ``private-consensus reproduce``: figures, claims, privacy and audits of a study."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from private_consensus.common.errors import InvalidInput, require
from private_consensus.common.provenance import write_text
from private_consensus.core.algorithms import GROUP

from .places import HOME

KEPT = Path(".snakemake", "private-consensus")
"""Folder of what a study's own package is found by, where it is not installed."""


def reproduce(
    study: str | Path, scale: str | None, cores: int, *, log_to_stderr: bool = False
) -> int:
    """Compute all results of a study with the workflow of this package.

    Parameters
    ----------
    study : str or Path
        Folder of the study.
    scale : str, optional
        Scale of the study; that of its configuration if omitted.
    cores : int
        Maximum number of parallel jobs.
    log_to_stderr : bool, default False
        Whether all output of Snakemake goes to standard error.

    Returns
    -------
    int
        Exit code of Snakemake.

    Raises
    ------
    InvalidInput
        If the folder contains no study.
    ModuleNotFoundError
        If Snakemake is not installed.
    """
    require("\0" not in str(study), "STUDY", str(study), "a folder with a Snakefile")
    folder = Path(study).absolute()
    snakefile = folder / "Snakefile"
    expected = "a folder with a Snakefile, as private-consensus init writes it"
    require(snakefile.is_file(), "STUDY", str(study), expected)
    require(cores >= 1, "--cores", cores, "a number >= 1")
    if find_spec("snakemake") is None:
        raise ModuleNotFoundError("No module named 'snakemake'", name="snakemake")
    log = sys.stderr if log_to_stderr else None
    done = subprocess.run(
        command(folder, scale, cores), cwd=folder, env=environment(folder), stdout=log, check=False
    )
    return done.returncode


def command(folder: Path, scale: str | None, cores: int) -> list[str]:
    """Return the command line of Snakemake for a study.

    Parameters
    ----------
    folder : Path
        Folder of the study.
    scale : str or None
        Scale of the study; that of its configuration if None.
    cores : int
        Maximum number of parallel jobs.

    Returns
    -------
    list of str
        Program and arguments.
    """
    overrides = [] if scale is None else ["--config", f"scale={scale}"]
    profile = ["--workflow-profile", str(HOME / "profiles" / "default")]
    executor = ["--executor", "forks" if sys.platform == "linux" else "local"]
    return [
        sys.executable,
        "-m",
        "snakemake",
        "--cores",
        str(cores),
        *executor,
        *profile,
        *overrides,
    ]


def environment(folder: Path) -> dict[str, str]:
    """Return environment variables with which the package of a study is importable.

    The package need not be installed: the variables add its sources and its metadata to the path.
    """
    _describe(folder)
    folders = [str(folder / KEPT), str(folder / "src"), os.getenv("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))}


def _describe(folder: Path) -> None:
    """Write the metadata that ``pip install`` would write: name, version, entry points."""
    project = _project(folder)
    points = project.get("entry-points", {}).get(GROUP, {})
    name, version = project.get("name", folder.name), project.get("version", "0")
    metadata = folder / KEPT / f"{name.replace('-', '_')}-{version}.dist-info"
    lines = [f"[{GROUP}]", *(f"{point} = {module}" for point, module in points.items())]
    write_text(metadata / "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    write_text(metadata / "entry_points.txt", "\n".join(lines) + "\n")


def _project(folder: Path) -> Mapping:
    file = folder / "pyproject.toml"
    try:
        text = file.read_text(encoding="utf-8") if file.is_file() else ""
        return tomllib.loads(text).get("project", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(str(file), str(error), "TOML") from error
