"""Mechanisms on random batches of records."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from .mechanisms import Mechanism
from .releases import Release


class Batch(NamedTuple):
    """Batches of all agents in one iteration, and the noise of the iteration.

    ``speeds`` [runs, agents] are uniform numbers that determine random batch sizes; ``rows``
    [runs, agents, largest] are indices of records in the order in which they are used; ``normals``
    returns standard normal noise [runs, agents, dim]. For an algorithm, the mechanism adds
    ``sizes``, the batch sizes [settings, runs, agents], and ``deviation``, the standard deviation
    of the noise: on mean gradients in the same shape, or on messages [settings].
    """

    speeds: np.ndarray
    rows: np.ndarray
    normals: Any
    sizes: Any = None
    deviation: Any = None


@dataclass(frozen=True)
class OnBatches(Mechanism):
    """Base of mechanisms on random batches, which the handler samples.

    Parameters
    ----------
    sizes : callable
        Function of ``speeds`` that returns the batch sizes [settings, runs, agents].
    largest : int
        Largest batch size.
    """

    sizes: Any = None
    largest: int = 1
    takes_array: ClassVar[bool] = False
    noise_streams = ("",)

    def units(self, problem, streams):
        agents, records = problem.n_agents, problem.records
        speeds = streams.sequence("sampling", "uniform", (agents,), "speeds")
        numbers = streams.sequence("sampling", "uniform", (agents, records), "records")
        normals = streams.counter_normals("noise", (agents, problem.dim))
        rows = np.stack([problem.rows_of(run) for run in range(len(streams.runs))])
        for speed, number, normal in zip(speeds, numbers, normals, strict=False):
            # The rows with the smallest numbers are a uniform ordered sample without replacement.
            order = np.argsort(number, axis=-1)[..., : self.largest]
            yield Batch(speed, np.take_along_axis(rows, order, -1), normal)

    def public(self, unit: Batch) -> Batch:
        """Return a batch with the sizes and the noise that the mechanism declares."""
        sizes = self.sizes(unit.speeds)
        return unit._replace(sizes=sizes, deviation=self.deviation(sizes))

    def deviation(self, sizes: np.ndarray) -> np.ndarray:
        """Return the standard deviation of the noise for batch sizes."""
        return np.reshape(np.asarray(self.scale, float), -1)


@dataclass(frozen=True)
class SampledGradient(OnBatches):
    """Gaussian noise on the mean of the clipped gradients of a random batch.

    The handler samples the batch, and the query is called with it: ``query(rows, sizes)`` returns
    the means [settings, runs, agents, dim] of gradients that are clipped to the norm ``clip``.
    The batch of an agent is the first ``sizes`` [settings, runs, agents] of the indices ``rows``
    [runs, agents, largest].

    Parameters
    ----------
    scale : float or ndarray, shape (settings, 1, 1, 1)
        Noise multiplier sigma, the noise over the clipping norm.
    batch : SampledNoise
        Batch sizes and losses of one setting, for the accountant.
    clip : float or ndarray, shape (settings,)
        Clipping norm K; infinite for no clipping.
    on_sum : bool
        Whether the noise is added to the sum, which is then divided by the batch size.
    """

    batch: Any = None
    clip: Any = 1.0
    on_sum: bool = False

    def deviation(self, sizes):
        sigma, clip = (np.reshape(value, (-1, 1, 1)) for value in (self.scale, self.clip))
        divisor = np.maximum(sizes, 1) if self.on_sum else np.ones(sizes.shape)
        clip = np.where(sigma > 0, clip, 0.0)  # infinite without clipping, which has no noise
        return np.where(sizes > 0, sigma * clip / divisor, 0.0)

    def output(self, query, unit, t):
        sizes = self.sizes(unit.speeds)
        return query(unit.rows, sizes) + self.deviation(sizes)[..., None] * unit.normals()

    def unaccounted(self, unit):
        if self.batch is None:
            return ""
        executed, accounted = self.sizes(unit.speeds), self.batch.batches.sizes
        if np.isin(executed, accounted).all() and unit.rows.shape[-1] <= max(accounted):
            return ""
        return f"batches of {np.max(executed)} records, accounted are at most {max(accounted)}"

    def evidence(self, query, unit, output, t):
        sizes = self.sizes(unit.speeds)
        return query(unit.rows, sizes), unit.rows, sizes

    def uses(self, recorded, row):
        _, rows, sizes = recorded.evidence
        used = np.arange(rows.shape[-1]) < sizes[..., None]
        return ((rows == row) & used).any(-1, keepdims=True)

    def loss(self, t):
        # The cost is stated relative to the largest change of a mean of the sampled batch size.
        return np.where(np.all(np.asarray(self.scale) > 0), 1.0, np.inf)

    def cost(self, query, recorded, t, earlier):
        means, rows, sizes = recorded.evidence
        change = np.linalg.norm(query(rows, sizes) - means, axis=-1, keepdims=True)
        largest = 2.0 * np.reshape(self.clip, (-1, 1, 1, 1)) / np.maximum(sizes, 1)[..., None]
        return change / largest

    def releases(self, horizon):
        return self.batch.releases(float(self.scale), int(horizon))


@dataclass(frozen=True)
class DiscreteMessage(OnBatches):
    """Discrete Gaussian noise on models that are rounded to a grid.

    The query is a pair of the rounded models and a function of the standard deviations [settings]
    that adds the noise and returns the messages.

    Parameters
    ----------
    sensitivity : float
        Largest l2 change of the rounded models by one record, with equal random numbers.
    scale : float
        Standard deviation of the noise, in the unit of the models.
    accounted : tuple of Release
        Releases for the accountant, which credit sampling.
    """

    accounted: tuple[Release, ...] = ()

    def output(self, query, unit, t):
        _, message = query
        return message(self.public(unit).deviation)

    def evidence(self, query, unit, output, t):
        return np.array(query[0])

    def change(self, query, recorded, t):
        return (recorded.evidence - query[0]) / self.at(self.scale, t)

    def releases(self, horizon):
        return list(self.accounted)
