"""Drawings of paper 004: its graph; all else are curves."""

from __future__ import annotations

from .wang import wang_fig1

ding_fig1 = wang_fig1
