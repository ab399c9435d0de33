"""Drawing of the graph of Ding (2022); its other figures are curves."""

from __future__ import annotations

from .wang import wang_fig1

ding_fig1 = wang_fig1
