"""MNIST (LeCun, Cortes, Burges): 70,000 handwritten digits of 28 x 28 pixels.

Hosts compress the four files differently; the checksums cover the uncompressed contents.
"""

import gzip
from pathlib import Path

import numpy as np
from scipy.ndimage import zoom

from .images import Images, sample

FILES = {
    "x_train": "train-images-idx3-ubyte.gz",
    "y_train": "train-labels-idx1-ubyte.gz",
    "x_test": "t10k-images-idx3-ubyte.gz",
    "y_test": "t10k-labels-idx1-ubyte.gz",
}
SCHEMA = Images(classes=tuple("0123456789"))


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
    """Sample scikit-learn's handwritten digits, enlarged, shifted and of different brightness.

    Training and test images come from disjoint sets of its 1,797 digits of 8 x 8 pixels.
    """
    from sklearn.datasets import load_digits

    digits = load_digits()
    enlarged = zoom(digits.images, (1, 2.5, 2.5), order=1)
    order = generator.permutation(len(digits.target))
    test_digits, training_digits = order[: len(order) // 5], order[len(order) // 5 :]

    def draw(split: str, count: int) -> tuple[np.ndarray, np.ndarray]:
        picked = generator.choice(training_digits if split == "train" else test_digits, count)
        # As in MNIST, a digit fills about the middle 20 pixels.
        images = np.pad(enlarged[picked], ((0, 0), (4, 4), (4, 4)))
        for image, shift in zip(images, generator.integers(-2, 3, (count, 2)), strict=True):
            image[:] = np.roll(image, shift, axis=(0, 1))
        brightness = generator.uniform(12, 16, (count, 1, 1))
        return (images * brightness).astype(np.uint8), digits.target[picked].astype(np.uint8)

    return sample(rows, draw)
