"""Parameters of a method: a search over the ranges of its parameters, horizon and starting point.

A third of the trials covers the ranges: the defaults, then Sobol points on logarithmic scales. The
others refine the best trial so far in two stages. The trials of a problem are run at its base cell,
at every budget, with separate seeds. There are three ways to choose parameters:

- counted: all trials together have the budget. The noise of each trial is such that the accountant
  composes one run of each trial to the target. The lowest loss on the public records decides, and
  no agent holds these records. The search is therefore post-processing of the trials' releases, and
  the chosen model has their joint guarantee. Here the loss of a trial is the mean of three runs.
  The results thus estimate those of a search with one run per trial; the two additional runs are
  not counted.
- not counted: each trial has the whole budget, and the lowest loss on the agents' own records
  decides, as if the best parameters were known. This is a bound, not a private method.
- transferred: the mean position in the ranges, on logarithmic scales, of the parameters that the
  uncounted search finds on the other problems. The method starts without the public model. No
  public record of the problem is needed.

The parameters are reused in all other cells of the problem.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
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

from .design import ComparisonDesign, Limits, MethodDesign, ProblemDesign

HORIZON = "horizon"
WIDTHS = (1.0, 0.3, 0.12)
"""Half width of the region of a stage, as a fraction of the range."""
NATURAL = {("decay", "high"): "steps of constant length"}
"""Natural limits of parameters, by the end of the range: no value beyond is of use."""


class ObjectiveScales(NamedTuple):
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


class TuningCandidate(NamedTuple):
    """Algorithm with its parameters, its number of iterations and its starting point."""

    algorithm: Algorithm
    horizon: int
    from_public: bool = False


def candidate(
    design: ComparisonDesign,
    name: str,
    problem: str,
    scales: ObjectiveScales,
    units: np.ndarray | None = None,
) -> TuningCandidate:
    """Return a method on a problem, with default parameters or those of a trial.

    Parameters
    ----------
    design : ComparisonDesign
        Design of the comparison.
    name : str
        Name of the method.
    problem : str
        Name of the problem.
    scales : ObjectiveScales
        Curvature and gradient size of an agent's objective.
    units : ndarray, shape (parameters,), optional
        Point of the unit cube: a number in [0, 1) for each parameter of :func:`tuned_parameters`,
        and one for the starting point if it is tuned. Without it the parameters are the defaults.

    Returns
    -------
    TuningCandidate

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
    # A step with several rounds of gossip is complete, so that noise is not released unmixed.
    rounds = int(settings.get("rounds", 1))
    horizon = rounds * max(1, round(values.pop(HORIZON) / rounds))
    try:
        return TuningCandidate(kind(**{**settings, **values}), horizon, from_public)
    except TypeError as error:
        raise InvalidInput(f"methods.{name}.algorithm", settings, str(error)) from None


