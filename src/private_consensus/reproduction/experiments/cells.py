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

from .data_use import unaccounted_uses
from .sharing import identity

Prepared = Mapping[str, Any]

Distinct = list[list[int]]
"""Settings with the same problem and network, by index in the cell: one list per distinct setting,
with the indices of all settings that are equal to it."""

KEYS = {"t": pl.Int64, "quantity": pl.String, "metric": pl.String}
ROWS = {**KEYS, "run": pl.Int64, "value": pl.Float64}
REUSED = {"identity": pl.String, **ROWS}
"""Columns of measurements that one cell computes for another. ``identity`` is the hash of the
setting (:func:`.sharing.identity`)."""


class CellResults(NamedTuple):
    """Results of one cell.

    Attributes
    ----------
    runs : DataFrame
        Measurements: one row per setting, run, iteration and measure.
    privacy : DataFrame
        One row per setting and neighbouring relation.
    requested : DataFrame
        Measurements that other cells requested, with the columns ``REUSED``.
    """

    runs: pl.DataFrame
    privacy: pl.DataFrame
    requested: pl.DataFrame


def run_cell(
    cell: Mapping[str, Any],
    prepared: Prepared,
    progress: Callable[[int, int], None] = lambda done, total: None,
    tuning_runs: pl.DataFrame | None = None,
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
    tuning_runs : DataFrame, optional
        Measurements of the tuning grids; required if a setting has tuned parameters.
    processes : int, default 1
        Number of worker processes for blocks of runs. The results do not depend on it.

    Returns
    -------
    measurements : DataFrame
        One row per setting, run, iteration and measure.
    privacy : DataFrame
        One row per setting and neighbouring relation.
    """
    return compute_cell(cell, prepared, progress, tuning_runs, processes)[:2]


def compute_cell(
    cell: Mapping[str, Any],
    prepared: Prepared,
    progress: Callable[[int, int], None] = lambda done, total: None,
    tuning_runs: pl.DataFrame | None = None,
    processes: int = 1,
    *,
    requests: Sequence[Mapping[str, Any]] = (),
    reused: pl.DataFrame | None = None,
) -> CellResults:
    """Run all settings of one cell, and exchange measurements with other cells.

    Parameters
    ----------
    cell : mapping
        One algorithm of one experiment, with all its settings.
    prepared : mapping
        Name of each prepared data set to the data set.
    progress : callable, optional
        Called with the number of completed runs and the number of all runs.
    tuning_runs : DataFrame, optional
        Measurements of the tuning grids; required if a setting has tuned parameters.
    processes : int, default 1
        Number of worker processes for blocks of runs. The results do not depend on it.
    requests : sequence of mappings
        Requests of other cells, as :func:`.sharing.requests_to` returns them.
    reused : DataFrame, optional
        Measurements that other cells computed, with the columns ``REUSED``. Their settings are not
        simulated again.

    Returns
    -------
    CellResults
        Measurements and privacy as in :func:`run_cell`, and the requested measurements.
    """
    cell = {**cell, "settings": [with_tuned(spec, tuning_runs) for spec in cell["settings"]]}
    plan = MeasurementPlan(
        tuple(map(tuple, cell["measures"])),
        frozenset(cell["iterations"]),
        tuple(map(tuple, cell.get("averages", ()))),
        tuple(map(tuple, cell.get("intermediate_measures", ()))),
    )
    shared_rows = pl.DataFrame(schema=REUSED) if reused is None else reused
    exchanged = {*shared_rows["identity"], *_names(requests)}
    measured, private, exchanged_rows = [], [], []
    for environments_by_data in _simulated_together(cell):
        group = [environment for same_data in environments_by_data for environment in same_data]
        calibrations = [
            calibration
            for same_data in environments_by_data
            for calibration in _calibrated(cell, same_data, prepared)
        ]
        names = [
            [identity(cell, s) if exchanged else "" for s in _specifications(cell, environment)]
            for environment in group
        ]
        group_rows = _measured(
            calibrations, names, plan, shared_rows, requests,
            divergence=cell.get("divergence", "raise"), progress=progress, processes=processes,
        )  # fmt: skip
        for distinct, calibration, (rows, requested_rows) in zip(
            group, calibrations, group_rows, strict=True
        ):
            expectation = f"quantities that {cell['algorithm']} records"
            require(len(rows) > 0, "measures", cell["measures"], expectation)
            pairs = [
                (index, member) for index, members in enumerate(distinct) for member in members
            ]
            shared = pl.DataFrame(pairs, schema=["setting", "member"], orient="row")
            measured.append(rows.join(shared, on="setting").drop("setting"))
            exchanged_rows.append(requested_rows)
            private += _privacy_of(cell, calibration, pairs)
    labels = _labels(cell)
    order = ["member", "quantity", "metric", "t", "run"]
    runs = labels.join(pl.concat(measured), on="member").sort(order)
    privacy = labels.join(pl.DataFrame(private), on="member", suffix="_of_guarantee").sort(
        "member", maintain_order=True
    )
    return CellResults(runs.drop("member"), privacy.drop("member"), pl.concat(exchanged_rows))


def _calibrated(
    cell: Mapping[str, Any], environments: Sequence[Distinct], prepared: Prepared
) -> list[Calibration]:
    """Calibrate the settings of environments with equal data; build the data only once."""
    environment_settings = [_specifications(cell, environment) for environment in environments]
    if len(environment_settings) == 1:
        return [calibrated_cell(cell, environment_settings[0], prepared)]
    shared = _SharedProblem(environment_settings[0][0], prepared)
    return [
        calibrated_cell(cell, settings, prepared, partial(shared.problem, settings[0]["problem"]))
        for settings in environment_settings
    ]


def _specifications(cell: Mapping[str, Any], environment: Distinct) -> list[Mapping[str, Any]]:
    """Return one specification per distinct setting of an environment.

    Intermediate iterations are measured if any of the equal settings requires it.
    """
    return [
        {
            **equal_settings[0],
            "intermediate": any(setting.get("intermediate", True) for setting in equal_settings),
        }
        for equal_settings in ([cell["settings"][index] for index in same] for same in environment)
    ]


class _SharedProblem:
    """Builder of problems with equal data for several environments.

    The data of some runs are built once. Problems that differ in other parameters only are derived
    from the first problem.
    """

    def __init__(self, specification: Mapping[str, Any], prepared: Prepared):
        self.build = environment_of(specification, prepared).problem
        self.module = problems.load(specification["problem"]["name"])
        self.first = specification["problem"]
        self.built: dict[str, Any] = {}
        self.runs: tuple[int, ...] = ()

    def problem(self, specification: Mapping[str, Any], streams: Streams) -> Any:
        """Return the problem that a specification describes, for the runs of some streams.

        Parameters
        ----------
        specification : mapping
            Name and parameters of the problem.
        streams : Streams
            Random streams of the runs.

        Returns
        -------
        Problem
            The problem of an earlier call if runs and specification are equal.
        """
        if self.runs != streams.runs:
            self.built.clear()  # before building, since the new data need as much memory
            self.built[settings_hash(self.first)] = self.build(streams)
            self.runs = streams.runs
        name = settings_hash(specification)
        if name not in self.built:
            changes = {
                key: value
                for key, value in specification.items()
                if key not in ("name", "prepared")
            }
            base = self.built[settings_hash(self.first)]
            self.built[name] = _build("problem", self.module.rescaled, base, **changes)
        return self.built[name]


def _privacy_of(
    cell: Mapping[str, Any], calibration: Calibration, pairs: Sequence[tuple[int, int]]
) -> list[dict[str, Any]]:
    """Return the privacy rows of an environment.

    ``pairs`` are (index of a distinct setting, index of a setting of the cell that is equal to it).
    """
    rows_by_setting = [
        privacy_rows(calibration, index) for index in range(len(calibration.settings))
    ]
    rows = []
    for index, member in pairs:
        algorithm, spec = calibration.settings[index].algorithm, cell["settings"][member]
        uses = unaccounted_uses(algorithm, calibration.problem, spec)
        columns = {"unaccounted_data_use": "; ".join(uses)}
        rows += [{"member": member, **row, **columns} for row in rows_by_setting[index]]
    return rows


def _measured(
    calibrations: Sequence[Calibration],
    names: Sequence[Sequence[str]],
    plan: MeasurementPlan,
    shared_rows: pl.DataFrame,
    requests: Sequence[Mapping[str, Any]],
    **options: Any,
) -> list[tuple[pl.DataFrame, pl.DataFrame]]:
    """Return two tables per environment: measurements of all settings, and requested measurements.

    Settings whose measurements are not among ``shared_rows`` are simulated.
    """
    shared_names = set(shared_rows["identity"])
    computed_indices = [
        [index for index, name in enumerate(group_names) if name not in shared_names]
        for group_names in names
    ]
    computed = [group for group, indices in enumerate(computed_indices) if indices]
    records = [Records() for _ in calibrations]
    if computed:
        requested_values = [
            [
                _request(request, [names[group][index] for index in computed_indices[group]])
                for request in requests
            ]
            for group in computed
        ]
        remaining = [calibrations[group].only(computed_indices[group]) for group in computed]
        for group, group_records in zip(
            computed,
            simulate_together(remaining, plan=plan, requests=requested_values, **options),
            strict=True,
        ):
            records[group] = group_records
    groups = zip(calibrations, names, computed_indices, records, strict=True)
    return [_with_reused(*group, plan, shared_rows, requests) for group in groups]


def _with_reused(
    calibration: Calibration,
    names: Sequence[str],
    computed_indices: Sequence[int],
    records: Records,
    plan: MeasurementPlan,
    shared_rows: pl.DataFrame,
    requests: Sequence[Mapping[str, Any]],
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return simulated and reused measurements of an environment, and the requested ones."""
    shared_names = set(shared_rows["identity"])
    rows = _rows(records.values, computed_indices)
    exchanged_rows = pl.concat([rows, _rows(records.additional, computed_indices)])
    setting_names = pl.DataFrame({"setting": np.arange(len(names)), "identity": names})
    exchanged_rows = exchanged_rows.join(
        setting_names.filter(pl.col("identity").is_in(_names(requests))), on="setting"
    )
    reused_rows = [
        _reused(shared_rows, name, plan, calibration.settings[index], calibration.runs).select(
            pl.lit(index, pl.Int64).alias("setting"), pl.all()
        )
        for index, name in enumerate(names)
        if name in shared_names
    ]
    return pl.concat([rows, *reused_rows]), exchanged_rows.select(list(REUSED))


def _names(requests: Sequence[Mapping[str, Any]]) -> set[str]:
    return {name for request in requests for name in request["settings"]}


def _request(request: Mapping[str, Any], names: Sequence[str]) -> MeasurementRequest:
    plan = MeasurementPlan(
        tuple(map(tuple, request["measures"])),
        frozenset(request["iterations"]),
        intermediate=tuple(map(tuple, request.get("intermediate_measures", ()))),
    )
    indices = frozenset(index for index, name in enumerate(names) if name in request["settings"])
    return MeasurementRequest(plan, indices, request["runs"])


def _reused(
    shared_rows: pl.DataFrame, name: str, plan: MeasurementPlan, setting: Setting, runs: int
) -> pl.DataFrame:
    """Select the measurements of one setting from those that other cells computed."""
    planned = plan.keys(setting.horizon, setting.intermediate)
    keys = pl.DataFrame(sorted(planned), schema=KEYS, orient="row")
    setting_rows = shared_rows.filter(pl.col("identity") == name, pl.col("run") < runs)
    return setting_rows.join(keys, on=list(KEYS), how="semi").select(list(ROWS))


def _rows(values: list[dict], settings: Sequence[int]) -> pl.DataFrame:
    """Return one row per measurement; ``settings`` maps positions in ``values`` to settings."""
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
        block=1 if deterministic else cell.get("runs_per_batch", BLOCK),
    )


