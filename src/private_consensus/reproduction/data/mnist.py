"""MNIST (LeCun, Cortes, Burges): 70,000 handwritten digits of 28 x 28 pixels.

Hosts compress the four files differently; the checksums cover the uncompressed contents.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

from .images import Images, sample

FILES = {
    "x_train": "train-images-idx3-ubyte.gz",
    "y_train": "train-labels-idx1-ubyte.gz",
    "x_test": "t10k-images-idx3-ubyte.gz",
    "y_test": "t10k-labels-idx1-ubyte.gz",
}
SCHEMA = Images(classes=tuple("0123456789"))
SIDE = 28


def read(folder: Path) -> dict[str, np.ndarray]:
    """Read images and labels from the four files."""
    return {name: read_idx(folder / file) for name, file in FILES.items()}


def read_idx(path: Path) -> np.ndarray:
    """Read an array of bytes from a gzipped IDX file."""
    contents = gzip.decompress(path.read_bytes())
    rank = contents[3]
    shape = np.frombuffer(contents, ">i4", rank, 4)
    return np.frombuffer(contents, np.uint8, offset=4 + 4 * rank).reshape(shape).copy()


def surrogate(rows: int | None, generator: np.random.Generator) -> dict[str, np.ndarray]:
    """Sample scikit-learn's handwritten digits, enlarged to 28 x 28 pixels and randomly distorted.

    Training and test images come from disjoint sets of its 1,797 digits of 8 x 8 pixels.
    """
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = generator.permutation(len(digits.target))
    test_digits, training_digits = order[: len(order) // 5], order[len(order) // 5 :]

    def draw(split: str, count: int) -> tuple[np.ndarray, np.ndarray]:
        picked = generator.choice(training_digits if split == "train" else test_digits, count)
        images = _enlarge(digits.images[picked].astype(np.float32), generator)
        return images, digits.target[picked].astype(np.uint8)

    return sample(rows, draw)


def _enlarge(images: np.ndarray, generator: np.random.Generator, *, block: int = 4096):
    blocks = [_jittered(images[i : i + block], generator) for i in range(0, len(images), block)]
    return np.concatenate(blocks)


def _jittered(images: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """Resample images to 28 x 28 pixels with a small random rotation, scaling, shear and shift."""
    n = len(images)
    angle = generator.normal(0, 0.12, n).astype(np.float32)
    size = generator.normal(1.0, 0.07, n).astype(np.float32)
    shear = generator.normal(0, 0.12, n).astype(np.float32)
    shift = generator.normal(0, 0.35, (2, n)).astype(np.float32)
    # As in MNIST, the digit fills the middle 20 pixels, to which its 8 pixels are mapped.
    axis = (np.arange(SIDE, dtype=np.float32) - (SIDE - 1) / 2) * (8 / 20)
    y, x = (grid.reshape(1, -1) for grid in np.meshgrid(axis, axis, indexing="ij"))
    cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
    scale = size[:, None]
    rows = (cos * y - sin * x) / scale + shift[0][:, None] + 3.5
    columns = (sin * y + cos * x) / scale + shear[:, None] * y + shift[1][:, None] + 3.5
    gray = _bilinear(images, rows, columns) / 16
    # Increases the contrast, which interpolation has lowered, to that of MNIST.
    gray = np.clip((gray - 0.2) * 1.6, 0, 1)
    return np.rint(gray * 255).astype(np.uint8).reshape(n, SIDE, SIDE)


def _bilinear(images: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Interpolate 8 x 8 images bilinearly; values outside the image are zero."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    flat = padded.reshape(len(images), -1)
    rows, columns = np.clip(rows + 1, 0, 8.999), np.clip(columns + 1, 0, 8.999)
    top, first_column = rows.astype(np.int32), columns.astype(np.int32)
    down, right = rows - top, columns - first_column
    corner = top * 10 + first_column
    upper = np.take_along_axis(flat, corner, 1) * (1 - right)
    upper += np.take_along_axis(flat, corner + 1, 1) * right
    lower = np.take_along_axis(flat, corner + 10, 1) * (1 - right)
    lower += np.take_along_axis(flat, corner + 11, 1) * right
    return upper * (1 - down) + lower * down
