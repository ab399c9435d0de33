r"""Noise for a weaker observer: a single agent, who receives the messages of its neighbours.

The privacy loss of an agent to another agent has a mu of Gaussian differential privacy, computed by
:mod:`private_consensus.audits.views`. The largest mu over all ordered pairs of a target agent and
an observing agent is proportional to :math:`1/\sigma`. One bound at noise 1 therefore serves all
budgets,

.. math:: \sigma = \sqrt{k}\,\max_{u \ne v}\mu_1(u \to v) / \mu(\epsilon, \delta)

for k copies. The algorithm determines which bound holds:

* the privacy loss to the eavesdropper, by post-processing, if agents know no noise of other agents.
  If the noise is in the state, a neighbour receives all of it, and its loss is hardly smaller;
* the exact formula, as an upper bound, if inputs react to noise linearly or not at all (means). It
  is used for noise that pairs share or that is not in the state, where it is smaller;
* for shared noise on other problems, the loss to an eavesdropper that also knows the secrets of the
  observing agent.

With faults the rounds differ from those of the formula, which is then not used. The other two
bounds hold: all inputs are functions of the messages and of masks that do not depend on data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from private_consensus.audits.views import observed_system
from private_consensus.audits.views.causal import SHARED_NOISE
from private_consensus.audits.views.linear import ObservedSystem, registry_name
from private_consensus.common.errors import require
from private_consensus.core.algorithms.base import Algorithm
from private_consensus.core.networks import Network
from private_consensus.privacy import Budget, gaussian_epsilon, gaussian_mu
from private_consensus.privacy.observers import (
    Bracket,
    Coalition,
    Eavesdropper,
    Observer,
    statements,
)

from .calibration import Calibrated
from .costs import WITHOUT_MESSAGES

ROUNDED_UP = 1 + 1e-9
NO_LOSS = Bracket(0.0, 0.0)


@dataclass
class Neighbours:
    """Calibration against single agents; bounds at noise 1 of the last problem are cached."""

    problem: Any = None
    bounds: dict[tuple, Bracket] = field(default_factory=dict)

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
        """Return the algorithm at the noise at which no agent's loss to another exceeds the target.

        Parameters
        ----------
        algorithm : Algorithm
            Algorithm to calibrate.
        target : Budget
            Budget of all copies together, replacing one record.
        problem : Problem
            Problem of the agents.
        network : Network
            Graph of the run.
        horizon : int
            Number of iterations.
        copies : int, default 1
            Number of times that every release is made.
        faults : bool, default False
            True if messages may be lost.

        Returns
        -------
        Calibrated

        Raises
        ------
        InvalidInput
            If partial views of the algorithm are not known, or if no noise meets the budget.
        """
        calibrated = algorithm.calibrate(target, problem, network, horizon)
        if problem is not self.problem:
            self.problem, self.bounds = problem, {}
        key = (algorithm, horizon, network.identity, faults)
        if key not in self.bounds:
            unit = replace(calibrated, noise=1.0)
            self.bounds[key] = worst_pair(unit, problem, network, horizon, faults=faults)
        mu = self.bounds[key]
        allowed = float(gaussian_mu(target.epsilon, target.delta)) / math.sqrt(copies)
        noise = mu.upper / allowed * ROUNDED_UP
        expected = "a method whose privacy loss to another agent has a known bound"
        require(math.isfinite(noise), "budget.epsilon", target.epsilon, expected)
        ends = np.array([mu.lower, mu.upper]) * math.sqrt(copies) / (noise or 1.0)
        lower, upper = map(float, gaussian_epsilon(ends, target.delta))
        return Calibrated(replace(calibrated, noise=noise), upper, lower, proven=True)


def worst_pair(
    algorithm: Algorithm, problem: Any, network: Network, horizon: int, *, faults: bool = False
) -> Bracket:
    """Return bounds on the mu of the pair of agents with the largest loss, at the current noise.

    Parameters
    ----------
    algorithm : Algorithm
        Calibrated algorithm.
    problem : Problem
        Problem of the agents.
    network : Network
        Graph of the run.
    horizon : int
        Number of iterations.
    faults : bool, default False
        True if messages may be lost.

    Returns
    -------
    Bracket
        The lower bound is 0 if no better one is known.

    Raises
    ------
    InvalidInput
        If partial views of the algorithm are not known.
    """
    if registry_name(algorithm) in WITHOUT_MESSAGES:
        return NO_LOSS
    observed = observed_system(algorithm, problem, network, horizon)
    expected = "gaussian, since the bound is in Gaussian DP"
    require(observed.law == "gaussian", "algorithm.law", observed.law, expected)
    shared = registry_name(algorithm) in SHARED_NOISE
    eavesdropper_mu = math.inf if shared else _eavesdropper_mu(algorithm, problem, network, horizon)
    (system,) = observed.channels
    has_tighter_formula = shared or not system.noised_state
    if has_tighter_formula and not observed.inputs.react and not faults:
        pairs = [
            _worst(observed, Coalition((v,), last_states=observed.last_states))
            for v in range(problem.n_agents)
        ]
    elif shared:
        # All inputs are functions of messages, so that the formula is a guarantee here.
        pairs = [_worst(observed, Eavesdropper((v,)), below=False) for v in range(problem.n_agents)]
    else:
        pairs = [Bracket(0.0, eavesdropper_mu)]
    return Bracket(
        max(pair.lower for pair in pairs), min(eavesdropper_mu, max(pair.upper for pair in pairs))
    )


def _worst(observed: ObservedSystem, observer: Observer, *, below: bool = True) -> Bracket:
    """Return bounds on the mu of the agent with the largest loss to one observer."""
    (system,) = observed.channels
    stated = statements(system, observer, observed.changes, observed.inputs).values()
    lower = max(statement.open_loop.lower for statement in stated) if below else 0.0
    return Bracket(lower, max(statement.mu for statement in stated))


def _eavesdropper_mu(algorithm: Algorithm, problem: Any, network: Network, horizon: int) -> float:
    """Return the mu of all releases together to the eavesdropper.

    It is infinite unless all releases are proven and Gaussian.
    """
    releases = list(algorithm.releases(problem, network, horizon))
    gaussian = all(
        release.mechanism == "gaussian" and release.sampling is None for release in releases
    )
    if not gaussian or not all(release.proven for release in releases):
        return math.inf
    squares = [float((release.losses() ** 2).sum()) * release.count for release in releases]
    return math.sqrt(sum(squares)) * ROUNDED_UP
