"""Decentralized ADMM without noise: the baseline of its private versions."""

from dataclasses import dataclass
from typing import ClassVar

from private_consensus.privacy.mechanisms import Exact

from .base import INTERNAL
from .families.admm import ADMMFamily


@dataclass(frozen=True, kw_only=True)
class ADMM(ADMMFamily):
    """Decentralized ADMM without noise."""

    quantities: ClassVar = (INTERNAL, "released")
    source: ClassVar[str] = "Shi, Ling, Yuan, Wu, Yin, IEEE TSP 2014; Ding, eqs. (12)-(13)"

    def mechanisms(self, problem, network, horizon):
        return {"message": Exact(problem.record_change("l2"))}


ALGORITHM = ADMM
