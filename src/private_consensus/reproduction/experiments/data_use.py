"""List the uses of private data in a setting whose privacy cost is not part of the budget.

They have three origins: the algorithm (parameters that depend on data), the problem (statistics of
all records, quantities that are treated as public), and the setting (preparation of the data,
parameters tuned on results of runs, uses that the experiment declares).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from private_consensus.core.algorithms.base import Algorithm
from private_consensus.core.problems import Problem

from ..datasets import PREPARATIONS


def unaccounted_uses(
    algorithm: Algorithm, problem: Problem, specification: Mapping[str, Any]
) -> list[str]:
    """List the uses of private data whose privacy cost is not counted in the budget.

    Parameters
    ----------
    algorithm : Algorithm
        Algorithm with its parameters.
    problem : Problem
        Problem that the algorithm solves.
    specification : mapping
        Setting of a cell.

    Returns
    -------
    list of str
        One description per use, without duplicates: uses by the algorithm, by the problem, and by
        the setting.
    """
    used = [problem.from_data[name] for name in algorithm.uses if name in problem.from_data]
    uses = [
        *algorithm.oracles,
        *used,
        *problem.oracles,
        *uses_of_setting(specification),
    ]
    return list(dict.fromkeys(uses))


def uses_of_setting(specification: Mapping[str, Any]) -> list[str]:
    """List the uncounted uses of private data by the preparation of the data, by tuning, and by
    the declarations of the experiment.
    """
    name, tuned = specification["problem"].get("prepared"), specification.get("tuned")
    uses: list[str] = []
    if name in PREPARATIONS:
        uses += PREPARATIONS[name].unaccounted_data_use
    elif name is not None:
        uses.append(f"{name}: the preparation of the data is unknown")
    if tuned is not None:
        axes = ", ".join(tuned["axes"])
        uses.append(f"{axes}: chosen by the error of the runs of {tuned['experiment']}")
    return [*uses, *specification.get("unaccounted_data_use", ())]