def with_tuned(
    specification: Mapping[str, Any], tuning_runs: pl.DataFrame | None
) -> Mapping[str, Any]:
    """Select the tuned parameters of a setting: those with the smallest mean error on the grid.

    The error is that of the last iteration, or its mean over all iterations (criterion ``mean``).

    Parameters
    ----------
    specification : mapping
        One setting; returned unchanged if it has no tuned parameters.
    tuning_runs : DataFrame or None
        Measurements of the tuning grids.

    Returns
    -------
    mapping
        The setting with its tuned parameters.
    """
    tuned = specification.get("tuned")
    if tuned is None:
        return specification
    require(tuning_runs is not None, "tuned", tuned["experiment"], "an experiment with results")
    metric = tuned["metric"] if tuned["criterion"] == "last" else averaged(tuned["metric"])
    criteria = [pl.col(key) == tuned[key] for key in ("experiment", "quantity", "variant")]
    candidates = tuning_runs.filter(*criteria, pl.col("metric") == metric)
    for axis, value in specification["columns"].items():
        if axis in candidates.columns and axis not in tuned["axes"]:
            candidates = candidates.filter(pl.col(axis) == value)
    expected = f"a point of the tuning grid with results in {tuned['experiment']}"
    require(candidates.height > 0, "tuned", specification["columns"], expected)
    candidates = candidates.filter(pl.col("t") == pl.col("t").max())
    means = candidates.group_by(*tuned["axes"]).agg(pl.col("value").mean())
    best = means.sort("value", *tuned["axes"], nulls_last=True).row(0, named=True)
    tuned_specification = copy.deepcopy(dict(specification))
    for axis, path in tuned["axes"].items():
        section, name = path.split(".")
        tuned_specification[section][name] = best[axis]
    return tuned_specification


