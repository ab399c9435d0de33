"""Check of the resolution of noise: it has to be at least as fine as that of the hidden value.

A message y + n in which the noise n has fewer digits than y shows the last digits of y. Two tests
find such noise. A change of the sampled noise by a factor of 1 + 2^-30 does not change the message
of a run; or the messages of several runs with equal y lie on a grid that does not contain 0.
Messages that are rounded as a whole are not accused: all of their digits depend on the noise.

Floating-point arithmetic is outside of the guarantees of this package. A finding of this module
therefore decides no verdict.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from private_consensus.core.algorithms.base import Algorithm, Iterative

from .execution import run_batch
from .neighbours import Attack
from .replay import RELEASED, TINY, at_place, noise_places, released_of, with_array, with_step
from .result import FLOATING_POINT, CheckReport, Finding, Untested, listed
from .streams import AuditStreams

SITE = "resolution of the noise"
RUNS = 24
ITERATIONS = 2
"""First iterations that are tested."""
CHANGE = 2.0**-30
"""Relative change of the noise. It changes one of 64 numbers with 24 digits, and all with 53."""
LARGER_CHANGE = 2.0**-4
"""Relative change of the noise to which the effect of :data:`CHANGE` is compared."""
VISIBLE = 64.0
"""Expected change of a message, in units of its last digit, from which its absence is a finding."""
MOSTLY = 0.5
"""Fraction of unchanged numbers above which the noise counts as coarse."""
COARSE_GRID, NOTHING = 1e-4, 1e-11
"""Smallest tested step of a grid, and rounding error, relative to the largest value."""
BINARY_GRID = 64.0
"""Step of a fine binary grid, in units of the last digit of the largest message."""
DECIMALS = 12


def audit_floating_point(
    algorithm: Algorithm, attack: Attack, horizon: int, *, seed: int
) -> CheckReport:
    """Test whether noise is as fine as the values to which it is added, on the first data set.

    At most one finding, of the kind "floating-point finding", lists the agents.
    """
    responses = _Responses()
    if isinstance(algorithm, Iterative):
        algorithm = with_step(algorithm, responses)
    messages = _sampled(algorithm, attack, horizon, seed)
    if not messages:
        reason = "the algorithm shows no released messages with one row per agent"
        return CheckReport(untested=(Untested(SITE, reason, decisive=False),))
    for t, released in messages.items():
        coarse = [
            agent
            for agent in range(released.shape[1])
            if _is_coarse(agent, released, responses.changes.get(t), t == 1)
        ]
        if coarse:
            text = (
                f"the noise of {listed(coarse)} in iteration {t} has a coarser resolution than "
                "the value to which it is added: the last digits of a message are those of the data"
            )
            return CheckReport((Finding(FLOATING_POINT, text),), sites=(SITE,))
    if not responses.changes:
        error_text = responses.error or "steps receive no noise of the shape of messages"
        reason = (
            "only differences of messages were tested, because the noise could not be changed: "
            f"{error_text}"
        )
        return CheckReport(untested=(Untested(SITE, reason, decisive=False),))
    return CheckReport(sites=(SITE,))


def _sampled(
    algorithm: Algorithm, attack: Attack, horizon: int, seed: int
) -> dict[int, np.ndarray]:
    """Return released messages [runs, agents, dim] of the first iterations."""
    messages: dict[int, np.ndarray] = {}

    def keep(t: int, active: np.ndarray, observables: Any) -> None:
        if RELEASED in observables and t <= ITERATIONS and t not in messages:
            values = np.array(observables[RELEASED][0])
            if values.ndim == 3 and values.dtype.kind == "f":
                messages[t] = values

    streams = AuditStreams.labelled("resolution", RUNS, seed)
    arguments_of_run = attack.pair[0], attack.network, streams, min(horizon, ITERATIONS)
    with np.errstate(all="ignore"):
        run_batch(algorithm, *arguments_of_run, keep)
    return messages


class _Responses:
    """Step that measures how messages respond to a small change of the noise.

    Attributes
    ----------
    changes : dict
        By iteration: messages with the sampled noise and with two changes of it.
    error : str
        Reason why an iteration could not be measured; empty if it could.
    """

    def __init__(self) -> None:
        self.changes: dict[int, list[np.ndarray]] = {}
        self.error = ""

    def step(self, call, algorithm, state, problem, network, draw, t):
        """Take one step, and record the messages with changed noise."""
        if t <= ITERATIONS and t not in self.changes:
            try:
                measured = []
                if not noise_places(draw, (RUNS, problem.n_agents, problem.dim)):
                    return call(algorithm, state, problem, network, draw, t)
                for factor in (1.0, 1.0 + CHANGE, 1.0 + LARGER_CHANGE):
                    scaled = _scaled(draw, factor, (RUNS, problem.n_agents, problem.dim))
                    changed = copy.deepcopy(state), problem, network, scaled, t
                    released = released_of(algorithm, call(algorithm, *changed), problem, t)
                    if released is not None and released.ndim == 3:
                        measured.append(released)
                if len(measured) == 3:
                    self.changes[t] = measured
            except Exception as error:  # code from outside may raise anything
                self.error = f"{type(error).__name__}: {error}"
        return call(algorithm, state, problem, network, draw, t)


def _scaled(draw: Any, factor: float, shape: tuple[int, ...]) -> Any:
    """Return a copy of the draw in which all vectors with the shape of messages are scaled."""
    for path in noise_places(draw, shape):
        draw = with_array(draw, path, factor * at_place(draw, path))
    return copy.deepcopy(draw)


def _is_coarse(agent: int, released: np.ndarray, changes: Any, is_first: bool) -> bool:
    """Return True if the noise of one agent is coarser than its messages."""
    messages = released[:, agent]
    if _is_rounded(messages):
        return False
    if changes is not None and _is_unresponsive(*(values[:, agent] for values in changes)):
        return True
    if not is_first:  # afterwards the hidden values of several runs differ
        return False
    return any(_differs_by_a_grid(values) for values in messages.T)


def _differs_by_a_grid(values: np.ndarray) -> bool:
    """Return True if differences of values lie on a grid, and the values do not."""
    largest = float(np.abs(values).max(initial=0.0))
    if not largest or np.ptp(values) == 0:
        return False
    differences = values - values[0]
    step = _grid(differences)
    if step > COARSE_GRID * largest and not _on_grid(values, step, NOTHING * largest):
        return True
    digit = float(np.spacing(largest))
    fine = BINARY_GRID * digit
    return _on_grid(differences, fine, 4 * digit) and not _on_grid(values, fine, 4 * digit)


def _is_unresponsive(sampled: np.ndarray, changed: np.ndarray, larger: np.ndarray) -> bool:
    """Return True if most messages do not change with their noise.

    A message in which the noise saturates, such as its sign, changes little for any change.
    """
    last_digit = np.spacing(np.maximum(np.abs(sampled), TINY))
    visible = CHANGE / LARGER_CHANGE * np.abs(sampled - larger) > VISIBLE * last_digit
    _, index, counts = np.unique(sampled, return_inverse=True, return_counts=True)
    visible &= (counts[index] == 1).reshape(sampled.shape)  # others are public or were not sent
    if not visible.any():
        return False
    return bool(np.mean((sampled == changed)[visible]) > MOSTLY)


def _is_rounded(messages: np.ndarray) -> bool:
    """Return True if messages are rounded as a whole: to 32 bits, to decimals or to a grid."""
    if messages.dtype.itemsize < np.dtype(float).itemsize:
        return True
    if np.array_equal(messages, messages.astype(np.float32).astype(float)):
        return True
    if any(np.array_equal(messages, np.round(messages, d)) for d in range(DECIMALS + 1)):
        return True
    return all(_grid(values) > COARSE_GRID * np.abs(values).max() for values in messages.T)


def _grid(values: np.ndarray) -> float:
    """Return the step of a coarse grid on which all values lie up to rounding; 0 if there is none.

    Euclid's algorithm for numbers with rounding errors.
    """
    nothing = NOTHING * float(np.abs(values).max(initial=0.0))
    step = 0.0
    for remainder in map(float, np.abs(values)):
        while remainder > nothing:
            step, remainder = remainder, abs(step - remainder * round(step / remainder))
    return step


def _on_grid(values: np.ndarray, step: float, error: float) -> bool:
    """Return True if all values are multiples of a step up to an error."""
    return bool((np.abs(values - step * np.round(values / step)) <= error).all())
