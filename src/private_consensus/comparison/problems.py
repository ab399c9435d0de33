r"""Problems of the comparison: records of all agents, their partition, and the measures.

A problem has one pool of records, common to all cells and runs. Each run partitions the pool among
the agents again (iid, Dirichlet label skew, unequal sizes). Therefore every cell of a problem has a
common global objective,

.. math:: F(x) = \frac1M \sum_{d} \ell(x; d) + r(x), \qquad \sum_i f_i = N F,

with M records in total, and a common minimum, which is the reference of the excess loss. An agent's
objective weighs each of its records with :math:`N/M`, whatever their number. With unequal sizes,
too, a record has the same weight at every agent, and replacing it changes any agent's gradient by
the same amount. Agents with fewer records than the largest are padded with records of weight 0:
rows of zeros, which do not change the gradient. The number of records of an agent is public.

Labels for the skew are classes; a numerical label is divided at its quintiles.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, ndtr, ndtri

from private_consensus.common.errors import InvalidInput, require
from private_consensus.core.partition import (
    UNUSED,
    partition_dirichlet,
    partition_iid,
    partition_unequal,
)
from private_consensus.core.problems.base import Problem
from private_consensus.core.problems.lasso import Lasso, normalise, soft_threshold
from private_consensus.core.problems.logistic_regression import LogisticRegression
from private_consensus.core.problems.mean_estimation import MeanEstimation
from private_consensus.core.problems.perceptron import Perceptron
from private_consensus.core.randomness import Streams

from .design import ComparisonDesign
from .tuning import ObjectiveScales

GROUP = "comparison"
EVERY = slice(None)
STARTING_FRACTION = 0.25
"""Fraction of the public records on which the public starting point is trained. The trials are
compared on the other public records, since the starting point has a small loss on its own ones."""
CLASSES = 5
"""Number of classes of a numerical label, for the label skew."""
MAX_PRODUCTS = 2**22
"""Maximum number of products of models and records in memory."""
CLASS_COUNT = 10
"""Number of classes of the images."""
PUBLIC_RIDGE = 0.001
"""Coefficient of the squared norm in the minimisation of a perceptron on the public images."""
EVALUATION_RECORDS = 500
"""Number of training images on which a perceptron's loss is measured."""
STEPS = 20_000
"""Maximum number of steps of the reference solution of the lasso."""


class Baseline(NamedTuple):
    """Excess loss and test accuracy of a model without privacy cost; None without classes."""

    excess: float
    accuracy: float | None


