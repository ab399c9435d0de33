r"""The problems of the comparison: records of all agents, their partition, what is measured.

A problem has one pool of records, the same in every cell and run; a run shares it out anew
(iid, Dirichlet label skew, unequal sizes). So every cell of a problem has one global objective,

.. math:: F(x) = \frac1M \sum_{d} \ell(x; d) + r(x), \qquad \sum_i f_i = N F,

with M records in all, and one minimum, to which the excess loss is measured. An agent's objective
weighs each of its records with :math:`N/M`, however many it has: with unequal sizes too a record
counts the same wherever it is, and replacing it moves any agent's gradient by as much. Agents with
fewer records than the largest are filled up with records that weigh nothing: rows of zeros, which
move no gradient. The number of records that an agent holds is taken for public.

Labels for the skew are classes; a number in their place is cut at its quintiles.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, ndtr, ndtri

from ..datasets.partition import (
    UNUSED,
    partition_dirichlet,
    partition_iid,
    partition_unequal,
)
from ..errors import InvalidInput, require
from ..problems.base import Problem
from ..problems.lasso import Lasso, normalise, soft_threshold
from ..problems.logistic_regression import LogisticRegression
from ..problems.mean_estimation import MeanEstimation
from ..problems.perceptron import Perceptron
from ..randomness import Streams
from .design import Comparison
from .tuning import Scales

GROUP = "comparison"
CLASSES = 5
"""Into which a number is cut where labels are skewed."""
AT_ONCE = 2**22
"""Products of models and records that are in memory at the same time."""
EVALUATED = 500
"""Training images on which a perceptron's loss is measured."""
STEPS = 20_000
"""Of the reference solution of the lasso."""


@dataclass(frozen=True, eq=False)
class Pool(ABC):
    """Records of all agents and what is measured of a model."""

    @property
    @abstractmethod
    def labels(self) -> np.ndarray:
        """Classes by which records are skewed; [records]."""

    @abstractmethod
    def problem(self, rows: np.ndarray) -> Problem:
        """Agents' problem, for rows [runs, agents, most] filled up with ``UNUSED``."""

    @abstractmethod
    def losses(self, x: np.ndarray) -> np.ndarray:
        """:math:`F(x)` of models [models, dim]; [models]."""

    @abstractmethod
    def scores(self, x: np.ndarray) -> np.ndarray:
        """Loss of models [models, dim] on public records that no agent holds; [models]."""

    @property
    @abstractmethod
    def least(self) -> float:
        """The minimum of F, or 0 where it is not known."""

    @abstractmethod
    def scales(self, agents: int) -> Scales:
        """Curvature and size of gradients of an agent's objective, as they are public."""

    def accuracies(self, x: np.ndarray) -> np.ndarray | None:
        """Share of test records that are classified rightly; None without classes."""
        return None

    def excess(self, x: np.ndarray) -> np.ndarray:
        """:math:`F(x) - F^*` of models [..., dim]."""
        flat = x.reshape(-1, x.shape[-1])
        return (self.losses(flat) - self.least).reshape(x.shape[:-1])

    def score(self, x: np.ndarray) -> np.ndarray:
        """Loss of models [..., dim] on public records."""
        return self.scores(x.reshape(-1, x.shape[-1])).reshape(x.shape[:-1])

    def accuracy(self, x: np.ndarray) -> np.ndarray | None:
        """Test accuracy of models [..., dim]."""
        found = self.accuracies(x.reshape(-1, x.shape[-1]))
        return None if found is None else found.reshape(x.shape[:-1])


