"""Prepare images as feature vectors of pixels in [0, 1]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from .card import Card
from .catalogue import module_of
from .origin import Provenance
from .prepared import Prepared

if TYPE_CHECKING:
    from .preparation import Preparation

UNIT = 1 / 255
BLACK_TO_WHITE = "Pixels are bytes divided by 255; this range does not depend on the data."


def prepare(spec: Preparation, raw: Mapping[str, np.ndarray], provenance: Provenance) -> Prepared:
    """Prepare images as features ``[rows, pixels]`` in float32, training images first.

    Pixels are in [0, 1]. ``raw`` has images ``x_train`` and ``x_test``, and labels ``y_train`` and
    ``y_test``.
    """
    classes = module_of(spec.dataset).CLASSES
    images = np.concatenate([raw["x_train"], raw["x_test"]])
    labels = np.concatenate([raw["y_train"], raw["y_test"]]).astype(np.int8)
    counts = np.bincount(labels, minlength=len(classes))
    rows = np.arange(len(labels))
    splits = {"train": rows[: len(raw["y_train"])], "test": rows[len(raw["y_train"]) :]}
    features = images.reshape(len(images), -1) * np.float32(UNIT)
    card = Card.of(
        spec,
        provenance,
        rows=len(images),
        dim=features.shape[1],
        columns=("pixel",),
        label=f"classes {', '.join(classes)}",
        label_rate=round(float(counts.max() / counts.sum()), 6),
        splits={name: len(rows) for name, rows in splits.items()},
        notes=(
            spec.because,
            BLACK_TO_WHITE,
            "The pictures are means over a class and show no record.",
        ),
        marginals={"class": {"values": list(classes), "counts": counts.tolist()}},
        pictures={c: _mean(images[labels == i]) for i, c in enumerate(classes)},
    )
    return Prepared(
        features=features,
        labels=labels,
        columns=tuple(f"pixel={i}" for i in range(features.shape[1])),
        protected={},
        splits=splits,
        card=card,
        unit=UNIT,
    )


def _mean(images: np.ndarray) -> list:
    return np.rint(images.mean(axis=0)).astype(int).tolist() if len(images) else []
