"""Lower bounds on the privacy loss of the algorithms, by attacks that are proven per class.

Each module has a mapping ``ATTACKS`` from the name of a class to its attack. A subclass
outside of this package has no attack, since its step may differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from private_consensus.privacy import Release
from private_consensus.privacy.brackets import LowerBound, lower_bound

from ..algorithms.base import is_built_in

MODULES = (
    "admm",
    "approximate_admm",
    "consensus",
    "coordinates",
    "descent",
    "fairness",
    "innovations",
    "sgd",
)
"""Modules of this package."""


Attack = Callable[[Any, Any, Any, int, list[Release]], list[Release]]
"""Function of algorithm, problem, network, horizon and the releases of its mechanisms. It returns
the releases with the fractions of their losses that the attack attains."""


OBSERVED = dict.fromkeys(
    ("FairClassification", "Pflr"),
    "the bound is for an observer of the noisy coefficients, of which the classifier is a function",
)
"""Statement on the observer of a bound by class, if the observer is not that of the algorithm."""


def attack_on(algorithm: Any) -> Attack | None:
    """Return the attack that is proven for the class of an algorithm, or None."""
    name = type(algorithm).__name__
    module = _modules().get(name) if is_built_in(algorithm) else None
    return module.ATTACKS[name] if module else None


def modules_of(kinds: Iterable[type]) -> list[str]:
    """Return the dotted names of the modules with the attacks on some classes."""
    attacked = [_modules()[kind.__name__] for kind in kinds if kind.__name__ in _modules()]
    return sorted({module.__name__ for module in attacked})


@cache
def _modules() -> dict[str, ModuleType]:
    modules = [import_module(f"{__name__}.{name}") for name in MODULES]
    return {name: module for module in modules for name in module.ATTACKS}


def lower_bound_of(
    algorithm: Any, problem: Any, network: Any, horizon: int, delta: float
) -> LowerBound:
    """Return the lower bound on epsilon of a run by the attack on its algorithm.

    Parameters
    ----------
    algorithm : Algorithm
        Algorithm with its noise.
    problem : Problem
        Objectives and data of the agents, with their sensitivities.
    network : Network
        Communication graph with its mixing matrix.
    horizon : int
        Number of iterations.
    delta : float
        Delta at which epsilon is stated.

    Returns
    -------
    LowerBound
        0 with a reason if no attack is known.
    """
    releases = algorithm.releases(problem, network, horizon)
    attack = attack_on(algorithm)
    if attack is not None:
        releases = attack(algorithm, problem, network, horizon, releases)
    elif not is_built_in(algorithm):
        # The observer of an unknown class may not receive its releases.
        releases = [replace(release, attained=None, reached=None) for release in releases]
    bound = lower_bound(releases, delta)
    observed = OBSERVED.get(type(algorithm).__name__) if attack and bound.epsilon else None
    return replace(bound, because="; ".join(filter(None, (bound.because, observed))))
