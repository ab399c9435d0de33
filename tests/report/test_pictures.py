"""Test that images embedded in the page as data URIs can be decoded without loss."""

from __future__ import annotations

import base64
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from private_consensus.report.views.data import data_uri

GREY = np.arange(28 * 28).reshape(28, 28) % 256
COLOUR = np.arange(4 * 5 * 3).reshape(4, 5, 3)


@pytest.mark.parametrize("pixels", [GREY, COLOUR, [[0]], [[[255, 0, 128]]]])
def test_a_data_uri_encodes_an_image_without_loss(pixels):
    kind, _, content = data_uri(pixels).partition(",")
    assert kind == "data:image/png;base64"
    picture = Image.open(BytesIO(base64.b64decode(content)))
    assert np.asarray(picture).tolist() == np.asarray(pixels).tolist()
