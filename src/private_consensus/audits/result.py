"""The result of an audit: findings, bounds on epsilon and mu, and a text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from private_consensus.privacy.safe_digits import rounded_down, rounded_up
from private_consensus.privacy.verdicts import DIFFERS as DIFFERS
from private_consensus.privacy.verdicts import INCONCLUSIVE as INCONCLUSIVE
from private_consensus.privacy.verdicts import NOT_CONTRADICTED as NOT_CONTRADICTED
from private_consensus.privacy.verdicts import NOT_PROVEN as NOT_PROVEN
from private_consensus.privacy.verdicts import audit_verdict, verdict

CONTRADICTED = "contradicted"
NOTE, FLOATING_POINT = "note", "floating-point finding"
WEAKENING = (CONTRADICTED, DIFFERS, NOT_PROVEN)
"""Kinds of findings that exclude the verdicts "holds" and "proven"."""
EXACT_SITES = "noise as added"
"""Start of the name of sites whose cost is exact."""


@dataclass(frozen=True)
class Finding:
    """Contradiction of the claim or of the declaration.

    Parameters
    ----------
    kind : str
        ``contradicted``: outcomes refute the claim, a lower bound on epsilon lies above it;
        ``differs from its declaration``: the executed algorithm has a larger effect of a record or
        less noise than it declares, which bounds epsilon from no side;
        ``not proven``: the declared releases cost more than is claimed;
        ``note``: a conservative difference (more noise, a smaller effect), which weakens nothing;
        ``floating-point finding``: the resolution of the noise is coarser than that of the value to
        which it is added.
    text : str
        The fault in the user's terms, with agent, iteration and output.
    """

    kind: str
    text: str

    def about(self, agent: int) -> Finding:
        """Return a copy of the finding whose text names the attacked agent."""
        return replace(self, text=f"agent {agent} attacked: {self.text}")

    @property
    def weakens_privacy(self) -> bool:
        """Return True if the finding excludes the verdicts "holds" and "proven"."""
        return self.kind in WEAKENING


@dataclass(frozen=True)
class Untested:
    """Part of an algorithm that the audit did not test.

    Parameters
    ----------
    item : str
        The agent, output, noise site or declared limit, such as ``"agent 3"`` or
        ``"noise of the draw, agent 2, coordinate 0"``.
    reason : str
        Why it was not tested.
    decisive : bool
        Whether the verdict is "inconclusive" because of it.
    """

    item: str
    reason: str
    decisive: bool = True

    def __str__(self) -> str:
        return f"{self.item}: {self.reason}"


@dataclass(frozen=True)
class Coverage:
    """Sizes, outputs and sites that an audit executed and tested.

    Parameters
    ----------
    agents, records, iterations, dim : int
        Sizes of the executed problem: agents, records per agent, iterations, coordinates. The
        number of records is 0 for a stream of measurements.
    delta : float
        Delta at which epsilon is compared.
    degrees : tuple of int
        Degrees of the agents in the executed graph, each once.
    attacked : tuple of int
        Agents whose record was replaced.
    pairs, outputs, sites : tuple of str
        Pairs of data sets, returned quantities and noise sites that were tested.
    """

    agents: int = 0
    records: int = 0
    iterations: int = 0
    dim: int = 0
    delta: float = 0.0
    degrees: tuple[int, ...] = ()
    attacked: tuple[int, ...] = ()
    pairs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    sites: tuple[str, ...] = ()
    untested: tuple[Untested, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Return True if everything that decides the verdict was tested."""
        return not any(gap.decisive for gap in self.untested)

    def lines(self) -> list[tuple[str, str]]:
        """Return the coverage as pairs of a name and a text."""
        if not self.agents:
            return []
        attacked = f"{len(self.attacked)} of {self.agents}: {', '.join(map(str, self.attacked))}"
        sizes = [f"{self.agents} agents"]
        if self.records:
            sizes.append(f"{self.records} records per agent")
        sizes += [f"{self.iterations} iterations", f"{self.dim} coordinates"]
        sizes.append(f"delta {self.delta:g}")
        rows = [
            ("size", ", ".join(sizes)),
            ("graph", f"degrees {', '.join(map(str, self.degrees))}"),
            ("attacked agents", attacked),
            ("pairs of data sets", ", ".join(self.pairs)),
            ("outputs tested", ", ".join(self.outputs)),
            ("noise tested", ", ".join(self.sites) or "none"),
        ]
        return rows + [("not tested", str(gap)) for gap in self.untested]


