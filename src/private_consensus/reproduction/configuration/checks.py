"""Check the configuration before any computation: names and settings.

:func:`wrong_references` checks that each name in a paper exists: paths, axes, measures,
experiments. A misspelled path would otherwise have no effect, and results would describe another
setting. :func:`wrong_settings` checks types, ranges and sizes in the settings of a cell. A job
checks the size of prepared data when it loads them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain
from typing import Any, NamedTuple

from private_consensus.common.errors import InvalidInput, Refused, arguments, require
from private_consensus.common.fields import measure_text
from private_consensus.core import algorithms, networks, problems, synthetic
from private_consensus.core.algorithms.base import Analysis
from private_consensus.core.parameters import require_allowed
from private_consensus.privacy import Budget

from ..claims import Claim
from ..data import PREPARATIONS
from ..results.numbers import FIXED, KEY, POINT
from .schema import Audits, Experiment, Panel, Paper, Table, TunedParameters

OWN_COLUMNS = {"t", "run"}
"""Columns of measurements that may be selected in addition to axes."""
PRIVACY_COLUMNS = {
    "steps", "delta", "epsilon_claimed", "epsilon_formula", "epsilon_accountant",
    "epsilon_under_assumption", "accountant", "proven", "relation", "sampling", "mechanisms",
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


def expected(key_path: str, value: object, allowed: Iterable[object]) -> str:
    """Format an error line such as ``figures.x: found 'a', expected one of b, c``."""
    return f"{key_path}: found {value!r}, expected one of {', '.join(map(str, allowed))}"


def _not_among(key_path: str, value: object, allowed: Collection[object]) -> Iterator[str]:
    """Yield a line if a value is not among the allowed values."""
    if value not in allowed:
        yield expected(key_path, value, allowed)


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


class Use(NamedTuple):
    """Use of the measurements of one variant by a curve, table, claim or tuned parameter.

    Attributes
    ----------
    experiment, method, variant : str
        Experiment, algorithm and variant whose measurements are used.
    measures : sequence of (str, str)
        Used measures (quantity, metric).
    last_iteration_only : bool
        True if only the last iteration is used.
    """

    key_path: str
    experiment: str
    method: str
    variant: str | None
    measures: Sequence[tuple[str, str]]
    selection: Mapping[str, Any]
    last_iteration_only: bool = True


def _wrong_use(use: Use, paper: Paper) -> Iterator[str]:
    """Yield one line per unknown experiment, algorithm, variant, measure or axis of a use."""
    experiment = paper.experiments.get(use.experiment)
    if experiment is None:
        yield expected(use.key_path, use.experiment, paper.experiments)
        return
    yield from _unknown_variant(use.key_path, use.method, use.variant, experiment)
    for measure in use.measures:
        yield from _unmeasured(use.key_path, measure, experiment.measures)
        yield from _wrong_quantity(use.key_path, use.method, measure[0])
    if not use.last_iteration_only:
        yield from _not_recorded(use.key_path, use.selection, use.measures, experiment)
    yield from _wrong_where(f"{use.key_path}.where", use.selection, experiment)


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
    elif variant is not None and variant not in experiment.algorithms[algorithm]:
        yield expected(key_path, variant, experiment.algorithms[algorithm])


def _wrong_experiment(key_path: str, experiment: Experiment, paper: Paper) -> Iterator[str]:
    for axis in sorted(set(experiment.axes) & RESERVED):
        yield f"{key_path}.axes: {axis!r} is a column of results; choose another name"
    for axis in experiment.smoke.axes:
        yield from _not_among(f"{key_path}.smoke.axes", axis, experiment.axes)
    yield from _wrong_measures(key_path, experiment)
    yield from _wrong_iterations(key_path, experiment)
    yield from _wrong_intermediate_measures(key_path, experiment)
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


def _wrong_tuning(
    key_path: str, algorithm: str, tuned: TunedParameters, paper: Paper
) -> Iterator[str]:
    use = Use(key_path, tuned.experiment, algorithm, tuned.variant, [tuned.measure], {})
    yield from _wrong_use(use, paper)
    if grid := paper.experiments.get(tuned.experiment):
        for axis in tuned.axes:
            yield from _not_among(f"{key_path}.axes", axis, grid.axes)
        if tuned.criterion == "mean":
            yield from _unmeasured(f"{key_path}.measure", tuned.measure, grid.averages)


def _wrong_measures(key_path: str, experiment: Experiment) -> Iterator[str]:
    metrics = problems.load(experiment.problem.name).METRICS
    loaded = [algorithms.load(name) for name in experiment.algorithms]
    observables = dict.fromkeys(q for algorithm in loaded for q in algorithm.quantities)
    for quantity, metric in experiment.measures:
        yield from _not_among(f"{key_path}.measures", quantity, observables)
        if metric not in metrics and metric != NUMBER_METRIC and not AGENT_METRIC.fullmatch(metric):
            yield expected(f"{key_path}.measures.{quantity}", metric, [*metrics, NUMBER_METRIC])


def _wrong_iterations(key_path: str, experiment: Experiment) -> Iterator[str]:
    horizon = max(_horizons(experiment))
    for t in experiment.iterations if experiment.iterations != "all" else ():
        if t > horizon:
            yield f"{key_path}.iterations: found {t}, expected at most the horizon, {horizon}"


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


def _unmeasured(
    key_path: str, measure: tuple[str, str], recorded: Sequence[tuple[str, str]]
) -> Iterator[str]:
    if measure not in recorded:
        yield expected(key_path, measure_text(measure), map(measure_text, recorded))


def _wrong_panel(key_path: str, panel: Panel, paper: Paper) -> Iterator[str]:
    """Yield one line per unknown name of a panel and its curves."""
    if panel.experiment and panel.experiment not in paper.experiments:
        yield expected(key_path, panel.experiment, paper.experiments)
    for curve in panel.curves:
        use = Use(
            key_path,
            curve.experiment,
            curve.method,
            curve.variant,
            [*filter(None, (curve.measure, curve.low, curve.high))],
            curve.where,
            curve.last_iteration_only,
        )
        yield from _wrong_use(use, paper)
        if experiment := paper.experiments.get(use.experiment):
            yield from _wrong_x(use, panel.x, experiment)
            if curve.by is not None and curve.by not in experiment.axes:
                yield expected(f"{key_path}.by", curve.by, experiment.axes)


def _wrong_x(use: Use, x: str, experiment: Experiment) -> Iterator[str]:
    costs = [quantity for quantity, metric in experiment.measures if metric == NUMBER_METRIC]
    if x in costs and not use.last_iteration_only:
        yield from _not_recorded(use.key_path, use.selection, [(x, NUMBER_METRIC)], experiment)
    allowed = [*experiment.axes, "t", *costs, *sorted(PRIVACY_COLUMNS)]
    yield from _not_among(f"{use.key_path}.x", x, allowed)


def _wrong_table(key_path: str, table: Table, paper: Paper) -> Iterator[str]:
    measures = [table.measure, *table.extra_columns.values()]
    for block in table.blocks:
        for row in block.methods:
            use = Use(key_path, block.experiment, row.method, row.variant, measures, {})
            yield from _wrong_use(use, paper)
        if experiment := paper.experiments.get(block.experiment):
            selection = {table.row_axis: table.row_values}
            yield from _wrong_where(f"{key_path}.row_axis", selection, experiment, rows=True)


def _wrong_quantity(key_path: str, algorithm: str, quantity: str) -> Iterator[str]:
    """Yield a line if an algorithm does not record a quantity; skip unknown algorithms."""
    if algorithm in algorithms.names():
        recorded = algorithms.load(algorithm).quantities
        if quantity not in recorded:
            yield f"{expected(key_path, quantity, recorded)}, the quantities of {algorithm}"


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
        grid = [*experiment.axes[name].values, *experiment.smoke.axes.get(name, [])]
        # Elsewhere than in tables, a list is a range.
        for axis_value in value if rows else () if isinstance(value, list) else (value,):
            yield from _not_among(f"{key_path}.{name}", axis_value, [*dict.fromkeys(grid)])


def _wrong_run_or_iteration(
    key_path: str, name: str, value: Any, experiment: Experiment
) -> Iterator[str]:
    """Yield a line if no result contains a selected run or iteration."""
    if not arguments.is_whole(value):
        yield f"{key_path}: found {value!r}, expected a whole number"
    elif name == "run" and not 0 <= value < experiment.runs:
        yield f"{key_path}: found {value}, expected one of 0 to {experiment.runs - 1}"
    elif name == "t":
        horizons = _horizons(experiment)
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
    yield from _not_among(f"{key_path}.figure", claim.figure, drawings)
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
                yield from _not_among(key_path, name, allowed)


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
    networks.require_buildable(**network)


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
