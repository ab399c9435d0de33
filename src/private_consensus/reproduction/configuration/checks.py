"""Check the configuration before any computation: names and settings.

The checks of names refuse each path, axis, measure, experiment, algorithm and variant that does not
exist. A misspelled path would otherwise have no effect, and results would describe another setting.
:func:`wrong_settings` checks types, ranges and sizes in the settings of a cell. A job checks the
size of prepared data again when it loads them, because surrogates may be smaller.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from private_consensus.common.errors import InvalidInput, Refused, arguments, require
from private_consensus.common.fields import measure_text
from private_consensus.core import algorithms, graphs, problems, synthetic
from private_consensus.core.parameters import require_allowed
from private_consensus.core.randomness import Streams
from private_consensus.core.simulation import MAX_HORIZON, MAX_RUNS
from private_consensus.privacy import Budget, account

from ..claims.schema import COMPARISONS, PRIVATE, Claim, Series, value_of
from ..data import PREPARATIONS
from ..results.cells import environment_of
from ..results.numbers import FIXED, KEY, POINT
from .schema import Curve, Experiment, Paper

if TYPE_CHECKING:
    from .plan import Plan

Error = tuple[str, str]
"""Place and problem, the two parts of a line."""

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


def _unknown(
    location: str, value: object, allowed: Collection[object], key: str = ""
) -> Iterator[Error]:
    """Yield an error if a value is not among the allowed values."""
    if value not in list(allowed):
        names = ", ".join(map(str, allowed)) or "(none)"
        yield _problem(location, value or None, f"one of {names}", key)


def _problem(location: str, value: object, expected: str, key: str = "") -> Error:
    return location, str(InvalidInput(f"{key and '.'}{key}", value, expected))


def _entries(plan: Plan, section: str) -> Iterator[tuple[str, Any, Paper]]:
    """Yield the location of each entry of a section, the entry and its paper."""
    for paper in plan.papers.values():
        for name, entry in getattr(paper, section).items():
            yield plan.locations[section, name], entry, paper


# --- Experiments ----------------------------------------------------------------------------------


def wrong_experiments(plan: Plan) -> Iterator[Error]:
    """Yield an error per unknown name in the experiments of a plan."""
    for location, experiment, paper in _entries(plan, "experiments"):
        for axis in sorted(RESERVED & experiment.axes.keys()):
            yield _problem(
                f"{location}.axes", axis, "another name than that of a column of results"
            )
        for axis in experiment.smoke.axes:
            yield from _unknown(f"{location}.smoke.axes", axis, experiment.axes)
        metrics = [*problems.class_of(experiment.problem.name).metrics, NUMBER_METRIC]
        loaded = [algorithms.load(name) for name in experiment.algorithms]
        observables = dict.fromkeys(q for algorithm in loaded for q in algorithm.quantities)
        for quantity, metric in experiment.measures:
            yield from _unknown(f"{location}.measures", quantity, observables)
            if not AGENT_METRIC.fullmatch(metric):
                yield from _unknown(f"{location}.measures.{quantity}", metric, metrics)
        selection = experiment.intermediate_settings
        yield from _wrong_where(f"{location}.intermediate_settings", selection, experiment)
        for algorithm, variants in experiment.algorithms.items():
            for tuned in filter(None, (variant.tuned for variant in variants.values())):
                runs = Series(experiment=tuned.experiment, method=algorithm, variant=tuned.variant)
                axes = [("axes", axis, ()) for axis in tuned.axes]
                yield from _wrong_series(f"{location}.tuned", runs, [tuned.measure], paper, axes)
                grid = paper.experiments.get(tuned.experiment)
                if grid and tuned.criterion == "mean":
                    averages = [*map(measure_text, grid.averages)]
                    yield from _unknown(location, measure_text(tuned.measure), averages, "tuned")


# --- Figures, tables and claims -------------------------------------------------------------------


def wrong_references(plan: Plan) -> Iterator[Error]:
    """Yield an error per unknown name in figures, tables and claims."""
    for location, experiment, paper in _entries(plan, "experiments"):
        largest = max(_horizons(experiment))
        if experiment.iterations != "all" and max([0, *experiment.iterations]) > largest:
            expected = f"iterations up to the horizon {largest}"
            yield _problem(f"{location}.iterations", max(experiment.iterations), expected)
        # Experiments share the values of the paper, so that a method may lack some parameters.
        known = {
            path
            for name, shared in paper.experiments.items()
            for algorithm in shared.algorithms
            for path in experiment.paper_values
            if value_of(path, plan.cell(name, algorithm)["settings"][0], algorithm) is not None
        }
        for path in sorted(experiment.paper_values.keys() - known):
            yield _problem(location, path, "a parameter such as problem.records", "paper_values")
    for location, figure, paper in _entries(plan, "figures"):
        for panel in figure.panels:
            yield from _unknown(location, panel.experiment, paper.experiments)
            for curve in panel.curves:
                errors = list(_wrong_curve(location, curve, panel.x, paper))
                yield from errors
                if not errors and curve.by is None and not curve.label:
                    style = f"{curve.method}.{curve.style}"
                    yield from _unknown(f"{location}: style of styles.yaml", style, plan.styles)
    for location, table, paper in _entries(plan, "tables"):
        measures = [table.measure, *table.extra_columns.values()]
        for block in table.blocks:
            for row in block.methods:
                runs = Series(experiment=block.experiment, method=row.method, variant=row.variant)
                axes = [("row_axis", table.row_axis, ())]
                yield from _wrong_series(location, runs, measures, paper, axes)
    for location, claim, paper in _entries(plan, "claims"):
        yield from _wrong_claim(location, claim, paper)


def _horizons(experiment: Experiment) -> set[Any]:
    """Return the numbers of iterations of the settings of an experiment."""
    axes = [axis.values for axis in experiment.axes.values() if axis.set == "horizon"]
    values = [value for grid in axes for value in grid] or [experiment.horizon]
    variants = [v for named in experiment.algorithms.values() for v in named.values()]
    return {*values, *(v.set["horizon"] for v in variants if "horizon" in v.set)}


def _wrong_series(
    location: str,
    series: Series | Curve,
    measures: Iterable[tuple[str, str] | None],
    paper: Paper,
    axes: Iterable[tuple[str, str | None, Iterable[str]]] = (),
) -> Iterator[Error]:
    """Yield an error per unknown name of a series.

    ``axes`` are the keys of axes, each with its value and with valid names that are not axes.
    """
    experiment = paper.experiments.get(series.experiment)
    if experiment is None:
        yield from _unknown(location, series.experiment, paper.experiments)
        return
    name = ".".join(filter(None, (series.method, series.variant)))
    yield from _unknown(location, name, _methods(experiment), "method")
    recorded = [*map(measure_text, experiment.measures)]
    for measure in measures:
        yield from _unknown(location, measure and measure_text(measure), recorded, "measure")
        if measure and series.method in experiment.algorithms:
            quantities = algorithms.load(series.method).quantities
            yield from _unknown(f"{location}: {series.method}", measure[0], quantities)
    for key, axis, others in axes:
        if axis is not None:
            yield from _unknown(location, axis, [*experiment.axes, *others], key)
    yield from _wrong_where(f"{location}.where", series.where, experiment)


def _methods(experiment: Experiment) -> list[str]:
    variants = experiment.algorithms.items()
    return [f"{algorithm}.{variant}" for algorithm, named in variants for variant in named]


def _wrong_where(
    location: str, selection: Mapping[str, Any], experiment: Experiment
) -> Iterator[Error]:
    """Yield an error per unknown axis in a selection, and per value that an axis never has."""
    for name, value in selection.items():
        yield from _unknown(location, name, [*experiment.axes, *sorted(OWN_COLUMNS)])
        allowed = _values(name, experiment)
        if isinstance(value, list):
            is_range = len(value) == 2 and all(map(arguments.is_real, value))
            if not is_range or value[0] > value[1]:
                yield _problem(f"{location}.{name}", value, "a value or a range [low, high]")
            elif name == "t" and not any(value[0] <= t <= value[1] for t in allowed):
                yield _problem(f"{location}.{name}", value, "a range with a recorded iteration")
        elif allowed:
            yield from _unknown(f"{location}.{name}", value, allowed)


def _values(name: str, experiment: Experiment) -> Collection[Any]:
    """Return the values of an axis, or the recorded iterations; empty for an unknown axis."""
    if axis := experiment.axes.get(name):
        return dict.fromkeys([*axis.values, *experiment.smoke.axes.get(name, [])])
    if name != "t":
        return ()
    horizons = _horizons(experiment)
    if experiment.iterations == "all":
        return range(1, max(horizons) + 1)
    return sorted({*experiment.iterations, *horizons})


def _not_recorded(location: str, series: Series | Curve, paper: Paper) -> Iterator[Error]:
    """Yield an error per selected axis value whose intermediate iterations are not recorded."""
    experiment = paper.experiments.get(series.experiment)
    if experiment and not series.last_iteration_only:
        for name, value in experiment.intermediate_settings.items():
            selected = series.where.get(name, "all values")
            if selected != value:
                expected = f"{value!r}, or last_iteration_only: true"
                yield _problem(location, selected, expected, f"where.{name}")


def _wrong_curve(location: str, curve: Curve, x: str, paper: Paper) -> Iterator[Error]:
    measures = [curve.measure, *filter(None, (curve.low, curve.high))]
    experiment = paper.experiments.get(curve.experiment)
    recorded = experiment.measures if experiment else []
    costs = [name for name, metric in recorded if metric == NUMBER_METRIC]
    axes = [("x", x, ("t", *costs, *sorted(PRIVACY_COLUMNS))), ("by", curve.by, ())]
    yield from _wrong_series(location, curve, measures, paper, axes)
    yield from _not_recorded(location, curve, paper)


def _wrong_claim(location: str, claim: Claim, paper: Paper) -> Iterator[Error]:
    targets = {**paper.figures, **paper.tables}
    if claim.figure not in targets:
        yield from _unknown(location, claim.figure, targets, "figure")
        return
    for test, series in claim.series():
        is_private, compares = test.kind == PRIVATE, test.kind in COMPARISONS
        required = {"kind": True, "x": not is_private, "best_at": test.kind == "largest"}
        for key, is_required in {**required, "against": compares}.items():
            is_set = key in test.model_fields_set and getattr(test, key) is not None
            if is_required and not is_set:
                yield _problem(location, None, f"a value for kind {test.kind}", f"test.{key}")
        if test.against and not compares:
            yield _problem(location, "a series", f"none for kind {test.kind}", "test.against")
        axes = [("test", axis, ("t",)) for axis in (test.x, *test.other_axes)]
        if is_private:
            where = {k: v for k, v in series.where.items() if k not in PRIVACY_COLUMNS}
            selected = series.model_copy(update={"where": where})
            yield from _wrong_series(location, selected, [], paper, axes)
        else:
            yield from _wrong_series(location, series, [series.measure], paper, axes)
            yield from _not_recorded(location, series, paper)


def wrong_audits(plan: Plan, file: Path) -> Iterator[Error]:
    """Yield an error per unknown name in the file of audited settings.

    Experiments of papers in the same folder that the plan leaves out have the names of the papers
    at their beginning, and are not checked.
    """
    others = {paper.stem for paper in file.parent.glob("papers/*.yaml")} - plan.papers.keys()
    for number, entry in enumerate(plan.audits.settings):
        location = f"{os.path.relpath(file)}: settings.{number}"
        if experiment := plan.experiments.get(entry.experiment):
            variant = entry.variant or next(iter(experiment.algorithms.get(entry.algorithm, [""])))
            name = f"{entry.algorithm}.{variant}"
            yield from _unknown(location, name, _methods(experiment), "method")
            yield from _wrong_where(f"{location}.where", entry.where, experiment)
        elif not entry.experiment.startswith(tuple(f"{paper}_" for paper in others)):
            yield from _unknown(f"{location}.experiment", entry.experiment, plan.experiments)


# --- Settings -------------------------------------------------------------------------------------


def require_settings(cell: Mapping[str, Any]) -> None:
    """Raise :class:`InvalidInput` with one line per error if the settings of a cell are invalid."""
    arguments.whole("seed", cell["seed"], 0)
    arguments.whole("runs", cell["runs"], 1, MAX_RUNS)
    if lines := [line for _, line in wrong_settings(cell)]:
        raise Refused(lines)


def wrong_settings(cell: Mapping[str, Any]) -> list[tuple[Mapping[str, Any], str]]:
    """Return each error in the settings of a cell, with the first setting that has it."""
    errors = []
    texts = [
        {name: repr(setting[name]) for name in PARTS} | {"is pure": _is_pure(setting)}
        for setting in cell["settings"]
    ]
    for check, names in CHECKS.items():
        if errors and len(names) > 1:
            break
        distinct: dict[tuple[object, ...], Mapping[str, Any]] = {}
        for text, setting in zip(texts, cell["settings"], strict=True):
            distinct.setdefault(tuple(text[name] for name in names), setting)
        for setting in distinct.values():
            try:
                check(cell["algorithm"], setting)
            except (TypeError, ValueError, ArithmeticError, AttributeError, LookupError) as error:
                errors.append((setting, " ".join(str(error).split())))
    return errors


def _require_network(_: str, setting: Mapping[str, Any]) -> None:
    arguments.whole("network.agents", setting["network"]["agents"], 1, MAX_AGENTS)
    graphs.require_buildable(**setting["network"])


def _require_problem(algorithm: str, setting: Mapping[str, Any]) -> None:
    values = dict(setting["problem"])
    name = values.pop("name")
    kind, needs = problems.class_of(name), algorithms.load(algorithm).needs
    missing = [quantity for quantity in needs if not kind.offers(quantity)]
    require(not missing, "problem.name", name, f"a problem with {', '.join(missing)}")
    require_allowed(problems.load(name).build, values)
    if "prepared" in values:
        arguments.choice("problem.prepared", values["prepared"], (synthetic.NAME, *PREPARATIONS))


def _require_records(_: str, setting: Mapping[str, Any]) -> None:
    problem, module = setting["problem"], problems.load(setting["problem"]["name"])
    preparation = PREPARATIONS.get(problem.get("prepared"))
    if preparation and hasattr(module, "require_records"):
        rows = preparation.records
        module.require_records(setting["network"]["agents"], problem["records"], rows)


def _is_pure(setting: Mapping[str, Any]) -> bool:
    budget = setting["budget"]
    return budget.get("delta") == 0 and budget.get("epsilon") != math.inf


def _require_delta(algorithm: str, setting: Mapping[str, Any]) -> None:
    """Refuse a budget with delta 0 of an algorithm whose noise needs a positive delta."""
    built = algorithms.load(algorithm)(**setting["algorithm"])
    if not _is_pure(setting) or not hasattr(built, "noise"):
        return
    problem, agents = setting["problem"], setting["network"]["agents"]
    prepared = {}
    if "prepared" in problem:
        rows = synthetic.rows_of_setting(problem["name"], problem, agents)
        prepared[problem["prepared"]] = rows
    environment, streams = environment_of(setting, prepared), Streams(0, (0,))
    noisy, horizon = replace(built, noise=1.0), min(setting["horizon"], 2)
    try:
        world = environment.problem(streams), environment.network(streams), horizon
        epsilon = account(noisy.releases(*world), 0.0).epsilon
    except InvalidInput:  # of other values, or of synthetic records
        return
    expected = "a number above 0, since the noise of this algorithm is not (epsilon, 0)-DP"
    require(math.isfinite(epsilon), "budget.delta", 0, expected)


PARTS = ("problem", "network", "budget", "horizon", "algorithm")
CHECKS: dict[Callable[[str, Any], object], tuple[str, ...]] = {
    _require_problem: ("problem",),
    _require_network: ("network",),
    lambda _, setting: Budget(**setting["budget"]): ("budget",),
    lambda _, setting: arguments.whole("horizon", setting["horizon"], 1, MAX_HORIZON): ("horizon",),
    lambda name, setting: algorithms.load(name)(**setting["algorithm"]): ("algorithm",),
    _require_records: ("problem", "network"),
    _require_delta: ("algorithm", "is pure"),
}
"""Checks of a setting, with the parts of the setting that they use."""
