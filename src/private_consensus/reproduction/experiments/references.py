"""Check that the names in the configuration of a paper exist: paths, axes, measures, experiments.

A misspelled path would otherwise have no effect, and results would describe another setting.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

from private_consensus.common.errors import arguments
from private_consensus.common.fields import measure_text
from private_consensus.core import algorithms, problems
from private_consensus.core.networks import GRAPHS, MIXINGS

from ..claims import Claim
from ..datasets import PREPARATIONS
from .numbers import FIXED, KEY, POINT
from .quantities import quantities_of
from .schema import Experiment, FigurePanel, Paper, Table, TunedParameters

PARTS = ("problem", "network", "budget", "horizon", "algorithm")
PREPARED = "problem.prepared"
OWN_COLUMNS = {"t", "run"}
"""Columns of measurements that may be selected in addition to axes."""
PRIVACY_COLUMNS = {
    "steps", "delta", "epsilon_claimed", "epsilon_formula", "epsilon_accountant",
    "epsilon_under_assumption", "accountant", "proven", "relation", "sampling",
    "unaccounted_data_use", "verdict",
}  # fmt: skip
RESERVED = {*FIXED, *KEY, *POINT, *PRIVACY_COLUMNS, "member", "setting", "diverged"} - {"delta"}
"""Names that no axis may have, because results have columns of these names."""
NUMBER_METRIC = "value"
"""Metric of a quantity that is a number."""
AGENT_METRIC = re.compile(r"agent_[1-9]\d*_[1-9]\d*")


def expected(key_path: str, value: object, allowed: Iterable[str]) -> str:
    """Format an error line about a value that is not among the allowed values.

    Parameters
    ----------
    key_path : str
        Key in the configuration.
    value : object
        The invalid value.
    allowed : iterable
        Allowed values.

    Returns
    -------
    str
        Line such as ``figures.x: found 'a', expected one of b, c``.
    """
    return f"{key_path}: found {value!r}, expected one of {', '.join(map(str, allowed))}"


def wrong_references(key: str, paper: Paper) -> Iterator[str]:
    """Yield one error line per name in the configuration of a paper that does not exist.

    Parameters
    ----------
    key : str
        Key of the paper, with which each line starts.
    paper : Paper
        Validated configuration of the paper.

    Returns
    -------
    iterator of str
        Error lines; none if all names exist.
    """
    for name, experiment in paper.experiments.items():
        yield from _wrong_experiment(f"{key}.experiments.{name}", experiment, paper)
    for name, figure in paper.figures.items():
        for panel in figure.panels:
            yield from _wrong_panel(f"{key}.figures.{name}", panel, paper)
    for name, table in paper.tables.items():
        yield from _wrong_table(f"{key}.tables.{name}", table, paper)
    for name, claim in paper.claims.items():
        yield from _wrong_claim(f"{key}.claims.{name}", claim, paper)


class Use(NamedTuple):
    """Use of the measurements of one variant by a curve, table, claim or tuned parameter.

    Attributes
    ----------
    key_path : str
        Key of the use in the configuration.
    experiment, method, variant : str
        Experiment, algorithm and variant whose measurements are used.
    measures : sequence of (str, str)
        Used measures (quantity, metric).
    selection : mapping
        Selected values of axes.
    last_iteration_only : bool
        True if only the last iteration is used.
    """

    key_path: str
    experiment: str
    method: str
    variant: str
    measures: Sequence[tuple[str, str]]
    selection: Mapping[str, Any]
    last_iteration_only: bool = True


def _wrong_use(use: Use, paper: Paper) -> Iterator[str]:
    """Yield one line per unknown experiment, algorithm, variant, measure or axis of a use."""
    experiment = paper.experiments.get(use.experiment)
    if experiment is None:
        yield expected(use.key_path, use.experiment, paper.experiments)
        return
    yield from unknown_variant(use.key_path, use.method, use.variant, experiment)
    for measure in use.measures:
        yield from _unmeasured(use.key_path, measure, experiment.measures)
        yield from _wrong_quantity(use.key_path, use.method, measure[0])
    if not use.last_iteration_only:
        yield from _not_recorded(use.key_path, use.selection, use.measures, experiment)
    yield from _wrong_where(f"{use.key_path}.where", use.selection, experiment)


def unknown_variant(
    key_path: str, algorithm: str, variant: str | None, experiment: Experiment
) -> Iterator[str]:
    """Yield an error line if an experiment has no such algorithm or variant.

    Parameters
    ----------
    key_path : str
        Key of the reference in the configuration.
    algorithm : str
        Name of the algorithm.
    variant : str or None
        Name of the variant; not checked if None.
    experiment : Experiment
        Experiment to which the reference points.

    Returns
    -------
    iterator of str
        One line, or none if the reference is valid.
    """
    if algorithm not in experiment.algorithms:
        yield expected(key_path, algorithm, experiment.algorithms)
    elif variant is not None and variant not in experiment.algorithms[algorithm]:
        yield expected(key_path, variant, experiment.algorithms[algorithm])


def _wrong_experiment(key_path: str, experiment: Experiment, paper: Paper) -> Iterator[str]:
    for axis in sorted(set(experiment.axes) & RESERVED):
        yield f"{key_path}.axes: {axis!r} is a column of results; choose another name"
    for scale, reduced in experiment.scales.items():
        for axis in sorted(set(reduced.axes) - set(experiment.axes)):
            yield expected(f"{key_path}.scales.{scale}.axes", axis, experiment.axes)
    for prepared in _values_set(PREPARED, experiment):
        if prepared not in PREPARATIONS:
            yield expected(f"{key_path}.problem.prepared", prepared, PREPARATIONS)
    yield from _wrong_paths(key_path, experiment)
    yield from _wrong_measures(key_path, experiment)
    yield from _wrong_iterations(key_path, experiment)
    yield from _wrong_intermediate_measures(key_path, experiment)
    for algorithm, variants in experiment.algorithms.items():
        for tuned in filter(None, (variant.tuned for variant in variants.values())):
            yield from _wrong_tuning(f"{key_path}.tuned", algorithm, tuned, paper)


def _values_set(path: str, experiment: Experiment) -> list[Any]:
    """Return the values of a parameter in axes, variants and scales of an experiment."""
    axes = {name: axis.values for name, axis in experiment.axes.items() if axis.set == path}
    scales = experiment.scales.values()
    grids = [*axes.values(), *(scale.axes.get(name, []) for scale in scales for name in axes)]
    changes = [v.set for variants in experiment.algorithms.values() for v in variants.values()]
    changes += [scale.set for scale in scales]
    return [*chain(*grids), *(change[path] for change in changes if path in change)]


def _wrong_tuning(
    key_path: str, algorithm: str, tuned: TunedParameters, paper: Paper
) -> Iterator[str]:
    use = Use(key_path, tuned.experiment, algorithm, tuned.variant, [tuned.measure], {})
    yield from _wrong_use(use, paper)
    if grid := paper.experiments.get(tuned.experiment):
        for axis in tuned.axes:
            if axis not in grid.axes:
                yield expected(f"{key_path}.axes", axis, grid.axes)
        if tuned.criterion == "mean":
            yield from _unmeasured(f"{key_path}.measure", tuned.measure, grid.averages)


def _wrong_paths(key_path: str, experiment: Experiment) -> Iterator[str]:
    everywhere = {f"axes.{name}.set": [axis.set] for name, axis in experiment.axes.items()}
    everywhere |= {f"scales.{name}.set": r.set for name, r in experiment.scales.items()}
    everywhere["problem"] = [f"problem.{name}" for name in _set_parameters(experiment.problem)]
    everywhere["network"] = [f"network.{name}" for name in _set_parameters(experiment.network)]
    for algorithm, variants in experiment.algorithms.items():
        allowed = _valid_paths(experiment.problem.name, algorithm)
        paths = dict(everywhere)
        for name, variant in variants.items():
            paths[f"algorithms.{algorithm}.{name}.set"] = variant.set
            if variant.tuned:
                paths[f"algorithms.{algorithm}.{name}.tuned.axes"] = variant.tuned.axes.values()
        for location, values in paths.items():
            for path in values:
                yield from _wrong_path(f"{key_path}.{location}", path, allowed)


def _wrong_path(key_path: str, path: str, allowed: Mapping[str, Iterable[str]]) -> Iterator[str]:
    section, dot, name = path.partition(".")
    if section not in allowed:
        yield expected(key_path, path, PARTS)
    elif dot and name not in allowed[section]:
        yield expected(
            key_path,
            path,
            [f"{section}.{parameter}" for parameter in allowed[section]] or [section],
        )
    elif not dot and section in ("budget", "algorithm"):
        yield expected(key_path, path, [f"{section}.{parameter}" for parameter in allowed[section]])


@cache
def _valid_paths(problem: str, algorithm: str) -> dict[str, tuple[str, ...]]:
    """Return the valid second parts of a dotted path, by its first part."""
    graphs = [name for graph in GRAPHS.values() for name in _parameters(graph, 2)]
    mixings = [name for mixing in MIXINGS.values() for name in _parameters(mixing, 1)]
    built = _parameters(problems.load(problem).build, 2)
    return {
        "horizon": (),
        "budget": ("epsilon", "delta", "delta.records_power"),
        "network": tuple(dict.fromkeys(["name", "agents", "weights", *graphs, *mixings])),
        "problem": ("name", *built),
        "algorithm": tuple(
            f.name for f in dataclasses.fields(algorithms.load(algorithm)) if f.init
        ),
    }


def _parameters(function: Callable, skipped: int) -> list[str]:
    """Return the names of the parameters of a function, without the first ``skipped`` ones."""
    return list(inspect.signature(function).parameters)[skipped:]


def _set_parameters(section) -> list[str]:
    return list(section.model_dump(exclude_none=True))


def _wrong_measures(key_path: str, experiment: Experiment) -> Iterator[str]:
    metrics = problems.load(experiment.problem.name).METRICS
    observables = dict.fromkeys(q for name in experiment.algorithms for q in _quantities_of(name))
    for quantity, metric in experiment.measures:
        if quantity not in observables:
            yield expected(f"{key_path}.measures", quantity, observables)
        if metric not in metrics and metric != NUMBER_METRIC and not AGENT_METRIC.fullmatch(metric):
            yield expected(f"{key_path}.measures.{quantity}", metric, [*metrics, NUMBER_METRIC])


def _wrong_iterations(key_path: str, experiment: Experiment) -> Iterator[str]:
    horizons = _horizons(experiment)
    for horizon in horizons:
        if isinstance(horizon, bool) or not isinstance(horizon, int) or horizon < 1:
            yield f"{key_path}.horizon: found {horizon!r}, expected a whole number >= 1"
            return
    if experiment.iterations != "all":
        for t in experiment.iterations:
            if not 1 <= t <= max(horizons):
                expectation = f"a whole number >= 1 and within the horizon, {max(horizons)}"
                yield f"{key_path}.iterations: found {t}, expected {expectation}"


def _wrong_intermediate_measures(key_path: str, experiment: Experiment) -> Iterator[str]:
    restriction = experiment.intermediate_measures
    if restriction is None:
        return
    key_path = f"{key_path}.intermediate_measures"
    for measure in restriction.measures or ():
        yield from _unmeasured(f"{key_path}.measures", measure, experiment.measures)
    for name, value in restriction.where.items():
        if name not in experiment.axes:
            yield expected(f"{key_path}.where", name, experiment.axes)
        elif isinstance(value, list):
            yield f"{key_path}.where.{name}: found {value!r}, expected one value"
        else:
            yield from _wrong_where(f"{key_path}.where", {name: value}, experiment)


def _not_recorded(
    key_path: str,
    selection: Mapping[str, Any],
    measures: Iterable[tuple[str, str]],
    experiment: Experiment,
) -> Iterator[str]:
    """Yield one line per measurement at intermediate iterations that is used but not recorded."""
    restriction = experiment.intermediate_measures
    if restriction is None or not experiment.iterations:
        return
    for measure in measures:
        if restriction.measures and measure not in restriction.measures:
            line = expected(
                key_path, measure_text(measure), map(measure_text, restriction.measures)
            )
            yield f"{line}, or last_iteration_only: true"
    for name, value in restriction.where.items():
        if selection.get(name) != value:
            selected = selection.get(name, "all values")
            line = f"{key_path}.where.{name}: found {selected!r}, expected {value!r}"
            yield f"{line}, or last_iteration_only: true"


def _horizons(experiment: Experiment) -> list[Any]:
    """Return all horizons of an experiment, at all scales."""
    return [experiment.horizon, *_values_set("horizon", experiment)]


def _unmeasured(
    key_path: str, measure: tuple[str, str], recorded: Sequence[tuple[str, str]]
) -> Iterator[str]:
    if measure not in recorded:
        yield expected(key_path, measure_text(measure), map(measure_text, recorded))


def _wrong_panel(key_path: str, panel: FigurePanel, paper: Paper) -> Iterator[str]:
    """Yield one line per unknown name and per invalid goal of a panel and its curves."""
    if panel.experiment and panel.experiment not in paper.experiments:
        yield expected(key_path, panel.experiment, paper.experiments)
    for goal in panel.goals:
        if not math.isfinite(goal) or (panel.log_x and goal <= 0) or panel.goals.count(goal) > 1:
            kind = "positive numbers" if panel.log_x else "numbers"
            yield f"{key_path}.goals: found {goal!r}, expected different {kind}"
    for curve in panel.curves:
        use = Use(
            key_path,
            curve.experiment or panel.experiment,
            curve.method,
            curve.variant,
            [curve.measure, *filter(None, (curve.low, curve.high))],
            {**panel.where, **curve.where},
            curve.last_iteration_only,
        )
        yield from _wrong_use(use, paper)
        if experiment := paper.experiments.get(use.experiment):
            yield from _wrong_x(use, curve.x or panel.x, experiment)
            if curve.by is not None and curve.by not in experiment.axes:
                yield expected(f"{key_path}.by", curve.by, experiment.axes)


def _wrong_x(use: Use, x: str, experiment: Experiment) -> Iterator[str]:
    costs = [quantity for quantity, metric in experiment.measures if metric == NUMBER_METRIC]
    if x in costs and not use.last_iteration_only:
        yield from _not_recorded(use.key_path, use.selection, [(x, NUMBER_METRIC)], experiment)
    allowed = [*experiment.axes, "t", *costs, *sorted(PRIVACY_COLUMNS)]
    if x not in allowed:
        yield expected(f"{use.key_path}.x", x, allowed)


def _wrong_table(key_path: str, table: Table, paper: Paper) -> Iterator[str]:
    measures = [table.measure, *table.extra_columns.values()]
    for block in table.blocks:
        for row in block.methods:
            use = Use(key_path, block.experiment, row.method, row.variant, measures, row.where)
            yield from _wrong_use(use, paper)
        if experiment := paper.experiments.get(block.experiment):
            selection = {table.row_axis: table.row_values}
            yield from _wrong_where(f"{key_path}.row_axis", selection, experiment, rows=True)


def _wrong_quantity(key_path: str, algorithm: str, quantity: str) -> Iterator[str]:
    """Yield a line if an algorithm does not record a quantity; skip unknown algorithms."""
    if algorithm in algorithms.names() and quantity not in _quantities_of(algorithm):
        allowed = expected(key_path, quantity, _quantities_of(algorithm))
        yield f"{allowed}, the quantities of {algorithm}"


_quantities_of = cache(quantities_of)


def _wrong_where(
    key_path: str, selection: Mapping[str, Any], experiment: Experiment, *, rows: bool = False
) -> Iterator[str]:
    """Yield one line per unknown axis in a selection, and per value that an axis never has."""
    for name, value in selection.items():
        if isinstance(value, list) and not rows and not _is_range(value):
            yield f"{key_path}.{name}: found {value!r}, expected a value, or a range [low, high]"
            continue
        if name not in experiment.axes:
            if name not in OWN_COLUMNS:
                yield expected(key_path, name, [*experiment.axes, *sorted(OWN_COLUMNS)])
            elif not isinstance(value, list):
                yield from _wrong_run_or_iteration(f"{key_path}.{name}", name, value, experiment)
            continue
        grid = list(experiment.axes[name].values)
        for reduced in experiment.scales.values():
            grid += reduced.axes.get(name, [])
        # Elsewhere than in tables, a list is a range.
        for axis_value in value if rows else () if isinstance(value, list) else (value,):
            if axis_value not in grid:
                yield expected(f"{key_path}.{name}", axis_value, dict.fromkeys(grid))


def _wrong_run_or_iteration(
    key_path: str, name: str, value: Any, experiment: Experiment
) -> Iterator[str]:
    """Yield a line if no result contains a selected run or iteration."""
    if not arguments.is_whole(value):
        yield f"{key_path}: found {value!r}, expected a whole number"
    elif name == "run" and not 0 <= value < experiment.runs:
        yield f"{key_path}: found {value}, expected one of 0 to {experiment.runs - 1}"
    elif name == "t":
        horizons = [h for h in _horizons(experiment) if arguments.is_whole(h)]
        if experiment.iterations == "all":
            measured, allowed = range(1, max(horizons) + 1), [f"1 to {max(horizons)}"]
        else:
            measured = allowed = sorted({*experiment.iterations, *horizons})
        if value not in measured:
            yield expected(key_path, value, allowed)


def _is_range(value: list) -> bool:
    return len(value) == 2 and all(map(arguments.is_real, value)) and value[0] <= value[1]


def _wrong_claim(key_path: str, claim: Claim, paper: Paper) -> Iterator[str]:
    drawings = {**paper.figures, **paper.tables}
    if claim.figure not in drawings:
        yield expected(f"{key_path}.figure", claim.figure, drawings)
    never_tested = claim.untestable and not claim.variants
    if claim.primary_variant not in claim.variants and not never_tested:
        yield expected(f"{key_path}.primary_variant", claim.primary_variant, claim.variants)
    for test, series in claim.series():
        is_private = test.kind in ("private", "tight")
        columns = PRIVACY_COLUMNS if is_private else ()
        use = Use(
            key_path,
            series.experiment,
            series.method,
            series.variant,
            [series.measure] if series.measure and not is_private else [],
            {name: value for name, value in series.where.items() if name not in columns},
            is_private or series.last_iteration_only,
        )
        yield from _wrong_use(use, paper)
        if experiment := paper.experiments.get(series.experiment):
            allowed = [*experiment.axes, "t"]
            for name in filter(None, (test.x, *test.other_axes)):
                if name not in allowed:
                    yield expected(key_path, name, allowed)
