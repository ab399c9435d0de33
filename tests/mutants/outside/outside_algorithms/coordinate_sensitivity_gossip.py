r"""One-release gossip that takes the change of one coordinate for the l2 sensitivity.

Declares one Gaussian release per agent, of sensitivity :math:`2R/N`. The l2 sensitivity is
:math:`2R\sqrt p/N`, attained by opposite corners of the box.
"""

from dataclasses import dataclass

from .one_release_gossip import OneReleaseGossip


@dataclass(frozen=True, kw_only=True)
class CoordinateSensitivityGossip(OneReleaseGossip):
    """One-release gossip that takes the change of one coordinate for the l2 sensitivity."""

    def change(self, problem):
        return problem.record_change("linf") / problem.records


ALGORITHM = CoordinateSensitivityGossip
EXAMPLE = "mean_estimation"
