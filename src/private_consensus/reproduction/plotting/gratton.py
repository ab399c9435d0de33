"""Drawing of the graph of Gratton et al. (2020); its other figures are curves."""

from __future__ import annotations

from .wang import wang_fig1

gratton_fig1 = wang_fig1
