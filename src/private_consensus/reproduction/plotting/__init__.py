"""Figures: one theme, curves from tidy numbers, a module for a paper with drawings of its own."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

SHARED = {
    "axes", "captions", "coinciding", "curves", "drawings", "figure_styles", "panels", "printing",
    "repairs", "specifications", "theme",
}  # fmt: skip
"""Modules of all papers."""


def module_of(paper: str) -> str | None:
    """Dotted name of the module with a paper's own drawings, if there is one."""
    modules = {module.name for module in pkgutil.iter_modules(__path__)} - SHARED
    return f"{__name__}.{paper}" if paper in modules else None


def draw(
    name: str,
    paper: str,
    numbers: pl.DataFrame,
    figure: Mapping[str, Any],
    styles: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """Draw a figure by the paper's function of that name, or as curves if there is none.

    Parameters
    ----------
    name : str
        Name of the figure.
    paper : str
        Key of the paper.
    numbers : polars.DataFrame
        Points of all panels.
    figure : mapping
        Specification of the figure.
    styles : mapping
        Label, colour and dash by ``algorithm.variant``.

    Returns
    -------
    dict
        Vega-Lite specification.
    """
    # Not sooner: whoever only asks for a module's name need not wait for the drawing library.
    from altair.utils.schemapi import debug_mode

    from .curves import curves

    module = module_of(paper)
    drawings = vars(import_module(module)) if module else {}
    # A chart is held against the schema when it is finished; each part would be, as it is made.
    with debug_mode(False):
        return drawings.get(name, curves)(numbers, figure, styles)
