"""Drawings of paper 002: its graph; all else are curves."""

from __future__ import annotations

from .wang import wang_fig1

gratton_fig1 = wang_fig1
