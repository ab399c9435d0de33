"""Draw figures as Vega-Lite charts: curves, and drawings of single papers, in one theme."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from operator import itemgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl


def module_of(paper: str) -> str | None:
    """Return the name of the module with the drawings of a paper; None if it has none."""
    module = f"{__name__}.papers.{paper}"
    return module if find_spec(module) else None


def draw(
    name: str,
    paper: str,
    numbers: pl.DataFrame,
    figure: Mapping[str, Any],
    styles: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """Draw a figure from its numbers as a Vega-Lite specification.

    The module of the paper may have a function with the name of the figure. Otherwise the figure
    consists of communication graphs or of curves. ``styles`` has label, colour and dash by
    ``algorithm.variant``.
    """
    # Imported here, because the workflow imports this module only for ``module_of``.
    from altair.utils.schemapi import debug_mode

    from .curves import curves
    from .panels import graph

    module = module_of(paper)
    drawings = vars(import_module(module)) if module else {}
    default = graph if all(map(itemgetter("graph"), figure["panels"])) else None
    drawing = drawings.get(name, default)
    # Without validation of parts; the finished chart is validated.
    with debug_mode(False):
        return drawing(numbers, figure) if drawing else curves(numbers, figure, styles)
