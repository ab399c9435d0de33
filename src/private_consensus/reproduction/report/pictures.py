"""Small images inside a page."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from io import BytesIO

import numpy as np
from PIL import Image


def data_uri(rows: Sequence) -> str:
    """Encode grey values [height, width] or RGB values [height, width, 3], 0 to 255, as an address.

    The image is not compressed, so that its bytes do not depend on the compressor.
    """
    content = BytesIO()
    Image.fromarray(np.asarray(rows, np.uint8)).save(content, "PNG", compress_level=0)
    return f"data:image/png;base64,{base64.b64encode(content.getvalue()).decode()}"
