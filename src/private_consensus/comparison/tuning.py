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
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

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

from .design import ComparisonDesign, Limits, MethodDesign

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
    """Algorithm with its parameters, its number of iterations and its starting point.

    ``units`` is its point of the unit cube; empty for the default parameters.
    """

    algorithm: Algorithm
    horizon: int
    from_public: bool = False
    units: tuple[float, ...] = ()


class Trial(NamedTuple):
    """Trial of a search: its candidate and its loss."""

    candidate: TuningCandidate
    loss: float


class Border(NamedTuple):
    """Position of a chosen parameter in its range.

    ``position`` is between 0 and 1 on the logarithmic scale of the range. ``natural`` names the
    natural limit at the end that is nearest, or is empty.
    """

    parameter: str
    value: float
    position: float
    natural: str


@dataclass(frozen=True)
class SearchSpace:
    """Tuned parameters of a method on a problem, as coordinates of a unit cube.

    Parameters
    ----------
    design : ComparisonDesign
        Design of the comparison.
    name, problem : str
        Names of the method and of the problem.
    scales : ObjectiveScales
        Curvature and gradient size of an agent's objective.
    """

    design: ComparisonDesign
    name: str
    problem: str
    scales: ObjectiveScales

    @property
    def method(self) -> MethodDesign:
        """Method of the design."""
        return self.design.methods[self.name]

    @property
    def settings(self) -> dict[str, Any]:
        """Name and fixed parameters of the algorithm on the problem."""
        return {**self.method.algorithm, **self.method.per_problem.get(self.problem, {})}

    @cached_property
    def ranges(self) -> dict[str, Range]:
        """Ranges of the tuned parameters.

        They are the ranges of the algorithm, without parameters that the method leaves at None. The
        design may replace them, for a problem or for a method. An empty range and a range of an
        unknown parameter are refused.
        """
        kind = algorithms.load(self.settings["name"])
        defaults = {field.name: field.default for field in fields(kind)}
        unused = {key for key, value in {**defaults, **self.settings}.items() if value is None}
        if self.method.horizon is not None:
            unused.add(HORIZON)
        ranges = {}
        for key, declared in kind.ranges.items():
            limits = self._limits(key, declared)
            range_ = declared
            if limits is not None:
                range_ = Range(limits.low, limits.high, limits.default, declared.unit)
            label = f"{kind.__name__}.ranges.{key}"
            expected = f"a parameter, one of {', '.join(defaults)}"
            require(key in {*defaults, HORIZON}, label, key, expected)
            is_range = 0 < range_.low < range_.high < np.inf
            require(is_range, label, range_, "finite limits, 0 < low < high")
            units = (STEP, CURVATURE, GRADIENT, PLAIN)
            require(range_.unit in units, label, range_.unit, f"a unit, one of {units}")
            if key not in unused:
                ranges[key] = range_
        return ranges

    def _limits(self, key: str, declared: Range) -> Limits | None:
        """Return the range of the method, or else of the problem, that replaces a range."""
        for ranges in (self.method.ranges, self.design.problems[self.problem].ranges):
            if key in ranges and ranges[key].unit == declared.unit:
                return ranges[key]
        return None

    def candidate(self, units: np.ndarray | None = None) -> TuningCandidate:
        """Return the method with default parameters or those of a trial.

        Parameters
        ----------
        units : ndarray, shape (parameters,), optional
            Point of the unit cube: a number in [0, 1) for each parameter of :attr:`ranges`, and one
            for the starting point if it is tuned. Without it the parameters are the defaults.

        Returns
        -------
        TuningCandidate

        Raises
        ------
        InvalidInput
            For an unknown parameter, range or unit.
        """
        method, settings, ranges = self.method, self.settings, self.ranges
        scales = {key: self.scales.of(range_.unit) for key, range_ in ranges.items()}
        kind = algorithms.load(settings.pop("name"))
        from_public = units is not None and method.public_start and bool(units[-1] >= 0.5)
        values = {key: scales[key] * range_.default for key, range_ in ranges.items()}
        horizon = self.design.problems[self.problem].horizon
        values[HORIZON] = method.horizon or values.get(HORIZON, horizon)
        if units is None:
            values |= {key: settings[key] for key in values if key in settings}
        else:
            values |= {
                key: scales[key] * range_.low * (range_.high / range_.low) ** float(unit)
                for (key, range_), unit in zip(ranges.items(), units, strict=False)
            }
        # A step with several rounds of gossip is complete, so that noise is not released unmixed.
        rounds = int(settings.get("rounds", 1))
        horizon = rounds * max(1, round(values.pop(HORIZON) / rounds))
        try:
            algorithm = kind(**{**settings, **values})
        except TypeError as error:
            raise InvalidInput(f"methods.{self.name}.algorithm", settings, str(error)) from None
        point = () if units is None else tuple(map(float, units))
        return TuningCandidate(algorithm, horizon, from_public, point)

    def positions(self, selected: TuningCandidate) -> list[Border]:
        """Return where the parameters of a chosen candidate are in their ranges."""
        borders = []
        for key, range_ in self.ranges.items():
            value = selected.horizon if key == HORIZON else getattr(selected.algorithm, key)
            units = float(value) / self.scales.of(range_.unit)
            position = np.log(units / range_.low) / np.log(range_.high / range_.low)
            end = "low" if position < 0.5 else "high"
            limits = self._limits(key, range_)
            natural = "" if limits is None else limits.natural.get(end, "")
            natural = natural or NATURAL.get((key, end), "")
            borders.append(Border(key, units, float(np.clip(position, 0.0, 1.0)), natural))
        return borders

    @property
    def default_units(self) -> np.ndarray:
        """Point at the default parameters, and 0 for the starting point if it is tuned."""
        units = [border.position for border in self.positions(self.candidate())]
        return np.array([*units, *[0.0] * self.method.public_start])

    def points(self, stage: int, centre: np.ndarray) -> np.ndarray:
        """Return the points of a stage of the search.

        Parameters
        ----------
        stage : int
            0 covers the ranges; the others refine.
        centre : ndarray, shape (parameters,)
            Defaults in stage 0, which are its first point; else the best point so far. The first
            point of stage 1 is the best one from the other starting point.

        Returns
        -------
        ndarray, shape (trials of the stage, parameters)
            A last coordinate from 0.5 on is the public model, if the starting point is tuned.
        """
        from scipy.stats import qmc  # slow to import

        tuning = self.design.tuning
        seed = [tuning.seed, stage] if stage else tuning.seed
        sequence = qmc.Sobol(len(centre), rng=np.random.default_rng(seed))
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The balance properties", UserWarning)
            points = sequence.random(stage_sizes(tuning.trials)[stage])
        if stage == 0:
            points[:1] = centre
            return points
        points = np.clip(centre + WIDTHS[stage] * (2.0 * points - 1.0), 0.0, 1.0)
        if self.method.public_start:
            points[:, -1] = centre[-1]
            if stage == 1 and len(points):
                points[0] = [*centre[:-1], float(centre[-1] < 0.5)]
        return points

    def candidates(self, stage: int, trials: Sequence[Trial]) -> list[TuningCandidate]:
        """Return the candidates of a stage of the search.

        Parameters
        ----------
        stage : int
            Number of the stage, from 0.
        trials : sequence of Trial
            Earlier trials, the best of which is refined.

        Returns
        -------
        list of TuningCandidate
            In stage 0, the first one has exactly the default parameters.
        """
        centre = np.array(best(trials).candidate.units) if trials else self.default_units
        candidates = [self.candidate(point) for point in self.points(stage, centre)]
        if stage == 0:
            candidates[0] = self.candidate()._replace(units=candidates[0].units)
        return candidates

    def transferred(self, units: Sequence[tuple[float, ...]]) -> TuningCandidate:
        """Return the candidate at the mean of the points that a search found on other problems.

        It starts without the public model. Without another problem it is the default.

        Parameters
        ----------
        units : sequence of tuple of float
            Best point on each of the other problems.

        Returns
        -------
        TuningCandidate
        """
        if not units:
            return self.candidate()
        mean = np.mean(units, axis=0)
        if self.method.public_start:
            mean[-1] = 0.0
        return self.candidate(mean)


def stage_sizes(trials: int) -> list[int]:
    """Return the numbers of trials that cover the ranges, and of the stages of refinement."""
    sizes = [(trials + 2) // 3]
    for remaining_stages in range(len(WIDTHS) - 1, 0, -1):
        sizes.append(-(-(trials - sum(sizes)) // remaining_stages))
    return sizes


def best(trials: Sequence[Trial]) -> Trial:
    """Return the trial with the smallest loss; the first one of several with this loss."""
    return min(trials, key=lambda trial: trial.loss)
