"""CIFAR-10 (Krizhevsky, 2009): colour images of 32 x 32 pixels in ten classes.

The publisher's archive has 50,000 training and 10,000 test images. The subset of the mirror has
12,000 and 2,000, which were stored as JPEG.
"""

import pickle
import tarfile
from pathlib import Path
from typing import Any

import numpy as np

from .images import Images, sample

CLASSES = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip
SCHEMA = Images(classes=CLASSES)
SIDE = 32
FOLDER = "cifar-10-batches-py"
BATCHES = {"train": [f"data_batch_{i}" for i in range(1, 6)], "test": ["test_batch"]}


def read(folder: Path) -> dict[str, np.ndarray]:
    """Read images and labels of the subset or, if it is missing, of the publisher's archive."""
    subset = folder / "cifar10-subset.npz"
    if not subset.is_file():
        return from_archive(folder / "cifar-10-python.tar.gz")
    with np.load(subset, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in ("x_train", "y_train", "x_test", "y_test")}


def from_archive(path: Path) -> dict[str, np.ndarray]:
    """Read images and labels from the publisher's archive, without unpacking it to disk.

    A pickle can run arbitrary code. Only an archive with the known checksum is downloaded.
    """
    arrays = {}
    with tarfile.open(path, "r:gz") as archive:
        for split, names in BATCHES.items():
            batches = [_batch(archive, name) for name in names]
            pixels = np.concatenate([batch[b"data"] for batch in batches])
            images = pixels.reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1)
            arrays[f"x_{split}"] = np.ascontiguousarray(images)
            labels = np.concatenate([batch[b"labels"] for batch in batches])
            arrays[f"y_{split}"] = labels.astype(np.uint8)
    return arrays


def _batch(archive: tarfile.TarFile, name: str) -> dict[bytes, Any]:
    member = archive.extractfile(f"{FOLDER}/{name}")
    if member is None:
        raise KeyError(name)
    return pickle.load(member, encoding="bytes")


def surrogate(rows: int | None, generator: np.random.Generator) -> dict[str, np.ndarray]:
    """Sample images with class structure: random blocks of pixels with added noise.

    Each class has four patterns. An image is the sum of one of them, of a pattern that does not
    depend on the class, and of noise. A linear classifier has about the same accuracy as on
    CIFAR-10.
    """
    patterns = _blocks(generator, len(CLASSES) * 4).reshape(len(CLASSES), 4, SIDE, SIDE, 3)

    def draw(_: str, count: int) -> tuple[np.ndarray, np.ndarray]:
        labels = generator.permutation(np.arange(count) % len(CLASSES)).astype(np.uint8)
        images = _blocks(generator, count)
        images += 0.18 * patterns[labels, generator.integers(0, 4, count)]
        images += 0.25 * generator.standard_normal(images.shape, np.float32)
        return np.clip(120 + 55 * images, 0, 255).astype(np.uint8), labels

    return sample(rows, draw)


def _blocks(generator: np.random.Generator, count: int) -> np.ndarray:
    """Sample images of 8 x 8 blocks of one colour, ``[count, 32, 32, 3]``."""
    colours = generator.standard_normal((count, 8, 8, 3), np.float32)
    return colours.repeat(SIDE // 8, axis=1).repeat(SIDE // 8, axis=2)
