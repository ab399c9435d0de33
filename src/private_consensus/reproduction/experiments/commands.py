"""Shell commands that build targets."""

from __future__ import annotations


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
