"""Decentralized ADMM without noise: the baseline of its private versions."""

from dataclasses import dataclass

from private_consensus.privacy.mechanisms import Exact

from .base import INTERNAL
from .families.admm import ADMMFamily


@dataclass(frozen=True, kw_only=True)
class ADMM(ADMMFamily):
    """Decentralized ADMM without noise."""

    quantities = (INTERNAL, "released")
    source = "Shi, Ling, Yuan, Wu, Yin, IEEE TSP 2014; Ding, eqs. (12)-(13)"

    def mechanisms(self, problem, network, horizon):
        return {"message": Exact(problem.record_change("l2"))}


ALGORITHM = ADMM
