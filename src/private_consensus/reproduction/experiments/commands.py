"""Shell commands that build targets, and a description of the commit."""

from __future__ import annotations

import subprocess
from pathlib import Path

UNKNOWN = "unknown"


def command(target: str, scale: str, *, force: bool = False) -> str:
    """Return the shell command that builds a target at a scale.

    Parameters
    ----------
    target : str
        Target of the workflow; an empty text builds everything.
    scale : str
        Name of the scale, such as ``paper``.
    force : bool, default False
        True if existing outputs are rebuilt.

    Returns
    -------
    str
    """
    words = ["snakemake", "--cores 2", "--force" if force else "", target]
    if scale != "paper":
        # The file comes last: Snakemake reads every later argument as a configuration file.
        words.append(f"--configfile config/{scale}.yaml")
    return " ".join(filter(None, words))


def described_commit(folder: str | Path) -> str:
    """Describe the commit of a repository (``git describe``); ``unknown`` without a commit."""
    call = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        done = subprocess.run(call, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return UNKNOWN
    return done.stdout.strip() or UNKNOWN
