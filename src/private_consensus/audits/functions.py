"""Audit of any Python function of a data set, by replacing its noise calls.

Inside ``with recording():`` the functions :func:`gaussian`, :func:`laplace`, :func:`gamma_norm` and
:func:`exact` add noise and record each release. :func:`audit_function` executes a function on a
data set, and again on neighbouring data sets with the recorded outputs. The returned value must
then be identical, and each release must cost at most its declared loss.
"""

import io
import os
import random
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager, contextmanager, redirect_stderr, redirect_stdout
from contextvars import ContextVar
from copy import deepcopy
from dataclasses import replace
from typing import Any, NamedTuple, cast
from warnings import catch_warnings, simplefilter

import numpy as np

from private_consensus.common.errors import arguments, require
from private_consensus.core.randomness import UNIT_LAWS
from private_consensus.privacy import Release, account
from private_consensus.privacy.mechanisms import ADDITIVE, Exact, Mechanism, Recorded

from .auditing import unattained
from .comparison import ROUNDING, Excess
from .execution import Refused, check_query
from .files import changed_files
from .frozen import digest, freeze, named_directories
from .result import (
    LEAKS,
    NO_DELTA,
    NO_GUARANTEE,
    NOT_CONTRADICTED,
    NOT_EXECUTED,
    REFUSED,
    UNDERSTATED,
    AuditResult,
)
from .workers import Worker

_ACTIVE: ContextVar[Any] = ContextVar("handler of releases")


FACTORS = 1.0, 1.0, 1.0, 0.1, 10.0
"""Factors of the noise in the executions on one data set, since all outputs are possible."""


class FunctionRecord:
    """Handler of one execution of a function, with its releases in order and their mechanisms."""

    def __init__(self, generator: np.random.Generator, factor: float = 1.0):
        self.generator, self.factor = generator, factor
        self.recorded: list[Recorded] = []
        self.mechanisms: list[Mechanism] = []

    @property
    def releases(self) -> list[Release]:
        """Releases for :func:`.account`."""
        return [release for mechanism in self.mechanisms for release in mechanism.releases(1)]

    def release(self, mechanism: Mechanism, query: Any) -> np.ndarray:
        """Return the query with noise, and record the release."""
        number = len(self.recorded) + 1
        check_query(f"the query of release {number}", query, mechanism.scale)
        unit, draw = None, UNIT_LAWS.get(mechanism.unit, mechanism.unit)
        if draw is not None:
            unit = self.factor * draw(self.generator, (query.size,)).reshape(query.shape)
        output = mechanism.output(query, unit, 1)
        evidence = mechanism.evidence(query, unit, output, 1)
        self.recorded.append(Recorded(f"release {number}", 1, evidence, unit, output))
        self.mechanisms.append(mechanism)
        return np.array(output)


ADAPTIVE = (
    "the releases depend on earlier outputs: epsilon is the largest of the executions, "
    "and other outputs may cost more"
)
"""Note on a function of which no execution states the epsilon of all."""


class _Difference(Exception):
    """The releases of a replay differ from those of the recorded execution."""


class FunctionReplay(FunctionRecord):
    """Handler that returns recorded outputs, and keeps the ratios of cost and loss."""

    def __init__(self, record: FunctionRecord):
        super().__init__(record.generator)
        self.record, self.ratios = record, []

    def release(self, mechanism: Mechanism, query: Any) -> np.ndarray:
        number = len(self.ratios)
        if number >= len(self.record.recorded):
            raise _Difference("the number of releases depends on the data")
        if freeze(mechanism) != freeze(self.record.mechanisms[number]):
            raise _Difference(f"the mechanism of release {number + 1} depends on the data")
        recorded = self.record.recorded[number]
        check_query(f"the query of release {number + 1}", query, 0.0)
        if np.shape(query) != np.shape(recorded.evidence):
            raise _Difference(f"the shape of release {number + 1} depends on the data")
        flat = recorded._replace(evidence=np.ravel(recorded.evidence))
        cost = np.max(mechanism.cost(np.ravel(query), flat, 1, []))
        loss = float(np.max(mechanism.loss(1)))
        ratio = 0.0 if cost == 0 or np.isinf(loss) else float(cost) / loss if loss else np.inf
        self.ratios.append(ratio)
        return np.array(recorded.output)


def recording(seed: int | None = None) -> AbstractContextManager[FunctionRecord]:
    """Record all releases of the functions of this module in a block of code.

    Parameters
    ----------
    seed : int, optional
        Seed of the noise; fresh entropy by default.

    Returns
    -------
    context manager
        It yields a :class:`FunctionRecord`, whose ``releases`` :func:`.account` accounts.
    """
    return _handled_by(FunctionRecord(np.random.default_rng(seed)))


