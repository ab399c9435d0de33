r"""Logistic regression as a quadratic, with the covariance of a protected attribute (Ding).

.. math:: \bar f(w) = \sum_i \Bigl[\ln 2 + (\tfrac12 - y_i)\, x_i^T w + \tfrac18 (x_i^T w)^2\Bigr]
    + \Bigl|\sum_i (z_i - \bar z)\, x_i^T w\Bigr| \quad (102)

with labels y and protected attribute z in {0, 1}, rows :math:`x \ge 0`, :math:`\|x\|_2 \le 1`. One
agent has all training rows. A record is predicted positive if and only if :math:`x^T w > 0`.
Each run has its own training and test set.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from private_consensus.common import arrays
from private_consensus.common.errors import arguments, require
from private_consensus.privacy.functional import Sensitivity

from ..parameters import validated
from ..randomness import Streams
from .base import Problem, require_rows

TEST_FRACTION = 0.2
"""Fraction of the rows in the test set of a run."""
GROUPS = 4
"""Pairs (z, y) of protected attribute and label: (0, 0), (0, 1), (1, 0), (1, 1)."""


@dataclass(frozen=True)
class Coefficients:
    r"""Coefficients of the quadratic objective, for each run.

    Parameters
    ----------
    quadratic : ndarray, shape (runs, d, d)
        Matrix :math:`M = \frac18\sum_i x_i x_i^T`.
    linear, covariance : ndarray, shape (runs, d)
        Vectors :math:`b = \sum_i (\frac12 - y_i) x_i` and :math:`g = \sum_i (z_i - \bar z) x_i`.
    """

    quadratic: np.ndarray
    linear: np.ndarray
    covariance: np.ndarray


@dataclass(frozen=True, eq=False)
class FairLogisticRegression(Problem):
    """Logistic regression with a fairness term, with one random test set per run.

    Parameters
    ----------
    features : ndarray, shape (rows, dim)
        Rows that are >= 0 and have l2 norm <= 1.
    labels, protected : ndarray of 0 and 1, shape (rows,)
        Labels y and protected attribute z.
    test : ndarray of int, shape (runs, test rows)
        Rows of the test sets; a run trains on the others.
    columns : callable
        Function that returns the columns of named attributes.
    """

    features: np.ndarray
    labels: np.ndarray
    protected: np.ndarray
    test: np.ndarray
    columns: Callable[..., np.ndarray]

    axes: ClassVar[Mapping[str, str]] = {"features": "row coordinate"}
    run_fields: ClassVar[tuple[str, ...]] = ("test",)
    n_agents = 1
    from_data: ClassVar[Mapping[str, str]] = {
        "mean": "the mean of the protected attribute over all training and test rows"
    }

    def __post_init__(self):
        super().__post_init__()
        features, axes = self.features, ("row", "coordinate")
        arrays.require_rows_within("problem.features", features, 1.0, axes)
        arrays.require_each(features >= 0, "problem.features", features, axes, "a number >= 0")
        for name in ("labels", "protected"):
            key, values = f"problem.{name}", getattr(self, name)
            arrays.require_array(key, values, axes[:1], kinds="biu")
            arrays.require_shape(key, values, (len(features),), "features")
            arrays.require_each((values == 0) | (values == 1), key, values, axes[:1], "0 or 1")
        require_rows("problem.test", self.test, ("run", "test row"), len(features))
        expected = f"fewer test rows than the {len(features)} rows"
        require(self.records > 0, "problem.test", self.test.shape, expected)

    @property
    def n_runs(self) -> int:
        return len(self.test)

    @property
    def records(self) -> int:
        """Number of training rows of a run."""
        return len(self.features) - self.test.shape[1]

    @cached_property
    def mean(self) -> float:
        r"""Mean :math:`\bar z` over all rows, one public number for all runs."""
        return float(self.protected.mean())

    def columns_of(self, selected: str) -> np.ndarray:
        """Return the columns of the attributes in ``selected``, joined by ``+``; may be empty."""
        names = [name for name in selected.split("+") if name]
        for name in names:
            is_feature, expected = len(self.columns(name)) > 0, "attributes that are features"
            require(is_feature, "algorithm.selected", name, expected)
        return self.columns(*names) if names else np.array([], int)

    @cached_property
    def _test_features(self) -> np.ndarray:
        return self.features[self.test]

    @cached_property
    def coefficients(self) -> Coefficients:
        """Coefficients of the training rows, as sums over all rows minus sums over test rows."""
        y, z, mean = self.labels, self.protected, self.mean
        row_sums, label_sums, group_sums = (
            self._train_sum(v) for v in (np.ones(len(y)), y.astype(float), z.astype(float))
        )
        gram = self.features.T @ self.features
        tested = np.swapaxes(self._test_features, 1, 2) @ self._test_features
        return Coefficients(
            quadratic=(gram - tested) / 8,
            linear=row_sums / 2 - label_sums,
            covariance=group_sums - mean * row_sums,
        )

    def coefficient_change(self, fair: str, *, public_mean: bool = True) -> Sensitivity:
        r"""Bound the change of the coefficients if one training row is replaced, in l1 and l2.

        ``fair`` is the fairness term. Unless :math:`\bar z` is public, the bounds hold for every
        mean and include the change of the mean.
        """
        return Sensitivity(self.dim, fair, self.mean, public_mean)

    def _train_sum(self, weights: np.ndarray) -> np.ndarray:
        tested = np.vecmat(weights[self.test], self._test_features)
        return weights @ self.features - tested

    def in_training(self) -> np.ndarray:
        """Return 1 for the training rows of a run and 0 for its test rows; shape (rows, runs)."""
        mask = np.ones((len(self.features), len(self.test)))
        np.put_along_axis(mask, self.test.T, 0.0, axis=0)
        return mask

    def gradient(self, x: np.ndarray) -> np.ndarray:
        r"""Compute the subgradient :math:`2Mw + b + \mathrm{sgn}(g^T w)\,g` of the objective."""
        coefficients, w = self.coefficients, x[..., 0, :]
        sign = np.sign(np.vecdot(coefficients.covariance, w))[..., None]
        gradient = (
            2 * np.matvec(coefficients.quadratic, w)
            + coefficients.linear
            + sign * coefficients.covariance
        )
        return gradient[..., None, :]

    @cached_property
    def _members(self) -> np.ndarray:
        """Indicators of the groups of the test rows; shape (runs, test rows, groups)."""
        group = 2 * self.protected[self.test] + self.labels[self.test]
        return (group[..., None] == np.arange(GROUPS)).astype(np.float32)

    @cached_property
    def sizes(self) -> np.ndarray:
        """Number of test rows per run, protected attribute and label; shape (runs, 2, 2)."""
        return self._members.sum(1).astype(float).reshape(-1, 2, 2)

    def positives(self, x: np.ndarray) -> np.ndarray:
        """Count the test rows that are predicted positive, by group; shape (..., runs, 2, 2)."""
        w = x[..., 0, :]
        models = np.moveaxis(w.reshape(-1, *w.shape[-2:]), 0, -1)  # [runs, dim, models]
        predictions = (self._test_features @ models > 0).astype(np.float32)
        counts = np.swapaxes(self._members, 1, 2) @ predictions
        return np.moveaxis(counts, -1, 0).astype(float).reshape(*w.shape[:-1], 2, 2)

    def accuracy(self, x: np.ndarray) -> np.ndarray:
        """Compute the fraction of test rows that are predicted correctly."""
        positive = self.positives(x)
        correct = np.where([False, True], positive, self.sizes - positive)
        size = self.sizes.sum(-1)
        by_group = correct.sum(-1) / size
        return (by_group * size).sum(-1) / size.sum(-1)

    def majority_accuracy(self, x: np.ndarray) -> np.ndarray:
        """Compute the fraction of the more frequent label in the test rows, for each iterate."""
        positive = self.sizes[..., 1].sum(-1) / self.sizes.sum((-1, -2))
        return np.broadcast_to(np.maximum(positive, 1.0 - positive), x.shape[:-2])

    def selection(self, x: np.ndarray) -> np.ndarray:
        r"""Compute the selection rates :math:`P(\hat y = 1 | z)` of both groups; (..., runs, 2)."""
        return self.positives(x).sum(-1) / self.sizes.sum(-1)

    def risk_difference(self, x: np.ndarray) -> np.ndarray:
        r"""Compute the difference of the groups' selection rates (Ding, Definition 9)."""
        return np.abs(np.diff(self.selection(x), axis=-1)[..., 0])

    def positive_share(self, x: np.ndarray) -> np.ndarray:
        """Compute the fraction of test rows that are predicted positive."""
        return self.positives(x).sum((-1, -2)) / self.test.shape[1]

    metrics = {  # noqa: RUF012
        "accuracy": accuracy,
        "error": lambda problem, x: 1.0 - problem.accuracy(x),
        "majority_accuracy": majority_accuracy,
        "risk_difference": risk_difference,
        "positive_share": positive_share,
    }


