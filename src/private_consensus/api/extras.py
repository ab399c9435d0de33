"""Optional dependencies, and the command that installs a missing one."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, requires

PROJECT = "private-consensus"
EXTRA_OF = {
    "ipumspy": "data",
    "jinja2": "report",
    "PIL": "report",
    "pooch": "data",
    "requests": "data",
    "sklearn": "data",
    "snakemake": "workflow",
    "typst": "report",
    "vl_convert": "report",
}
"""Extra of this project that contains an optional package, by the package's import name."""


def how_to_install(error: ModuleNotFoundError) -> str | None:
    """Return a line with the command that installs an optional package; None for other packages.

    The command lists the packages of the extra, so that it does not depend on a package index that
    contains this project.
    """
    package = (error.name or "").partition(".")[0]
    if package not in EXTRA_OF:
        return None
    names = packages_of(EXTRA_OF[package]) or [package]
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
