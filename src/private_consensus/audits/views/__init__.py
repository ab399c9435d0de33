"""Privacy of the registry's algorithms against observers that receive a part of the messages.

linear     a calibrated algorithm as a linear system, or the reason why it is not linear
admm       the linear system of ADMM with quadratic objectives
causal     guarantees from distance alone, for any algorithm
epsilon    epsilon of one pair: by the formula, its bounds, and the guarantee
table      epsilon of all pairs of a setting, by observer and by distance
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
