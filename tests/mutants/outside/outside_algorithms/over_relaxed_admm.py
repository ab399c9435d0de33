r"""ADMM that sends over-relaxed minimisers and declares the releases of plain ADMM.

Declares what output_noise_admm declares: a minimiser with noise per round. The message is
:math:`x + 1.8\,(\hat x - x)` plus noise, which a record moves by 1.8 times what it moves the
minimiser.
"""

from dataclasses import dataclass

from .output_noise_admm import OutputNoiseADMM


@dataclass(frozen=True, kw_only=True)
class OverRelaxedADMM(OutputNoiseADMM):
    """ADMM that sends over-relaxed minimisers and declares the releases of plain ADMM."""

    def message(self, problem, state, minimiser, noise, draw):
        return state.x + 1.8 * (minimiser - state.x) + noise, {}


ALGORITHM = OverRelaxedADMM
EXAMPLE = "mean_estimation"
