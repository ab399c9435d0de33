r"""One-release gossip with uniform noise of the declared standard deviation.

Declares what one_release_gossip declares: one Gaussian release per agent. The noise is uniform on
:math:`\pm\sqrt3\sigma`. The supports of two data sets differ by a set of probability far above
delta.
"""

from dataclasses import dataclass

import numpy as np

from .one_release_gossip import OneReleaseGossip


@dataclass(frozen=True, kw_only=True)
class UniformNoiseGossip(OneReleaseGossip):
    """One-release gossip with uniform noise of the declared standard deviation."""

    def draws(self, problem, streams):
        shape = (problem.n_agents, problem.dim)
        for unit in streams.sequence("noise", "uniform", shape):
            yield np.sqrt(12.0) * (unit - 0.5)


ALGORITHM = UniformNoiseGossip
EXAMPLE = "mean_estimation"
