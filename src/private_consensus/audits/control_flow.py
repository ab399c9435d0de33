"""Check of control flow: the executed branches may depend on data only through messages.

The algorithm is executed on D and on D' with equal messages (:mod:`.replay`), as Re:cord-play does
for differentially private libraries (arXiv 2602.17454). The number of iterations and the number
and shapes of exchanged values have to be equal. A branch of the code that only one data set
executes is listed: its effect on messages is tested by other checks, its duration is not tested.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Collection, Iterator
from pathlib import Path

from private_consensus.core.algorithms.base import Algorithm

from .neighbours import Attack
from .replay import Line, Replays, Trace, replays, run_traced
from .result import DIFFERS, CheckReport, Finding, Untested
from .streams import AuditStreams

SITE = "control flow"
MAX_LISTED = 5


def audit_control_flow(
    algorithm: Algorithm, attack: Attack, horizon: int, *, seed: int
) -> CheckReport:
    """Compare iterations, exchanges and branches of two executions with equal messages.

    A number of iterations or exchanges that depends on data is a finding. Branches that only one
    data set executes are untested, and do not decide the verdict.
    """
    runs = replays(algorithm, attack, horizon, seed=seed)
    if runs.neighbour is None:
        return _failed(algorithm, attack, horizon, runs, seed)
    findings = [Finding(DIFFERS, text) for text in _differences(runs, runs.neighbour, attack)]
    branches = [] if findings else list(_branches(runs, runs.neighbour))
    untested = tuple(
        Untested(
            f"branch {', '.join(lines)}, iteration {t}",
            "one of two data sets executes it although all messages are equal; its effect on "
            "messages is tested, its duration is not",
            decisive=False,
        )
        for t, lines in branches
    )
    return CheckReport(tuple(findings), sites=(SITE,), untested=untested)


def _failed(
    algorithm: Algorithm, attack: Attack, horizon: int, runs: Replays, seed: int
) -> CheckReport:
    """Return a finding if the execution on D' also fails without replayed messages."""
    streams = AuditStreams.labelled("replay", 2, seed)
    try:
        run_traced(algorithm, attack.pair[1], attack.network, streams, horizon, attack.agent)
    except Exception as exception:  # code from outside may raise anything
        text = (
            f"the execution ends with an error on one of two data sets that differ in a record of "
            f"agent {attack.agent} ({type(exception).__name__}: {exception})"
        )
        return CheckReport((Finding(DIFFERS, text),), sites=(SITE,))
    return CheckReport(untested=(runs.not_tested(SITE),))


def _differences(runs: Replays, neighbour: Trace, attack: Attack) -> Iterator[str]:
    """Yield texts about iterations and exchanges that depend on data."""
    recorded, loud, louder = runs.recorded, runs.loud, runs.loud_neighbour
    of_agent = f"of agent {attack.agent} although all messages are equal"
    if recorded.calls != neighbour.calls:
        if not _calls_change_with_noise(runs):
            counts = f"{recorded.iterations} and {neighbour.iterations}"
            yield f"the number of iterations ({counts}) depends on the data {of_agent}"
        return
    for t in recorded.exchanges:
        shapes = [_shapes(trace, t) for trace in (recorded, neighbour)]
        if shapes[0] == shapes[1]:
            continue
        has_loud = loud is not None and louder is not None
        if has_loud and shapes == [_shapes(trace, t) for trace in (loud, louder)]:
            counts = f"{len(shapes[0])} and {len(shapes[1])}"
            text = f"the number of exchanges of iteration {t} ({counts}) depends on the data "
            yield text + of_agent
        return


def _calls_change_with_noise(runs: Replays) -> bool:
    """Return True if the iterations of either execution change with louder noise."""
    if runs.loud is None or runs.loud_neighbour is None or runs.neighbour is None:
        return True
    if runs.recorded.calls != runs.loud.calls:
        return True
    return runs.neighbour.calls != runs.loud_neighbour.calls


def _shapes(trace: Trace, t: int) -> list[tuple[int, ...]]:
    return [values.shape for values in trace.exchanges.get(t, [])]


def _branches(runs: Replays, neighbour: Trace) -> Iterator[tuple[int, list[str]]]:
    """Yield the first iteration in which executed lines depend on data and not on noise."""
    empty: frozenset[Line] = frozenset()
    for t, lines in runs.recorded.lines.items():
        if not neighbour.replayed.get(t, False):
            return
        neighbour_lines = neighbour.lines.get(t, empty)
        noisy = [
            trace.lines.get(t, empty) ^ lines_without_noise
            for trace, lines_without_noise in (
                (runs.loud, lines),
                (runs.loud_neighbour, neighbour_lines),
            )
            if trace is not None
        ]
        differing = sorted((lines ^ neighbour_lines).difference(*noisy))
        if differing:
            yield t, [f"{Path(file).name}:{line}" for file, line in differing[:MAX_LISTED]]
            return


def branches_not_executed(kind: type, lines: Collection[Line]) -> tuple[Untested, ...]:
    """List the branches of a class from outside of this package that no execution took.

    They decide no verdict. Branches that raise errors are left out.
    """
    package = __name__.split(".")[0]
    bases = [base for base in kind.__mro__ if base.__module__.split(".")[0] not in (package, "abc")]
    missing = []
    for base in bases:
        try:
            file = inspect.getsourcefile(base)
            source, begin = inspect.getsourcelines(base)
            tree = ast.parse(textwrap.dedent("".join(source)))
        except (OSError, SyntaxError, TypeError):
            continue
        for node in ast.walk(tree):
            if not isinstance(node, ast.If) or (file, begin + node.lineno - 1) not in lines:
                continue
            for block, word in ((node.body, "if"), (node.orelse, "unless")):
                line = begin + block[0].lineno - 1 if block else 0
                if block and not isinstance(block[0], ast.Raise) and (file, line) not in lines:
                    where = f"{Path(str(file)).name}:{line}"
                    item = f"branch {where} ({word} {ast.unparse(node.test)})"
                    missing.append(Untested(item, "no execution took it", decisive=False))
    return tuple(dict.fromkeys(missing))