@dataclass(frozen=True)
class CheckReport:
    """Outcome of one check of an audit.

    Parameters
    ----------
    outputs, sites : tuple of str
        What the check tested.
    untested : tuple of Untested
        What it should have tested and could not.
    agents : tuple of int
        Agents for which the exact cost of all pairs is known.
    """

    findings: tuple[Finding, ...] = ()
    outputs: tuple[str, ...] = ()
    sites: tuple[str, ...] = ()
    untested: tuple[Untested, ...] = ()
    agents: tuple[int, ...] = ()

    @classmethod
    def joined(cls, reports: Iterable[CheckReport]) -> CheckReport:
        """Join several reports; keep each part once, in the order of the reports."""
        reports = list(reports)

        def parts(name: str) -> tuple:
            return tuple(dict.fromkeys(p for report in reports for p in getattr(report, name)))

        return cls(parts("findings"), parts("outputs"), parts("sites"), parts("untested"))


@dataclass(frozen=True)
class NoiseFound:
    """Estimated scale of the recovered noise of one site, in units of the declared scale."""

    site: str
    estimate: float
    low: float
    high: float
    findings: tuple[str, ...]

    def as_findings(self) -> list[Finding]:
        """Return the differences between observed and declared noise as findings."""
        return [Finding(DIFFERS, f"noise of the {self.site}: {text}") for text in self.findings]


