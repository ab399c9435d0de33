r"""Private gradient descent with random aggregates (Xiao et al., Algorithms 2 and 2*).

Let :math:`S_i` be agent i and its neighbours, and
:math:`(a, b) = \arg\max_{S_i\times S_i}\|x_a-x_b\|_1`. Algorithm 2 is

.. math:: x_i^{k+1} = m_i + (2w-1)\frac{x_a-x_b}{|S_i|} - \eta_{k+1}\nabla f_i(m_i) + \Delta_i,
    \qquad m_i = \frac1{|S_i|}\sum_{j\in S_i} x_j \qquad (7)

In Algorithm 2*, lo and hi are the smallest and the largest value of each coordinate in :math:`S_i`:

.. math:: x_i^{k+1} = w\,\mathrm{lo} + (1-w)\,\mathrm{hi} - \eta_{k+1}\nabla f_i(x_i^k) + \Delta_i
    \qquad (28)
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from .families.random_aggregates import Aggregate, RandomAggregates, mean_interval


@dataclass(frozen=True, kw_only=True)
class LocallyPrivateGradientDescent(RandomAggregates):
    r"""Private gradient descent with random aggregates: Algorithms 2 (``pair``) and 2* (``range``).

    Parameters
    ----------
    aggregator : {"pair", "range"}
        Interval of the aggregate: that of Algorithm 2 or of Algorithm 2*. With fixed weights,
        ``pair`` is the mean of the neighbourhood.
    own_value : bool
        Whether the range of Algorithm 2* includes the value of the agent itself.
    """

    aggregator: Literal["pair", "range"] = "pair"
    own_value: bool = True

    source: ClassVar = "Xiao et al., Algorithm 2, eq. (7); Algorithm 2*, eq. (28)"

    def aggregate(self, x, network):
        if self.aggregator == "pair":
            return mean_interval(x, network)
        agents = network.closed_neighbourhoods if self.own_value else network.open_neighbourhoods
        members = network.gather(x, agents)
        return Aggregate(members.min(-2), members.max(-2), x)


ALGORITHM = LocallyPrivateGradientDescent