@contextmanager
def _handled_by(handler: Any) -> Generator[Any]:
    token = _ACTIVE.set(handler)
    try:
        yield handler
    finally:
        _ACTIVE.reset(token)


def _release(mechanism: Mechanism, query: Any) -> np.ndarray:
    handler = _ACTIVE.get(None) or FunctionRecord(np.random.default_rng())
    return handler.release(mechanism, np.asarray(query, float))


def _additive(law: str, query: Any, sensitivity: float, scale: float) -> np.ndarray:
    scale = arguments.number("scale", scale, "a finite number > 0", lambda v: 0 < v < np.inf)
    expected = "a finite number >= 0"
    change = arguments.number("sensitivity", sensitivity, expected, lambda v: 0 <= v < np.inf)
    return _release(ADDITIVE[law](change, scale), query)


@arguments.known_keywords
def gaussian(query: Any, sensitivity: float, scale: float) -> np.ndarray:
    """Return an array with Gaussian noise of a standard deviation; l2 sensitivity.

    Parameters
    ----------
    query : array_like
        Private value.
    sensitivity : float
        Largest change of the whole array by one record, in the l2 norm.
    scale : float
        Standard deviation of the noise of each entry.

    Returns
    -------
    ndarray
    """
    return _additive("gaussian", query, sensitivity, scale)


@arguments.known_keywords
def laplace(query: Any, sensitivity: float, scale: float) -> np.ndarray:
    """Return an array with Laplace noise; l1 sensitivity.

    Parameters
    ----------
    query, sensitivity, scale
        As in :func:`gaussian`, with the sensitivity in the l1 norm.

    Returns
    -------
    ndarray
    """
    return _additive("laplace", query, sensitivity, scale)


@arguments.known_keywords
def gamma_norm(query: Any, sensitivity: float, scale: float) -> np.ndarray:
    r"""Return an array with noise of density :math:`e^{-\|b\|_2/s}`; l2 sensitivity.

    Parameters
    ----------
    query, sensitivity, scale
        As in :func:`gaussian`, with the scale s.

    Returns
    -------
    ndarray
    """
    return _additive("gamma_norm", query, sensitivity, scale)


@arguments.known_keywords
def exact(query: Any, reason: str) -> np.ndarray:
    """Return an array without noise, and record that it has no guarantee.

    Parameters
    ----------
    query : array_like
        Private value.
    reason : str
        Reason for the release without noise.

    Returns
    -------
    ndarray
    """
    return _release(Exact(reason=reason), query)


class _Outcome(NamedTuple):
    """Value, failure and frozen effects of one execution; ``handler`` has its releases."""

    handler: Any
    value: Any
    error: str
    difference: str
    refusal: str
    effects: dict[str, Any]


@arguments.known_keywords
def audit_function(
    function: Callable[[Any], Any],
    data: Any,
    neighbours: Iterable[Any],
    *,
    delta: float = 0.0,
    seed: int = 0,
) -> AuditResult:
    """Try to contradict the guarantee of a function by replays on neighbouring data sets.

    Each data set is executed with several outputs of the mechanisms. The returned value, printed
    texts, warnings, written files, environment variables, the states of ``random`` and
    ``numpy.random``, settings of NumPy, and variables outside of the function that its code names
    must be equal. A function that starts a process or opens a connection is refused. Files that the
    function opens are restored. No other process may write to them, or to the working directory,
    meanwhile.

    Parameters
    ----------
    function : callable
        Function of a data set, whose noise comes from the functions of this module.
    data : object
        Data set.
    neighbours : iterable
        Neighbouring data sets of ``data``.
    delta : float
        Delta at which the declared epsilon is stated.
    seed : int
        Seed of the noise.

    Returns
    -------
    AuditResult
    """
    require(callable(function), "function", function, "a function")
    data_sets = [data, *neighbours]
    require(len(data_sets) > 1, "neighbours", neighbours, "at least one data set")
    directories = named_directories(function)

    def executed(number: int, records: list[FunctionRecord] | None) -> list[_Outcome]:
        handlers = [FunctionReplay(record) for record in records or ()] or [
            FunctionRecord(np.random.default_rng([seed, 0xF00D, draw]), factor)
            for draw, factor in enumerate(FACTORS)
        ]
        data = data_sets[number]
        return [_outcome(function, deepcopy(data), handler, directories) for handler in handlers]

    try:
        with Worker(executed) as first:
            result = _audited(first, executed, len(data_sets), delta)
    except EOFError as error:
        text = str(error) or "the process that executes the function ended"
        return AuditResult(NOT_EXECUTED, text, delta=delta)
    frozen, *of_neighbours = map(freeze, data_sets)
    equal = ", ".join(str(k) for k, other in enumerate(of_neighbours, 1) if other == frozen)
    note = f"equal to the data set: neighbours {equal}"
    return replace(result, notes=(*result.notes, note)) if equal else result


