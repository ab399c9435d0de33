"""Lower bounds on the privacy loss of the algorithms, by attacks that are proven per class.

A subclass outside of this package has no attack, since its step may differ. A module is imported
when its attack is needed, so that the hash of a job covers the attack on its algorithm only.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from importlib import import_module
from typing import Any

from private_consensus.privacy import Release
from private_consensus.privacy.brackets import LowerBound, lower_bound

from ..algorithms.base import is_built_in

ATTACKS = {
    "CoordinateDescent": "descent._coordinate_steps",
    "DPADMM": "descent._linearised_steps",
    "DPCI": "descent._measurements",
    "DPCIMoments": "descent._measurements",
    "DualVariablePerturbation": "admm._perturbed_objectives",
    "ExactADMM": "admm._consensus_minimisers",
    "FairClassification": "fairness._coefficients",
    "ImprovedPlausiblyPrivateADMM": "approximate_admm._tested_messages",
    "LocallyPrivateADMM": "admm._mixtures",
    "LocallyPrivateGradientDescent": "descent._gradient_steps",
    "LocallyPrivateSubgradient": "descent._gradient_steps",
    "OutputPerturbation": "admm._noisy_minimisers",
    "PenaltyPerturbation": "admm._perturbed_objectives",
    "PeriodicallyReducedADMM": "admm._noisy_minimisers",
    "Pflr": "fairness._sums",
    "PlausiblyPrivateADMM": "approximate_admm._messages",
    "PrivateDistributedOptimisation": "descent._gradient_steps",
    "RandomAggregation": "descent._tails",
    "RecycledADMM": "admm._perturbed_objectives",
    "ReleaseAudit": "admm._consensus_minimisers",
    "RenyiAccountedPPADMM": "approximate_admm._messages",
    "SDMDSGD": "sgd._sent_in_part",
}
"""Module and function of the attack on each class."""


Attack = Callable[[Any, Any, Any, int, list[Release]], list[Release]]
"""Function of algorithm, problem, network, horizon and the releases of its mechanisms. It returns
the releases with the fractions of their losses that the attack attains."""


def attack_on(algorithm: Any) -> Attack | None:
    """Return the attack that is proven for the class of an algorithm, or None."""
    path = ATTACKS.get(type(algorithm).__name__) if is_built_in(algorithm) else None
    if path is None:
        return None
    module, function = path.split(".")
    return getattr(import_module(f"{__name__}.{module}"), function)


def modules_of(kinds: Iterable[type]) -> list[str]:
    """Return the dotted names of the modules with the attacks on some classes."""
    paths = [ATTACKS[kind.__name__] for kind in kinds if kind.__name__ in ATTACKS]
    return sorted({f"{__name__}.{path.partition('.')[0]}" for path in paths})


def lower_bound_of(
    algorithm: Any, problem: Any, network: Any, horizon: int, delta: float
) -> LowerBound:
    """Return the lower bound on the epsilon of a run, at ``delta``, by the attack on its algorithm.

    It is 0 if no attack is known.
    """
    releases = algorithm.releases(problem, network, horizon)
    attack = attack_on(algorithm)
    if attack is not None:
        releases = attack(algorithm, problem, network, horizon, releases)
    elif not is_built_in(algorithm):
        # The observer of an unknown class may not receive its releases.
        releases = [replace(release, attained=None, reached=None) for release in releases]
    return lower_bound(releases, delta)
