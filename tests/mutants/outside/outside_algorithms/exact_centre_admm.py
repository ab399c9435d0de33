"""ADMM that continues from its exact minimiser.

Declares what output_noise_admm declares: a minimiser with noise per round. The centre of the
penalty contains the exact minimiser of the last round in place of the message. A record then
moves a minimiser directly and by way of the centre.
"""

from dataclasses import dataclass

from .output_noise_admm import OutputNoiseADMM


@dataclass(frozen=True, kw_only=True)
class ExactCentreADMM(OutputNoiseADMM):
    """ADMM that continues from its exact minimiser."""

    def centre(self, state, network, draw):
        return super().centre(state._replace(x=state.minimiser), network, draw)


ALGORITHM = ExactCentreADMM
EXAMPLE = "mean_estimation"
