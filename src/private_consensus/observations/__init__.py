"""Privacy of the registry's algorithms against observers that see a part of the messages.

linear     an algorithm with its noise set, as a linear system, or why it is none
admm       the same of ADMM where objectives are quadratic
causal     what distance alone guarantees, of any algorithm
epsilon    of one pair: by the formula, from both sides, and what is guaranteed
table      of all pairs of a setting: by observer and by distance
"""

from .causal import Observation, observation
from .epsilon import LABELS, ObservedEpsilon, by_distance, epsilon_for, epsilons
from .linear import MAPPED, NOT_LINEAR, NotLinear, ObservedSystem, observed_system
from .table import epsilon_by_observer

__all__ = [
    "LABELS",
    "MAPPED",
    "NOT_LINEAR",
    "NotLinear",
    "Observation",
    "ObservedEpsilon",
    "ObservedSystem",
    "by_distance",
    "epsilon_by_observer",
    "epsilon_for",
    "epsilons",
    "observation",
    "observed_system",
]
