"""What is installed only when it is asked for: which extra brings a package that is missing."""

from __future__ import annotations

EXTRA_OF = {
    "altair": "report",
    "ipumspy": "data",
    "jinja2": "report",
    "latex2mathml": "report",
    "pooch": "data",
    "requests": "data",
    "snakemake": "workflow",
    "typst": "report",
    "ucimlrepo": "data",
    "urllib3": "data",
    "vl_convert": "report",
}
"""Of packages as they are imported."""


def how_to_install(error: ModuleNotFoundError) -> str | None:
    """Return one line for a package that an extra installs; None for other packages."""
    package = (error.name or "").partition(".")[0]
    if package not in EXTRA_OF:
        return None
    extra = EXTRA_OF[package]
    return f"{package} is not installed: pip install 'private-consensus[{extra}]'"
