"""Collect the unaccounted uses of private data of a setting, which no mechanism covers.

They have three origins: the algorithm (data-dependent parameters), the problem (statistics of all
records, quantities treated as public), and the setting. The setting contributes its prepared data,
parameters that were tuned on the outcome of runs, and the declarations of its experiment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from private_consensus.core.algorithms.base import Algorithm
from private_consensus.core.problems import Problem

from ..datasets import PREPARATIONS


def oracles_of(
    algorithm: Algorithm, problem: Problem, specification: Mapping[str, Any]
) -> list[str]:
    """List each unaccounted use of private data once, one line per use.

    Parameters
    ----------
    algorithm : Algorithm
        Algorithm with its parameters.
    problem : Problem
        Problem that the algorithm solves.
    specification : mapping
        The setting.

    Returns
    -------
    list of str
        Lines without duplicates: algorithm first, then problem, then setting.
    """
    used = [problem.from_data[name] for name in algorithm.uses if name in problem.from_data]
    uses = [*algorithm.oracles, *used, *problem.oracles, *oracles_of_setting(specification)]
    return list(dict.fromkeys(uses))


def oracles_of_setting(specification: Mapping[str, Any]) -> list[str]:
    """List the unaccounted uses of private data by prepared data, tuning and experiment of a
    setting.
    """
    prepared = _preparing(specification["problem"].get("prepared"))
    return [*prepared, *_tuning(specification.get("tuned")), *specification.get("oracles", ())]


def _preparing(name: str | None) -> Sequence[str]:
    if name is None:
        return ()
    if name not in PREPARATIONS:
        return (f"{name}: how it was prepared is not known",)
    return PREPARATIONS[name].oracles


def _tuning(tuned: Mapping[str, Any] | None) -> list[str]:
    if tuned is None:
        return []
    return [f"{', '.join(tuned['over'])}: chosen by the error of the runs of {tuned['experiment']}"]
