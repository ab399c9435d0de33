"""Compute one cell: the measurements of all its runs and the privacy of each of its settings."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from private_consensus.common.errors import InvalidInput, require
from private_consensus.common.provenance import settings_hash
from private_consensus.core import algorithms, networks, problems
from private_consensus.core.randomness import Streams
from private_consensus.core.simulation import (
    BLOCK,
    Calibration,
    Case,
    Environment,
    MeasurementPlan,
    MeasurementRequest,
    Records,
    Setting,
    averaged,
    calibrate,
    simulate_together,
)
from private_consensus.privacy import Budget, account, verdict_of

from .oracles import oracles_of
from .sharing import identity

Prepared = Mapping[str, Any]

Distinct = list[list[int]]
"""Indices of the settings with one problem and network; equal settings form one list."""

KEYS = {"t": pl.Int64, "quantity": pl.String, "metric": pl.String}
ROWS = {**KEYS, "run": pl.Int64, "value": pl.Float64}
LENT = {"identity": pl.String, **ROWS}
"""Columns of what a cell computes for others: settings are called by their identity."""


class Computed(NamedTuple):
    """Results of one cell: measurements, privacy, and measurements that other cells reuse."""

    runs: pl.DataFrame
    privacy: pl.DataFrame
    requested: pl.DataFrame


def run_cell(
    cell: Mapping[str, Any],
    prepared: Prepared,
    progress: Callable[[int, int], None] = lambda done, of: None,
    grids: pl.DataFrame | None = None,
    processes: int = 1,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Run all settings of one cell.

    Parameters
    ----------
    cell : mapping
        One algorithm of one experiment, with all its settings.
    prepared : mapping
        Name of each prepared data set to the data set.
    progress : callable, optional
        Called with the number of completed runs and the number of all runs.
    grids : DataFrame, optional
        Runs of the tuning grids; required if a setting has tuned parameters.
    processes : int, default 1
        Number of worker processes for blocks of runs. The results do not depend on it.

    Returns
    -------
    measurements : DataFrame
        One row per setting, run, iteration and measure.
    privacy : DataFrame
        One row per setting and neighbouring relation.
    """
    return compute_cell(cell, prepared, progress, grids, processes)[:2]


def compute_cell(
    cell: Mapping[str, Any],
    prepared: Prepared,
    progress: Callable[[int, int], None] = lambda done, of: None,
    grids: pl.DataFrame | None = None,
    processes: int = 1,
    *,
    requests: Sequence[Mapping[str, Any]] = (),
    borrowed: pl.DataFrame | None = None,
) -> Computed:
    """Run all settings of one cell, and exchange measurements with other cells.

    Parameters
    ----------
    cell : mapping
        One algorithm of one experiment, with all its settings.
    prepared : mapping
        Name of each prepared data set to the data set.
    progress : callable, optional
        Called with the number of completed runs and the number of all runs.
    grids : DataFrame, optional
        Runs of the tuning grids; required if a setting has tuned parameters.
    processes : int, default 1
        Number of worker processes for blocks of runs. The results do not depend on it.
    requests : sequence of mappings
        Requests of other cells, as :func:`.sharing.requests_to` returns them.
    borrowed : DataFrame, optional
        Measurements that other cells computed, with the columns of ``LENT``. Their settings are not
        computed again.

    Returns
    -------
    Computed
        Measurements and privacy as in :func:`run_cell`, and the requested measurements.
    """
    cell = {**cell, "settings": [with_tuned(spec, grids) for spec in cell["settings"]]}
    watch = MeasurementPlan(
        tuple(map(tuple, cell["measures"])),
        frozenset(cell["iterations"]),
        tuple(map(tuple, cell.get("averages", ()))),
        tuple(map(tuple, cell.get("courses", ()))),
    )
    shared_rows = pl.DataFrame(schema=LENT) if borrowed is None else borrowed
    exchanged = {*shared_rows["identity"], *_names(requests)}
    measured, private, exchanged_rows = [], [], []
    for related_environments in _side_by_side(cell):
        group = [
            environment for environments in related_environments for environment in environments
        ]
        calibrations = [
            calibration
            for environments in related_environments
            for calibration in _calibrated(cell, environments, prepared)
        ]
        names = [
            [identity(cell, s) if exchanged else "" for s in _specifications(cell, environment)]
            for environment in group
        ]
        block_rows = _measured(
            calibrations, names, watch, shared_rows, requests,
            divergence=cell.get("divergence", "raise"), progress=progress, processes=processes,
        )  # fmt: skip
        for distinct, calibration, (rows, requested_rows) in zip(
            group, calibrations, block_rows, strict=True
        ):
            expectation = f"quantities that {cell['algorithm']} records"
            require(len(rows) > 0, "measures", cell["measures"], expectation)
            pairs = [
                (index, member) for index, members in enumerate(distinct) for member in members
            ]
            shared = pl.DataFrame(pairs, schema=["setting", "member"], orient="row")
            measured.append(rows.join(shared, on="setting").drop("setting"))
            exchanged_rows.append(requested_rows)
            private += _private(cell, calibration, pairs)
    labels = _labels(cell)
    order = ["member", "quantity", "metric", "t", "run"]
    runs = labels.join(pl.concat(measured), on="member").sort(order)
    privacy = labels.join(pl.DataFrame(private), on="member").sort("member", maintain_order=True)
    return Computed(runs.drop("member"), privacy.drop("member"), pl.concat(exchanged_rows))