def tuned_parameters(
    kind: type[Algorithm], method: MethodDesign, problem: ProblemDesign, name: str = ""
) -> dict[str, Range]:
    """Return the ranges of the parameters in which a method is tuned.

    They are the ranges of its algorithm, without parameters that the method leaves at None. The
    design may replace them, for a problem or for a method.

    Parameters
    ----------
    kind : type
        Class of the algorithm.
    method : MethodDesign
        Method of the design.
    problem : ProblemDesign
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
            key in {*defaults, HORIZON}, label, key, f"a parameter, one of {', '.join(defaults)}"
        )
        require(
            0 < range_.low < range_.high < np.inf, label, range_, "finite limits, 0 < low < high"
        )
        units = (STEP, CURVATURE, GRADIENT, PLAIN)
        require(range_.unit in units, label, range_.unit, f"a unit, one of {units}")
        if key == HORIZON and method.horizon is not None:
            continue
        if key == HORIZON or settings.get(key, defaults[key]) is not None:
            ranges[key] = range_
    return ranges


def limits_of(
    key: str, declared: Range, method: MethodDesign, problem: ProblemDesign
) -> Limits | None:
    """Return the range of the design that replaces the range of an algorithm.

    Parameters
    ----------
    key : str
        Name of the parameter.
    declared : Range
        Range of the algorithm.
    method : MethodDesign
        Method of the design; its ranges have precedence.
    problem : ProblemDesign
        Problem of the design.

    Returns
    -------
    Limits or None
    """
    for limits in (method.ranges.get(key), problem.ranges.get(key)):
        if limits is not None and limits.unit == declared.unit:
            return limits
    return None


class Trial(NamedTuple):
    """Trial of a search: its point of the unit cube, its candidate and its loss."""

    units: np.ndarray
    candidate: TuningCandidate
    loss: float


def default_units(
    design: ComparisonDesign, name: str, problem: str, scales: ObjectiveScales
) -> np.ndarray:
    """Return the point of the unit cube at the default parameters.

    Parameters
    ----------
    design : ComparisonDesign
        Design of the comparison.
    name : str
        Name of the method.
    problem : str
        Name of the problem.
    scales : ObjectiveScales
        Curvature and gradient size of an agent's objective.

    Returns
    -------
    ndarray, shape (parameters,)
        One number in [0, 1] per parameter, and 0 for the starting point if it is tuned.
    """
    default = candidate(design, name, problem, scales)
    units = [border.position for border in positions(design, name, problem, scales, default)]
    return np.array([*units, *[0.0] * design.methods[name].public_start])


def stage_sizes(trials: int) -> list[int]:
    """Return the numbers of trials that cover the ranges, and of the stages of refinement."""
    sizes = [(trials + 2) // 3]
    for remaining_stages in range(len(WIDTHS) - 1, 0, -1):
        sizes.append(-(-(trials - sum(sizes)) // remaining_stages))
    return sizes


def stage_points(
    design: ComparisonDesign, public_start: bool, stage: int, centre: np.ndarray
) -> np.ndarray:
    """Return the points of a stage of the search, in the unit cube.

    Parameters
    ----------
    design : ComparisonDesign
        Design of the comparison.
    public_start : bool
        True if the last coordinate is the starting point: the public model from 0.5 on.
    stage : int
        0 covers the ranges; the others refine.
    centre : ndarray, shape (parameters,)
        Defaults in stage 0, which are its first point; else the best point so far. The first point
        of stage 1 is the best one from the other starting point.

    Returns
    -------
    ndarray, shape (trials of the stage, parameters)
    """
    from scipy.stats import qmc  # slow to import

    count = stage_sizes(design.tuning.trials)[stage]
    seed = [design.tuning.seed, stage] if stage else design.tuning.seed
    sequence = qmc.Sobol(len(centre), rng=np.random.default_rng(seed))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The balance properties", UserWarning)
        points = sequence.random(count)
    if stage == 0:
        points[:1] = centre
        return points
    points = np.clip(centre + WIDTHS[stage] * (2.0 * points - 1.0), 0.0, 1.0)
    if public_start:
        points[:, -1] = centre[-1]
        if stage == 1 and len(points):
            points[0] = [*centre[:-1], float(centre[-1] < 0.5)]
    return points


def best(trials: Sequence[Trial]) -> Trial:
    """Return the trial with the smallest loss; the first one of several with this loss."""
    return min(trials, key=lambda trial: trial.loss)


def transferred(units: Sequence[np.ndarray], public_start: bool) -> np.ndarray | None:
    """Return the mean of the points that a search found on other problems.

    Parameters
    ----------
    units : sequence of ndarray, shape (parameters,)
        Best point on each of the other problems.
    public_start : bool
        True if the last coordinate is the starting point, which is then set to 0.

    Returns
    -------
    ndarray, shape (parameters,), or None
        None without another problem.
    """
    if not units:
        return None
    mean = np.mean(units, axis=0)
    if public_start:
        mean[-1] = 0.0
    return mean


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
    design: ComparisonDesign,
    name: str,
    problem: str,
    scales: ObjectiveScales,
    selected: TuningCandidate,
) -> list[Border]:
    """Return where the parameters of a chosen candidate are in their ranges.

    Parameters
    ----------
    design : ComparisonDesign
        Design of the comparison.
    name : str
        Name of the method.
    problem : str
        Name of the problem.
    scales : ObjectiveScales
        Curvature and gradient size of an agent's objective.
    selected : TuningCandidate
        Candidate that was chosen for the method on the problem.

    Returns
    -------
    list of Border
        One entry per tuned parameter.
    """
    method, declared = design.methods[name], design.problems[problem]
    kind = type(selected.algorithm)
    borders = []
    for key, range_ in tuned_parameters(kind, method, declared, problem).items():
        value = selected.horizon if key == HORIZON else getattr(selected.algorithm, key)
        units = float(value) / scales.of(range_.unit)
        position = np.log(units / range_.low) / np.log(range_.high / range_.low)
        end = "low" if position < 0.5 else "high"
        limits = limits_of(key, range_, method, declared)
        natural = "" if limits is None else limits.natural.get(end, "")
        natural = natural or NATURAL.get((key, end), "")
        borders.append(Border(key, units, float(np.clip(position, 0.0, 1.0)), natural))
    return borders
