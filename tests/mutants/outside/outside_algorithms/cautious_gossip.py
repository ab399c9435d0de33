"""One-release gossip with one and a half times the noise of the budget.

The release states the noise that is added. Its loss is below the claim.
"""

from dataclasses import dataclass, replace

from .one_release_gossip import OneReleaseGossip


@dataclass(frozen=True, kw_only=True)
class CautiousGossip(OneReleaseGossip):
    """One-release gossip with one and a half times the noise of the budget."""

    def calibrate(self, budget, problem, network, horizon):
        exact = super().calibrate(budget, problem, network, horizon)
        return replace(exact, sigma=1.5 * exact.sigma.scale)


ALGORITHM = CautiousGossip
EXAMPLE = "mean_estimation"
