"""Mechanism of the coefficients of a quadratic objective (functional mechanism)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, ClassVar

import numpy as np

from .mechanisms import ADDITIVE, Mechanism
from .releases import Release


@dataclass(frozen=True)
class NoisyCoefficients(Mechanism):
    """Independent noise on blocks of coefficients, each with its own scale and stream.

    The query is a mapping from the names of the blocks to arrays [settings, runs, d] or, for
    ``quadratic``, symmetric matrices [settings, runs, d, d].

    Parameters
    ----------
    sensitivity : float
        Largest norm of the change of all coefficients, each divided by its noise scale.
    distribution : {"laplace", "gaussian"}
        Distribution of the noise.
    scales : mapping
        Noise scale of each block, broadcastable to the block.
    """

    distribution: str = "laplace"
    scales: Mapping[str, Any] = field(default_factory=dict)
    takes_array: ClassVar[bool] = False

    @property
    def noise_streams(self):
        return tuple(self.scales)

    def units(self, problem, streams):
        law, dim = ADDITIVE[self.distribution].unit, problem.dim
        shapes = {name: (dim, dim) if name == "quadratic" else (dim,) for name in self.scales}
        drawn = {n: streams.draw("noise", law, shape, n) for n, shape in shapes.items()}
        return repeat(drawn)

    def output(self, query, unit, t):
        noisy = {}
        for name, scale in self.scales.items():
            noise = unit[name]
            if name == "quadratic":
                # The noise of a symmetric matrix, from draws on all products of two columns.
                noise = (noise + np.swapaxes(noise, -1, -2)) / 2
            noisy[name] = query[name] + scale * noise
        return noisy

    def evidence(self, query, unit, output, t):
        return {name: np.array(query[name]) for name in self.scales}

    def loss(self, t):
        return np.asarray(self.sensitivity, float)

    def cost(self, query, recorded, t, earlier):
        order = ADDITIVE[self.distribution].norm_order
        changes = []
        for name, scale in self.scales.items():
            change = np.abs(recorded.evidence[name] - query[name]) / scale
            changes.append(change.reshape(*change.shape[:2], -1))
        return np.linalg.norm(np.concatenate(changes, axis=-1), order, axis=-1, keepdims=True)

    def releases(self, horizon):
        if not all(np.all(np.asarray(scale) > 0) for scale in self.scales.values()):
            return [Release("exact", scale=0.0)]
        return [Release(self.distribution, sensitivity=float(self.sensitivity), scale=1.0)]
