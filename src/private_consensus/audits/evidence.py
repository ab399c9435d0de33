"""Statistics of executions: likelihood ratios, projected messages, counts of repeated values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from private_consensus.core.algorithms.base import DENSITIES, DRAW, Algorithm
from private_consensus.core.networks import Network
from private_consensus.privacy import Release

from .drawn_noise import DrawnNoise, drawn_noise
from .execution import Execution, execute
from .known_minimisers import KnownMinimisers
from .neighbours import Attack
from .noise_recovery import Hypothesis, recovery_of
from .probing import is_foreign
from .streams import AuditStreams

NUMBERS = 8_000_000
"""Largest number of message entries of the runs that are executed simultaneously."""
NOISE_NUMBERS = 400_000
"""Number of recovered noise values that are tested; far fewer suffice to detect an error of 5 %."""
FEWER_NOISE_NUMBERS = 100_000
"""Number of recovered noise values for all attacks but the first one. Each attack recovers noise of
all agents, and the distribution is tested for the first attack only."""
OTHERS = 12
"""Largest number of other agents whose single messages are features; above it, mean and sums."""
WHOLE = 400
"""Largest number of coordinates of an agent's messages that are features next to projections."""


@dataclass(frozen=True)
class Evidence:
    """Statistics of the runs on one data set.

    Parameters
    ----------
    ratio : ndarray or None, shape (runs,)
        Log-likelihood ratio of D to D'; None if it is unknown for the declared mechanism.
    projected : ndarray, shape (runs, features)
        Messages along the direction in which the records differ.
    whole : ndarray, shape (runs, features)
        All coordinates of the agent's messages; empty if there are more than :data:`WHOLE`.
    scalars : dict of ndarray, each (runs,)
        Counts of exact zeros and of repeated values; single messages along the direction.
    noise : dict of ndarray, each (runs, iterations, agents, dim)
        Recovered noise of the first runs, by declared site. Without independent noise that is
        added to the numbers of a stream.
    moved : ndarray, shape (iterations,), or None
        Largest change of the noised values between the data sets, over the scale of their noise.
    together : ndarray, shape (iterations,), or None
        The changes of the run in which their sum of squares is largest.
    shape : tuple of int
        Numbers of agents and of coordinates of the messages of one iteration.
    not_finite : ndarray, shape (runs,)
        Number of entries of all messages that are NaN or infinite.
    missing : ndarray, shape (messages, agents)
        Number of runs in which a message has such an entry.
    drawn : DrawnNoise or None
        The drawn noise of the first runs of code from outside of this package.
    """

    ratio: np.ndarray | None
    projected: np.ndarray
    whole: np.ndarray
    scalars: dict[str, np.ndarray]
    noise: dict[str, np.ndarray]
    moved: np.ndarray | None
    together: np.ndarray | None
    messages: int
    iterations: int
    shape: tuple[int, ...]
    not_finite: np.ndarray
    missing: np.ndarray
    drawn: DrawnNoise | None = None

    def joined(self, later: Evidence) -> Evidence:
        """Return the statistics of these and of later runs, with the recovered noise of these."""
        both = {
            key: np.concatenate([self.scalars[key], later.scalars[key]]) for key in self.scalars
        }
        return Evidence(
            _if_both(lambda *arrays: np.concatenate(arrays), self.ratio, later.ratio),
            np.concatenate([self.projected, later.projected]),
            np.concatenate([self.whole, later.whole]),
            both,
            self.noise,
            _if_both(np.maximum, self.moved, later.moved),
            _if_both(longer, self.together, later.together),
            self.messages,
            max(self.iterations, later.iterations),
            self.shape,
            np.concatenate([self.not_finite, later.not_finite]),
            self.missing + later.missing,
            self.drawn,
        )


def _if_both(
    join: Callable[..., np.ndarray], first: np.ndarray | None, second: np.ndarray | None
) -> np.ndarray | None:
    """Return the joined arrays, or None if either is None."""
    return None if first is None or second is None else join(first, second)


