"""Encode small images for pages."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from io import BytesIO

import numpy as np
from PIL import Image


def data_uri(pixels: Sequence) -> str:
    """Encode an image as a ``data:`` address in PNG format.

    ``pixels`` contains grey values [height, width] or RGB values [height, width, 3] from 0 to 255.
    The image is not compressed, so that its bytes do not depend on the compression library.
    """
    content = BytesIO()
    Image.fromarray(np.asarray(pixels, np.uint8)).save(content, "PNG", compress_level=0)
    return f"data:image/png;base64,{base64.b64encode(content.getvalue()).decode()}"
