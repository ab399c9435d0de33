"""Synthetic records for examples without a data set.

Labels follow a linear rule with noise. All rows have l2 norm at most 1 and non-negative features,
so that every problem that needs prepared records accepts them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from private_consensus.common.errors import require

from .randomness import generator

NAME = "synthetic"
DIM = 5
TEST_ROWS = 1000
"""Number of test rows, which belong to no agent."""
FREE_ROWS = 5000
"""Number of rows of a problem without a parameter ``records``."""


@dataclass(frozen=True)
class SyntheticRows:
    """Rows with labels, a binary protected attribute, and training and test parts.

    Parameters
    ----------
    features : ndarray, shape (rows, dim)
        Non-negative rows with an l2 norm of at most 1.
    labels : ndarray of int, shape (rows,)
        Labels -1 and +1, or classes from 0.
    protected : mapping of str to ndarray, shape (rows,)
        Values 0 and 1 of a protected attribute, by its name.
    splits : mapping of str to ndarray of int
        Indices of the rows for ``train`` and ``test``.
    """

    features: np.ndarray
    labels: np.ndarray
    protected: Mapping[str, np.ndarray]
    splits: Mapping[str, np.ndarray]

    def columns_of(self, *attributes: str) -> np.ndarray:
        """Return the columns of attributes: 0 for the protected attribute, none for others."""
        return np.array([0] if set(attributes) & set(self.protected) else [], dtype=int)


def synthetic_rows(rows: int, *, classes: int = 2, dim: int = DIM, seed: int = 0) -> SyntheticRows:
    """Sample rows whose labels follow a linear rule with noise.

    Parameters
    ----------
    classes : int, default 2
        Number of classes. Two classes have the labels -1 and +1, more have labels from 0.
    dim : int, default 5
        Number of features.
    seed : int, default 0
        Root seed of the random numbers.
    """
    require(rows > TEST_ROWS, "rows", rows, f"more than {TEST_ROWS}, the rows of the test part")
    random = generator(seed, "synthetic rows", classes, dim)
    features = random.uniform(0.0, 1.0, (rows, dim))
    group = (features[:, 0] > 0.5).astype(np.int8)
    scores = (features - 0.5) @ random.standard_normal((dim, classes))
    scores += 0.05 * random.standard_normal(scores.shape)
    labels = scores.argmax(1)
    train = np.arange(rows - TEST_ROWS)
    return SyntheticRows(
        features / np.sqrt(dim),
        2 * labels - 1 if classes == 2 else labels,
        {"group": group},
        {"train": train, "test": np.arange(rows - TEST_ROWS, rows)},
    )


def rows_of_setting(name: str, parameters: Mapping[str, Any], agents: int) -> SyntheticRows:
    """Sample as many rows as a setting needs for its agents and its test set."""
    records = parameters.get("records", FREE_ROWS)
    if name == "perceptron":  # whose records are those of all agents together
        return synthetic_rows(records + TEST_ROWS, classes=10)
    return synthetic_rows(records * agents + TEST_ROWS)
