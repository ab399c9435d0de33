r"""Linear secret sharing: compute a sum without revealing its terms (Xiao et al., Algorithm 3).

Agent i splits its value into N shares that are uniform given their sum. It keeps one share and
sends each other share to one agent. Every agent broadcasts the sum of the shares that it has:

.. math:: v_i = \sum_j s_{ij} \ (\mathrm{mod}\ p), \qquad \hat s_j = \sum_i s_{ij}, \qquad
    \sum_j \hat s_j = \sum_i v_i \ (\mathrm{mod}\ p) \quad (15)

Reals are rounded to multiples of ``1 / resolution``, and residues above p / 2 represent negative
numbers. The sum is exact if :math:`p > 2\,|\sum_i v_i|`. The condition of the paper,
:math:`p > |\sum_i v_i|`, does not suffice.

The guarantee is not differential privacy: the view of at most N - 2 colluding agents depends on the
honest agents' values only through their sum (Theorem 2.1). The sum is public, and N - 1 colluders
know the value of the last agent. The graph must be complete.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from private_consensus.common.errors import require

from .networks import Network

LARGEST_MODULUS = 2**62
"""Largest modulus, for which the sum of two residues has at most 64 bits."""


@dataclass(frozen=True)
class SecretSharing:
    """Secret sharing of fixed-point numbers (Xiao et al., Algorithm 3).

    Parameters
    ----------
    modulus : int
        Modulus p, above twice the absolute value of the largest sum times ``resolution``.
    resolution : int
        Number of grid points per unit.
    """

    modulus: int = 2**61 - 1
    resolution: int = 2**32

    def __post_init__(self):
        require(
            2 < self.modulus <= LARGEST_MODULUS, "exchange.modulus", self.modulus, "in (2, 2**62]"
        )
        require(self.resolution >= 1, "exchange.resolution", self.resolution, "a number >= 1")

    def encode(self, x: np.ndarray) -> np.ndarray:
        """Round reals to the grid and return their residues modulo p.

        If the sum of such values over agents (axis -2) might exceed p / 2, ``InvalidInput`` is
        raised.
        """
        steps = np.rint(np.asarray(x, float) * self.resolution)
        largest = float(np.abs(steps).max(initial=0.0)) * np.shape(x)[-2]
        require(
            largest < self.modulus / 2,
            "exchange.modulus",
            self.modulus,
            f"above {2 * largest:.6g}, twice the largest possible sum",
        )
        return steps.astype(np.int64) % self.modulus

    def decode(self, residues: np.ndarray) -> np.ndarray:
        """Convert residues to reals; residues above p / 2 represent negative numbers."""
        signed = np.where(residues > self.modulus // 2, residues - self.modulus, residues)
        return signed / self.resolution

    def split(self, values: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """Split residues ``[..., i, d]`` into shares ``[..., i, j, d]``, from agent i for agent j.

        All shares but the last are uniform and independent. The last share makes the sum modulo p
        over j correct.
        """
        agents = values.shape[-2]
        shape = (*values.shape[:-1], agents - 1, values.shape[-1])
        free = generator.integers(0, self.modulus, size=shape)
        last = (values - self.total(free, -2)) % self.modulus
        return np.concatenate([free, last[..., None, :]], axis=-2)

    def gather(self, shares: np.ndarray) -> np.ndarray:
        """Return the message that each agent broadcasts, the sum of its shares; ``[..., j, d]``."""
        return self.total(shares, -3)

    def reconstruct(self, broadcast: np.ndarray) -> np.ndarray:
        """Return the sum of all values, ``[..., d]``, computed from the broadcast partial sums."""
        return self.total(broadcast, -2)

    def total(self, residues: np.ndarray, axis: int) -> np.ndarray:
        """Sum residues modulo p along an axis, reduced after every addition."""
        terms = np.moveaxis(residues, axis, 0)
        total = np.zeros(terms.shape[1:], np.int64)
        for term in terms:
            total = (total + term) % self.modulus
        return total

    def outcome(self, x: np.ndarray) -> np.ndarray:
        """Return the result of :meth:`sum` without random numbers, since the shares cancel."""
        return self.decode(self.total(self.encode(x), -2))

    def sum(self, x: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        """Sum real values [..., agents, d], each rounded to the resolution, by secret sharing."""
        shares = self.split(self.encode(x), generator)
        return self.decode(self.reconstruct(self.gather(shares)))


def require_complete(network: Network) -> None:
    """Raise :class:`.InvalidInput` unless every pair of agents has an edge."""
    missing = int((network.degrees < network.n_agents - 1).sum())
    require(
        missing == 0,
        "algorithm.exchange",
        "secret_sharing",
        f"a complete graph: {missing} agents lack an edge to another agent",
    )
