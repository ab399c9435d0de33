"""One-release gossip that claims to hide all records of an agent.

Declares what one_release_gossip declares, for the relation that replaces all data of one agent.
The sensitivity is that of one record.
"""

from dataclasses import dataclass
from typing import ClassVar

from private_consensus.privacy import Relation

from .one_release_gossip import OneReleaseGossip


@dataclass(frozen=True, kw_only=True)
class AgentClaimGossip(OneReleaseGossip):
    """The sensitivity of a record under the relation of an agent."""

    relation: ClassVar[Relation] = Relation("agent", "replace")


ALGORITHM = AgentClaimGossip
EXAMPLE = "mean_estimation"
