"""Run ``private-consensus reproduce``: figures, claims, privacy and audits of a study."""

import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from private_consensus.common.errors import InvalidInput, arguments, require
from private_consensus.common.provenance import write_text
from private_consensus.core.algorithms import GROUP

from ..configuration.schema import read_yaml
from .places import HOME

METADATA_FOLDER = Path(".snakemake", "private-consensus")
"""Folder with metadata of the package of a study that is not installed."""
SCALES = ("paper", "smoke")
SUMMARY, FINDINGS = "summary.md", "findings.json"
"""Files of a study: its page, and one line per audit that contradicts a privacy claim."""


def reproduce(study: str | Path, scale: str | None, cores: int) -> Path | None:
    """Compute all results of a study with the workflow of this package.

    Summary and findings of an earlier run are deleted, so that they are those of this run.

    Parameters
    ----------
    scale : str, optional
        Scale of the study; that of its configuration if omitted.
    cores : int
        Maximum number of parallel jobs.

    Returns
    -------
    Path or None
        Folder of the results; None if a job failed.

    Raises
    ------
    InvalidInput
        If the folder contains no study, or its configuration no valid scale.
    ModuleNotFoundError
        If Snakemake is not installed.
    """
    expected = "a folder with a Snakefile, as private-consensus init writes it"
    folder = arguments.path("STUDY", study, expected).absolute()
    require((folder / "Snakefile").is_file(), "STUDY", str(study), expected)
    require(cores >= 1, "--cores", cores, "a number >= 1")
    if find_spec("snakemake") is None:
        raise ModuleNotFoundError("No module named 'snakemake'", name="snakemake")
    stated = scale or read_yaml(folder / "config" / "config.yaml").get("scale")
    results = folder / "results" / arguments.choice("scale", stated, SCALES)
    for name in (SUMMARY, FINDINGS):
        (results / name).unlink(missing_ok=True)
    command = [
        sys.executable, "-m", "snakemake", "--cores", str(cores),
        "--executor", "forks" if sys.platform == "linux" else "local",
        "--workflow-profile", str(HOME / "profiles" / "default"),
        *([] if scale is None else ["--config", f"scale={scale}"]),
    ]  # fmt: skip
    # Snakemake receives an interrupt, too. It then ends its jobs and unlocks the folder.
    handler = signal.signal(signal.SIGINT, lambda *_: None)
    process = subprocess.run(command, cwd=folder, env=environment(folder), check=False)
    signal.signal(signal.SIGINT, handler)
    return None if process.returncode else results


def environment(folder: Path) -> dict[str, str]:
    """Return environment variables with which the package of a study is importable."""
    folders = [*package_folders(folder), os.getenv("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))}


def package_folders(folder: Path) -> list[str]:
    """Return the folders that make the package of a study importable without an installation.

    The first one contains the metadata that ``pip install`` would write: name, version and entry
    points. There is no folder if the study declares no entry points.
    """
    project = _project(folder)
    points = project.get("entry-points", {}).get(GROUP, {})
    if not points:
        return []
    name, version = project.get("name", folder.name), project.get("version", "0")
    metadata = folder / METADATA_FOLDER / f"{name.replace('-', '_')}-{version}.dist-info"
    lines = [f"[{GROUP}]", *(f"{point} = {module}" for point, module in points.items())]
    write_text(metadata / "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    write_text(metadata / "entry_points.txt", "\n".join(lines) + "\n")
    return [str(folder / METADATA_FOLDER), str(folder / "src")]


def _project(folder: Path) -> Mapping:
    """Return the table ``project`` of the pyproject.toml of a study, empty without a file."""
    file = folder / "pyproject.toml"
    try:
        text = file.read_text(encoding="utf-8") if file.is_file() else ""
        return tomllib.loads(text).get("project", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidInput(str(file), str(error), "TOML") from error
