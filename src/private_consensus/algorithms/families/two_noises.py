"""ADMM with a noise in its minimisations and one on what is sent. Not an algorithm."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from ..base import column, filled, without_noise
from ..noise import Noise
from ..parameters import noise_field, nonnegative
from .admm import ADMMFamily, Noises
from .approximate_minimisers import NO_NOISE, Charge
from .perturbed import Draw


@dataclass(frozen=True, kw_only=True)
class TwoNoises(ADMMFamily):
    r"""ADMM that adds ``noise`` to the dual and ``output_noise`` to what is sent.

    Parameters
    ----------
    ridge : float
        Curvature of the objective; what the problem has already is not added again.
    output_noise : float
        Times the curvature m of what is minimised.
    """

    ridge: float = nonnegative(0.0)
    output_noise: Noise = noise_field("output")

    where: ClassVar[str] = "dual"

    @abstractmethod
    def charge(self, problem, network=None) -> Charge:
        """What a message costs, and which noise a price buys."""

    @property
    def noisy(self) -> bool:
        return bool(self.output_noise)

    def draws(self, problem, streams) -> Iterator[Draw]:
        shape = (problem.n_agents, problem.dim)
        output = streams.sequence("noise", "normal", shape, "output")
        for unit in self.units(problem, streams):
            yield Draw((unit, next(output)))

    def noises(self, unit, network, t):
        inner, output = unit
        scale = column(self.output_noise.scale) / (column(self.ridge) + self.penalty(network, t))
        return Noises(dual=self.scale(t) * inner, output=scale * output)

    def added_curvature(self, problem):
        return np.maximum(column(self.ridge) - problem.least_convexity, 0.0)

    # Privacy.

    def silent(self):
        return replace(self, **NO_NOISE._asdict())

    def for_one(self, rho: float, problem, network) -> Self:
        """A copy with the noise and the ridge for one message that costs rho, in zCDP."""
        return replace(self, **self.charge(problem, network).noise_for(rho)._asdict())

    def loss_by_formula(self, problem, network, t):
        """Of a message, in zCDP."""
        return np.ones((1, 1, 1, 1)) * sum(self.charge(problem).rhos())

    def releases(self, problem, network, horizon):
        if not self.noisy:
            return super().releases(problem, network, horizon)
        return self.charge(problem, network).releases(horizon)

    # What audits ask for.

    def noise_sites(self, problem, network, horizon):
        """In the minimisation, where there is noise in it, and on what is sent."""
        if not self.noisy:
            return []
        curvature = np.reshape(self.ridge + self.penalty(network, 1), (1, -1, 1))
        curvatures = np.broadcast_to(curvature, (horizon, *curvature.shape[1:]))
        hidden = self.charge(problem, network).releases(1)[-1]
        last = np.full(horizon, float(np.max(hidden.losses())))
        output = self.output_noise.site(self.output_noise.scale / curvatures, last)
        if not self.noise:
            return [output]
        scale = np.broadcast_to(np.reshape(self.noise.scale, (1, 1, 1)), (horizon, 1, 1))
        moved = np.full(horizon, problem.record_change("l2") / self.noise.scale)
        return [self.noise.site(scale, moved, "minimisation"), output]

    def residual(self, scale, state, problem, network, draw, shown, t):
        """Both noises from the iterates before the output's: no observer has them."""
        if not self.noise:
            after = self.step(state, problem, network, without_noise(draw), t)
            return {"message": (shown.sent - after.minimiser[0]) / scale["message"]}
        found = shown.internal
        if found is None:
            return {}
        noise = self.noise_in_minimisation(found, state, problem, network, t)
        return {
            "minimisation": noise / scale["minimisation"],
            "message": (shown.sent - found) / scale["message"],
        }

    def with_residual(self, draw, found):
        inner, output = draw.noise
        output = filled(found["message"], output)
        return draw._replace(noise=(found.get("minimisation", inner), output))
