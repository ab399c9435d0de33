"""One-release gossip that claims to hide an agent with the sensitivity of one record.

Declares what one_release_gossip declares, for the relation that replaces all data of one agent.
The sensitivity is that of one record.
"""

from dataclasses import dataclass
from typing import ClassVar

from private_consensus.privacy import Relation

from .one_release_gossip import OneReleaseGossip


@dataclass(frozen=True, kw_only=True)
class AgentClaimGossip(OneReleaseGossip):
    """One-release gossip that claims to hide an agent with the sensitivity of one record."""

    relation: ClassVar[Relation] = Relation("agent", "replace")


ALGORITHM = AgentClaimGossip
EXAMPLE = "mean_estimation"
