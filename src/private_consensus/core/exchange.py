r"""Linear secret sharing: compute a sum without revealing its terms (Xiao et al., Algorithm 3).

Agent i splits its value into N shares that are uniform given their sum. It keeps one share and
sends each other share to one agent. Every agent broadcasts the sum of the shares that it has:

.. math:: v_i = \sum_j s_{ij} \ (\mathrm{mod}\ p), \qquad \hat s_j = \sum_i s_{ij}, \qquad
    \sum_j \hat s_j = \sum_i v_i \ (\mathrm{mod}\ p) \quad (15)

Reals are rounded to multiples of ``1 / RESOLUTION``, and residues above p / 2 represent negative
numbers. The sum is exact if :math:`p > 2\,|\sum_i v_i|`. The condition of the paper,
:math:`p > |\sum_i v_i|`, does not suffice.

The guarantee is not differential privacy: the view of at most N - 2 colluding agents depends on the
honest agents' values only through their sum (Theorem 2.1). The sum is public, and N - 1 colluders
know the value of the last agent. The graph must be complete.
"""

import numpy as np

from private_consensus.common.errors import require

from .networks import Network

MODULUS, RESOLUTION = 2**61 - 1, 2**32
"""Modulus p, and number of grid points per unit."""


def shared_sum(x: np.ndarray) -> np.ndarray:
    """Return the sum of the values [..., agents, d] of all agents, as secret sharing computes it.

    No shares are sampled, since they cancel in the sum.
    """
    steps = np.rint(np.asarray(x, float) * RESOLUTION)
    largest = float(np.abs(steps).max(initial=0.0)) * np.shape(x)[-2]
    expected = f"below {MODULUS / 2 / RESOLUTION:.4g}, for which the sum modulo p is exact"
    require(largest < MODULUS / 2, "largest sum of values", largest / RESOLUTION, expected)
    return steps.astype(np.int64).sum(-2) / RESOLUTION


def require_complete(network: Network) -> None:
    """Raise :class:`.InvalidInput` unless every pair of agents has an edge."""
    missing = int((network.degrees < network.n_agents - 1).sum())
    require(
        missing == 0,
        "algorithm.exchange",
        "secret_sharing",
        f"a complete graph: {missing} agents lack an edge to another agent",
    )