def _calibrated(
    cell: Mapping[str, Any], environments: Sequence[Distinct], prepared: Prepared
) -> list[Calibration]:
    """Calibrate the settings of environments with equal data; build the data only once."""
    specifications = [_specifications(cell, environment) for environment in environments]
    if len(specifications) == 1:
        return [calibrated_cell(cell, specifications[0], prepared)]
    shared = _OneProblem(specifications[0][0], prepared)
    return [
        calibrated_cell(
            cell,
            specifications_here,
            prepared,
            partial(shared.problem, specifications_here[0]["problem"]),
        )
        for specifications_here in specifications
    ]


def _specifications(cell: Mapping[str, Any], environment: Distinct) -> list[Mapping[str, Any]]:
    """Return one specification per distinct setting of an environment.

    Intermediate iterations are measured if any of the equal settings requires it.
    """
    return [
        {
            **equal_settings[0],
            "course": any(setting.get("course", True) for setting in equal_settings),
        }
        for equal_settings in ([cell["settings"][index] for index in same] for same in environment)
    ]


class _OneProblem:
    """Builder of one problem that several environments share for the same runs.

    Problems that differ only in parameters that do not affect the data are derived from it.
    """

    def __init__(self, specification: Mapping[str, Any], prepared: Prepared):
        self.build = environment_of(specification, prepared).problem
        self.module = problems.load(specification["problem"]["name"])
        self.first = specification["problem"]
        self.latest: dict[str, Any] = {}
        self.runs: tuple[int, ...] = ()

    def problem(self, specification: Mapping[str, Any], streams: Streams) -> Any:
        """Build the problem that a specification describes.

        Parameters
        ----------
        specification : mapping
            Specification of the problem.
        streams : Streams
            Random streams of the runs.

        Returns
        -------
        Problem
            The cached problem if runs and specification are equal to those of an earlier call.
        """
        if self.runs != streams.runs:
            self.latest.clear()  # first, since the next takes as much memory
            self.latest[settings_hash(self.first)] = self.build(streams)
            self.runs = streams.runs
        name = settings_hash(specification)
        if name not in self.latest:
            changes = {
                key: value
                for key, value in specification.items()
                if key not in ("name", "prepared")
            }
            base = self.latest[settings_hash(self.first)]
            self.latest[name] = _called("problem", self.module.rescaled, base, **changes)
        return self.latest[name]


