"""Images as rows of pixels in [0, 1]."""

from __future__ import annotations
