"""Data sets of labelled images: their classes, and the encoding of their pixels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .prepared import Prepared

if TYPE_CHECKING:
    from .preparation import Preparation

Arrays = dict[str, np.ndarray]
"""Images ``x_train`` and ``x_test``, and their classes ``y_train`` and ``y_test``."""
UNIT = 1 / 255
BLOCK = 4
"""Side length of the blocks of pixels in the encoding ``parity``."""
NOTE = "Pixels are bytes divided by 255; this range does not depend on the data."
SURROGATE_ROWS = 12_000
"""Number of training images of a surrogate; the papers train on 10,000 images."""


@dataclass(frozen=True, kw_only=True)
class Images:
    """Images with one of several ``classes``."""

    classes: tuple[str, ...]

    def describe(self, raw: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """Return the numbers of images and pixels, and the most frequent class with its rate."""
        counts = np.bincount(np.concatenate([raw["y_train"], raw["y_test"]]))
        return {
            "rows": int(counts.sum()),
            "columns": int(raw["x_train"][0].size),
            "label": f"the most frequent of {len(counts)} classes",
            "label_rate": float(counts.max() / counts.sum()),
        }

    def encode(self, spec: Preparation, raw: Mapping[str, np.ndarray]) -> Prepared:
        """Encode images as features in [0, 1] of pixels or blocks, training images first.

        Pixels are float32.
        """
        images = np.concatenate([raw["x_train"], raw["x_test"]])
        classes = np.concatenate([raw["y_train"], raw["y_test"]]).astype(np.int8)
        train, test = np.split(np.arange(len(images)), [len(raw["y_train"])])
        if spec.encoding == "parity":
            side = images.shape[1] // BLOCK
            means = images.reshape(-1, side, BLOCK, side, BLOCK).mean((2, 4))
            features, prefix = means.reshape(len(images), -1) * UNIT, "block"
            labels, meaning = np.where(classes % 2, -1, 1).astype(np.int8), "+1: even digit"
            rate = np.mean(labels > 0)
        else:
            features, prefix = images.reshape(len(images), -1) * np.float32(UNIT), "pixel"
            labels, meaning = classes, f"classes {', '.join(self.classes)}"
            rate = np.bincount(classes).max() / len(classes)
        return Prepared(
            features=features,
            labels=labels,
            columns=tuple(f"{prefix}={i}" for i in range(features.shape[1])),
            protected={},
            splits={"train": train, "test": test},
            card={
                "columns": [prefix],
                "label": meaning,
                "label_rate": round(float(rate), 6),
                "protected": {},
                "notes": [NOTE],
            },
        )


def sample(rows: int | None, draw: Callable[[str, int], tuple[np.ndarray, np.ndarray]]) -> Arrays:
    """Sample a surrogate with ``rows`` training images, and a sixth as many test images.

    ``draw`` samples images and labels, from the name of a split and a number of images.
    """
    train = rows or SURROGATE_ROWS
    arrays = {}
    for split, count in (("train", train), ("test", train // 6)):
        arrays[f"x_{split}"], arrays[f"y_{split}"] = draw(split, count)
    return arrays