EXAMPLE = {"prepared": "synthetic", "protected": "group"}


@validated
def build(
    streams: Streams,
    agents: int,
    *,
    prepared,
    protected: str,
) -> FairLogisticRegression:
    """Split prepared rows at random into training and test rows.

    Parameters
    ----------
    streams : Streams
        Random streams; splits come from the stream ``data``.
    agents : int
        Number of agents, which must be 1.
    prepared : object
        Prepared records: ``features`` (non-negative, rows of norm <= 1), ``labels`` in {-1, +1},
        ``protected`` attributes, and ``columns_of``.
    protected : str
        Name of a prepared attribute with two values.

    Returns
    -------
    FairLogisticRegression

    Raises
    ------
    InvalidInput
        If there are several agents, the attribute has not two values, a group or label is absent
        from a test set, a feature is negative, or the norm of a row exceeds 1.
    """
    require(agents == 1, "network.agents", agents, "1: one agent holds all rows")
    z = _protected(prepared, protected)
    labels = np.asarray(prepared.labels)
    arrays.require_each(np.abs(labels) == 1, "problem.prepared.labels", labels, ("row",), "-1 or 1")
    size = round(TEST_FRACTION * len(labels))
    test = np.stack([g.permutation(len(labels))[:size] for g in streams.generators("data")])
    problem = FairLogisticRegression(
        np.asarray(prepared.features, float),
        (labels > 0).astype(np.int64),
        z,
        test,
        prepared.columns_of,
    )
    smallest, expected = int(problem.sizes.min()), "test rows of both labels in both groups"
    require(smallest > 0, "problem.prepared", f"a group and label with {smallest} rows", expected)
    return problem


def _protected(prepared, name: str) -> np.ndarray:
    attributes = prepared.protected
    arguments.choice("problem.protected", name, attributes)
    values = np.unique(attributes[name])
    description = f"{name} with {len(values)} value{'s' if len(values) != 1 else ''}"
    require(len(values) == 2, "problem.protected", description, "an attribute with two values")
    return (np.asarray(attributes[name]) == values[1]).astype(np.int64)
