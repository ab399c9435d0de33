"""Parameters of a method: defaults, and trials over the ranges that its algorithm declares.

The first trial is the defaults; the others are Sobol points, the same for all methods with as many
parameters, on logarithmic scales. Each is run at the base cell of its problem, at every budget, on
seeds of its own; the best by mean loss on public records is reused in all other cells. Paid for,
all trials together have the budget: each is run at the noise at which the accountant composes so
many copies of it to the target. Public records are nobody's among the agents, so that the choice is
post-processing of what the trials release, and the chosen model has the guarantee of them all.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import fields
from typing import NamedTuple

import numpy as np

from .. import algorithms
from ..algorithms.base import CURVATURE, GRADIENT, PLAIN, STEP, Algorithm, Range
from ..errors import InvalidInput, require
from .design import Comparison, Method

HORIZON = "horizon"


class Scales(NamedTuple):
    """L and G of an agent's objective, as they are public."""

    curvature: float
    gradient: float

    def of(self, unit: str) -> float:
        """Return the factor of a unit."""
        sizes = {
            PLAIN: 1.0, STEP: 1.0 / self.curvature,
            CURVATURE: self.curvature, GRADIENT: self.gradient,
        }  # fmt: skip
        return sizes[unit]


class Candidate(NamedTuple):
    """An algorithm with its parameters, and for how many iterations."""

    algorithm: Algorithm
    horizon: int


def candidate(
    design: Comparison, name: str, problem: str, scales: Scales, units: np.ndarray | None = None
) -> Candidate:
    """A method on a problem: its defaults, or the trial at a point of the unit cube.

    Parameters
    ----------
    units : ndarray, shape (parameters,), optional
        A number in [0, 1) for each parameter of :func:`tuned_parameters`.

    Raises
    ------
    InvalidInput
        For an unknown parameter, range or unit.
    """
    method = design.methods[name]
    given = {**method.algorithm, **method.per_problem.get(problem, {})}
    kind = algorithms.load(given.pop("name"))
    ranges = tuned_parameters(kind, method, problem)
    values = {key: scales.of(one.unit) * one.default for key, one in ranges.items()}
    values[HORIZON] = method.horizon or values.get(HORIZON, design.problems[problem].horizon)
    if units is None:
        values |= {key: given[key] for key in values if key in given}
    else:
        values |= {
            key: scales.of(one.unit) * one.low * (one.high / one.low) ** float(unit)
            for (key, one), unit in zip(ranges.items(), units, strict=True)
        }
    horizon = max(1, round(values.pop(HORIZON)))
    try:
        return Candidate(kind(**{**given, **values}), horizon)
    except TypeError as error:
        raise InvalidInput(f"methods.{name}.algorithm", given, str(error)) from None


def tuned_parameters(kind: type[Algorithm], method: Method, problem: str) -> dict[str, Range]:
    """Ranges of what a method is tuned in: those of its algorithm, without parameters that the
    method leaves at None.

    Raises
    ------
    InvalidInput
        For a range of something that is no parameter, or that is empty.
    """
    given = {**method.algorithm, **method.per_problem.get(problem, {})}
    defaults = {field.name: field.default for field in fields(kind)}
    found = {}
    for key, one in kind.ranges.items():
        name = f"{kind.__name__}.ranges.{key}"
        require(key in {*defaults, HORIZON}, name, one, f"a parameter, one of {sorted(defaults)}")
        require(0 < one.low < one.high < np.inf, name, one, "0 < low < high")
        require(one.unit in (STEP, CURVATURE, GRADIENT, PLAIN), name, one.unit, "a known unit")
        if key == HORIZON and method.horizon is not None:
            continue
        if key == HORIZON or given.get(key, defaults[key]) is not None:
            found[key] = one
    return found


def trial_points(design: Comparison, parameters: int) -> np.ndarray:
    """Sobol points, [trials - 1, parameters]; none without parameters."""
    from scipy.stats import qmc  # slow to import

    count = design.tuning.trials - 1 if parameters else 0
    if not count:
        return np.zeros((0, parameters))
    sequence = qmc.Sobol(parameters, rng=np.random.default_rng(design.tuning.seed))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The balance properties", UserWarning)
        return sequence.random(count)


def trials(design: Comparison, name: str, problem: str, scales: Scales) -> list[Candidate]:
    """All trials of a method on a problem, the defaults first."""
    method = design.methods[name]
    kind = algorithms.load(method.algorithm["name"])
    parameters = tuned_parameters(kind, method, problem)
    points = trial_points(design, len(parameters))
    return [candidate(design, name, problem, scales, units) for units in (None, *points)]


def best(losses: Mapping[int, float]) -> int:
    """The trial with the least loss; of trials that are equal, or all infinite, the first."""
    return min(losses, key=lambda trial: (losses[trial], trial))
