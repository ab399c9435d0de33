"""Result of an audit."""

from collections.abc import Mapping
from dataclasses import dataclass, field

LEAKS, UNDERSTATED, NO_GUARANTEE = "leaks", "understated", "no finite guarantee"
REFUSED, NOT_EXECUTED, NOT_CONTRADICTED = "refused", "not executed", "not contradicted"
VERDICTS = (LEAKS, UNDERSTATED, NO_GUARANTEE, REFUSED, NOT_EXECUTED, NOT_CONTRADICTED)
"""Verdicts, from the strongest finding to none."""
NO_DELTA = "the releases have no finite epsilon at this delta; Gaussian noise needs delta > 0"
"""Reason for ``no finite guarantee`` if every release has noise."""


@dataclass(frozen=True)
class AuditResult:
    """Result of an audit of one algorithm on one problem, graph and horizon.

    Parameters
    ----------
    verdict : str
        ``leaks``: a value reaches an observer beside the mechanisms. ``understated``: a release
        costs more than its mechanism declares. ``no finite guarantee``: a mechanism has no noise or
        no proof. ``refused``: the audit cannot judge the algorithm. ``not executed``: the algorithm
        raises an error. ``not contradicted``: the audit found nothing.
    reason : str
        Fault in the terms of the algorithm: agent, iteration and quantity.
    reached : mapping
        Largest ratio of cost and declared loss per mechanism, 1 if the sensitivity is attained.
    epsilon, delta : float
        Epsilon of the accountant for the declared mechanisms, and its delta.
    pairs, agents, iterations, outputs : int
        Number of executed pairs of data sets, attacked agents, iterations and compared outputs.
    graph : str
        Graph on which the algorithm was executed.
    notes : tuple of str
        Restrictions of this audit.
    """

    verdict: str
    reason: str = ""
    reached: Mapping[str, float] = field(default_factory=dict)
    epsilon: float = float("inf")
    delta: float = 0.0
    pairs: int = 0
    agents: int = 0
    iterations: int = 0
    outputs: int = 0
    graph: str = ""
    notes: tuple[str, ...] = ()

    @property
    def finding(self) -> bool:
        """True if the audit contradicts the declared guarantee."""
        return self.verdict in (LEAKS, UNDERSTATED)

    def __str__(self) -> str:
        lines = [f"{self.verdict}: {self.reason}" if self.reason else self.verdict]
        lines += [
            f"{name}: sensitivity reached: {ratio:.3g}" for name, ratio in self.reached.items()
        ]
        lines.append(f"declared: epsilon = {self.epsilon:.4g} at delta = {self.delta:g}")
        lines.append(
            f"executed: {self.pairs} pairs of data sets, {self.agents} agents, "
            f"{self.iterations} iterations, {self.outputs} outputs on {self.graph}"
        )
        return "\n".join([*lines, *self.notes])
