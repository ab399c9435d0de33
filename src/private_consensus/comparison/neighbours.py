r"""Noise for a weaker observer: a single agent, who sees what its neighbours send it.

What it learns of anybody has a mu of Gaussian differential privacy, from
:mod:`private_consensus.observations`; the largest over all ordered pairs of a victim and an agent
is proportional to :math:`1/\sigma`. So one bound at noise 1 serves all budgets,

.. math:: \sigma = \sqrt{k}\,\max_{u \ne v}\mu_1(u \to v) / \mu(\epsilon, \delta)

for k copies. Which bound holds depends on the algorithm:

* the eavesdropper's account, by post-processing, where an agent knows no noise of others. Of
  methods whose noise is in the state a neighbour hears all of it, and learns hardly less;
* the exact formula, from above, where inputs react to noise linearly or not at all (means) and the
  account leaves something to gain: noise that is shared by pairs, or is not in the state;
* of shared noise elsewhere, what the eavesdropper learns who knows the agent's secrets as well.

With faults the rounds are others than the formula is for, and it is not used; the other two hold,
since all inputs are functions of what is sent and of masks that do not depend on data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..algorithms.base import Algorithm
from ..errors import require
from ..networks import Network
from ..observations import observed_system
from ..observations.causal import SHARED_NOISE
from ..observations.linear import ObservedSystem, registry_name
from ..privacy import Budget, gaussian_epsilon, gaussian_mu
from ..privacy.observers import Bracket, Coalition, Eavesdropper, Observer, statements
from .calibration import Calibrated
from .costs import SILENT

ROUNDED_UP = 1 + 1e-9
NOTHING = Bracket(0.0, 0.0)


@dataclass
class Neighbours:
    """Calibration against single agents; bounds at noise 1 are kept."""

    known: dict[tuple, Bracket] = field(default_factory=dict)

    def calibrated(
        self,
        algorithm: Algorithm,
        target: Budget,
        problem: Any,
        network: Network,
        horizon: int,
        copies: int = 1,
        *,
        faults: bool = False,
    ) -> Calibrated:
        """The algorithm at the noise at which no agent learns more of another than the target.

        Parameters
        ----------
        target : Budget
            Of all copies together, replacing one record.
        copies : int
            How often all that is released is released.
        faults : bool
            Whether messages may be lost.

        Raises
        ------
        InvalidInput
            For an algorithm of which partial views are not known, or a budget that no noise meets.
        """
        ready = algorithm.calibrate(target, problem, network, horizon)
        size = problem.n_agents, getattr(problem, "records", 0)
        key = (type(problem), size, algorithm, horizon, network.identity, faults)
        if key not in self.known:
            unit = replace(ready, noise=1.0)
            self.known[key] = worst_pair(unit, problem, network, horizon, faults=faults)
        mu = self.known[key]
        allowed = float(gaussian_mu(target.epsilon, target.delta)) / math.sqrt(copies)
        noise = mu.upper / allowed * ROUNDED_UP
        expected = "a method of which a single agent learns a bounded part"
        require(math.isfinite(noise), "budget.epsilon", target.epsilon, expected)
        ends = np.array([mu.lower, mu.upper]) * math.sqrt(copies) / (noise or 1.0)
        lower, upper = map(float, gaussian_epsilon(ends, target.delta))
        return Calibrated(replace(ready, noise=noise), upper, lower, proven=True)


def worst_pair(
    algorithm: Algorithm, problem: Any, network: Network, horizon: int, *, faults: bool = False
) -> Bracket:
    """Bounds on the mu of the pair of victim and agent that loses most, at the noise that is set.

    Parameters
    ----------
    faults : bool
        Whether messages may be lost.

    Returns
    -------
    Bracket
        From below 0 where nothing better is known.

    Raises
    ------
    InvalidInput
        For an algorithm of which partial views are not known.
    """
    if registry_name(algorithm) in SILENT:
        return NOTHING
    observed = observed_system(algorithm, problem, network, horizon)
    require(observed.law == "gaussian", "algorithm.law", observed.law, "gaussian, which has a mu")
    shared = registry_name(algorithm) in SHARED_NOISE
    account = math.inf if shared else _accounted(algorithm, problem, network, horizon)
    (system,) = observed.channels
    loose = shared or not system.noised_state
    if loose and not observed.inputs.react and not faults:
        pairs = [
            _worst(observed, Coalition((v,), last_states=observed.last_states))
            for v in range(problem.n_agents)
        ]
    elif shared:
        # Inputs of all agents follow from messages, so that the formula is a guarantee here.
        pairs = [_worst(observed, Eavesdropper((v,)), below=False) for v in range(problem.n_agents)]
    else:
        pairs = [Bracket(0.0, account)]
    return Bracket(
        max(pair.lower for pair in pairs), min(account, max(pair.upper for pair in pairs))
    )


def _worst(observed: ObservedSystem, observer: Observer, *, below: bool = True) -> Bracket:
    """Return the guarantee of the agent that loses most to one observer."""
    (system,) = observed.channels
    found = statements(system, observer, observed.changes, observed.inputs).values()
    lower = max(one.open_loop.lower for one in found) if below else 0.0
    return Bracket(lower, max(one.mu for one in found))


def _accounted(algorithm: Algorithm, problem: Any, network: Network, horizon: int) -> float:
    """mu of all releases together, to the eavesdropper."""
    releases = list(algorithm.releases(problem, network, horizon))
    gaussian = all(one.mechanism == "gaussian" and one.sampling is None for one in releases)
    if not gaussian or not all(one.proven for one in releases):
        return math.inf
    squares = [float((one.losses() ** 2).sum()) * one.count for one in releases]
    return math.sqrt(sum(squares)) * ROUNDED_UP