@dataclass(frozen=True, eq=False)
class Means(Pool):
    """Mean estimation: :math:`F(x) = \\frac1{2M}\\sum\\|x - d\\|_2^2`."""

    records: np.ndarray
    public: np.ndarray
    box: float

    @property
    def labels(self):
        return quantile_classes(self.records[:, 0])

    def scales(self, agents):
        each = len(self.records) / agents
        return Scales(each, each * self.box)

    def problem(self, rows):
        """An agent's sum of records over M/N stands for its mean: with unequal sizes the minimiser
        of the sum of objectives is the mean of all records nevertheless."""
        agents = rows.shape[1]
        each = len(self.records) // agents
        sums = _held(self.records, rows).sum(-2)
        ratio = max(1.0, (rows != UNUSED).sum(-1).max() / each)
        return MeanEstimation(sums / each, each, self.box, float(ratio))

    def losses(self, x):
        return _squares(x, self.records)

    def scores(self, x):
        return _squares(x, self.public)

    @cached_property
    def least(self):
        return float(_squares(self.records.mean(0), self.records))


@dataclass(frozen=True, eq=False)
class Classified(Pool):
    """Ridge-logistic regression with labels -1 and 1, and a test set that nobody holds."""

    features: np.ndarray
    classes: np.ndarray
    test_features: np.ndarray
    test_classes: np.ndarray
    public_features: np.ndarray
    public_classes: np.ndarray
    ridge: float

    @property
    def labels(self):
        return self.classes

    def scales(self, agents):
        return Scales(0.25 + self.ridge, 1.0)

    def problem(self, rows):
        agents = rows.shape[1]
        labels = np.where(rows == UNUSED, 1.0, self.classes[rows])
        tests = self.test_features, self.test_classes
        weight = agents / len(self.classes)
        return LogisticRegression(_held(self.features, rows), labels, *tests, weight, self.ridge)

    def losses(self, x):
        return self._losses(x, self.features, self.classes)

    def scores(self, x):
        return self._losses(x, self.public_features, self.public_classes)

    def _losses(self, x: np.ndarray, features: np.ndarray, classes: np.ndarray) -> np.ndarray:
        margins = features * classes[:, None]
        found = np.empty(len(x))
        for part in _parts(len(x), len(margins)):
            found[part] = np.logaddexp(0.0, -(x[part] @ margins.T)).mean(-1)
        return found + self.ridge / 2 * (x**2).sum(-1)

    @cached_property
    def least(self):
        margins = self.features * self.classes[:, None]

        def value_and_slope(x):
            along = margins @ x
            slope = -(expit(-along) @ margins) / len(margins) + self.ridge * x
            return float(self.losses(x[None])[0]), slope

        options = {"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-10}
        start = np.zeros(self.features.shape[1])
        found = minimize(value_and_slope, start, jac=True, method="L-BFGS-B", options=options)
        return float(found.fun)

    def accuracies(self, x):
        return ((x @ self.test_features.T > 0) == (self.test_classes > 0)).mean(-1)


@dataclass(frozen=True, eq=False)
class Regressed(Pool):
    r"""The lasso of paper 002 with Huber's loss, whose gradients :math:`c_1` bounds."""

    features: np.ndarray
    responses: np.ndarray
    public_features: np.ndarray
    public_responses: np.ndarray
    penalty: float
    gradient_bound: float

    @property
    def labels(self):
        return quantile_classes(self.responses)

    def scales(self, agents):
        """Rows have norm 1 and no direction of their own."""
        return Scales(2.0 / self.features.shape[1], self.gradient_bound)

    def problem(self, rows):
        agents = rows.shape[1]
        responses = np.where(rows == UNUSED, 0.0, self.responses[rows])
        weight = agents / len(self.responses)
        held = _held(self.features, rows)
        return Lasso(held, responses, weight, self.penalty, self.gradient_bound, 1.0)

    def losses(self, x):
        return self._losses(x, self.features, self.responses)

    def scores(self, x):
        return self._losses(x, self.public_features, self.public_responses)

    def _losses(self, x: np.ndarray, features: np.ndarray, responses: np.ndarray) -> np.ndarray:
        found = np.empty(len(x))
        c = self.gradient_bound
        for part in _parts(len(x), len(responses)):
            residuals = np.abs(x[part] @ features.T - responses)
            flat = 2 * residuals > c
            found[part] = np.where(flat, c * residuals - c**2 / 4, residuals**2).mean(-1)
        return found + self.penalty * np.abs(x).sum(-1)

    @cached_property
    def least(self):
        """Minimise by proximal gradient steps of length :math:`1/L`."""
        gram = 2.0 * self.features.T @ self.features / len(self.responses)
        step = 1.0 / np.linalg.eigvalsh(gram)[-1]
        x = before = np.zeros(self.features.shape[1])
        for _ in range(STEPS):
            residuals = self.features @ x - self.responses
            slopes = np.clip(2 * residuals, -self.gradient_bound, self.gradient_bound)
            descended = x - step * (slopes @ self.features) / len(self.responses)
            before, x = x, soft_threshold(descended, step * self.penalty)
            if np.array_equal(before, x):
                break
        return float(self.losses(x[None])[0])


@dataclass(frozen=True, eq=False)
class Images(Pool):
    """The perceptron; its loss has many minima, so that the excess is the loss itself."""

    features: np.ndarray
    classes: np.ndarray
    train: np.ndarray
    test: np.ndarray
    public: np.ndarray
    hidden: int

    @property
    def labels(self):
        return self.classes[self.train]

    def scales(self, agents):
        return Scales(1.0, 1.0)

    def problem(self, rows):
        equal = "equal sizes: samples are drawn from as many records in every agent"
        require(bool((rows != UNUSED).all()), "partition", "unequal sizes", equal)
        return self._perceptron(self.train[rows])

    def _perceptron(self, dealt: np.ndarray) -> Perceptron:
        return Perceptron(self.features, self.classes, dealt, self.test, self.hidden)

    @cached_property
    def _model(self) -> Perceptron:
        return self._perceptron(self.train[None, None, :])

    def losses(self, x):
        """Compute the losses of the first evaluated records."""
        return self._losses(x, self.train[:EVALUATED])

    def scores(self, x):
        return self._losses(x, self.public)

    def _losses(self, x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return self._model.evaluate(x, rows)[0]

    least = 0.0

    def accuracies(self, x):
        return self._model.evaluate(x, self.test)[1]


def quantile_classes(values: np.ndarray) -> np.ndarray:
    """Numbers cut at their quintiles."""
    cuts = np.quantile(values, np.arange(1, CLASSES) / CLASSES)
    return np.searchsorted(cuts, values)


def _squares(x: np.ndarray, records: np.ndarray) -> np.ndarray:
    """Half the mean squared distance of models [..., dim] from records [records, dim]."""
    centre = records.mean(0)
    around = ((records - centre) ** 2).sum(-1).mean()
    return (((x - centre) ** 2).sum(-1) + around) / 2


def _held(records: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Agents' records [runs, agents, most, dim], filled up with zeros."""
    return np.where((rows == UNUSED)[..., None], 0.0, records[rows])


def _parts(models: int, records: int) -> list[slice]:
    each = max(1, AT_ONCE // records)
    return [slice(first, first + each) for first in range(0, models, each)]


def shared_out(
    pool: Pool, parameters: Mapping[str, Any], agents: int, streams: Streams
) -> np.ndarray:
    """Rows of each agent in each run, [runs, agents, most].

    Parameters
    ----------
    parameters : mapping
        ``concentration`` of a Dirichlet law of labels; of sizes where ``sizes`` is true; none,
        records are shared out at random.
    """
    labels = pool.labels
    generators = streams.generators("data", "partition")
    require(len(labels) % agents == 0, "agents", agents, f"a divisor of {len(labels)} records")
    sizes = [len(labels) // agents] * agents
    known = {"concentration", "of"}
    require({*parameters} <= known, "partitions", dict(parameters), f"keys among {sorted(known)}")
    if not parameters:
        return partition_iid(labels, sizes, generators)
    concentration = parameters["concentration"]
    if parameters.get("of", "labels") == "labels":
        return partition_dirichlet(labels, sizes, generators, concentration=concentration)
    return partition_unequal(
        labels, agents, len(labels), generators, concentration=concentration, smallest=4
    )


def pool_of(design: Comparison, name: str, prepared: Mapping[str, Any]) -> Pool:
    """The pool of a problem of the design.

    Parameters
    ----------
    prepared : mapping
        Prepared data sets by name.

    Raises
    ------
    InvalidInput
        For an unknown problem, or data with fewer records than the design asks for.
    """
    declared = design.problems[name]
    known = name.partition("_")[0] if name not in MAKERS else name
    if known not in MAKERS:
        raise InvalidInput("problems", name, f"a name that begins with one of {', '.join(MAKERS)}")
    parameters = dict(declared.model_extra or {})
    if "prepared" in parameters:
        parameters["prepared"] = prepared[parameters["prepared"]]
    streams = Streams(design.seed, (0,), {"data": f"{GROUP} {name}"})
    return MAKERS[known](
        streams.shared("data", "pool"), declared.records, design.tuning.public_records, **parameters
    )


def _means(generator, records: int, public: int, *, dim: int, box: float) -> Means:
    """Normal with mean 0.7 R and deviation 1, truncated to the box (paper 000, section V-A)."""
    lowest, highest = ndtr(np.array([-box, box]) - 0.7 * box)
    uniform = generator.random((records + public, dim))
    drawn = 0.7 * box + ndtri(lowest + (highest - lowest) * uniform)
    return Means(*np.split(np.clip(drawn, -box, box), [records]), box)


def _classified(
    generator, records: int, public: int, *, prepared, ridge: float, test_rows: int = 1000
) -> Classified:
    chosen = _chosen(generator, len(prepared.labels), records + test_rows + public)
    features = np.asarray(prepared.features, float)[chosen]
    classes = np.asarray(prepared.labels, float)[chosen]
    parts = (np.split(rows, [records, records + test_rows]) for rows in (features, classes))
    return Classified(*chain.from_iterable(zip(*parts, strict=True)), ridge)


def _regressed(
    generator, records: int, public: int, *, dim: int, penalty: float, gradient_bound: float = 1.0
) -> Regressed:
    """Standard normal features and coefficients, errors of variance 0.1 (paper 002, section VI)."""
    omega = generator.standard_normal(dim)

    def drawn(rows: int) -> tuple[np.ndarray, np.ndarray]:
        features = normalise(generator.standard_normal((1, 1, rows, dim)))[0, 0]
        return features, features @ omega + np.sqrt(0.1) * generator.standard_normal(rows)

    return Regressed(*drawn(records), *drawn(public), penalty, gradient_bound)


def _images(
    generator, records: int, public: int, *, prepared, hidden: int, side: int, test_rows: int = 500
) -> Images:
    """Images shrunk to ``side`` times ``side`` pixels by means over blocks."""
    train, test = (np.asarray(prepared.splits[part]) for part in ("train", "test"))
    own = train[_chosen(generator, len(train), records + public)]
    others = test[_chosen(generator, len(test), test_rows)]
    rows = np.concatenate([own, others])
    features = shrunk(np.asarray(prepared.features[rows], np.float32), side)
    classes = np.asarray(prepared.labels)[rows].astype(np.int64)
    held, kept, tested = np.split(np.arange(len(rows)), [records, records + public])
    return Images(features, classes, held, tested, kept, hidden)


def shrunk(features: np.ndarray, side: int) -> np.ndarray:
    """Square images [rows, pixels] to ``side`` times ``side`` pixels by means over blocks."""
    wide = round(np.sqrt(features.shape[1]))
    fits = wide**2 == features.shape[1] and 1 <= side <= wide and wide % side == 0
    require(fits, "problem.side", side, f"a divisor of the {wide} pixels of a side")
    blocks = features.reshape(len(features), side, wide // side, side, wide // side)
    return blocks.mean((2, 4)).reshape(len(features), side**2)


def _chosen(generator, there: int, wanted: int) -> np.ndarray:
    require(wanted <= there, "problem.records", wanted, f"at most the {there} records there are")
    return generator.permutation(there)[:wanted]


MAKERS = {
    "mean_estimation": _means,
    "logistic": _classified,
    "lasso": _regressed,
    "perceptron": _images,
}
"""Pools by the name of a problem, or by its first word."""
