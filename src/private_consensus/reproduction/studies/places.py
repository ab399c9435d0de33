"""Locate the workflow of this package."""

from pathlib import Path

_INSTALLED = Path(__file__).parents[2] / "_workflow"
HOME = _INSTALLED if _INSTALLED.is_dir() else Path(__file__).parents[4]
"""Folder of the Snakefile, the rules, the shipped configuration and the profiles."""
SNAKEFILE = str(HOME / "Snakefile")
"""Path for ``module: snakefile:`` in another Snakefile."""
