"""Parameters of a method: defaults, and trials over the ranges that its algorithm declares.

The first trial uses the defaults. The others are Sobol points on logarithmic scales, common to all
methods with equally many parameters. Each trial is run at the base cell of its problem, at every
budget, with separate seeds. The trial with the lowest mean loss on public records is used in all
other cells. With paid tuning, all trials together have the budget: the noise of each trial is such
that the accountant composes all copies to the target. No agent holds the public records. The choice
is therefore post-processing of the trials' releases, and the chosen model has their joint
guarantee.
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
    """Public values of L and G of an agent's objective."""

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
    """Algorithm with its parameters, and its number of iterations."""

    algorithm: Algorithm
    horizon: int


def candidate(
    design: Comparison, name: str, problem: str, scales: Scales, units: np.ndarray | None = None
) -> Candidate:
    """Return a method on a problem, with default parameters or those of a trial.

    Parameters
    ----------
    design : Comparison
        Design of the comparison.
    name : str
        Name of the method.
    problem : str
        Name of the problem.
    scales : Scales
        Curvature and gradient size of an agent's objective.
    units : ndarray, shape (parameters,), optional
        Point of the unit cube: a number in [0, 1) for each parameter of :func:`tuned_parameters`.
        Without it the parameters are the defaults.

    Returns
    -------
    Candidate

    Raises
    ------
    InvalidInput
        For an unknown parameter, range or unit.
    """
    method = design.methods[name]
    settings = {**method.algorithm, **method.per_problem.get(problem, {})}
    kind = algorithms.load(settings.pop("name"))
    ranges = tuned_parameters(kind, method, problem)
    values = {key: scales.of(range_.unit) * range_.default for key, range_ in ranges.items()}
    values[HORIZON] = method.horizon or values.get(HORIZON, design.problems[problem].horizon)
    if units is None:
        values |= {key: settings[key] for key in values if key in settings}
    else:
        values |= {
            key: scales.of(range_.unit) * range_.low * (range_.high / range_.low) ** float(unit)
            for (key, range_), unit in zip(ranges.items(), units, strict=True)
        }
    horizon = max(1, round(values.pop(HORIZON)))
    try:
        return Candidate(kind(**{**settings, **values}), horizon)
    except TypeError as error:
        raise InvalidInput(f"methods.{name}.algorithm", settings, str(error)) from None


def tuned_parameters(kind: type[Algorithm], method: Method, problem: str) -> dict[str, Range]:
    """Return the ranges of the parameters in which a method is tuned.

    They are the ranges of its algorithm, without parameters that the method leaves at None.

    Parameters
    ----------
    kind : type
        Class of the algorithm.
    method : Method
        Method of the design.
    problem : str
        Name of the problem.

    Returns
    -------
    dict of str to Range

    Raises
    ------
    InvalidInput
        For an empty range, or a range of an unknown parameter.
    """
    settings = {**method.algorithm, **method.per_problem.get(problem, {})}
    defaults = {field.name: field.default for field in fields(kind)}
    ranges = {}
    for key, range_ in kind.ranges.items():
        name = f"{kind.__name__}.ranges.{key}"
        require(
            key in {*defaults, HORIZON}, name, range_, f"a parameter, one of {sorted(defaults)}"
        )
        require(0 < range_.low < range_.high < np.inf, name, range_, "0 < low < high")
        require(
            range_.unit in (STEP, CURVATURE, GRADIENT, PLAIN), name, range_.unit, "a known unit"
        )
        if key == HORIZON and method.horizon is not None:
            continue
        if key == HORIZON or settings.get(key, defaults[key]) is not None:
            ranges[key] = range_
    return ranges


def trial_points(design: Comparison, parameters: int) -> np.ndarray:
    """Return the Sobol points of the trials after the first.

    Parameters
    ----------
    design : Comparison
        Design of the comparison.
    parameters : int
        Number of parameters.

    Returns
    -------
    ndarray, shape (trials - 1, parameters)
        Without rows if there are no parameters.
    """
    from scipy.stats import qmc  # slow to import

    count = design.tuning.trials - 1 if parameters else 0
    if not count:
        return np.zeros((0, parameters))
    sequence = qmc.Sobol(parameters, rng=np.random.default_rng(design.tuning.seed))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The balance properties", UserWarning)
        return sequence.random(count)


def trials(design: Comparison, name: str, problem: str, scales: Scales) -> list[Candidate]:
    """Return all trials of a method on a problem, the defaults first.

    Parameters
    ----------
    design : Comparison
        Design of the comparison.
    name : str
        Name of the method.
    problem : str
        Name of the problem.
    scales : Scales
        Curvature and gradient size of an agent's objective.

    Returns
    -------
    list of Candidate
    """
    method = design.methods[name]
    kind = algorithms.load(method.algorithm["name"])
    parameters = tuned_parameters(kind, method, problem)
    points = trial_points(design, len(parameters))
    return [candidate(design, name, problem, scales, units) for units in (None, *points)]


def best(losses: Mapping[int, float]) -> int:
    """Return the trial with the smallest loss; the first one of several with this loss."""
    return min(losses, key=lambda trial: (losses[trial], trial))
