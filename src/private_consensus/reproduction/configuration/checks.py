"""Check the configuration before any computation: names and settings.

:func:`wrong_references` checks that each name in a paper exists: paths, axes, measures,
experiments. A misspelled path would otherwise have no effect, and results would describe another
setting. :func:`wrong_settings` checks types, ranges and sizes in the settings of a cell. A job
checks the size of prepared data when it loads them.
"""

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain
from typing import Any, NamedTuple

from private_consensus.common.errors import InvalidInput, Refused, arguments, require
from private_consensus.common.fields import measure_text
from private_consensus.core import algorithms, graphs, problems, synthetic
from private_consensus.core.algorithms.base import Analysis
from private_consensus.core.parameters import require_allowed
from private_consensus.privacy import Budget

from ..claims.schema import PRIVATE, Claim, Series
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
SMALL_DELTA = 1e-5
"""Delta at which an algorithm that refuses 0 is calibrated."""
NUMBER_METRIC = "value"
"""Metric of a quantity that is a number."""
AGENT_METRIC = re.compile(r"agent_[1-9]\d*_[1-9]\d*")
MAX_SIZES = {
    "horizon": 10_000_000,
    "runs": 1_000_000,
    "agents": 10_000,
}
"""Largest allowed sizes. A larger size is most likely a typing error, and its computation
would not end."""


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
    horizon = max(_horizons(experiment))
    for t in experiment.iterations if experiment.iterations != "all" else ():
        if t > horizon:
            yield f"{key_path}.iterations: found {t}, expected at most the horizon, {horizon}"
    if restriction := experiment.intermediate_measures:
        key = f"{key_path}.intermediate_measures"
        for measure in restriction.measures or ():
            yield from _unmeasured(f"{key}.measures", measure, experiment.measures)
        for name in restriction.where:
            yield from _not_among(f"{key}.where", name, experiment.axes)
        yield from _wrong_where(f"{key}.where", restriction.where, experiment)
    for algorithm, variants in experiment.algorithms.items():
        for tuned in filter(None, (variant.tuned for variant in variants.values())):
            yield from _wrong_tuning(f"{key_path}.tuned", algorithm, tuned, paper)


def _horizons(experiment: Experiment) -> list[int]:
    """Return all horizons of an experiment, at all scales; invalid ones are no settings."""
    axes = {name: axis.values for name, axis in experiment.axes.items() if axis.set == "horizon"}
    grids = [*axes.values(), *(experiment.smoke.axes.get(name, []) for name in axes)]
    changes = [v.set for variants in experiment.algorithms.values() for v in variants.values()]
    changes.append(experiment.smoke.set)
    changed = [change["horizon"] for change in changes if "horizon" in change]
    horizons: list[Any] = [experiment.horizon, *chain(*grids), *changed]
    return list(filter(arguments.is_whole, horizons))


def _wrong_measures(key_path: str, experiment: Experiment) -> Iterator[str]:
    metrics = problems.load(experiment.problem.name).METRICS
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
        allowed = _values_of(name, experiment)
        if allowed is None:
            yield expected(key_path, name, [*experiment.axes, *sorted(OWN_COLUMNS)])
        elif not isinstance(value, list):
            yield from _not_among(f"{key_path}.{name}", value, allowed)
        elif len(value) != 2 or not all(map(arguments.is_real, value)) or value[0] > value[1]:
            yield f"{key_path}.{name}: found {value!r}, expected a value, or a range [low, high]"


def _values_of(name: str, experiment: Experiment) -> Collection[Any] | None:
    """Return the values of an axis, of t or of run at all scales; None for another name."""
    if name == "run":
        return range(experiment.runs)
    if name == "t":
        horizons = _horizons(experiment)
        if experiment.iterations == "all":
            return range(1, max(horizons) + 1)
        return sorted({*experiment.iterations, *horizons})
    if name not in experiment.axes:
        return None
    return [*dict.fromkeys([*experiment.axes[name].values, *experiment.smoke.axes.get(name, [])])]


def _not_recorded(
    key_path: str,
    series: Series | Curve,
    measures: Iterable[tuple[str, str]],
    experiment: Experiment,
) -> Iterator[str]:
    """Yield one line per measurement at intermediate iterations that is used but not recorded."""
    restriction = experiment.intermediate_measures
    if series.last_iteration_only or restriction is None or not experiment.iterations:
        return
    remedy = "or last_iteration_only: true"
    for measure in measures:
        for line in _unmeasured(key_path, measure, restriction.measures or [measure]):
            yield f"{line}, {remedy}"
    for name, value in restriction.where.items():
        if series.where.get(name) != value:
            selected = series.where.get(name, "all values")
            yield f"{key_path}.where.{name}: found {selected!r}, expected {value!r}, {remedy}"


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
            measures += [(cost, NUMBER_METRIC) for cost in costs if cost == panel.x]
            if curve.by is not None:
                yield from _not_among(f"{key_path}.by", curve.by, experiment.axes)
            yield from _not_recorded(key_path, curve, measures, experiment)


