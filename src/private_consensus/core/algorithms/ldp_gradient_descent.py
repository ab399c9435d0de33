r"""Private gradient descent with random aggregates (paper 001, Algorithms 2 and 2*).

Algorithm 2, on a general graph with :math:`S_i` agent i and its neighbours and
:math:`(a, b) = \arg\max_{S_i\times S_i}\|x_a-x_b\|_1`:

.. math:: x_i^{k+1} = m_i + (2w-1)\frac{x_a-x_b}{|S_i|} - \eta_{k+1}\nabla f_i(m_i) + \Delta_i,
    \qquad m_i = \frac1{|S_i|}\sum_{j\in S_i} x_j \qquad (7)

Algorithm 2*, for each coordinate separately, with lo and hi the smallest and the largest value in
:math:`S_i`:

.. math:: x_i^{k+1} = w\,\mathrm{lo} + (1-w)\,\mathrm{hi} - \eta_{k+1}\nabla f_i(x_i^k) + \Delta_i
    \qquad (28)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .families.random_aggregates import Aggregate, RandomAggregates, around_the_mean
from .parameters import one_of

AGGREGATORS = ("pair", "range")


@dataclass(frozen=True, kw_only=True)
class LocallyPrivateGradientDescent(RandomAggregates):
    r"""Private gradient descent with random aggregates: Algorithms 2 (``pair``) and 2* (``range``).

    Parameters
    ----------
    aggregator : {"pair", "range"}
        With fixed weights, ``pair`` is the plain mean of the neighbourhood.
    own_value : bool
        Whether the agent itself belongs to the set of which Algorithm 2* takes the range.
    """

    aggregator: str = one_of("pair", AGGREGATORS)
    own_value: bool = True

    source: ClassVar[str] = "Paper 001, Algorithm 2, eq. (7); Algorithm 2*, eq. (28)"
    lower_bound_because: ClassVar[str] = (
        "a label flip and points far out move the gradient by the attained part"
    )

    def aggregate(self, x, network):
        """Return the interval of the random aggregate, from the farthest pair or from the range.

        Parameters
        ----------
        x : ndarray, shape (settings, runs, agents, dim)
            Messages.
        network : Network
            Communication graph with its mixing matrix.

        Returns
        -------
        Aggregate
            Ends of the interval, and the point of the gradient.
        """
        if self.aggregator == "pair":
            return around_the_mean(x, network)
        kind = network.closed_neighbourhoods if self.own_value else network.open_neighbourhoods
        members = network.gather(x, kind)
        return Aggregate(members.min(-2), members.max(-2), x)


ALGORITHM = LocallyPrivateGradientDescent