@dataclass(frozen=True)
class AuditResult:
    """Outcome of :func:`private_consensus.audit`.

    Parameters
    ----------
    claimed, delta : float
        Claimed (epsilon, delta) of the whole run, for ``relation``.
    declared : float
        Epsilon at ``delta`` of the declared releases, by an accountant.
    lower, ceiling : float
        Largest lower bound of epsilon at ``delta`` on the tested pairs, and the largest one that
        this number of runs can give. A claim above the ceiling cannot be contradicted.
    confidence : float
        Probability that no bound and no finding of the result is wrong.
    relation : str
        Neighbouring relation of the tested statement.
    bounds : tuple
        Bound for each statistic and delta.
    noise : tuple of NoiseFound
        Recovered noise of each site.
    sensitivity : float
        Largest observed change of the noised values over the declared one; NaN if it is not known.
    pvalue : float
        P-value of the claim, over all bounds and all looks at growing numbers of runs.
    findings : tuple of Finding
        Differences from the claim or from the declaration.
    runs : int
        Runs on each of the two data sets; fewer than requested if the audit ended early.
    power : float
        Smallest epsilon above which no claim can be refuted with the requested runs.
    executed : str
        Description of the executions.
    statistic : str
        Statistic with the largest lower bound.
    lower_range : tuple of float
        Smallest and largest lower bound of epsilon over several partitions of the runs. It does
        not enter the verdict.
    mu, epsilon_of_mu : float
        Largest lower bound of mu, and the epsilon at ``delta`` that follows if the mechanism
        satisfies Gaussian differential privacy. They do not enter the verdict.
    coverage : Coverage
        Executed and tested parts, and parts that were not tested.
    proven : bool or None
        True if every declared sensitivity is proven. None: the accountant was not used.
    computed_lower : float or None
        Lower bound of epsilon at ``delta`` that is computed from the declared releases. None: not
        computed.
    permitted : float or None
        Epsilon that the claim permits for the tested pairs, if they are no neighbours under
        ``relation``: a replaced record is one removed and one added. None: the claimed one.
    """

    claimed: float
    delta: float
    declared: float
    lower: float
    ceiling: float
    confidence: float
    relation: str
    runs: int
    power: float
    executed: str
    statistic: str = ""
    pvalue: float = 1.0
    bounds: tuple[Any, ...] = ()
    noise: tuple[NoiseFound, ...] = ()
    sensitivity: float = float("nan")
    findings: tuple[Finding, ...] = field(default=())
    lower_range: tuple[float, float] = (float("nan"), float("nan"))
    mu: float = float("nan")
    epsilon_of_mu: float = float("nan")
    coverage: Coverage = field(default_factory=Coverage)
    proven: bool | None = None
    computed_lower: float | None = None
    permitted: float | None = None

    @property
    def flagged(self) -> bool:
        """Return True if a finding contradicts the claim or the declaration."""
        return any(finding.weakens_privacy for finding in self.findings)

    @property
    def contradicted(self) -> bool:
        """Return True if outcomes refute the claim."""
        return any(finding.kind == CONTRADICTED for finding in self.findings)

    @property
    def verdict(self) -> str:
        """Verdict of the audit: one of :data:`private_consensus.privacy.AUDIT_VERDICTS`."""
        kinds = {finding.kind for finding in self.findings}
        return audit_verdict(
            contradicted=CONTRADICTED in kinds,
            differs=DIFFERS in kinds,
            unproven=NOT_PROVEN in kinds,
            complete=self.coverage.is_complete,
            testable=self.testable,
        )

    @property
    def testable(self) -> bool:
        """Return True if the runs can refute the claim, or if noise or an effect was recovered."""
        exact = any(site.startswith(EXACT_SITES) for site in self.coverage.sites)
        recovered = exact or bool(self.noise) or not np.isnan(self.sensitivity)
        return recovered or self.claimed <= self.ceiling

    @property
    def privacy_verdict(self) -> str | None:
        """Verdict on the claim, from accountant, computed lower bound and this audit.

        It is one of :data:`private_consensus.privacy.VERDICTS`, or None without the accountant.
        """
        if self.proven is None:
            return None
        lower = self.computed_lower
        return verdict(
            self.claimed, self.declared, proven=self.proven, lower=lower, audit=self.verdict
        )

    def _permitted(self) -> list[tuple[str, str]]:
        if self.permitted is None:
            return []
        pairs = "between data sets that differ in a replaced record: one removed, one added"
        return [("permitted by the claim", f"epsilon {self.permitted:.4g} {pairs}")]

    def _variation(self) -> list[tuple[str, str]]:
        if np.isnan(self.mu):
            return []
        low, high, mu, epsilon = map(rounded_down, (*self.lower_range, self.mu, self.epsilon_of_mu))
        return [
            ("lower bounds, all partitions", f"epsilon {low} to {high}"),
            (
                "lower bound if Gaussian DP",
                f"mu {mu}, which is epsilon {epsilon}",
            ),
        ]

    def lines(self) -> list[tuple[str, str]]:
        """Return the result for the reader, as pairs of a name and a text."""
        lower = rounded_down(self.lower)
        rows = [
            ("claimed", f"epsilon {self.claimed:.4g} at delta {self.delta:g}, {self.relation}"),
            ("declared", f"epsilon {rounded_up(self.declared)} by the accountant"),
            *self._permitted(),
            ("lower bound", f"epsilon {lower} ({self.statistic or 'no statistic'})"),
            *self._variation(),
            ("claims that the runs can refute", f"epsilon below {self.ceiling:.4g}"),
            ("runs", f"{self.runs} on each of two data sets: {self.executed}"),
            ("confidence", f"{self.confidence:g}, of the whole result"),
        ]
        if not np.isnan(self.sensitivity):
            rows.append(("sensitivity reached", f"{self.sensitivity:.1%} of the declared one"))
        for site_noise in self.noise:
            interval = f"{site_noise.low:.4g} to {site_noise.high:.4g}"
            text = f"{site_noise.estimate:.4g} of the declared scale, {interval}"
            rows.append((f"noise of the {site_noise.site}", text))
        rows += self.coverage.lines()
        rows += [(finding.kind, finding.text) for finding in self.findings]
        rows.append(("verdict", self.verdict))
        privacy_verdict = self.privacy_verdict
        return rows if privacy_verdict is None else [*rows, ("privacy", privacy_verdict)]


def listed(agents: Iterable[int]) -> str:
    """Return the agents as a text: ``agent 3`` or ``agents 0 to 4, 7``."""
    agents = list(agents)
    return f"agent {agents[0]}" if len(agents) == 1 else f"agents {list_numbers(agents)}"


def list_numbers(numbers: Sequence[int]) -> str:
    """Return ascending integers as a text with ranges."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    ranges = [str(a) if a == b else f"{a}, {b}" if b == a + 1 else f"{a} to {b}" for a, b in runs]
    return ", ".join(ranges)