def _audited(
    process: Worker, executed: Callable[..., Any], count: int, delta: float
) -> AuditResult:
    """Compare executions in a process with their replays; each neighbour has a new process."""
    recorded: list[_Outcome] = process.call(0, None)
    facts: dict[str, Any] = {"delta": delta, "agents": 1, "iterations": 1, "graph": "no graph"}
    records = [outcome.handler for outcome in recorded]
    if refusals := [outcome.refusal for outcome in recorded if outcome.refusal]:
        return AuditResult(REFUSED, refusals[0], **facts)
    epsilons = [account(record.releases, delta).epsilon for record in records]
    facts["epsilon"] = max(epsilons)
    notes = (ADAPTIVE,) if min(epsilons) < max(epsilons) else ()
    names = (release.name for record in records for release in record.recorded)
    reached, excess = dict.fromkeys(names, 0.0), Excess()
    for number in range(count):
        with Worker(executed) as fresh:
            replayed = fresh.call(number, records)
        label = "the same data set" if number == 0 else f"neighbour {number}"
        outputs = (number + 1) * sum(1 + len(record.recorded) for record in records)
        facts |= {"reached": reached, "pairs": number + 1, "outputs": outputs}
        if recorded[0].error and replayed[0].error:
            return AuditResult(NOT_EXECUTED, recorded[0].error, **facts)
        for first, second in zip(recorded, replayed, strict=True):
            if leak := _leak(first, second):
                return AuditResult(LEAKS, f"{leak} ({label})", **facts)
        ratios = [outcome.handler.ratios for outcome in replayed]
        if number == 1 and ratios != [o.handler.ratios for o in process.call(number, records)]:
            text = "a release depends on an earlier call of the function with other data"
            return AuditResult(LEAKS, text, **facts)
        for name, ratio in (pair for row in ratios for pair in zip(reached, row, strict=False)):
            reached[name] = max(reached[name], ratio)
            # Written so that NaN is an excess.
            if not ratio <= max(1 + ROUNDING, excess.ratio):
                text = f"{name} changes by {ratio:.6g} times its sensitivity ({label})"
                excess = Excess(ratio, text)
    if excess.text:
        return AuditResult(UNDERSTATED, excess.text, **facts)
    if not np.isfinite(facts["epsilon"]):
        has_exact = any(isinstance(m, Exact) for record in records for m in record.mechanisms)
        reason = "a value is released without noise" if has_exact else NO_DELTA
        return AuditResult(NO_GUARANTEE, reason, **facts)
    return AuditResult(NOT_CONTRADICTED, notes=(*notes, *unattained(reached)), **facts)


def _leak(first: _Outcome, second: _Outcome) -> str:
    failures = first.refusal or first.error, second.refusal or second.error
    if all(failures):
        return ""
    if second.difference:
        return second.difference
    if any(failures):
        owner = "the data set" if failures[0] else "the neighbour"
        return f"only {owner} fails: {failures[0] or failures[1]}"
    if len(second.handler.ratios) != len(first.handler.recorded):
        return "the number of releases depends on the data"
    if first.value != second.value:
        return "the returned value depends on the data beside the mechanisms"
    names = [name for name, effect in first.effects.items() if effect != second.effects[name]]
    return f"the following depend on the data: {', '.join(names)}" if names else ""


def _outcome(
    function: Callable[[Any], Any], data: Any, handler: FunctionRecord, directories: set[str]
) -> _Outcome:
    """Execute a function; return its value, its failure, and its frozen side effects."""
    printed = io.StringIO()
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    np.seterr(all="ignore")
    value, error, difference, refusal = None, "", "", ""
    with (
        redirect_stdout(printed),
        redirect_stderr(printed),
        catch_warnings(record=True) as issued,
        changed_files(directories) as written,
    ):
        simplefilter("always")
        try:
            with _handled_by(handler):
                value = freeze(function(data))
        except Refused as refused:
            refusal = str(refused)
        except _Difference as found:
            difference = str(found)
        except Exception as exception:
            error = f"{type(exception).__name__}: {exception}"
    effects = {
        "written files": written,
        "printed texts": printed.getvalue(),
        "warnings": [str(warning.message) for warning in issued],
        "environment variables": dict(os.environ),
        "states of random numbers": (
            random.getstate(),
            freeze(cast(Any, np.random.get_state())[1]),  # noqa: NPY002
        ),
        "settings of NumPy": (np.geterr(), np.get_printoptions()),
        "variables outside of the function": digest(function),
    }
    return _Outcome(handler, value, error, difference, refusal, effects)