def observed(
    algorithm: Algorithm,
    attack: Attack,
    horizon: int,
    first: int,
    runs: int,
    dataset_index: int,
    seed: int,
    noise_numbers: int = NOISE_NUMBERS,
) -> Evidence:
    """Compute the statistics of runs of a calibrated algorithm on one data set.

    Each data set and each block of runs has its own randomness. At most ``noise_numbers`` values of
    the noise are recovered.
    """
    problem, network = attack.pair[dataset_index], attack.network
    max_runs = max(8, NUMBERS // (horizon * problem.n_agents * problem.dim))
    blocks: list[Evidence] = []
    for begin in range(first, first + runs, max_runs):
        count = min(max_runs, first + runs - begin)
        streams = AuditStreams.labelled(f"world {dataset_index}, from run {begin}", count, seed)
        numbers_per_run = horizon * problem.n_agents * problem.dim
        needed = 0 if begin else _explained(count, numbers_per_run, noise_numbers)
        execution = execute(algorithm, problem, network, streams, horizon, internal_of=needed)
        noise = (
            {}
            if begin
            else recovered(algorithm, problem, network, streams, execution, noise_numbers)
        )
        drawn = None
        if DRAW in noise and is_foreign(algorithm):
            count = len(noise[DRAW])
            drawn = drawn_noise(
                algorithm, problem.repeated(count), network, streams.first(count), noise[DRAW]
            )
            if drawn is not None and drawn.has_only_more_noise:
                noise = {DRAW: drawn.numbers}
        blocks.append(_looked_at(algorithm, attack, streams, execution, noise, drawn))
    return reduce(Evidence.joined, blocks)


def _looked_at(
    algorithm, attack: Attack, streams, execution: Execution, noise, drawn: DrawnNoise | None
) -> Evidence:
    ratio, changes = likelihood_ratio(algorithm, attack, streams, execution)
    moved, together = (None, None) if changes is None else (changes.max(0), _longest(changes))
    not_finite = ~np.isfinite(execution.messages)
    if not_finite.any():
        ratio = None if ratio is None else np.where(np.isnan(ratio), 0.0, ratio)
        execution = execution.finite()
    return Evidence(
        ratio=ratio,
        projected=projected(execution, attack),
        whole=whole(execution, attack),
        scalars=repeats(execution, attack) | single_messages(execution, attack),
        noise=noise,
        moved=moved,
        together=together,
        messages=execution.messages.shape[1],
        iterations=execution.sent.shape[1],
        shape=execution.sent.shape[2:],
        not_finite=not_finite.sum((1, 2, 3)),
        missing=not_finite.any(-1).sum(0),
        drawn=drawn,
    )


def _longest(changes: np.ndarray) -> np.ndarray:
    """Return the row of ``changes``, [runs, iterations], with the largest sum of squares."""
    return changes[(changes**2).sum(1).argmax()]


def longer(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the vector with the larger sum of squares."""
    return max(first, second, key=lambda changes: float((changes**2).sum()))


def recovered(
    algorithm: Algorithm,
    problem: Any,
    network: Network,
    streams: AuditStreams,
    execution: Execution,
    noise_numbers: int = NOISE_NUMBERS,
) -> dict[str, np.ndarray]:
    """Recover noise in units of its scale from messages and data.

    Return [runs, iterations, agents, dim] by site, for the first runs, which have ``noise_numbers``
    values.
    """
    available_runs = len(execution.sent if execution.internal is None else execution.internal)
    count = min(
        available_runs,
        _explained(len(execution.sent), int(np.prod(execution.sent.shape[1:])), noise_numbers),
    )
    execution = execution.first(count)
    cached_problem: Any = KnownMinimisers(problem.repeated(count), execution.sent)
    noise_by_site: dict[str, list[np.ndarray]] = {}
    hypothesis = Hypothesis(cached_problem, network, streams.first(count), execution)
    for units in recovery_of(algorithm).residuals(hypothesis):
        for site, unit in units.items():
            noise_by_site.setdefault(site, []).append(unit)
    return {site: np.stack(units, axis=1) for site, units in noise_by_site.items()}


def _explained(runs: int, numbers_per_run: int, noise_numbers: int) -> int:
    """Return the number of runs in which noise is recovered, for a number of values per run."""
    return min(runs, max(50, noise_numbers // numbers_per_run))


def samples_secretly(algorithm: Algorithm, releases: Sequence[Release]) -> bool:
    """Return True if no observer knows the random numbers of the purpose sampling."""
    return algorithm.hidden_sampling or any(release.sampling for release in releases)


def has_secret_coins(algorithm: Algorithm, releases: Sequence[Release]) -> bool:
    """Return True if secret sampling may replace noise: all releases are pure, without a noise."""
    is_pure = all(release.mechanism == "pure" for release in releases)
    return is_pure and samples_secretly(algorithm, releases)


def likelihood_ratio(
    algorithm: Algorithm, attack: Attack, streams: AuditStreams, execution: Execution
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Compute the log-likelihood ratio of D to D' from the messages alone.

    The observer knows neither the noise nor other hidden random numbers.

    Returns
    -------
    ratio : ndarray, shape (runs,), or None
        None if the declared mechanism has no known ratio.
    changes : ndarray, shape (runs, iterations), or None
        Change of the noised values over the scale of their noise; None if it is not known.
    """
    public_streams, public = streams.without("noise"), execution.public()
    releases = algorithm.releases(attack.pair[0], attack.network, execution.sent.shape[1])
    hidden = samples_secretly(algorithm, releases)
    if hidden:
        public_streams = public_streams.without("sampling")
    data: list[Any] = [
        KnownMinimisers(problem.repeated(len(execution.sent)), execution.sent)
        for problem in attack.pair
    ]
    hypotheses = [Hypothesis(problem, attack.network, public_streams, public) for problem in data]
    recovery = recovery_of(algorithm)
    both = [recovery.log_likelihood(hypothesis) for hypothesis in hypotheses]
    if both[0] is not None:
        return both[0] - both[1], None
    sites = algorithm.noise_sites(attack.pair[0], attack.network, execution.sent.shape[1])
    if len(sites) != 1 or hidden:
        return None, None
    (site,) = sites
    density, order = DENSITIES[site.law], ORDERS[site.norm]
    ratio, moved = np.zeros(len(execution.sent)), []
    for units in zip(*map(recovery.residuals, hypotheses), strict=True):
        if any(site.name not in unit for unit in units):
            return None, None
        first_units, second_units = (unit[site.name] for unit in units)
        ratio += density(first_units) - density(second_units)
        # The noise of a sum of messages has one row for all agents.
        row = attack.agent if first_units.shape[1] > 1 else 0
        agent_units = (unit[:, row] for unit in (first_units, second_units))
        change = np.nan_to_num(np.subtract(*agent_units))
        moved.append(np.linalg.norm(change, order, axis=-1))
    return (ratio, np.stack(moved, axis=1)) if moved else (None, None)


ORDERS = {"l1": 1, "l2": 2, "linf": np.inf}
"""Orders of norms, by name."""


def projected(execution: Execution, attack: Attack) -> np.ndarray:
    """Project the messages on the direction of the attack; return features [runs, features].

    The features are those of the agent and of the other agents.
    """
    along, agent = _along(execution, attack), attack.agent
    of_others = np.delete(along, agent, axis=2)
    if of_others.shape[2] > OTHERS:
        of_others = of_others.mean(2, keepdims=True)
    return np.concatenate([along[:, :, [agent]], of_others], axis=2).reshape(len(along), -1)


def _along(execution: Execution, attack: Attack) -> np.ndarray:
    """Project all messages on the direction of the attack, by the coordinates that both have."""
    width = min(len(attack.direction), execution.messages.shape[-1])
    return execution.messages[..., :width] @ attack.direction[:width]


def single_messages(execution: Execution, attack: Attack) -> dict[str, np.ndarray]:
    """Return single messages and sums of messages, [runs], along the direction of the attack.

    For many agents the sum of each agent's messages is one of them, because :func:`projected` has
    only their mean.
    """
    along = _along(execution, attack)
    announced = along[:, : execution.sent.shape[1]]
    of_agent = announced[..., attack.agent]
    statistics = {
        "first message": of_agent[:, 0],
        "last message": of_agent[:, -1],
        "sum of messages": of_agent.sum(1),
    }
    if announced.shape[2] - 1 > OTHERS:
        other_agents = (agent for agent in range(announced.shape[2]) if agent != attack.agent)
        statistics |= {f"messages of agent {j}": announced[:, :, j].sum(1) for j in other_agents}
    if execution.unannounced.size:
        statistics["first exchange"] = along[:, execution.released.shape[1], attack.agent]
    return statistics


def whole(execution: Execution, attack: Attack) -> np.ndarray:
    """Return all coordinates of the agent's messages, [runs, features].

    There are none if there are more than ``WHOLE``.
    """
    messages = execution.messages[:, :, attack.agent].reshape(len(execution.sent), -1)
    return messages if messages.shape[1] <= WHOLE else messages[:, :0]


def repeats(execution: Execution, attack: Attack) -> dict[str, np.ndarray]:
    """Count zeros and repeated values in the agent's messages, [runs].

    Repeated values are equal to the message before, or to another agent's.
    """
    sent = execution.messages
    of_agent = sent[:, :, attack.agent]
    shared = sent == of_agent[:, :, None]
    shared[:, :, attack.agent] = False  # with itself
    counts = {
        "zeros": (of_agent == 0).sum((1, 2)),
        "repeated": (of_agent[:, 1:] == of_agent[:, :-1]).sum((1, 2)),
        "shared": np.array([np.count_nonzero(run) for run in shared]),
    }
    return {name: values.astype(float) for name, values in counts.items()}
