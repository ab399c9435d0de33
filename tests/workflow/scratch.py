"""A scratch copy of the repository, and Snakemake called in it as its users call it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PARTS = (
    "Snakefile",
    "docs/faults.yaml",
    "workflow",
    "config",
    "profiles",
    "src",
    "environment.yml",
    "requirements.txt",
)
FIGURE = "showkatbakhsh_extra_reconstruction"
OTHER = "showkatbakhsh_extra_box"


def copy_to(folder: Path) -> Path:
    """Copy what a reproduction needs, compiled modules too, and nothing that it makes."""
    for part in PARTS:
        source = ROOT / part
        (folder / part).parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, folder / part, ignore=shutil.ignore_patterns("*.egg-info"))
        else:
            shutil.copy(source, folder / part)
    return folder


def command(*arguments: str, runs: int = 2, cores: int = 1) -> list[str]:
    """A call at smoke scale, of paper 000 alone."""
    small = ["--configfile", "config/smoke.yaml", "--config", f"runs={runs}"]
    paper = "papers=[showkatbakhsh]"
    return [sys.executable, "-m", "snakemake", "--cores", str(cores), *arguments, *small, paper]


def environment() -> dict[str, str]:
    """Without a path to the installed library: the copy uses its own."""
    kept = dict(os.environ)
    kept.pop("PYTHONPATH", None)
    return kept


def call(folder: Path, arguments: list[str], **options) -> subprocess.CompletedProcess:
    """Run to the end, with all that was said."""
    return subprocess.run(
        arguments, cwd=folder, env=environment(), capture_output=True, text=True, **options
    )


def make(folder: Path, *targets: str, runs: int = 2, cores: int = 1) -> subprocess.CompletedProcess:
    """Make targets."""
    return call(folder, command(*targets, runs=runs, cores=cores))


def said(done: subprocess.CompletedProcess) -> str:
    """Everything that a call printed."""
    return done.stdout + done.stderr


def planned(folder: Path, *targets: str) -> dict[str, int]:
    """Jobs that a dry run announces, besides the targets, which always ask what they rest on."""
    targets = targets or (FIGURE, OTHER)
    done = make(folder, *targets, "--dry-run")
    assert done.returncode == 0, said(done)
    table = re.search(r"job +count\n-+ +-+\n(.*?)\ntotal", said(done), re.S)
    rows = (row.split() for row in table[1].splitlines()) if table else ()
    return {name: int(count) for name, count in rows if name not in targets}


def append(folder: Path, file: str, text: str) -> None:
    """An edit."""
    path = folder / file
    path.write_text(path.read_text() + text)