@dataclass(frozen=True, eq=False)
class ClippedPerceptron(Perceptron):
    """Perceptron whose agents clip the gradient of each record.

    Parameters
    ----------
    clip : float
        Bound on the l2 norm of a record's gradient. Replacing a record changes the mean of an
        agent's m clipped gradients by at most 2/m times this bound.
    """

    clip: float = 1.0

    @property
    def record_gradient_change(self) -> float:
        """Bound on the change of an agent's mean of clipped gradients."""
        return 2.0 * self.clip / self.records

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Compute the mean of the clipped gradients of all records of each agent."""
        out = np.empty(x.shape)
        sizes = np.full(self.n_agents, self.records)
        models = np.ascontiguousarray(x, self.features.dtype)
        for r in range(x.shape[1]):
            rows = self.rows_of(r)
            for s in range(len(x)):
                out[s, r] = self.clipped_gradient(models[s, r], rows, sizes, self.clip)
        return out

    def initial(self, init: str, streams: Streams) -> np.ndarray:
        """Return the public starting point, or a sampled one without it.

        Parameters
        ----------
        init : {"zero", "random", "u05"}
            Distribution of a sampled point.
        streams : Streams
            Random streams.

        Returns
        -------
        ndarray, shape (runs, 1, p)
        """
        if self.initial_point is None:
            return super().initial(init, streams)
        shape = len(streams.runs), 1, self.dim
        return np.broadcast_to(self.initial_point, shape).astype(self.features.dtype)


@dataclass(frozen=True, eq=False)
class Pool(ABC):
    """Records of all agents, public and test records, and the measures of a model."""

    @property
    @abstractmethod
    def labels(self) -> np.ndarray:
        """Classes by which records are skewed; shape (records,)."""

    @abstractmethod
    def problem(self, rows: np.ndarray) -> Problem:
        """Return the problem of the agents with the given rows.

        Parameters
        ----------
        rows : ndarray of int, shape (runs, agents, max_records)
            Rows of each agent, padded with ``UNUSED``.

        Returns
        -------
        Problem
        """

    @abstractmethod
    def arrays(self) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
        """Return the agents' and the public arrays, each with one entry per record."""

    @abstractmethod
    def losses_on(self, x: np.ndarray, *arrays: np.ndarray) -> np.ndarray:
        """Return the mean losses on some records.

        Parameters
        ----------
        x : ndarray, shape (models, dim)
            Models.
        *arrays : ndarray
            Arrays with one entry per record.

        Returns
        -------
        ndarray, shape (models,)
        """

    @abstractmethod
    def minimiser_on(self, *arrays: np.ndarray) -> np.ndarray:
        """Return the minimiser of the loss on some records; shape (dim,)."""

    def losses(self, x: np.ndarray) -> np.ndarray:
        """Return :math:`F(x)` of models [models, dim]; shape (models,)."""
        return self.losses_on(x, *self.arrays()[0])

    @cached_property
    def least(self) -> float:
        """Minimum of F, or 0 if it is unknown."""
        return float(self.losses(self.minimiser_on(*self.arrays()[0])[None])[0])

    def public_model(self, rows: slice = EVERY) -> np.ndarray:
        """Minimise the loss on some rows of the public records; shape (dim,)."""
        return self.minimiser_on(*(array[rows] for array in self.arrays()[1]))

    @cached_property
    def public_start(self) -> np.ndarray:
        """Minimiser on the public records that are not used to compare trials; shape (dim,)."""
        return self.public_model(slice(0, self._starting_records))

    @property
    def _starting_records(self) -> int:
        """Number of public records on which the starting point is trained."""
        return max(1, round(STARTING_FRACTION * self.public_count))

    @property
    def public_count(self) -> int:
        """Number of public records."""
        return len(self.arrays()[1][0])

    @property
    def start(self) -> np.ndarray | None:
        """Starting point that depends on no record; None for the zero vector."""
        return None

    @property
    def chance(self) -> float | None:
        """Accuracy of uniform class probabilities; None without classes."""
        return None

    def majority(self) -> Baseline | None:
        """Return the class frequencies of the public records as a model; None without classes."""
        return None

    def data_free(self) -> Baseline:
        """Return the model of all zeros, which depends on no record."""
        loss = self.losses(np.zeros((1, len(self.public_start))))[0]
        return Baseline(float(loss - self.least), self.chance)

    def public_minimiser(self) -> Baseline:
        """Return the minimiser on the public records, which depends on no agent's record."""
        model = self.public_model()[None]
        accuracies = self.accuracies(model)
        excess = float(self.losses(model)[0] - self.least)
        return Baseline(excess, None if accuracies is None else float(accuracies[0]))

    @abstractmethod
    def scales(self, agents: int) -> ObjectiveScales:
        """Return the public curvature and gradient size of an agent's objective."""

    def accuracies(self, x: np.ndarray) -> np.ndarray | None:
        """Return the fraction of correctly classified test records; None without classes."""
        return None

    def excess(self, x: np.ndarray) -> np.ndarray:
        """Return :math:`F(x) - F^*` of models [..., dim]."""
        flat = x.reshape(-1, x.shape[-1])
        return (self.losses(flat) - self.least).reshape(x.shape[:-1])

    def score(self, x: np.ndarray) -> np.ndarray:
        """Return the loss of models [..., dim] on the public records that compare trials."""
        comparison_records = (array[self._starting_records :] for array in self.arrays()[1])
        return self.losses_on(x.reshape(-1, x.shape[-1]), *comparison_records).reshape(x.shape[:-1])

    def accuracy(self, x: np.ndarray) -> np.ndarray | None:
        """Return the test accuracy of models [..., dim]."""
        accuracies = self.accuracies(x.reshape(-1, x.shape[-1]))
        return None if accuracies is None else accuracies.reshape(x.shape[:-1])


