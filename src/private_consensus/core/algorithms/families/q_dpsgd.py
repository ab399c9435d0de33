r"""Common base of Q-DPSGD-1 and Q-DPSGD-2: steps, deadline and grid (Ding, 4.4).

This module is not an algorithm. With the published constants, :math:`e > 1` for :math:`T
< 121`. The recursion is nevertheless stable as long as :math:`e(1-\lambda_{\min}(W)) <
2`.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from private_consensus.common.errors import OutsideRange
from private_consensus.privacy.subsampling import Batches, deadline_batches

from ...kernels.messages import descend
from ...kernels.rounds import Grids, Steps, steps_of
from ...quantization import Grid
from ..base import Range
from ..parameters import fraction, one_of, positive
from .decentralized_sgd import (
    FASTEST,
    FULL_BITS,
    SLOWEST,
    BatchModels,
    DecentralizedSGD,
    SampledRound,
    at,
)

GRIDS = ("clipped", "open")
MEAN_SPEED = (SLOWEST + FASTEST) / 2
MOST_KNOWN = 8
"""Largest number of matrices in the cache, of runs that are computed simultaneously."""


@dataclass(frozen=True, kw_only=True)
class QDPSGD(DecentralizedSGD):
    r"""Common base of both versions of Q-DPSGD.

    Parameters
    ----------
    a0, e0 : float
        Constants of the steps :math:`a` and :math:`e`.
    rate : float, optional
        :math:`\tilde\delta` in (0, 1/2), of the steps for strongly convex objectives.
    eta : float
        Resolution of the grid; the dissertation states none. 3 bits suffice for 0.1 to 0.2.
    s : int
        Bits per coordinate.
    grid : {"clipped", "open"}
        Whether the grid ends at the range of s bits or is unbounded (with an ``eta`` of
        0.001, the code of the predecessor).
    T : float
        Number of rounds of the run; set by :meth:`run`.
    """

    a0: float = positive(0.3)
    e0: float = positive(11.0)
    rate: float | None = fraction(None, below=0.5)
    eta: float = 0.1
    s: int = 3
    grid: str = one_of("clipped", GRIDS)
    T: float = 0.0

    ranges: ClassVar = {
        **DecentralizedSGD.ranges,
        "a0": Range(0.1, 3.0, 1.0),
        "e0": Range(0.5, 3.0, 2.0),
        "eta": Range(0.003, 0.3, 0.03),
    }

    def __post_init__(self):
        super().__post_init__()
        for eta, s in np.broadcast(self.eta, self.s):
            Grid(float(eta), s)

    def deadline(self):
        """Return the deadline :math:`T_d`, in seconds."""
        return self.B / MEAN_SPEED

    def batches(self) -> Batches:
        """Return the distribution of the batch size at the deadline."""
        return deadline_batches(float(self.deadline()), SLOWEST, FASTEST)

    def widest(self) -> int:
        """Return the largest batch size at the deadline."""
        return self._widest

    @cached_property
    def _widest(self) -> int:
        return max(deadline_batches(float(np.max(self.deadline())), SLOWEST, FASTEST).sizes)

    def sizes(self, s, speeds):
        """Return the number of gradients that each agent computes until the deadline.

        Parameters
        ----------
        s : int
            Index of the setting.
        speeds : ndarray, shape (..., agents)
            Gradients per second of each agent.

        Returns
        -------
        ndarray of int
            With the shape of ``speeds``.
        """
        sizes = np.floor(speeds * at(self.deadline(), s)).astype(int)
        return np.minimum(sizes, self._widest)

    def seconds(self, speeds):
        """Return the deadline plus the time to send a message, [settings, 1]."""
        duration = np.add(self.deadline(), np.multiply(self.T_c, self.s) / FULL_BITS)
        return np.reshape(duration, (-1, 1))

    def bits(self, dim):
        """Return the size of a message in bits: s bits for each of ``dim`` coordinates."""
        return np.multiply(self.s, float(dim))

    def steps(self, T):
        """Return :math:`a` and :math:`e` of a run of T rounds."""
        slow, root = 1 / 6, np.sqrt(T)
        if self.rate is not None:
            slow, root = self.rate / 2, np.power(T, 1.5 * self.rate)
        return self.a0 / np.power(T, slow), self.e0 / root

    def run(self, problem, network, streams, horizon, observe):
        """Run a batch of settings with the steps for their horizons.

        Warns if :math:`e > 1`.

        Parameters
        ----------
        problem : Problem
            Objectives and data of the agents, with their sensitivities.
        network : Network
            Communication graph with its mixing matrix.
        streams : Streams
            Random streams of all runs.
        horizon : ndarray of int, shape (settings,)
            Number of iterations of each setting.
        observe : Observe
            Callback that receives the observables of each iteration.
        """
        T = np.asarray(horizon, float)
        self._warn(T)
        ready = replace(self, T=T)
        DecentralizedSGD.run(ready, problem, network, streams, horizon, observe)

    def _warn(self, T: np.ndarray) -> None:
        above = np.broadcast_to(self.steps(T)[1], T.shape) > 1 + 1e-12
        if above.any():
            warnings.warn(
                f"e = e0/sqrt(T) is above 1 for T = {int(T[above].max())}: (1-e)I + eW then weighs "
                "an agent's own model negatively; e0 = 11 requires T >= 121",
                OutsideRange,
                stacklevel=3,
            )

    def of(self, s: int) -> tuple[float, float, Grid]:
        """Return a, e and the grid of setting s."""
        a, e = (float(at(step, s)) for step in self.steps(self.T))
        return a, e, Grid(float(at(self.eta, s)), at(self.s, s), self.grid == "clipped")

    @cached_property
    def of_all(self) -> list[tuple[float, float, Grid]]:
        """Steps a, e and grids of all settings, which are equal in all rounds of a run."""
        return [self.of(s) for s in range(np.size(self.T))]

    def pass_of(self, models: BatchModels, scales: np.ndarray) -> tuple[Steps, Grids] | None:
        """Return the steps and grids of all settings for a round in one pass.

        Parameters
        ----------
        models : BatchModels
            Models of one run with the mixing matrices.
        scales : ndarray, shape (settings, agents)
            Standard deviations of the noise.

        Returns
        -------
        tuple of (Steps, Grids), or None
            None if a grid is of a subclass, which may round differently.
        """
        if any(type(grid) is not Grid for _, _, grid in self.of_all):
            return None
        matrices = np.array(models.mixing)
        name = matrices.tobytes()
        cached = self._known.get(name)
        if cached is None:
            cached = self._parts(matrices)
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[name] = cached
        steps, grids = cached
        return steps._replace(scale=scales.astype(np.float32)), grids

    @cached_property
    def _known(self) -> dict[bytes, tuple[Steps, Grids]]:
        """Cache of steps and grids by matrices, which are equal in all rounds of most networks."""
        return {}

    def _parts(self, matrices: np.ndarray) -> tuple[Steps, Grids]:
        step_settings = self.of_all
        own_weights = [np.diagonal(matrix) for matrix in matrices]
        steps = steps_of(
            weights=[
                e * (matrix - np.diag(weight))
                for (_, e, _), matrix, weight in zip(
                    step_settings, matrices, own_weights, strict=True
                )
            ],
            keep=[
                1.0 - e + e * weight
                for (_, e, _), weight in zip(step_settings, own_weights, strict=True)
            ],
            scale=np.zeros(matrices.shape[:2]),
            step=[a * e for a, e, _ in step_settings],
        )
        ends = [(grid.resolution, *grid.ends) for _, _, grid in step_settings]
        return steps, Grids(*np.array(ends, np.float32).T.copy())

    def descend(self, x, base, e: float, a: float, gradient, scale, round_: SampledRound) -> None:
        """Update the models from the messages, in place.

        Parameters
        ----------
        x : ndarray, shape (agents, p)
            Models, overwritten.
        base : ndarray, shape (agents, p)
            Value that each agent uses for its own model.
        e : float
            Step :math:`e` of the mixing.
        a : float
            Step :math:`a` of the gradient.
        gradient : ndarray, shape (agents, p)
            Clipped mean gradients.
        scale : ndarray, shape (agents,)
            Standard deviation of the noise.
        round_ : SampledRound
            Graph, messages, keys and workspace.
        """
        own_weights, mixed = round_.mix_others(e, round_.message)
        keep = 1.0 - e + e * own_weights
        key, counter = round_.keys["noise"], round_.counter
        descend(x, base, mixed, gradient, keep, a * e, scale, key, counter)
