"""Refuse results that the present code and settings would not reproduce.

Snakemake reruns outdated jobs, unless options disable this (``--touch``, ``--rerun-triggers``), its
records were lost, or a file was copied. The report therefore compares the hashes of settings and
code in each result with those of its job, and the checksums of its files.
"""

from collections.abc import Mapping
from pathlib import Path

from private_consensus.common.errors import Refused
from private_consensus.common.readable import DAMAGED

from .files import damaged, provenance_of

MAX_TARGETS = 5
"""Largest number of results that the command in a message names."""


def require_current(expected: Mapping[str, Mapping[str, str]], *, scale: str) -> None:
    """Raise ``InvalidInput`` if a result is out of date or damaged.

    ``expected`` has the hashes of settings and code of each result. The error names the first such
    file and the command that computes all of them again.
    """
    defects = {path: _defect(path, hashes) for path, hashes in expected.items()}
    defects = {path: defect for path, defect in defects.items() if defect}
    for file, problem in defects.values():
        targets = command(" ".join(list(defects)[:MAX_TARGETS]), scale, force=True)
        count = len(defects) - MAX_TARGETS
        further = f" ({count} more results are out of date)" if count > 0 else ""
        remedy = f"a current result; run `{targets}`, with the --config of your run{further}"
        raise Refused([f"{file}: found {problem!r}, expected {remedy}"])


def _defect(path: str, expected: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the file that makes a result unusable and the reason; None for a current result."""
    if not Path(path).is_file():
        return path, "nothing"
    if files := damaged(path):
        return files[0], DAMAGED
    actual = provenance_of(path)
    differences = [name for name, value in expected.items() if actual[name] != value]
    return (path, f"made with other {' and other '.join(differences)}") if differences else None


def command(target: str, scale: str, *, force: bool = False) -> str:
    """Return the shell command that builds a target, by default everything, at a scale.

    If ``force``, existing outputs are rebuilt.
    """
    words = ["snakemake", "--cores 2", "--force" if force else "", target]
    if scale != "paper":
        # The file comes last: Snakemake reads every later argument as a configuration file.
        words.append(f"--configfile config/{scale}.yaml")
    return " ".join(filter(None, words))
