"""Network that records every value that agents send."""

from collections.abc import Callable
from typing import Any

import numpy as np

from private_consensus.common.errors import InvalidInput
from private_consensus.core.networks import Network

SENDING = ("mix", "mix_others", "mix_links", "neighbour_sum", "gather", "combine")
"""Methods through which values leave an agent."""
PUBLIC = (
    "n_agents", "degrees", "shared", "own_weights", "consensus_rate",
    "algebraic_connectivity", "closed_neighbourhoods", "open_neighbourhoods",
)  # fmt: skip
"""Public facts on the graph that a step may read; the matrices are not among them."""


class RecordingNetwork:
    """Network in an audit: all ways through it are recorded, and its matrices are not readable.

    ``record`` is called with the name of the method and each sent value. ``deliver`` maps a
    received value to the value that the agents receive.
    """

    def __init__(
        self,
        network: Network,
        record: Callable[[str, Any], None],
        deliver: Callable[[Any], Any],
    ):
        self._network, self._record, self._deliver = network, record, deliver

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"an audited step cannot read network.{name}: send values by {', '.join(SENDING)}; "
            "only mechanisms may read the matrices"
        )

    def require_edges(self, neighbourhoods: np.ndarray) -> None:
        """Refuse neighbourhoods, [agents, members], with a member that is not a neighbour."""
        agents = np.arange(self._network.n_agents)
        is_edge = self._network.adjacency | np.eye(len(agents), dtype=bool)
        for agent, *_, member in np.argwhere(~is_edge[agents[:, None], neighbourhoods]):
            pair = f"agent {neighbourhoods[agent, member]} in the neighbourhood of agent {agent}"
            raise InvalidInput("neighbourhoods", pair, "agents with an edge to this agent")


def _sending(name: str) -> Callable[..., Any]:
    def send(self: RecordingNetwork, *values: Any) -> Any:
        if name == "gather":
            self.require_edges(values[1])
        for value in values:
            if isinstance(value, np.ndarray) and value.dtype.kind == "f":
                self._record(name, value.copy())
        return self._deliver(getattr(self._network, name)(*values))

    send.__doc__ = f"Apply :meth:`.Network.{name}` and record the sent values."
    return send


for _name in SENDING:
    setattr(RecordingNetwork, _name, _sending(_name))
for _name in PUBLIC:
    setattr(RecordingNetwork, _name, property(lambda self, n=_name: getattr(self._network, n)))
# A sum of an agent's own messages is not sent.
RecordingNetwork.sum_links = lambda self, x: self._network.sum_links(x)  # ty: ignore
