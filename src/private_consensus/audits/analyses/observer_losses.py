"""Privacy loss of a method to observers who receive a part of the messages, as an experiment.

The analysis executes the method with chosen noise (:mod:`private_consensus.audits.observers`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Ge

from private_consensus.audits.observers import AGENT, Observed
from private_consensus.common.errors import require
from private_consensus.core import algorithms
from private_consensus.core.algorithms.base import Algorithm, Analysis, Attack, Iterates
from private_consensus.core.parameters import NonNegative
from private_consensus.core.simulation import Setting, calibrated


@dataclass(frozen=True, kw_only=True)
class ObserverLosses(Algorithm, Analysis, Attack):
    """Epsilon of a method to observers of one kind.

    ``largest`` is that of the worst pair of target and observer.

    Parameters
    ----------
    method : str
        Name of the method.
    parameters : mapping
        Parameters of the method; stored as a tuple of its items, so that settings are hashable.
    kind : str
        Kind of the observers, see :func:`private_consensus.observe`.
    distance : int
        Number of edges between target and observer; 0 for all pairs.
    delta : float
        Delta of all guarantees, set by :meth:`calibrate`.
    noisy : Algorithm, optional
        Method with its noise, set by :meth:`calibrate`.
    """

    method: str = "muffliato_gd"
    parameters: Any = ()
    kind: Literal["agent", "secure sums", "eavesdropper", "final models"] = AGENT
    distance: Annotated[int, Ge(0)] = 0
    delta: NonNegative = 0.0
    noisy: Any = None

    quantities: ClassVar = ("largest",)

    def __post_init__(self):
        super().__post_init__()
        stated = isinstance(self.parameters, Mapping | tuple)
        require(stated, "algorithm.parameters", self.parameters, "names and values")
        object.__setattr__(self, "parameters", tuple(dict(self.parameters).items()))

    def calibrate(self, budget, problem, network, horizon):
        method = algorithms.load(self.method)(**dict(self.parameters))
        noisy = calibrated(Setting(method, budget, horizon), problem, network.of_run(0))
        return replace(self, noisy=noisy, delta=budget.delta)

    def mechanisms(self, problem, network, horizon):
        return self.noisy.mechanisms(problem, network.of_run(0), horizon)

    def start(self, problem, network, release):
        return Iterates(np.zeros((release.settings, 1, 1, 1)))

    def step(self, state, problem, network, release, t):
        return state

    def observables(self, state, problem, t):
        return {}

    def run(self, problem, network, streams, horizon, observe):
        distances = np.broadcast_to(self.distance, len(horizon))
        for index, (t, distance) in enumerate(zip(horizon, distances, strict=True)):
            observed = Observed(self.noisy, problem, network.of_run(0), int(t))
            result = observed.result(self.kind, float(np.max(self.delta)))
            epsilons = [x.epsilon for x in result.losses if distance in (0, x.distance)]
            largest = np.full((1, 1), max(epsilons, default=0.0))
            observe(int(t), np.array([index]), {"largest": largest})


ALGORITHM = ObserverLosses
