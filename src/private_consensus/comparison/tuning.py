"""Parameters of a method: trials over the ranges of its parameters, horizon and starting point.

The first trial uses the defaults. The others are Sobol points on logarithmic scales, common to all
problems and to all methods with equally many parameters. Each trial is run at the base cell of its
problem, at every budget, with separate seeds. There are three ways to choose:

- counted: all trials together have the budget. The noise of each trial is such that the accountant
  composes all copies to the target. The lowest mean loss on the public records decides. No agent
  holds these records. The choice is therefore post-processing of the trials' releases, and the
  chosen model has their joint guarantee.
- not counted: each trial has the whole budget, as if the best parameters were known.
- transferred: the trial with the best mean rank on the other problems, among the trials that start
  without the public model. It needs no public record.

The parameters are reused in all other cells of the problem.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import NamedTuple

import numpy as np

from private_consensus.common.errors import InvalidInput, require
from private_consensus.core import algorithms
from private_consensus.core.algorithms.base import (
    CURVATURE,
    GRADIENT,
    PLAIN,
    STEP,
    Algorithm,
    Range,
)

from .design import Comparison, Limits, Method, Problem
from .ranks import mean_ranks

HORIZON = "horizon"
NATURAL = {
    (HORIZON, "low"): "a single iteration",
    ("decay", "high"): "steps of constant length",
}
"""Natural limits of parameters, by the end of the range: no value beyond is of use."""


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
    """Algorithm with its parameters, its number of iterations and its starting point."""

    algorithm: Algorithm
    horizon: int
    from_public: bool = False


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
        Point of the unit cube: a number in [0, 1) for each parameter of :func:`tuned_parameters`,
        and one for the starting point if it is tuned. Without it the parameters are the defaults.

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
    ranges = tuned_parameters(kind, method, design.problems[problem], problem)
    from_public = units is not None and method.public_start and bool(units[-1] >= 0.5)
    values = {key: scales.of(range_.unit) * range_.default for key, range_ in ranges.items()}
    values[HORIZON] = method.horizon or values.get(HORIZON, design.problems[problem].horizon)
    if units is None:
        values |= {key: settings[key] for key in values if key in settings}
    else:
        values |= {
            key: scales.of(range_.unit) * range_.low * (range_.high / range_.low) ** float(unit)
            for (key, range_), unit in zip(ranges.items(), units, strict=False)
        }
    horizon = max(1, round(values.pop(HORIZON)))
    try:
        return Candidate(kind(**{**settings, **values}), horizon, from_public)
    except TypeError as error:
        raise InvalidInput(f"methods.{name}.algorithm", settings, str(error)) from None


def tuned_parameters(
    kind: type[Algorithm], method: Method, problem: Problem, name: str = ""
) -> dict[str, Range]:
    """Return the ranges of the parameters in which a method is tuned.

    They are the ranges of its algorithm, without parameters that the method leaves at None. The
    design may replace them, for a problem or for a method.

    Parameters
    ----------
    kind : type
        Class of the algorithm.
    method : Method
        Method of the design.
    problem : Problem
        Problem of the design.
    name : str
        Name of the problem.

    Returns
    -------
    dict of str to Range

    Raises
    ------
    InvalidInput
        For an empty range, or a range of an unknown parameter.
    """
    settings = {**method.algorithm, **method.per_problem.get(name, {})}
    defaults = {field.name: field.default for field in fields(kind)}
    ranges = {}
    for key, declared in kind.ranges.items():
        limits = limits_of(key, declared, method, problem)
        range_ = declared
        if limits is not None:
            range_ = Range(limits.low, limits.high, limits.default, declared.unit)
        label = f"{kind.__name__}.ranges.{key}"
        require(
            key in {*defaults, HORIZON}, label, range_, f"a parameter, one of {sorted(defaults)}"
        )
        require(0 < range_.low < range_.high < np.inf, label, range_, "0 < low < high")
        require(
            range_.unit in (STEP, CURVATURE, GRADIENT, PLAIN), label, range_.unit, "a known unit"
        )
        if key == HORIZON and method.horizon is not None:
            continue
        if key == HORIZON or settings.get(key, defaults[key]) is not None:
            ranges[key] = range_
    return ranges


def limits_of(key: str, declared: Range, method: Method, problem: Problem) -> Limits | None:
    """Return the range of the design that replaces the range of an algorithm.

    Parameters
    ----------
    key : str
        Name of the parameter.
    declared : Range
        Range of the algorithm.
    method : Method
        Method of the design; its ranges have precedence.
    problem : Problem
        Problem of the design.

    Returns
    -------
    Limits or None
    """
    for limits in (method.ranges.get(key), problem.ranges.get(key)):
        if limits is not None and limits.unit == declared.unit:
            return limits
    return None


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
    parameters = tuned_parameters(kind, method, design.problems[problem], problem)
    points = trial_points(design, len(parameters) + method.public_start)
    return [candidate(design, name, problem, scales, units) for units in (None, *points)]


def best(losses: Mapping[int, float]) -> int:
    """Return the trial with the smallest loss; the first one of several with this loss."""
    return min(losses, key=lambda trial: (losses[trial], trial))


def transferred(losses: Sequence[Mapping[int, float]]) -> int:
    """Return the trial with the best mean rank on several problems.

    Parameters
    ----------
    losses : sequence of mapping
        Loss of each trial, one mapping per problem. A trial that is missing on a problem has the
        last rank there.

    Returns
    -------
    int
        Number of the trial; 0, the defaults, without a problem.
    """
    trial_numbers = sorted({trial for by_trial in losses for trial in by_trial})
    if not trial_numbers:
        return 0
    values = [[by_trial.get(trial, np.inf) for trial in trial_numbers] for by_trial in losses]
    return trial_numbers[int(np.argmin(mean_ranks(np.array(values))))]


class Border(NamedTuple):
    """Position of a chosen parameter in its range.

    ``position`` is between 0 and 1 on the logarithmic scale of the range. ``natural`` names the
    natural limit at the end that is nearest, or is empty.
    """

    parameter: str
    value: float
    position: float
    natural: str


def positions(
    design: Comparison, name: str, problem: str, scales: Scales, chosen: Candidate
) -> list[Border]:
    """Return where the parameters of a chosen candidate are in their ranges.

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
    chosen : Candidate
        Candidate that was chosen for the method on the problem.

    Returns
    -------
    list of Border
        One entry per tuned parameter.
    """
    method, declared = design.methods[name], design.problems[problem]
    kind = type(chosen.algorithm)
    borders = []
    for key, range_ in tuned_parameters(kind, method, declared, problem).items():
        value = chosen.horizon if key == HORIZON else getattr(chosen.algorithm, key)
        units = float(value) / scales.of(range_.unit)
        position = np.log(units / range_.low) / np.log(range_.high / range_.low)
        end = "low" if position < 0.5 else "high"
        limits = limits_of(key, range_, method, declared)
        natural = "" if limits is None else limits.natural.get(end, "")
        natural = natural or NATURAL.get((key, end), "")
        borders.append(Border(key, units, float(np.clip(position, 0.0, 1.0)), natural))
    return borders