@dataclass(frozen=True, eq=False)
class Means(Pool):
    r"""Mean estimation: :math:`F(x) = \frac1{2M}\sum\|x - d\|_2^2`."""

    records: np.ndarray
    public: np.ndarray
    box: float

    def arrays(self):
        return (self.records,), (self.public,)

    @property
    def labels(self):
        return quantile_classes(self.records[:, 0])

    def scales(self, agents):
        agent_records = len(self.records) / agents
        return ObjectiveScales(agent_records, agent_records * self.box)

    def problem(self, rows):
        """Return the problem in which an agent's mean is its sum of records over M/N.

        With unequal sizes too, the minimiser of the sum of objectives is the mean of all records.
        """
        agents = rows.shape[1]
        agent_records = len(self.records) // agents
        sums = _agent_records(self.records, rows).sum(-2)
        ratio = max(1.0, (rows != UNUSED).sum(-1).max() / agent_records)
        return MeanEstimation(sums / agent_records, agent_records, self.box, float(ratio))

    def losses_on(self, x, *arrays):
        (records,) = arrays
        centre = records.mean(0)
        variance = ((records - centre) ** 2).sum(-1).mean()
        return (((x - centre) ** 2).sum(-1) + variance) / 2

    def minimiser_on(self, *arrays):
        return arrays[0].mean(0)


