"""Test of the support of messages: grids, and signs of zeros, that depend on a single record.

A message that is rounded to a grid may carry a bit of the data in its last digit. The bit is often
a discrete function of all records, such as the majority of labels. Data sets in which the replaced
record decides such a majority show it, although they change messages less than other data sets do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from private_consensus.core.algorithms.base import Algorithm
from private_consensus.core.networks import Network

from .execution import execute
from .finders import universe_of
from .neighbours import Attack
from .result import DIFFERS, CheckReport, Finding, listed
from .streams import AuditStreams

RUNS = 100
"""Runs on each data set."""
FEWEST = 40
"""Smallest number of messages of a data set whose support is compared."""
STEPS = (*(10.0**-digits for digits in range(1, 10)), *(2.0**-bits for bits in range(1, 25)))
"""Steps of tested grids."""
FACTORS = (2, 4, 5, 10)
"""Factors by which the grid of the other data set may be finer. Values without a grid are no
finding: noise of a low resolution leaves them off every grid (:mod:`.floating_point`)."""
ERROR = 8.0
"""Rounding error of a value on a grid, in units of its last digit."""
PAIRS = ("label", "distant rows", "opposite corners", "opposite responses", "row and label")
"""Records of :meth:`.Universe.records` of which the replaced one decides a majority."""
MAX_AGENTS = 10
SITE = "supports of messages"


def audit_supports(
    algorithm: Algorithm, problem: object, network: Network, horizon: int, *, seed: int
) -> CheckReport:
    """Compare the grids and the zeros of messages on data sets that flip a majority.

    There is at most one finding per fault, which lists the agents.
    """
    faults: dict[str, set[int]] = {}
    streams = AuditStreams.labelled("supports", RUNS, seed)
    for attack in _balanced(problem, network):
        sent = [
            execute(algorithm, data, attack.network, streams, horizon).sent[:, :, attack.agent]
            for data in attack.pair
        ]
        if sent[0].shape == sent[1].shape:
            for text in _faults(*sent):
                faults.setdefault(text, set()).add(attack.agent)
    findings = [
        Finding(DIFFERS, f"{text} ({listed(sorted(agents))})") for text, agents in faults.items()
    ]
    return CheckReport(tuple(findings), sites=(SITE,))


def _balanced(problem: object, network: Network) -> Iterator[Attack]:
    """Yield pairs of data sets whose other records are balanced, so that one record decides."""
    universe = universe_of(problem)
    if universe is None or universe.problem.records < 2:
        return
    n_others = universe.problem.records - 1
    for agent in range(min(network.n_agents, MAX_AGENTS)):
        for pair in universe.record_pairs():
            if pair.name not in PAIRS:
                continue
            for count in sorted({n_others // 2, (n_others + 1) // 2}):
                background, name = universe.between(pair, agent, count), f"{pair.name}, majority"
                balanced = pair._replace(background=background, name=name)
                yield universe.attack(balanced, network, agent)


def _faults(first: np.ndarray, second: np.ndarray) -> Iterator[str]:
    """Yield faults of messages [runs, iterations, dim] on two data sets."""
    tests: Sequence[tuple[Callable[..., bool], str]] = (
        (_on_other_grids, "messages lie on another grid if one record is replaced"),
        (_have_other_zeros, "zeros in messages have another sign if one record is replaced"),
    )
    for t in range(first.shape[1]):
        for test, text in tests:
            if any(
                test(*values)
                for of_pair in ((first, second), (second, first))
                for values in zip(*(messages[:, t].T for messages in of_pair), strict=True)
            ):
                yield f"{text}: no noise hides its last digits"


def _on_other_grids(first: np.ndarray, second: np.ndarray) -> bool:
    """Return True if values lie on a grid, and the others only between its points."""
    first, second = (values[np.isfinite(values) & (values != 0)] for values in (first, second))
    if min(len(first), len(second)) < FEWEST:
        return False
    return any(
        _on_grid(first, step).all()
        and not _on_grid(second, step).any()
        and any(_on_grid(second, step / factor).all() for factor in FACTORS)
        for step in STEPS
    )


def _on_grid(values: np.ndarray, step: float) -> np.ndarray:
    """Return which values are multiples of a step, up to rounding."""
    remainder = np.abs(values - step * np.round(values / step))
    return remainder <= np.minimum(ERROR * np.spacing(np.abs(values)), step / 100)


def _have_other_zeros(first: np.ndarray, second: np.ndarray) -> bool:
    """Return True if zeros are negative on one data set and positive on the other."""
    negative, positive = (np.signbit(values[values == 0]) for values in (first, second))
    return min(len(negative), len(positive)) >= FEWEST and negative.all() and not positive.any()
