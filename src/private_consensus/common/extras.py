"""Optional dependencies, and the command that installs a missing one."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, requires

PROJECT = "private-consensus"
EXTRA_OF = {
    "docutils": "report",
    "ipumspy": "data",
    "jinja2": "report",
    "markdown_it": "report",
    "PIL": "report",
    "pooch": "data",
    "requests": "data",
    "snakemake": "workflow",
    "typst": "report",
    "ucimlrepo": "data",
    "vl_convert": "report",
}
"""Extra of each optional package, by its name in import statements."""
ALONE = {"altair": "altair>=6", "pandas": "pandas"}
"""Packages of single methods, with the requirement to install."""


def how_to_install(error: ModuleNotFoundError) -> str | None:
    """Return one line for an optional package; None for other packages.

    The line names the packages of the extra. It does not name the extra of this project, which
    would be looked up in a package index.
    """
    package = (error.name or "").partition(".")[0]
    if package in ALONE:
        names = [ALONE[package]]
    elif package in EXTRA_OF:
        names = packages_of(EXTRA_OF[package]) or [package]
    else:
        return None
    listed = " ".join(f"'{name}'" if re.search(r"[<>=]", name) else name for name in names)
    return f"{package} is not installed: pip install {listed}"


def packages_of(extra: str) -> list[str]:
    """Return the requirements of an extra, with those of the extras that it includes."""
    try:
        requirements = requires(PROJECT) or []
    except PackageNotFoundError:
        return []
    packages: list[str] = []
    for requirement in requirements:
        name, _, condition = requirement.partition(";")
        if condition.strip() != f'extra == "{extra}"':
            continue
        if included := re.match(rf"{PROJECT}\[(.*)\]", name):
            for nested in included[1].split(","):
                packages += packages_of(nested.strip())
        else:
            packages.append(name.strip())
    return packages


@contextmanager
def needed(package: str) -> Generator[None]:
    """Import an optional package inside; if it is missing, the error says how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
        raise ModuleNotFoundError(how_to_install(error), name=package) from error
