"""Audit of any Python function of a data set, by replacing its noise calls.

Inside ``with recording():`` the functions :func:`gaussian`, :func:`laplace`, :func:`gamma_norm` and
:func:`exact` add noise and record each release. :func:`audit_function` executes a function on a
data set, and again on neighbouring data sets with the recorded outputs. The returned value must
then be identical, and each release must cost at most its declared loss.
"""

from __future__ import annotations

import builtins
import io
import os
import random
from collections.abc import Callable, Generator, Iterable
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from private_consensus.common.errors import arguments, require
from private_consensus.core.randomness import UNIT_LAWS
from private_consensus.privacy import Release, account
from private_consensus.privacy.mechanisms import ADDITIVE, Exact, Mechanism, Recorded

from .auditing import refused_declaration
from .comparison import ROUNDING, Excess
from .execution import Refused, check_resolution, checked_query
from .frozen import freeze
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
from .workers import Worker, worker

_ACTIVE: ContextVar[Any] = ContextVar("handler of releases")


class FunctionRecord:
    """Handler of the releases of one execution of a function.

    Attributes
    ----------
    recorded : list of Recorded
        Releases in order.
    mechanisms : list of Mechanism
        Mechanism of each release.
    """

    def __init__(self, generator: np.random.Generator):
        self.generator = generator
        self.recorded: list[Recorded] = []
        self.mechanisms: list[Mechanism] = []

    @property
    def releases(self) -> list[Release]:
        """Releases for :func:`.account`."""
        return [release for mechanism in self.mechanisms for release in mechanism.releases(1)]

    def release(self, mechanism: Mechanism, query: Any) -> np.ndarray:
        """Return the query with noise, and record the release."""
        number = len(self.recorded) + 1
        checked_query("the function", number, query)
        check_resolution("the function", number, query, mechanism.scale)
        unit = _unit(mechanism, self.generator, query.shape)
        output = mechanism.output(query, unit, 1)
        evidence = mechanism.evidence(query, unit, output, 1)
        self.recorded.append(Recorded(f"release {number}", 1, evidence, unit, output))
        self.mechanisms.append(mechanism)
        return np.array(output)


class _Difference(Exception):
    """The releases of a replay differ from those of the recorded execution."""


class FunctionReplay(FunctionRecord):
    """Handler that returns recorded outputs, and keeps the ratios of cost and loss."""

    def __init__(self, record: FunctionRecord, generator: np.random.Generator):
        super().__init__(generator)
        self.record, self.ratios = record, []

    def release(self, mechanism: Mechanism, query: Any) -> np.ndarray:
        number = len(self.ratios)
        if number >= len(self.record.recorded):
            raise _Difference("the number of releases depends on the data")
        if freeze(mechanism) != freeze(self.record.mechanisms[number]):
            raise _Difference(f"the mechanism of release {number + 1} depends on the data")
        recorded = self.record.recorded[number]
        checked_query("the function", number + 1, query)
        if np.shape(query) != np.shape(recorded.evidence):
            raise _Difference(f"the shape of release {number + 1} depends on the data")
        flat = recorded._replace(evidence=np.ravel(recorded.evidence))
        cost = np.max(mechanism.cost(np.ravel(query), flat, 1, []))
        loss = float(np.max(mechanism.loss(1)))
        ratio = 0.0 if cost == 0 or np.isinf(loss) else float(cost) / loss if loss else np.inf
        self.ratios.append(ratio)
        return np.array(recorded.output)


def _unit(mechanism: Mechanism, generator: np.random.Generator, shape: tuple[int, ...]) -> Any:
    draw = UNIT_LAWS.get(mechanism.unit, mechanism.unit)
    return draw and draw(generator, (int(np.prod(shape)),)).reshape(shape)


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
    handler = _ACTIVE.get(None)
    if handler is None:
        handler = FunctionRecord(np.random.default_rng())
    return handler.release(mechanism, np.asarray(query, float))