def _private(
    cell: Mapping[str, Any], calibration: Calibration, pairs: Sequence[tuple[int, int]]
) -> list[dict[str, Any]]:
    """Return the privacy rows of an environment, for each member of the cell it represents."""
    rows_by_setting = [
        privacy_rows(calibration, index) for index in range(len(calibration.settings))
    ]
    rows = []
    for index, member in pairs:
        algorithm, spec = calibration.settings[index].algorithm, cell["settings"][member]
        uses = oracles_of(algorithm, calibration.problem, spec)
        columns = {"unaccounted_data_use": "; ".join(uses)}
        rows += [{"member": member, **row, **columns} for row in rows_by_setting[index]]
    return rows


def _measured(
    calibrations: Sequence[Calibration],
    names: Sequence[Sequence[str]],
    watch: MeasurementPlan,
    shared_rows: pl.DataFrame,
    requests: Sequence[Mapping[str, Any]],
    **how: Any,
) -> list[tuple[pl.DataFrame, pl.DataFrame]]:
    """Return two tables per environment: rows of all settings, and rows that were requested.

    Settings whose rows are not given are simulated.
    """
    shared_names = set(shared_rows["identity"])
    own_indices = [
        [index for index, name in enumerate(group_names) if name not in shared_names]
        for group_names in names
    ]
    computed = [group for group, indices in enumerate(own_indices) if indices]
    records = [Records() for _ in calibrations]
    if computed:
        requested_values = [
            [
                _request(request, [names[group][index] for index in own_indices[group]])
                for request in requests
            ]
            for group in computed
        ]
        remaining = [calibrations[group].only(own_indices[group]) for group in computed]
        for group, group_records in zip(
            computed,
            simulate_together(remaining, plan=watch, requests=requested_values, **how),
            strict=True,
        ):
            records[group] = group_records
    groups = zip(calibrations, names, own_indices, records, strict=True)
    return [_with_given(*group, watch, shared_rows, requests) for group in groups]


