"""Write a new study (``private-consensus init``) that runs without changes."""

import keyword
import re
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from string import Template

from private_consensus.common.errors import arguments, require
from private_consensus.common.provenance import write_text
from private_consensus.core import algorithms, problems

from .places import HOME

TEMPLATE = Path(__file__).parent / "template"
SUFFIX = ".in"
"""Suffix of template files, in which ``$name`` and ``$version`` are replaced."""


def write_study(folder: str | Path) -> list[Path]:
    """Write a new study: configuration, algorithm, test and Snakefile.

    Parameters
    ----------
    folder : str or Path
        Folder that is missing or empty. Its name becomes the name of the Python package, the
        algorithm and the paper. It must be an unused lower-case word.

    Returns
    -------
    list of Path
        The files that were written.

    Raises
    ------
    InvalidInput
        If the name is taken or invalid for a package, or the folder is not empty.
    """
    require(folder != "", "STUDY", folder, "a new or an empty folder")
    folder = arguments.path("STUDY", folder, "a folder").absolute()
    name = folder.name
    _require_unused(name)
    is_empty = not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))
    require(is_empty, "STUDY", str(folder), "a new or an empty folder")
    values = {"name": name, "version": version("private-consensus")}
    written = []
    for path, text in _files():
        target = folder / Template(path).substitute(values)
        write_text(target, Template(text).substitute(values))
        written.append(target)
    return written


def _require_unused(name: str) -> None:
    """Raise an error if a name is used or is no valid name of a Python package."""
    is_package_name = re.fullmatch(r"[a-z][a-z0-9_]*", name) and not keyword.iskeyword(name)
    expected = "a lower-case word, valid as name of a Python package and no keyword of Python"
    require(bool(is_package_name), "STUDY", name, expected)
    papers = {path.stem for path in (HOME / "config" / "papers").glob("*.yaml")}
    used = {*algorithms.names(), *problems.names(), *papers}
    is_unused = name not in used and find_spec(name) is None
    require(is_unused, "STUDY", name, "a name that no algorithm, paper or Python package has")


def _files() -> Iterator[tuple[str, str]]:
    """Yield paths and texts of the template; a path may contain the name of the study."""
    for file in sorted(TEMPLATE.rglob(f"*{SUFFIX}")):
        path = file.relative_to(TEMPLATE).as_posix().removesuffix(SUFFIX)
        yield path, file.read_text(encoding="utf-8")