@dataclass(frozen=True, eq=False)
class Classified(Pool):
    """Ridge-logistic regression with labels -1 and 1, and a test set that no agent holds."""

    features: np.ndarray
    classes: np.ndarray
    test_features: np.ndarray
    test_classes: np.ndarray
    public_features: np.ndarray
    public_classes: np.ndarray
    ridge: float

    def arrays(self):
        return (self.features, self.classes), (self.public_features, self.public_classes)

    @property
    def labels(self):
        return self.classes

    def scales(self, agents):
        return ObjectiveScales(0.25 + self.ridge, 1.0)

    def problem(self, rows):
        agents = rows.shape[1]
        labels = np.where(rows == UNUSED, 1.0, self.classes[rows])
        tests = self.test_features, self.test_classes
        weight = agents / len(self.classes)
        return LogisticRegression(
            _agent_records(self.features, rows), labels, *tests, weight, self.ridge
        )

    def losses_on(self, x, *arrays):
        features, classes = arrays
        margins = features * classes[:, None]
        losses = np.empty(len(x))
        for block in _blocks(len(x), len(margins)):
            losses[block] = np.logaddexp(0.0, -(x[block] @ margins.T)).mean(-1)
        return losses + self.ridge / 2 * (x**2).sum(-1)

    def minimiser_on(self, *arrays):
        features, classes = arrays
        margins = features * classes[:, None]

        def value_and_slope(x):
            scores = margins @ x
            slope = -(expit(-scores) @ margins) / len(margins) + self.ridge * x
            return float(self.losses_on(x[None], features, classes)[0]), slope

        options = {"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-10}
        start = np.zeros(features.shape[1])
        return minimize(value_and_slope, start, jac=True, method="L-BFGS-B", options=options).x

    chance = 0.5

    def majority(self):
        return _majority(self.public_classes, self.classes, self.test_classes, 2, self.least)

    def accuracies(self, x):
        return ((x @ self.test_features.T > 0) == (self.test_classes > 0)).mean(-1)


@dataclass(frozen=True, eq=False)
class Regressed(Pool):
    """Lasso of Gratton et al. with Huber's loss, whose gradients :math:`c_1` bounds."""

    features: np.ndarray
    responses: np.ndarray
    public_features: np.ndarray
    public_responses: np.ndarray
    penalty: float
    gradient_bound: float

    def arrays(self):
        return (self.features, self.responses), (self.public_features, self.public_responses)

    @property
    def labels(self):
        return quantile_classes(self.responses)

    def scales(self, agents):
        """Return the scales of rows with norm 1 and without a preferred direction."""
        return ObjectiveScales(2.0 / self.features.shape[1], self.gradient_bound)

    def problem(self, rows):
        agents = rows.shape[1]
        responses = np.where(rows == UNUSED, 0.0, self.responses[rows])
        weight = agents / len(self.responses)
        features = _agent_records(self.features, rows)
        return Lasso(features, responses, weight, self.penalty, self.gradient_bound, 1.0)

    def losses_on(self, x, *arrays):
        features, responses = arrays
        losses, c = np.empty(len(x)), self.gradient_bound
        for block in _blocks(len(x), len(responses)):
            residuals = np.abs(x[block] @ features.T - responses)
            flat = 2 * residuals > c
            losses[block] = np.where(flat, c * residuals - c**2 / 4, residuals**2).mean(-1)
        return losses + self.penalty * np.abs(x).sum(-1)

    def minimiser_on(self, *arrays):
        """Minimise by proximal gradient steps of length :math:`1/L`."""
        features, responses = arrays
        gram = 2.0 * features.T @ features / len(responses)
        step = 1.0 / np.linalg.eigvalsh(gram)[-1]
        x = before = np.zeros(features.shape[1])
        for _ in range(STEPS):
            residuals = features @ x - responses
            slopes = np.clip(2 * residuals, -self.gradient_bound, self.gradient_bound)
            descended = x - step * (slopes @ features) / len(responses)
            before, x = x, soft_threshold(descended, step * self.penalty)
            if np.array_equal(before, x):
                break
        return x


@dataclass(frozen=True, eq=False)
class Images(Pool):
    """Perceptron on images; its loss has many minima, so that the excess is the loss itself."""

    features: np.ndarray
    classes: np.ndarray
    train: np.ndarray
    test: np.ndarray
    public: np.ndarray
    hidden: int
    clip: float = 1.0

    def arrays(self):
        return (self.train[:EVALUATION_RECORDS],), (self.public,)

    @property
    def labels(self):
        return self.classes[self.train]

    def scales(self, agents):
        return ObjectiveScales(1.0, 1.0)

    def problem(self, rows):
        equal = "equal sizes: every agent samples from the same number of records"
        require(bool((rows != UNUSED).all()), "partition", "unequal sizes", equal)
        return self._perceptron(self.train[rows])

    def _perceptron(self, agent_rows: np.ndarray) -> ClippedPerceptron:
        return ClippedPerceptron(
            self.features, self.classes, agent_rows, self.test, self.hidden, clip=self.clip
        )

    @cached_property
    def _model(self) -> Perceptron:
        return self._perceptron(self.train[None, None, :])

    @cached_property
    def start(self):
        """Return normal weights of variance 1/fan-in, common to all agents and runs."""
        streams = Streams(0, (0,), {"data": f"{GROUP} start"})
        return self._model.initial("random", streams)[0, 0].astype(float)

    def minimiser_on(self, *arrays):
        """Minimise the loss on images plus a ridge, from :attr:`start`."""
        (rows,) = arrays
        model = Perceptron(
            self.features, self.classes, rows[None, None], self.test[:0], self.hidden
        )

        def value_and_slope(x):
            models = x[None].astype(self.features.dtype)
            loss = model.evaluate(models, rows)[0][0] + PUBLIC_RIDGE / 2 * (x @ x)
            return float(loss), model.gradient(models[None, None])[0, 0, 0] + PUBLIC_RIDGE * x

        options = {"maxiter": 300}
        return minimize(value_and_slope, self.start, jac=True, method="L-BFGS-B", options=options).x

    chance = 1 / CLASS_COUNT

    def majority(self):
        public, train, test = (self.classes[r] for r in (self.public, self.train, self.test))
        return _majority(public, train[:EVALUATION_RECORDS], test, CLASS_COUNT, self.least)

    def losses_on(self, x, *arrays):
        return self._model.evaluate(x, *arrays)[0]

    least = 0.0

    def accuracies(self, x):
        return self._model.evaluate(x, self.test)[1]


def _majority(public, train, test, count: int, min_loss: float) -> Baseline:
    """Return the constant model of the class frequencies of the public records.

    Each class counts one more record than there are, so that no probability is 0.
    """
    classes = np.unique(np.concatenate([public, train, test]))
    counts = np.array([(public == value).sum() for value in classes]) + 1.0
    probabilities = counts / (counts.sum() + count - len(classes))
    loss = -np.log(probabilities[np.searchsorted(classes, train)]).mean()
    return Baseline(float(loss - min_loss), float((test == classes[counts.argmax()]).mean()))


def quantile_classes(values: np.ndarray) -> np.ndarray:
    """Return the class of each number, divided at the quintiles."""
    cuts = np.quantile(values, np.arange(1, CLASSES) / CLASSES)
    return np.searchsorted(cuts, values)


def _agent_records(records: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the agents' records [runs, agents, max_records, dim], padded with zeros."""
    return np.where((rows == UNUSED)[..., None], 0.0, records[rows])


def _blocks(models: int, records: int) -> list[slice]:
    block_size = max(1, MAX_PRODUCTS // records)
    return [slice(first, first + block_size) for first in range(0, models, block_size)]


def shared_out(
    pool: Pool, parameters: Mapping[str, Any], agents: int, streams: Streams
) -> np.ndarray:
    """Partition the records of a pool among the agents, separately in each run.

    Parameters
    ----------
    pool : Pool
        Records of all agents.
    parameters : mapping
        ``concentration`` of a Dirichlet distribution, of labels or, with ``of: sizes``, of sizes.
        An empty mapping partitions the records at random.
    agents : int
        Number of agents.
    streams : Streams
        Random streams of the runs.

    Returns
    -------
    ndarray of int, shape (runs, agents, max_records)
        Rows of each agent, padded with ``UNUSED``.
    """
    labels = pool.labels
    generators = streams.generators("data", "partition")
    require(len(labels) % agents == 0, "agents", agents, f"a divisor of {len(labels)} records")
    sizes = [len(labels) // agents] * agents
    allowed = {"concentration", "of"}
    require(
        {*parameters} <= allowed, "partitions", dict(parameters), f"keys among {sorted(allowed)}"
    )
    if not parameters:
        return partition_iid(labels, sizes, generators)
    concentration = parameters["concentration"]
    if parameters.get("of", "labels") == "labels":
        return partition_dirichlet(labels, sizes, generators, concentration=concentration)
    return partition_unequal(
        labels, agents, len(labels), generators, concentration=concentration, smallest=4
    )


def pool_of(design: ComparisonDesign, name: str, prepared: Mapping[str, Any]) -> Pool:
    """Return the pool of a problem of the design.

    Parameters
    ----------
    design : ComparisonDesign
        Design of the comparison.
    name : str
        Name of the problem.
    prepared : mapping
        Prepared data sets by name.

    Returns
    -------
    Pool

    Raises
    ------
    InvalidInput
        For an unknown problem, or for data with fewer records than the design requires.
    """
    declared = design.problems[name]
    maker = name.partition("_")[0] if name not in MAKERS else name
    if maker not in MAKERS:
        raise InvalidInput("problems", name, f"a name that begins with one of {', '.join(MAKERS)}")
    parameters = dict(declared.model_extra or {})
    if "prepared" in parameters:
        parameters["prepared"] = prepared[parameters["prepared"]]
    streams = Streams(design.seed, (0,), {"data": f"{GROUP} {name}"})
    return MAKERS[maker](
        streams.shared("data", "pool"), declared.records, design.tuning.public_records, **parameters
    )


def _means(generator, records: int, public: int, *, dim: int, box: float) -> Means:
    """Sample a normal distribution with mean 0.7 R and standard deviation 1, truncated to the box.

    The distribution is that of Showkatbakhsh et al., section V-A.
    """
    lowest, highest = ndtr(np.array([-box, box]) - 0.7 * box)
    uniform = generator.random((records + public, dim))
    samples = 0.7 * box + ndtri(lowest + (highest - lowest) * uniform)
    return Means(*np.split(np.clip(samples, -box, box), [records]), box)


def _classified(
    generator, records: int, public: int, *, prepared, ridge: float, test_rows: int = 1000
) -> Classified:
    sampled_rows = _chosen(generator, len(prepared.labels), records + test_rows + public)
    features = np.asarray(prepared.features, float)[sampled_rows]
    classes = np.asarray(prepared.labels, float)[sampled_rows]
    splits = (np.split(rows, [records, records + test_rows]) for rows in (features, classes))
    return Classified(*chain.from_iterable(zip(*splits, strict=True)), ridge)


def _regressed(
    generator, records: int, public: int, *, dim: int, penalty: float, gradient_bound: float = 1.0
) -> Regressed:
    """Sample standard normal features and coefficients, and errors of variance 0.1.

    The distribution is that of Gratton et al., section VI.
    """
    omega = generator.standard_normal(dim)

    def sample(rows: int) -> tuple[np.ndarray, np.ndarray]:
        features = normalise(generator.standard_normal((1, 1, rows, dim)))[0, 0]
        return features, features @ omega + np.sqrt(0.1) * generator.standard_normal(rows)

    return Regressed(*sample(records), *sample(public), penalty, gradient_bound)


def _images(
    generator,
    records: int,
    public: int,
    *,
    prepared,
    hidden: int,
    side: int,
    clip: float = 1.0,
    test_rows: int = 500,
) -> Images:
    """Sample images and reduce them to ``side`` times ``side`` pixels by block means."""
    train, test = (np.asarray(prepared.splits[split]) for split in ("train", "test"))
    train_rows = train[_chosen(generator, len(train), records + public)]
    test_rows_sampled = test[_chosen(generator, len(test), test_rows)]
    rows = np.concatenate([train_rows, test_rows_sampled])
    features = shrunk(np.asarray(prepared.features[rows], np.float32), side)
    classes = np.asarray(prepared.labels)[rows].astype(np.int64)
    agent_rows, public_rows, tested = np.split(np.arange(len(rows)), [records, records + public])
    return Images(features, classes, agent_rows, tested, public_rows, hidden, clip)


def shrunk(features: np.ndarray, side: int) -> np.ndarray:
    """Reduce square images to ``side`` times ``side`` pixels by block means.

    Parameters
    ----------
    features : ndarray, shape (rows, pixels)
        Images.
    side : int
        Pixels per side; a divisor of the present number.

    Returns
    -------
    ndarray, shape (rows, side**2)
    """
    wide = round(np.sqrt(features.shape[1]))
    fits = wide**2 == features.shape[1] and 1 <= side <= wide and wide % side == 0
    require(fits, "problem.side", side, f"a divisor of {wide}, the pixels per side")
    blocks = features.reshape(len(features), side, wide // side, side, wide // side)
    return blocks.mean((2, 4)).reshape(len(features), side**2)


def _chosen(generator, available: int, count: int) -> np.ndarray:
    require(
        count <= available, "problem.records", count, f"at most the {available} records there are"
    )
    return generator.permutation(available)[:count]


MAKERS = {
    "mean_estimation": _means,
    "logistic": _classified,
    "lasso": _regressed,
    "perceptron": _images,
}
"""Functions that build a pool, by the name of a problem or by its first word."""