def _with_given(
    calibration: Calibration,
    names: Sequence[str],
    own_indices: Sequence[int],
    records: Records,
    watch: MeasurementPlan,
    shared_rows: pl.DataFrame,
    requests: Sequence[Mapping[str, Any]],
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Combine simulated rows with shared rows, and select the requested rows."""
    shared_names = set(shared_rows["identity"])
    rows = _rows(records.values, own_indices)
    exchanged_rows = pl.concat([rows, _rows(records.additional, own_indices)])
    setting_names = pl.DataFrame({"setting": np.arange(len(names)), "identity": names})
    exchanged_rows = exchanged_rows.join(
        setting_names.filter(pl.col("identity").is_in(_names(requests))), on="setting"
    )
    borrowed = [
        _borrowed(shared_rows, name, watch, calibration.settings[index], calibration.runs).select(
            pl.lit(index, pl.Int64).alias("setting"), pl.all()
        )
        for index, name in enumerate(names)
        if name in shared_names
    ]
    return pl.concat([rows, *borrowed]), exchanged_rows.select(list(LENT))


def _names(requests: Sequence[Mapping[str, Any]]) -> set[str]:
    return {name for request in requests for name in request["settings"]}


def _request(request: Mapping[str, Any], names: Sequence[str]) -> MeasurementRequest:
    watch = MeasurementPlan(
        tuple(map(tuple, request["measures"])),
        frozenset(request["iterations"]),
        intermediate=tuple(map(tuple, request.get("courses", ()))),
    )
    indices = frozenset(index for index, name in enumerate(names) if name in request["settings"])
    return MeasurementRequest(watch, indices, request["runs"])


def _borrowed(
    shared_rows: pl.DataFrame, name: str, watch: MeasurementPlan, setting: Setting, runs: int
) -> pl.DataFrame:
    """Select the measurements that one setting requires from the rows that lenders computed."""
    planned = watch.keys(setting.horizon, setting.intermediate)
    keys = pl.DataFrame(sorted(planned), schema=KEYS, orient="row")
    setting_rows = shared_rows.filter(pl.col("identity") == name, pl.col("run") < runs)
    return setting_rows.join(keys, on=list(KEYS), how="semi").select(list(ROWS))


def _rows(values: list[dict], settings: Sequence[int]) -> pl.DataFrame:
    """Return one row per measurement, with the index of its setting."""
    if not any(values):
        return pl.DataFrame(schema={"setting": pl.Int64, **ROWS})
    columns = Records(values).rows()
    return pl.DataFrame({**columns, "setting": np.asarray(settings)[columns["setting"]]})


def calibrated_cell(
    cell: Mapping[str, Any],
    specifications: Sequence[Mapping[str, Any]],
    prepared: Prepared,
    problem: Callable[[Streams], Any] | None = None,
) -> Calibration:
    """Calibrate the noise of the settings of a cell that share one problem and one network.

    The simulation, the privacy rows and the audits all use this calibration.

    Parameters
    ----------
    cell : mapping
        One algorithm of one experiment.
    specifications : sequence of mappings
        Settings with one problem and one network.
    prepared : mapping
        Name of each prepared data set to the data set.
    problem : callable, optional
        Function that builds the problem from random streams. It replaces the function of the
        environment if several environments share their data.

    Returns
    -------
    Calibration
        Settings, problem and network, with calibrated noise.
    """
    deterministic = algorithms.load(cell["algorithm"]).deterministic
    environment = environment_of(specifications[0], prepared)
    return calibrate(
        [setting_of(cell["algorithm"], spec) for spec in specifications],
        environment if problem is None else environment._replace(problem=problem),
        root=cell["seed"],
        groups=cell["groups"],
        runs=1 if deterministic else cell["runs"],
        block=1 if deterministic else cell.get("block", BLOCK),
    )


def with_tuned(specification: Mapping[str, Any], grids: pl.DataFrame | None) -> Mapping[str, Any]:
    """Insert the tuned parameters with the smallest mean error on the tuning runs into a setting.

    The error is that of the last iteration, or its mean over all iterations (criterion ``mean``).

    Parameters
    ----------
    specification : mapping
        One setting; returned unchanged if it has no tuned parameters.
    grids : DataFrame or None
        Runs of the tuning grids.

    Returns
    -------
    mapping
        The setting with its tuned parameters.
    """
    tuned = specification.get("tuned")
    if tuned is None:
        return specification
    require(grids is not None, "tuned", tuned["experiment"], "an experiment with tuning runs")
    last = tuned["criterion"] == "last"
    metric = tuned["metric"] if last else averaged(tuned["metric"])
    same = [pl.col(key) == tuned[key] for key in ("experiment", "quantity")]
    candidates = grids.filter(*same, pl.col("metric") == metric, pl.col("variant") == tuned["run"])
    for axis, value in specification["columns"].items():
        if axis in candidates.columns and axis not in tuned["over"]:
            candidates = candidates.filter(pl.col(axis) == value)
    require(candidates.height > 0, "tuned", specification["columns"], "a point of the tuning grid")
    candidates = candidates.filter(pl.col("t") == pl.col("t").max())
    means = candidates.group_by(*tuned["over"]).agg(pl.col("value").mean())
    best = means.sort("value", *tuned["over"], nulls_last=True).row(0, named=True)
    tuned_specification = copy.deepcopy(dict(specification))
    for axis, path in tuned["over"].items():
        section, name = path.split(".")
        tuned_specification[section][name] = best[axis]
    return tuned_specification


def environment_of(specification: Mapping[str, Any], prepared: Prepared) -> Environment:
    """Return the object that builds problem and network from the streams of some runs.

    Parameters
    ----------
    specification : mapping
        One setting, of which ``problem`` and ``network`` are read.
    prepared : mapping
        Name of each prepared data set to the data set.

    Returns
    -------
    Environment
        Builders of problem and network. A problem that all runs share is built once.
    """
    parameters = dict(specification["problem"])
    module = problems.load(parameters.pop("name"))
    if "prepared" in parameters:
        parameters["prepared"] = prepared[parameters["prepared"]]
    network = dict(specification["network"])
    agents = network["agents"]
    shared = problems.shared_by_runs(module, parameters)
    built: list = []

    def problem(streams: Streams):
        if not (shared and built):
            built[:] = [_called("problem", module.build, streams, agents, **parameters)]
        return built[0]

    return Environment(problem, lambda s: _called("network", networks.build, s, **network))


def setting_of(algorithm: str, specification: Mapping[str, Any]) -> Setting:
    """Build a setting of the simulation from its plain description.

    Parameters
    ----------
    algorithm : str
        Name of the algorithm.
    specification : mapping
        Budget, horizon, parameters of the algorithm, variant and axis values.

    Returns
    -------
    Setting
        The setting, not yet calibrated.
    """
    budget = Budget(specification["budget"]["epsilon"], specification["budget"]["delta"])
    built = _called("algorithm", algorithms.load(algorithm), **specification["algorithm"])
    name = f"{specification['variant']} {specification['columns']}"
    course = specification.get("course", True)
    return Setting(built, budget, specification["horizon"], name, course)


EPSILONS = ("epsilon_claimed", "epsilon_formula", "epsilon_accountant", "epsilon_under_assumption")
LOWER = ("epsilon_lower", "lower_bound_method", "bound_gap_reason")


def privacy_rows(calibration: Calibration, index: int) -> list[dict[str, Any]]:
    """Compute the epsilon of a setting, once per neighbouring relation that is stated for it.

    Each number is the maximum over runs: if graphs are random, that of the worst graph.

    Parameters
    ----------
    calibration : Calibration
        Calibrated settings.
    index : int
        Index of the setting.

    Returns
    -------
    list of dict
        One row per neighbouring relation.
    """
    setting, problem = calibration.settings[index], calibration.problem
    cases = calibration.cases(index)
    by_case = [_privacy_rows(case, setting, problem) for case in cases]
    return [_worst(rows) for rows in zip(*by_case, strict=True)]


def worst_case(calibration: Calibration, index: int) -> Case:
    """Return a run of a setting with the largest epsilon according to the accountant.

    Parameters
    ----------
    calibration : Calibration
        Calibrated settings.
    index : int
        Index of the setting.

    Returns
    -------
    Case
        The first of these runs if there are several.
    """
    setting, problem = calibration.settings[index], calibration.problem

    def epsilon(case: Case) -> float:
        return _privacy_rows(case, setting, problem)[0]["epsilon_accountant"]

    return max(calibration.cases(index), key=epsilon)


def _worst(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Combine the privacy rows of all runs of a setting.

    The result is the row with the largest accounted epsilon. Each epsilon is its maximum over runs.
    """
    worst = max(rows, key=lambda row: row["epsilon_accountant"])
    largest = {key: float(np.max([row[key] for row in rows])) for key in EPSILONS}
    attacked = max(rows, key=lambda row: row["epsilon_lower"])
    lower = {key: attacked[key] for key in LOWER}
    row = {**worst, **largest, **lower, "proven": all(row["proven"] for row in rows)}
    return row | {"verdict": verdict_of(row)}


def _privacy_rows(case: Case, setting: Setting, problem) -> list[dict[str, Any]]:
    stated = case.algorithm.statements(setting.budget, problem, case.network, setting.horizon)
    return [
        _privacy_row(statement, claimed, setting, problem, case.network)
        for statement, claimed in stated
    ]


def _privacy_row(algorithm, claimed: float, setting: Setting, problem, network) -> dict[str, Any]:
    """Compute four epsilons of a setting on one graph.

    They are the claimed one, that of the paper's formula, that of the accountant, and a lower bound
    from an attack with known output distribution.
    """
    delta, horizon = setting.budget.delta, setting.horizon
    releases = algorithm.releases(problem, network, horizon)
    assumed = algorithm.releases_if_assumed(problem, network, horizon)
    formula = algorithm.epsilon_by_formula(delta, problem, network, horizon)
    guarantee = account(releases, delta)
    granted = np.nan if assumed is None else account(assumed, delta).epsilon
    # an attack that breaks an assumption of the claim says nothing against the claim
    attained = algorithm.lower_bound(releases if assumed is None else assumed, delta)
    return {
        "steps": horizon,
        "delta": delta,
        "epsilon_claimed": float(claimed),
        "epsilon_formula": float(formula),
        "epsilon_accountant": float(guarantee.epsilon),
        "accountant": guarantee.method,
        "epsilon_lower": float(attained.epsilon),
        "lower_bound_method": attained.method,
        "bound_gap_reason": attained.because,
        "proven": guarantee.proven,
        "relation": str(algorithm.relation),
        "sampling": "; ".join(str(r.sampling) for r in releases if r.sampling) or "none",
        "epsilon_under_assumption": float(granted),
        "notes": "; ".join(dict.fromkeys(r.note for r in [*releases, *(assumed or [])] if r.note)),
    }


def _labels(cell: Mapping[str, Any]) -> pl.DataFrame:
    columns = defaultdict(list)
    for member, spec in enumerate(cell["settings"]):
        row = {
            "member": member,
            "experiment": cell["experiment"],
            "algorithm": cell["algorithm"],
            "variant": spec["variant"],
            "interpretation": spec["reading"],
            **spec["columns"],
        }
        for key, value in row.items():
            columns[key].append(float(value) if isinstance(value, float) else value)
    return pl.DataFrame(dict(columns), strict=False)


def _side_by_side(cell: Mapping[str, Any]) -> list[list[list[Distinct]]]:
    """Group the environments that must be simulated together.

    All environments form one group if the algorithm samples for all of them simultaneously.
    Otherwise there is one group per data set, so that the data need not be in memory at the same
    time.
    """
    problems_of_cell = _by_problem(cell["settings"])
    if algorithms.load(cell["algorithm"]).draws_once:
        return [problems_of_cell]
    return [[environments] for environments in problems_of_cell]


def _by_problem(settings: list[Mapping[str, Any]]) -> list[list[Distinct]]:
    """Group the environments that have equal data."""
    environments = defaultdict(list)
    for distinct in _by_environment(settings):
        spec = settings[distinct[0][0]]
        rescaled = getattr(problems.load(spec["problem"]["name"]), "RESCALED", ())
        data = {key: value for key, value in spec["problem"].items() if key not in rescaled}
        environments[settings_hash([data, spec["network"]["agents"]])].append(distinct)
    return list(environments.values())


def _by_environment(settings: list[Mapping[str, Any]]) -> list[Distinct]:
    """Group the settings by problem and network, and within each group the equal settings."""
    groups: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for index, spec in enumerate(settings):
        environment = settings_hash([spec["problem"], spec["network"]])
        identity = settings_hash([spec["budget"], spec["horizon"], spec["algorithm"]])
        groups[environment][identity].append(index)
    return [list(distinct.values()) for distinct in groups.values()]


def _called(key: str, function: Callable, *args, **parameters):
    """Call a function with user-supplied parameters; report invalid names as errors of the user."""
    try:
        return function(*args, **parameters)
    except TypeError as error:
        if "unexpected keyword argument" not in str(error) and "missing" not in str(error):
            raise
        raise InvalidInput(key, parameters, str(error).split("()", 1)[-1].strip()) from None