def _wrong_table(key_path: str, table: Table, paper: Paper) -> Iterator[str]:
    measures = [table.measure, *table.extra_columns.values()]
    for block in table.blocks:
        for row in block.methods:
            runs = Series(experiment=block.experiment, method=row.method, variant=row.variant)
            yield from _wrong_series(key_path, runs, measures, paper)
        if experiment := paper.experiments.get(block.experiment):
            yield from _not_among(f"{key_path}.row_axis", table.row_axis, experiment.axes)
            allowed = _values_of(table.row_axis, experiment) or table.row_values
            for value in table.row_values:
                yield from _not_among(f"{key_path}.row_values", value, allowed)


def _wrong_claim(key_path: str, claim: Claim, paper: Paper) -> Iterator[str]:
    yield from _not_among(f"{key_path}.figure", claim.figure, {**paper.figures, **paper.tables})
    for test, series in claim.series():
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
                yield from _not_recorded(key_path, series, measures, experiment)


# --- Settings -------------------------------------------------------------------------------------


def require_settings(cell: Mapping[str, Any]) -> None:
    """Raise :class:`InvalidInput` with one line per error if the settings of a cell are invalid."""
    arguments.whole("seed", cell["seed"], 0)
    arguments.whole("runs", cell["runs"], 1, MAX_SIZES["runs"])
    if lines := [line for *_, line in wrong_settings(cell)]:
        raise Refused(lines)


class SettingError(NamedTuple):
    """Error in a part of a setting, such as ``budget``; the first setting with this part."""

    setting: Mapping[str, Any]
    part: str
    line: str


def wrong_settings(cell: Mapping[str, Any]) -> list[SettingError]:
    """Return the errors in the settings of a cell, at most one per value of a part."""
    name = cell["algorithm"]
    for checks in (PARTS, PAIRS):
        errors = [
            SettingError(setting, parts[0], message)
            for parts, check in checks.items()
            for setting in _distinct(cell["settings"], parts)
            if (message := _message_of(partial(check, name, *(setting[part] for part in parts))))
        ]
        if errors:
            return errors
    return []


def _distinct(
    settings: Iterable[Mapping[str, Any]], parts: Sequence[str]
) -> list[Mapping[str, Any]]:
    """Return the first of all settings that are equal in some parts."""
    distinct: dict[str, Mapping[str, Any]] = {}
    for setting in settings:
        distinct.setdefault(repr([setting[part] for part in parts]), setting)
    return list(distinct.values())


def _message_of(check: Callable[[], object]) -> str:
    """Return the message of the error that a check raises, or an empty text."""
    try:
        check()
    except InvalidInput as error:
        return str(error)
    except (TypeError, ValueError, ArithmeticError, AttributeError, LookupError) as error:
        return " ".join(str(error).split())
    return ""


def require_horizon(horizon: Any) -> None:
    """Raise :class:`InvalidInput` unless a horizon is a whole number in the allowed range."""
    arguments.whole("horizon", horizon, 1, MAX_SIZES["horizon"])


def _require_network(network: Mapping[str, Any]) -> None:
    arguments.whole("network.agents", network["agents"], 1, MAX_SIZES["agents"])
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


def _require_delta(name: str, budget: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Refuse delta = 0 if the noise of a private algorithm needs a delta above 0.

    The noise is calibrated for the small example of the algorithm, without the data of the setting.
    """
    epsilon, delta = budget["epsilon"], budget["delta"]
    algorithm = algorithms.load(name)
    if delta > 0 or math.isinf(epsilon) or issubclass(algorithm, Analysis):
        return
    example = _example(name)

    def message(delta: float) -> str:
        arguments = Budget(epsilon, delta), example.problem, example.network, example.horizon
        return _message_of(lambda: algorithm(**values).calibrate(*arguments))

    is_needed = message(0.0) and not message(SMALL_DELTA)
    expected = f"a number in (0, 1), as the noise of {name} needs it"
    require(not is_needed, "budget.delta", 0, expected)


@cache
def _example(algorithm: str) -> Any:
    """Return the small example of an algorithm."""
    from private_consensus.audits.examples import examples

    return examples(algorithm)[0]


def _require_records(_: str, problem: Mapping[str, Any], network: Mapping[str, Any]) -> None:
    """Refuse numbers of agents and records for which the data set has too few records."""
    check = getattr(problems.load(problem["name"]), "require_records", None)
    if check and "records" in problem and problem.get("prepared") in PREPARATIONS:
        check(network["agents"], problem["records"], PREPARATIONS[problem["prepared"]].records)


Checks = dict[tuple[str, ...], Callable[..., object]]
PARTS: Checks = {
    ("problem",): _require_problem,
    ("network",): lambda _, network: _require_network(network),
    ("budget",): lambda _, budget: Budget(**budget),
    ("horizon",): lambda _, horizon: require_horizon(horizon),
    ("algorithm",): lambda name, values: algorithms.load(name)(**values),
}
"""Part of a setting to the check of its values."""
PAIRS: Checks = {("budget", "algorithm"): _require_delta, ("problem", "network"): _require_records}
"""Checks of a pair of parts of a setting, whose errors name the first part."""