def _additive(law: str, query: Any, sensitivity: float, scale: float) -> np.ndarray:
    positive = "a finite number > 0"
    arguments.number("scale", scale, positive, lambda v: 0 < v < np.inf)
    nonnegative = "a finite number >= 0"
    arguments.number("sensitivity", sensitivity, nonnegative, lambda v: 0 <= v < np.inf)
    return _release(ADDITIVE[law](float(sensitivity), float(scale)), query)


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
    query
        See :func:`gaussian`.
    sensitivity : float
        Largest change of the whole array by one record, in the l1 norm.
    scale : float
        Scale of the noise of each entry.

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
    query
        See :func:`gaussian`.
    sensitivity : float
        Largest change of the whole array by one record, in the l2 norm.
    scale : float
        Scale s of the noise.

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
    value: Any
    error: str
    difference: str
    refusal: str
    effects: Any


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
        Also the state of ``random`` and ``numpy.random``, environment variables and the written
        files are compared.
    """
    arguments.function("function", function)
    data_sets = [data, *neighbours]
    require(len(data_sets) > 1, "neighbours", neighbours, "at least one data set")
    frozen = freeze(data)

    def executed(number: int, record: FunctionRecord | None) -> tuple[_Outcome, Any]:
        generator = np.random.default_rng([seed, 0xF00D])
        handler = FunctionReplay(record, generator) if record else FunctionRecord(generator)
        return _outcome(function, data_sets[number], handler), handler

    try:
        with worker(executed) as first:
            result = _audited(first, executed, len(data_sets), delta)
    except EOFError:
        text = "the process that executes the function ended"
        return AuditResult(NOT_EXECUTED, text, delta=delta)
    equal = [number for number, other in enumerate(data_sets[1:], 1) if freeze(other) == frozen]
    note = f"equal to the data set: neighbours {', '.join(map(str, equal))}"
    return replace(result, notes=(note,)) if equal else result


def _audited(
    process: Worker, executed: Callable[..., Any], count: int, delta: float
) -> AuditResult:
    """Compare an execution in a process with its replays; each neighbour has a new process."""
    first, record = process.call(0, None)
    facts: dict[str, Any] = {"delta": delta, "agents": 1, "iterations": 1, "graph": "no graph"}
    if first.refusal:
        return AuditResult(REFUSED, first.refusal, **facts)
    declared = {r.name: m for r, m in zip(record.recorded, record.mechanisms, strict=True)}
    refusal = refused_declaration(declared, 1)
    if refusal:
        return AuditResult(REFUSED, refusal, **facts)
    facts["epsilon"] = account(record.releases, delta).epsilon
    reached, excess = dict.fromkeys(declared, 0.0), Excess()
    for number in range(count):
        if number == 0:
            second, replay = process.call(number, record)
        else:
            with worker(executed) as fresh:
                second, replay = fresh.call(number, record)
        label = "the same data set" if number == 0 else f"neighbour {number}"
        outputs = (number + 1) * (1 + len(declared))
        facts |= {"reached": reached, "pairs": number + 1, "outputs": outputs}
        if first.error and second.error:
            return AuditResult(NOT_EXECUTED, first.error, **facts)
        if leak := _leak(first, second, replay, record):
            return AuditResult(LEAKS, f"{leak} ({label})", **facts)
        if number == 1 and process.call(number, record)[1].ratios != replay.ratios:
            text = "a release depends on an earlier call of the function with other data"
            return AuditResult(LEAKS, text, **facts)
        for name, ratio in zip(reached, replay.ratios, strict=True):
            reached[name] = max(reached[name], ratio)
            # Written so that NaN is an excess.
            if not ratio <= max(1 + ROUNDING, excess.ratio):
                text = f"{name} changes by {ratio:.6g} times its sensitivity ({label})"
                excess = Excess(ratio, text)
    if excess.text:
        return AuditResult(UNDERSTATED, excess.text, **facts)
    if not np.isfinite(facts["epsilon"]):
        has_exact = any(isinstance(m, Exact) for m in record.mechanisms)
        reason = "a value is released without noise" if has_exact else NO_DELTA
        return AuditResult(NO_GUARANTEE, reason, **facts)
    return AuditResult(NOT_CONTRADICTED, **facts)


def _leak(first: _Outcome, second: _Outcome, replay: FunctionReplay, record: FunctionRecord) -> str:
    if second.difference:
        return second.difference
    if bool(first.error) != bool(second.error):
        owner = "the data set" if first.error else "the neighbour"
        return f"only {owner} raises {first.error or second.error}"
    if len(replay.ratios) != len(record.recorded):
        return "the number of releases depends on the data"
    if first.value != second.value:
        return "the returned value depends on the data beside the mechanisms"
    if first.effects != second.effects:
        return "written files, environment variables or states of random numbers depend on data"
    return ""


def _outcome(function: Callable[[Any], Any], data: Any, handler: FunctionRecord) -> _Outcome:
    """Execute a function; return its value, its error, and its frozen side effects."""
    written: list[Path] = []
    opened = builtins.open

    def recording_open(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if set(mode) & set("wax+") and isinstance(file, str | Path):
            written.append(Path(file))
        return opened(file, mode, *args, **kwargs)

    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    value, error, difference, refusal = None, "", "", ""
    builtins.open = io.open = cast(Any, recording_open)
    try:
        with _handled_by(handler), np.errstate(all="ignore"):
            value = freeze(_comparable(function(data)))
    except Refused as refused:
        refusal = str(refused)
    except _Difference as found:
        difference = str(found)
    except Exception as exception:
        error = f"{type(exception).__name__}: {exception}"
    finally:
        builtins.open = io.open = opened
    files = [(str(path), path.read_bytes()) for path in written if path.is_file()]
    state = random.getstate(), freeze(cast(Any, np.random.get_state())[1])  # noqa: NPY002
    return _Outcome(value, error, difference, refusal, (files, state, dict(os.environ)))


def _comparable(value: Any) -> Any:
    """Refuse a function as result, whose values on all arguments cannot be compared."""
    if callable(value):
        raise Refused(f"the returned value is a {type(value).__name__}, which can be called")
    return value
