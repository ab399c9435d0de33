"""A scratch copy of the repository, and Snakemake called in it as its users call it.

A call is a process of its own with its own folder, arguments and output. It is forked from one that
has imported Snakemake and other people's libraries, and nothing of the project: importing them
would be half of what a call takes.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from threading import Timer

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
SNAKEMAKE = [sys.executable, "-m", "snakemake"]
COMMAND = ["private-consensus"]
PATIENCE = 1200
"""Seconds after which a call that hangs is killed."""

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(
    ["snakemake.cli", "numpy", "polars", "pydantic", "scipy.stats", "jinja2", "numba", "rich"]
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
    return [*SNAKEMAKE, "--cores", str(cores), *arguments, *small, paper]


def environment() -> dict[str, str]:
    """Without a path to the installed library: the copy uses its own."""
    kept = dict(os.environ)
    kept.pop("PYTHONPATH", None)
    return kept


def call(folder: Path, arguments: list[str]) -> subprocess.CompletedProcess:
    """Run to the end, with all that was said: Snakemake, the command, or ``python`` and a text."""
    heard, said = zip(*(FORKS.Pipe(duplex=False) for _ in range(2)), strict=True)
    process = FORKS.Process(target=_called, args=(folder, arguments, environment(), said))
    process.start()
    for end in said:
        end.close()
    watch = Timer(PATIENCE, process.kill)
    watch.start()
    with ThreadPoolExecutor(2) as listeners:
        texts = list(listeners.map(_all_of, heard))
    process.join()
    watch.cancel()
    return subprocess.CompletedProcess(arguments, process.exitcode, *texts)


def _all_of(pipe: Connection) -> str:
    with os.fdopen(os.dup(pipe.fileno()), encoding="utf-8") as stream:
        return stream.read()


def _called(folder: Path, arguments: list[str], variables: dict, said: list[Connection]) -> None:
    """In a process of its own, which has imported nothing of the project."""
    assert not any(name.startswith("private_consensus") for name in sys.modules)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    for stream, pipe in zip((1, 2), said, strict=True):
        os.dup2(pipe.fileno(), stream)
        pipe.close()
    if arguments[: len(SNAKEMAKE)] == SNAKEMAKE:
        from snakemake.cli import main

        sys.argv = ["snakemake", *arguments[len(SNAKEMAKE) :]]
        main()
    sys.path.insert(0, str(folder / "src"))
    if arguments[: len(COMMAND)] == COMMAND:
        from private_consensus.cli import main

        sys.exit(main(arguments[len(COMMAND) :]))
    name, text = arguments
    assert name == "python"
    exec(text, {"__name__": "__main__"})


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
