r"""Perceptron with one hidden layer for image classification (dissertation 4.5).

.. math:: h = \varsigma(a W_1 + b_1), \quad o = h W_2 + b_2, \qquad
          x = (W_1, b_1, W_2, b_2) \in R^p

with the sigmoid :math:`\varsigma`. A record's loss is softmax cross-entropy,
:math:`\ln\sum_k e^{o_k} - o_y`, with the derivative :math:`\partial\ell/\partial o = \pi - e_y`
and the softmax :math:`\pi`. An agent's objective is the mean over its records.

The gradient of a record in one layer is the outer product of the layer's input and of the
backpropagated derivative, so

.. math:: \|\nabla\ell\|^2 = (\|a\|^2+1)\|\delta_1\|^2 + (\|h\|^2+1)\|\delta_2\|^2

and scaling the rows of :math:`\delta` clips it. Gradients of single records are not computed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from private_consensus.common import arrays
from private_consensus.common.errors import arguments, require
from private_consensus.kernels import backpropagation

from ..parameters import Count, validated
from ..randomness import Streams
from .base import Problem, consensus_error, require_rows

CLASSES = 10
INITS = ("zero", "random")
BLOCK_ROWS, BLOCK_MODELS = 1000, 8


@dataclass(frozen=True, eq=False)
class Perceptron(Problem):
    """Perceptrons of equal shape, one per agent, on a common data set.

    The gradient of a record is unbounded; algorithms clip gradients.

    Parameters
    ----------
    features : ndarray, shape (rows, inputs)
        Inputs of all records; their dtype, float32 or float64, is the precision of all
        computations. Norms of rows are at most the fourth root of the largest number of that
        precision.
    labels : ndarray of int, shape (rows,)
        Classes from 0 to 9.
    agent_rows : ndarray of int, shape (runs or 1, agents, m)
        Indices of the records of each agent.
    test : ndarray of int
        Indices of the test records.
    hidden : int
        Number of hidden units.
    """

    features: np.ndarray
    labels: np.ndarray
    agent_rows: np.ndarray
    test: np.ndarray
    hidden: Count

    axes: ClassVar[Mapping[str, str]] = {"features": "row input"}

    def __post_init__(self):
        super().__post_init__()
        labels, count = self.labels, len(self.features)
        # Larger squared norms overflow, and clipping then has no effect.
        largest = float(np.finfo(self.features.dtype).max) ** 0.25
        arrays.require_rows_within("problem.features", self.features, largest, ("row", "input"))
        arrays.require_array("problem.labels", labels, ("row",), kinds="iu")
        arrays.require_shape("problem.labels", labels, (count,), "features")
        coded = (labels >= 0) & (labels < CLASSES)
        arrays.require_each(coded, "problem.labels", labels, ("row",), f"0 to {CLASSES - 1}")
        require_rows("problem.agent_rows", self.agent_rows, ("run", "agent", "record"), count)
        require_rows("problem.test", self.test, ("test record",), count, empty=True)

    @property
    def n_runs(self) -> int:
        return len(self.agent_rows)

    @property
    def n_agents(self) -> int:
        return self.agent_rows.shape[1]

    @property
    def records(self) -> int:
        """Number m of records of each agent."""
        return self.agent_rows.shape[2]

    @property
    def inputs(self) -> int:
        return self.features.shape[1]

    @property
    def dim(self) -> int:
        return self.inputs * self.hidden + self.hidden + self.hidden * CLASSES + CLASSES

    def rows_of(self, run: int) -> np.ndarray:
        """Return the indices of the agents' records in a run; shape (agents, m)."""
        return self.agent_rows[run if len(self.agent_rows) > 1 else 0]

    def layers(self, x: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return views of the layers of parameters (..., p).

        The views are W1 (..., inputs, hidden), b1 (..., 1, hidden), W2 (..., hidden, classes) and
        b2 (..., 1, classes).
        """
        d, h, lead = self.inputs, self.hidden, x.shape[:-1]
        first, second = d * h + h, d * h + h + h * CLASSES
        return (
            x[..., : d * h].reshape(*lead, d, h),
            x[..., None, d * h : first],
            x[..., first:second].reshape(*lead, h, CLASSES),
            x[..., None, second:],
        )

    def initial(self, init: str, release: Any) -> np.ndarray:
        """Return the common starting point, [runs, 1, p], of all agents of a run.

        It is sampled from the stream ``data``, so that all algorithms of a figure have the same
        starting point: ``zero`` (as published), or ``random`` (normal weights of variance 1/fan-in,
        biases 0).
        """
        arguments.choice("algorithm.init", init, INITS)
        shape = (1, self.dim)
        if init == "zero":
            x = np.zeros((release.runs, *shape))
        else:
            x = release.once("initial", "normal", shape)
            W1, b1, W2, b2 = self.layers(x)
            W1 /= np.sqrt(self.inputs)
            W2 /= np.sqrt(self.hidden)
            b1[:] = b2[:] = 0.0
        return x.astype(self.features.dtype)

    def clipped_gradient(self, x, rows, sizes, clip=np.inf, out=None):
        out = np.empty_like(x) if out is None else out
        if x.dtype == self.features.dtype == np.float32 and out.flags.c_contiguous:
            batch = np.zeros(1, int), rows, sizes[None], np.array([clip])
            self.clipped_gradients(np.ascontiguousarray(x), *batch, out)
            return out
        return self._array_gradient(x, rows, np.arange(rows.shape[-1]) < sizes[:, None], clip, out)

    def clipped_gradients(self, x, first, rows, sizes, clips, out) -> None:
        """Compute :meth:`clipped_gradient` for the agents of several settings.

        The parameters are those of :func:`.backpropagation.clipped_gradients`.
        """
        batch = self._records, self.labels, rows, sizes, clips, self.hidden
        backpropagation.clipped_gradients(x, first, *batch, out)

    @cached_property
    def _records(self) -> backpropagation.PackedRecords:
        return backpropagation.records(self.features)

    def _array_gradient(self, x, rows, in_sample, clip, out) -> np.ndarray:
        """Compute mean clipped gradients of samples by array operations; padding has weight 0."""
        W1, b1, W2, b2 = self.layers(x)
        a = self.features[rows]
        h = sigmoid(a @ W1 + b1)
        o = h @ W2 + b2
        o = np.exp(o - o.max(-1, keepdims=True))
        is_label = self.labels[rows][..., None] == np.arange(CLASSES)
        back2 = o / o.sum(-1, keepdims=True) - is_label
        back1 = (back2 @ W2.swapaxes(-1, -2)) * (h * (1 - h))
        lengths = _squared_norms(a) + 1
        squares = lengths * _squared_norms(back1) + (_squared_norms(h) + 1) * _squared_norms(back2)
        sizes = np.maximum(in_sample.sum(-1, keepdims=True), 1)
        weights = in_sample / (sizes * np.maximum(1.0, np.sqrt(squares) / clip))
        weights = weights.astype(x.dtype)[..., None]
        G1, g1, G2, g2 = self.layers(out)
        for v, slopes, G, g in ((a, back1, G1, g1), (h, back2, G2, g2)):
            weighted = slopes * weights
            np.matmul(v.swapaxes(-1, -2), weighted, out=G)
            np.sum(weighted, axis=-2, keepdims=True, out=g)
        return out

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Compute the gradient of the mean over all records of each agent."""
        out, sizes = np.empty_like(x), np.full(self.n_agents, self.records)
        for s, run in np.ndindex(x.shape[:2]):
            self.clipped_gradient(x[s, run], self.rows_of(run), sizes, out=out[s, run])
        return out

    def outputs(self, x: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Compute the outputs o, [models, classes, rows], of models on a subset of rows."""
        if x.dtype == self.features.dtype == np.float32:
            return backpropagation.outputs(x, self._records, rows, self.hidden)
        W1, b1, W2, b2 = (v.swapaxes(-1, -2) for v in self.layers(x))
        return W2 @ sigmoid(W1 @ self.features[rows].T + b1) + b2

    def evaluate(self, x: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Compute the mean loss and the accuracy of models, [..., p], on a subset of rows."""
        models = x.reshape(-1, x.shape[-1])
        # Images of one class have similar black pixels, which the compiled code skips.
        rows = rows[np.argsort(self.labels[rows], kind="stable")]
        loss, correct_counts = np.zeros(len(models)), np.zeros(len(models))
        for begin in range(0, len(rows), BLOCK_ROWS):
            block = rows[begin : begin + BLOCK_ROWS]
            for first in range(0, len(models), BLOCK_MODELS):
                batch = slice(first, first + BLOCK_MODELS)
                o, labels = self.outputs(models[batch], block), self.labels[block]
                label_outputs, maximum = o[:, labels, np.arange(len(labels))], o.max(-2)
                # The predicted class is the first with the largest output.
                correct_counts[batch] += (o.argmax(-2) == labels).sum(-1)
                o -= maximum[:, None]
                losses = np.log(np.exp(o, out=o).sum(-2)) + maximum - label_outputs
                loss[batch] += losses.sum(-1, dtype=float)
        shape = x.shape[:-1]
        return (loss / len(rows)).reshape(shape), (correct_counts / len(rows)).reshape(shape)

    def training_loss(self, x: np.ndarray) -> np.ndarray:
        """Compute the loss of the average model on the records of all agents."""
        models = np.moveaxis(x.mean(-2), 1, 0)
        losses = [self.evaluate(m, self.rows_of(run).ravel())[0] for run, m in enumerate(models)]
        return np.stack(losses, -1)

    def test_accuracy(self, x: np.ndarray) -> np.ndarray:
        """Compute the accuracy of the average model on the test records."""
        return np.stack([self.evaluate(m, self.test)[1] for m in np.moveaxis(x.mean(-2), 1, 0)], -1)

    metrics = {  # noqa: RUF012
        "training_loss": training_loss,
        "test_accuracy": test_accuracy,
        "consensus_error": consensus_error,
    }


EXAMPLE = {"prepared": "synthetic", "hidden": 10, "records": 1000}


def sigmoid(v: np.ndarray) -> np.ndarray:
    """Compute the sigmoid :math:`1/(1+e^{-v})` in place, by the hyperbolic tangent."""
    v *= 0.5
    np.tanh(v, out=v)
    v += 1.0
    v *= 0.5
    return v


def _squared_norms(v: np.ndarray) -> np.ndarray:
    """Compute the squared l2 norms of rows."""
    return (v * v).sum(-1)


def require_records(agents: int, records: int, rows: int) -> None:
    """Refuse fewer records of all agents together than agents, or more than training rows."""
    expected = f"at least {agents}, one per agent, and at most {rows}, the training records"
    require(agents <= records <= rows, "problem.records", records, expected)


@validated
def build(
    streams: Streams,
    agents: int,
    *,
    prepared,
    hidden: Count,
    records: Count = 10_000,
    test_rows: Count | None = None,
) -> Perceptron:
    """Sample training records in each run, equally many per agent; the remainder is unused.

    Parameters
    ----------
    streams : Streams
        Random streams; records come from the stream ``data``.
    agents : int
        Number of agents.
    prepared : object
        Prepared records: ``features``, ``labels`` from 0 to 9, and ``splits`` train and test.
    hidden : int
        Number of hidden units, 50 for MNIST and 40 for CIFAR-10.
    records : int
        Number of records of all agents together; each agent has ``records // agents``.
    test_rows : int, optional
        Largest number of test rows.

    Returns
    -------
    Perceptron
    """
    train = np.asarray(prepared.splits["train"])
    require_records(agents, records, len(train))
    labels = np.asarray(prepared.labels).astype(np.int64)
    coded = labels.min() >= 0 and labels.max() < CLASSES
    require(coded, "problem.prepared", (labels.min(), labels.max()), "labels from 0 to 9")
    records_per_agent = records // agents
    used = agents * records_per_agent
    rows = np.stack([data.permutation(len(train))[:used] for data in streams.generators("data")])
    agent_rows = train[rows.reshape(-1, agents, records_per_agent)]
    features = np.asarray(prepared.features, np.float32)
    test = np.asarray(prepared.splits["test"])[:test_rows]
    return Perceptron(features, labels, agent_rows, test, hidden)
