r"""ADMM that declares the sensitivity of the agent with the largest penalty for all agents.

Declares noised minimisers of sensitivity :math:`\Delta_2/(\mu + \max_i D_i)`. Agents of smaller
degree have smaller penalties, and their minimisers move by more.
"""

from dataclasses import dataclass

from .output_noise_admm import OutputNoiseADMM


@dataclass(frozen=True, kw_only=True)
class HubPenaltyADMM(OutputNoiseADMM):
    """ADMM that declares the sensitivity of the agent with the largest penalty for all agents."""

    def releases(self, problem, network, horizon):
        penalties = self.penalties(network, horizon).reshape(horizon, -1).max(1)
        return self.noise.releases(problem.minimiser_change("l2", penalties), self.scales(horizon))


ALGORITHM = HubPenaltyADMM
EXAMPLE = "mean_estimation"