def environment_of(specification: Mapping[str, Any], prepared: Prepared) -> Environment:
    """Return the builders of problem and network of a setting.

    Parameters
    ----------
    specification : mapping
        One setting; its keys ``problem`` and ``network`` are used.
    prepared : mapping
        Name of each prepared data set to the data set.

    Returns
    -------
    Environment
        Functions that build problem and network from random streams. A problem that all runs share
        is built once.
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
            built[:] = [_build("problem", module.build, streams, agents, **parameters)]
        return built[0]

    return Environment(problem, lambda s: _build("network", networks.build, s, **network))


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
    built = _build("algorithm", algorithms.load(algorithm), **specification["algorithm"])
    name = f"{specification['variant']} {specification['columns']}"
    intermediate = specification.get("intermediate", True)
    return Setting(built, budget, specification["horizon"], name, intermediate)


EPSILONS = ("epsilon_claimed", "epsilon_formula", "epsilon_accountant", "epsilon_under_assumption")
LOWER = ("epsilon_lower", "lower_bound_method", "bound_gap_reason")


def privacy_rows(calibration: Calibration, index: int) -> list[dict[str, Any]]:
    """Compute the privacy loss of a setting for each neighbouring relation that is stated for it.

    If graphs are random, each epsilon is the largest over the graphs of all runs.

    Parameters
    ----------
    calibration : Calibration
        Calibrated settings.
    index : int
        Index of the setting.

    Returns
    -------
    list of dict
        One row per neighbouring relation: claimed epsilon, epsilon by the paper's formula, epsilon
        of the accountant, lower bound, and the verdict.
    """
    setting, problem = calibration.settings[index], calibration.problem
    cases = calibration.cases(index)
    by_case = [_privacy_rows(case, setting, problem) for case in cases]
    return [_worst(rows) for rows in zip(*by_case, strict=True)]


def worst_case(calibration: Calibration, index: int) -> Case:
    """Return the run of a setting with the largest epsilon of the accountant.

    Parameters
    ----------
    calibration : Calibration
        Calibrated settings.
    index : int
        Index of the setting.

    Returns
    -------
    Case
        Algorithm and network of this run; of the first one if several have the same epsilon.
    """
    setting, problem = calibration.settings[index], calibration.problem

    def epsilon(case: Case) -> float:
        return _privacy_rows(case, setting, problem)[0]["epsilon_accountant"]

    return max(calibration.cases(index), key=epsilon)


def _worst(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the row with the largest epsilon of the accountant, with each epsilon maximal over
    runs.
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
    """Compute the privacy row of a setting on one graph.

    It has the claimed epsilon, the epsilon of the paper's formula, that of the accountant, and a
    lower bound from an attack whose output distribution is known.
    """
    delta, horizon = setting.budget.delta, setting.horizon
    releases = algorithm.releases(problem, network, horizon)
    assumed = algorithm.releases_if_assumed(problem, network, horizon)
    formula = algorithm.epsilon_by_formula(delta, problem, network, horizon)
    guarantee = account(releases, delta)
    epsilon_if_assumed = np.nan if assumed is None else account(assumed, delta).epsilon
    # An attack that violates an assumption of the claim does not contradict the claim.
    lower_bound = algorithm.lower_bound(releases if assumed is None else assumed, delta)
    return {
        "steps": horizon,
        "delta": delta,
        "epsilon_claimed": float(claimed),
        "epsilon_formula": float(formula),
        "epsilon_accountant": float(guarantee.epsilon),
        "accountant": guarantee.method,
        "epsilon_lower": float(lower_bound.epsilon),
        "lower_bound_method": lower_bound.method,
        "bound_gap_reason": lower_bound.because,
        "proven": guarantee.proven,
        "relation": str(algorithm.relation),
        "sampling": "; ".join(str(r.sampling) for r in releases if r.sampling) or "none",
        "epsilon_under_assumption": float(epsilon_if_assumed),
        "notes": "; ".join(dict.fromkeys(r.note for r in [*releases, *(assumed or [])] if r.note)),
    }


def _labels(cell: Mapping[str, Any]) -> pl.DataFrame:
    """Return the columns that identify each setting of a cell; ``member`` is its index."""
    columns = defaultdict(list)
    for member, spec in enumerate(cell["settings"]):
        row = {
            "member": member,
            "experiment": cell["experiment"],
            "algorithm": cell["algorithm"],
            "variant": spec["variant"],
            "interpretation": spec["interpretation"],
            **spec["columns"],
        }
        for key, value in row.items():
            columns[key].append(float(value) if isinstance(value, float) else value)
    return pl.DataFrame(dict(columns), strict=False)


def _simulated_together(cell: Mapping[str, Any]) -> list[list[list[Distinct]]]:
    """Group the environments that are simulated together; each group lists them by data.

    All environments form one group if the algorithm samples for all of them simultaneously.
    Otherwise there is one group per data set, so that only one data set is in memory.
    """
    problems_of_cell = _by_problem(cell["settings"])
    if algorithms.load(cell["algorithm"]).draws_once:
        return [problems_of_cell]
    return [[environments] for environments in problems_of_cell]


def _by_problem(settings: list[Mapping[str, Any]]) -> list[list[Distinct]]:
    """Group the environments with equal data."""
    environments = defaultdict(list)
    for distinct in _by_environment(settings):
        spec = settings[distinct[0][0]]
        rescaled = getattr(problems.load(spec["problem"]["name"]), "RESCALED", ())
        data = {key: value for key, value in spec["problem"].items() if key not in rescaled}
        environments[settings_hash([data, spec["network"]["agents"]])].append(distinct)
    return list(environments.values())


def _by_environment(settings: list[Mapping[str, Any]]) -> list[Distinct]:
    """Group settings by problem and network, and equal settings within each group."""
    groups: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for index, spec in enumerate(settings):
        environment = settings_hash([spec["problem"], spec["network"]])
        identity = settings_hash([spec["budget"], spec["horizon"], spec["algorithm"]])
        groups[environment][identity].append(index)
    return [list(distinct.values()) for distinct in groups.values()]


def _build(key: str, function: Callable, *args, **parameters):
    """Build an object from parameters of the configuration.

    Unknown or missing parameters raise :class:`InvalidInput`, which names ``key``.
    """
    try:
        return function(*args, **parameters)
    except TypeError as error:
        if "unexpected keyword argument" not in str(error) and "missing" not in str(error):
            raise
        raise InvalidInput(key, parameters, str(error).split("()", 1)[-1].strip()) from None
