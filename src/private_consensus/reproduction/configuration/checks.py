"""Check the configuration before any computation: names and settings.

:func:`wrong_references` checks that each name in a paper exists: paths, axes, measures,
experiments. A misspelled path would otherwise have no effect, and results would describe another
setting. :func:`wrong_settings` checks types, ranges and sizes in the settings of a cell. A job
checks the size of prepared data when it loads them.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from private_consensus.common.errors import Refused, arguments, require
from private_consensus.common.fields import measure_text
from private_consensus.core import algorithms, graphs, problems, synthetic
from private_consensus.core.parameters import require_allowed
from private_consensus.core.simulation import MAX_HORIZON, MAX_RUNS
from private_consensus.privacy import Budget

from ..claims.schema import COMPARISONS, PRIVATE, Claim, Series
from ..data import PREPARATIONS
from ..results.numbers import FIXED, KEY, POINT
from .schema import Audits, Curve, Experiment, Panel, Paper, Table, TunedParameters

OWN_COLUMNS = {"t", "run"}
"""Columns of measurements that may be selected in addition to axes."""
PRIVACY_COLUMNS = {
    "steps", "delta", "epsilon_claimed", "epsilon_formula", "epsilon_accountant",
    "epsilon_under_assumption", "accountant", "proven", "relation", "mechanisms",
    "unaccounted_data_use", "verdict",
}  # fmt: skip
RESERVED = {*FIXED, *KEY, *POINT, *PRIVACY_COLUMNS, "member", "setting", "diverged"} - {"delta"}
"""Names that no axis may have, because results have columns of these names."""
NUMBER_METRIC = "value"
"""Metric of a quantity that is a number."""
AGENT_METRIC = re.compile(r"agent_[1-9]\d*_[1-9]\d*")
MAX_AGENTS = 10_000
"""Largest number of agents. A larger one is most likely a typing error."""


# --- Names ----------------------------------------------------------------------------------------


def expected(key_path: str, value: object, allowed: Collection[object]) -> str:
    """Format an error line such as ``figures.x: found 'a', expected one of b, c``."""
    is_range = isinstance(allowed, range)
    listed = f"{allowed[0]} to {allowed[-1]}" if is_range else ", ".join(map(str, allowed))
    return f"{key_path}: found {value!r}, expected one of {listed}"


def _not_among(key_path: str, value: object, allowed: Collection[object]) -> Iterator[str]:
    """Yield a line if a value is not among the allowed values."""
    if value not in allowed:
        yield expected(key_path, value, allowed)


def _unmeasured(
    key_path: str, measure: tuple[str, str], recorded: Sequence[tuple[str, str]]
) -> Iterator[str]:
    if measure not in recorded:
        yield expected(key_path, measure_text(measure), [*map(measure_text, recorded)])


def wrong_references(paper: Paper) -> Iterator[str]:
    """Yield one error line per name in the configuration of a paper that does not exist."""
    for name, experiment in paper.experiments.items():
        yield from _wrong_experiment(f"experiments.{name}", experiment, paper)
    for name, figure in paper.figures.items():
        for panel in figure.panels:
            yield from _wrong_panel(f"figures.{name}", panel, paper)
    for name, table in paper.tables.items():
        yield from _wrong_table(f"tables.{name}", table, paper)
    for name, claim in paper.claims.items():
        yield from _wrong_claim(f"claims.{name}", claim, paper)


def wrong_audits(audits: Audits, papers: Mapping[str, Paper]) -> Iterator[str]:
    """Yield one line per audited algorithm or variant that its experiment does not have."""
    for entry in audits.settings:
        for paper in papers.values():
            if experiment := paper.experiments.get(entry.experiment):
                key_path = f"settings.{entry.experiment}"
                yield from _unknown_variant(key_path, entry.algorithm, entry.variant, experiment)


def _unknown_variant(
    key_path: str, algorithm: str, variant: str | None, experiment: Experiment
) -> Iterator[str]:
    """Yield an error line if an experiment has no such algorithm or variant, unless it is None."""
    if algorithm not in experiment.algorithms:
        yield expected(key_path, algorithm, experiment.algorithms)
    elif variant is not None:
        variants = [f"{algorithm}.{name}" for name in experiment.algorithms[algorithm]]
        yield from _not_among(key_path, f"{algorithm}.{variant}", variants)


def _wrong_experiment(key_path: str, experiment: Experiment, paper: Paper) -> Iterator[str]:
    for axis in sorted(set(experiment.axes) & RESERVED):
        yield f"{key_path}.axes: {axis!r} is a column of results; choose another name"
    for axis in experiment.smoke.axes:
        yield from _not_among(f"{key_path}.smoke.axes", axis, experiment.axes)
    yield from _wrong_measures(key_path, experiment)
    selection = experiment.intermediate_settings
    yield from _wrong_where(f"{key_path}.intermediate_settings", selection, experiment)
    for algorithm, variants in experiment.algorithms.items():
        for tuned in filter(None, (variant.tuned for variant in variants.values())):
            yield from _wrong_tuning(f"{key_path}.tuned", algorithm, tuned, paper)


def _wrong_measures(key_path: str, experiment: Experiment) -> Iterator[str]:
    metrics = problems.class_of(experiment.problem.name).metrics
    loaded = [algorithms.load(name) for name in experiment.algorithms]
    observables = dict.fromkeys(q for algorithm in loaded for q in algorithm.quantities)
    for quantity, metric in experiment.measures:
        yield from _not_among(f"{key_path}.measures", quantity, observables)
        if not AGENT_METRIC.fullmatch(metric):
            key = f"{key_path}.measures.{quantity}"
            yield from _not_among(key, metric, [*metrics, NUMBER_METRIC])


def _wrong_tuning(
    key_path: str, algorithm: str, tuned: TunedParameters, paper: Paper
) -> Iterator[str]:
    runs = Series(experiment=tuned.experiment, method=algorithm, variant=tuned.variant)
    yield from _wrong_series(key_path, runs, [tuned.measure], paper)
    if grid := paper.experiments.get(tuned.experiment):
        for axis in tuned.axes:
            yield from _not_among(f"{key_path}.axes", axis, grid.axes)
        if tuned.criterion == "mean":
            yield from _unmeasured(f"{key_path}.measure", tuned.measure, grid.averages)


def _wrong_series(
    key_path: str, series: Series | Curve, measures: Iterable[tuple[str, str]], paper: Paper
) -> Iterator[str]:
    """Yield one line per unknown experiment, algorithm, variant, measure or axis of a series."""
    experiment = paper.experiments.get(series.experiment)
    if experiment is None:
        yield expected(key_path, series.experiment, paper.experiments)
        return
    yield from _unknown_variant(key_path, series.method, series.variant, experiment)
    for measure in measures:
        yield from _unmeasured(key_path, measure, experiment.measures)
        if series.method in experiment.algorithms:
            recorded = algorithms.load(series.method).quantities
            for line in _not_among(key_path, measure[0], recorded):
                yield f"{line}, the quantities of {series.method}"
    yield from _wrong_where(f"{key_path}.where", series.where, experiment)


def _wrong_where(
    key_path: str, selection: Mapping[str, Any], experiment: Experiment
) -> Iterator[str]:
    """Yield one line per unknown axis in a selection, and per value that an axis never has."""
    for name, value in selection.items():
        if name not in {*experiment.axes, *OWN_COLUMNS}:
            yield expected(key_path, name, [*experiment.axes, *sorted(OWN_COLUMNS)])
        elif isinstance(value, list):
            if len(value) != 2 or not all(map(arguments.is_real, value)) or value[0] > value[1]:
                yield f"{key_path}.{name}: found {value!r}, expected a value or a range [low, high]"
        elif axis := experiment.axes.get(name):
            allowed = [*axis.values, *experiment.smoke.axes.get(name, [])]
            yield from _not_among(f"{key_path}.{name}", value, dict.fromkeys(allowed))


def _not_recorded(key_path: str, series: Series | Curve, experiment: Experiment) -> Iterator[str]:
    """Yield one line per selected axis value whose intermediate iterations are not recorded."""
    for name, value in experiment.intermediate_settings.items():
        selected = series.where.get(name, "all values")
        if selected != value and not series.last_iteration_only:
            expectation = f"expected {value!r}, or last_iteration_only: true"
            yield f"{key_path}.where.{name}: found {selected!r}, {expectation}"


def _wrong_panel(key_path: str, panel: Panel, paper: Paper) -> Iterator[str]:
    """Yield one line per unknown name of a panel and its curves."""
    yield from _not_among(key_path, panel.experiment, paper.experiments)
    for curve in panel.curves:
        measures = [*filter(None, (curve.measure, curve.low, curve.high))]
        yield from _wrong_series(key_path, curve, measures, paper)
        if experiment := paper.experiments.get(curve.experiment):
            costs = [name for name, metric in experiment.measures if metric == NUMBER_METRIC]
            allowed = [*experiment.axes, "t", *costs, *sorted(PRIVACY_COLUMNS)]
            yield from _not_among(f"{key_path}.x", panel.x, allowed)
            if curve.by is not None:
                yield from _not_among(f"{key_path}.by", curve.by, experiment.axes)
            yield from _not_recorded(key_path, curve, experiment)


def _wrong_table(key_path: str, table: Table, paper: Paper) -> Iterator[str]:
    measures = [table.measure, *table.extra_columns.values()]
    for block in table.blocks:
        for row in block.methods:
            runs = Series(experiment=block.experiment, method=row.method, variant=row.variant)
            yield from _wrong_series(key_path, runs, measures, paper)
        if experiment := paper.experiments.get(block.experiment):
            yield from _not_among(f"{key_path}.row_axis", table.row_axis, experiment.axes)


def _wrong_claim(key_path: str, claim: Claim, paper: Paper) -> Iterator[str]:
    yield from _not_among(f"{key_path}.figure", claim.figure, {**paper.figures, **paper.tables})
    for test, series in claim.series():
        compares = test.kind in COMPARISONS
        needs = {"x": test.kind != PRIVATE, "best_at": test.kind == "largest", "against": compares}
        for key, is_needed in needs.items():
            if is_needed and getattr(test, key) is None:
                yield f"{key_path}.test.{key}: missing, as a test of kind {test.kind} needs it"
        if test.against and not compares:
            yield f"{key_path}.test.against: found, but a test of kind {test.kind} has one series"
        measures = [series.measure] if series.measure else []
        if is_private := test.kind == PRIVATE:
            selected = series.where.items()
            where = {name: value for name, value in selected if name not in PRIVACY_COLUMNS}
            series, measures = series.model_copy(update={"where": where}), []
        yield from _wrong_series(key_path, series, measures, paper)
        if experiment := paper.experiments.get(series.experiment):
            for axis in filter(None, (test.x, *test.other_axes)):
                yield from _not_among(key_path, axis, [*experiment.axes, "t"])
            if not is_private:
                yield from _not_recorded(key_path, series, experiment)


# --- Settings -------------------------------------------------------------------------------------


def require_settings(cell: Mapping[str, Any]) -> None:
    """Raise :class:`InvalidInput` with one line per error if the settings of a cell are invalid."""
    arguments.whole("seed", cell["seed"], 0)
    arguments.whole("runs", cell["runs"], 1, MAX_RUNS)
    if lines := [line for _, line in wrong_settings(cell)]:
        raise Refused(lines)


def wrong_settings(cell: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], str]]:
    """Return each error in the settings of a cell, with the first setting that has it."""
    distinct: dict[tuple[str, str], Mapping[str, Any]] = {}
    for setting in cell["settings"]:
        for part in PARTS:
            distinct.setdefault((part, repr(setting[part])), setting)
    errors = []
    for (part, _), setting in distinct.items():
        try:
            PARTS[part](cell["algorithm"], setting[part])
        except (TypeError, ValueError, ArithmeticError, AttributeError, LookupError) as error:
            errors.append((setting, " ".join(str(error).split())))
    return errors


def _require_network(network: Mapping[str, Any]) -> None:
    arguments.whole("network.agents", network["agents"], 1, MAX_AGENTS)
    graphs.require_buildable(**network)


def _require_problem(algorithm: str, problem: Mapping[str, Any]) -> None:
    name, kind = problem["name"], problems.class_of(problem["name"])
    needs = algorithms.load(algorithm).needs
    missing = [quantity for quantity in needs if not kind.offers(quantity)]
    require(not missing, "problem.name", name, f"a problem with {', '.join(missing)}")
    values = {key: value for key, value in problem.items() if key != "name"}
    require_allowed(problems.load(name).build, values)
    if "prepared" in problem:
        known = (synthetic.NAME, *PREPARATIONS)
        arguments.choice("problem.prepared", problem["prepared"], known)


PARTS: dict[str, Callable[[str, Any], object]] = {
    "problem": _require_problem,
    "network": lambda _, network: _require_network(network),
    "budget": lambda _, budget: Budget(**budget),
    "horizon": lambda _, horizon: arguments.whole("horizon", horizon, 1, MAX_HORIZON),
    "algorithm": lambda name, values: algorithms.load(name)(**values),
}
"""Part of a setting to the check of its values."""
