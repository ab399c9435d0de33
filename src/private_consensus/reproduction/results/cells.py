"""Compute one cell: the measurements of all its runs and the privacy of each of its settings."""

import copy
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from private_consensus.audits.lower_bounds import lower_bound_by_replay
from private_consensus.common.errors import InvalidInput, require
from private_consensus.common.provenance import settings_hash
from private_consensus.core import algorithms, networks, problems
from private_consensus.core.algorithms.base import Algorithm, Analysis
from private_consensus.core.claims import claims_of, epsilon_by_formula
from private_consensus.core.problems import Problem
from private_consensus.core.randomness import Streams
from private_consensus.core.simulation import (
    BLOCK,
    Calibration,
    Case,
    Environment,
    MeasurementPlan,
    Setting,
    averaged,
    calibrate,
    rows_of,
    simulate,
)
from private_consensus.privacy import Budget, account
from private_consensus.privacy.brackets import LowerBound
from private_consensus.privacy.verdicts import verdict_of

from ..data import PREPARATIONS

Prepared = Mapping[str, Any]


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
    cell = dict(cell)
    cell["settings"] = [with_tuned(spec, tuning_runs) for spec in cell["settings"]]
    plan = MeasurementPlan(
        _pairs(cell["measures"]),
        frozenset(cell["iterations"]),
        _pairs(cell.get("averages", ())),
    )
    measured, private = [], []
    for environment in _by_environment(cell["settings"]):
        distinct = [cell["settings"][members[0]] for members in environment]
        calibration = calibrated_cell(cell, distinct, prepared)
        values = simulate(
            calibration, plan=plan, divergence=cell.get("divergence", "raise"), progress=progress,
            processes=processes,
        )  # fmt: skip
        expectation = f"quantities that {cell['algorithm']} records"
        require(any(values), "measures", cell["measures"], expectation)
        pairs = [(index, member) for index, members in enumerate(environment) for member in members]
        equal_settings = pl.DataFrame(pairs, schema=["setting", "member"], orient="row")
        rows = pl.DataFrame(rows_of(values))
        measured.append(rows.join(equal_settings, on="setting").drop("setting"))
        private += _privacy_of(cell, calibration, environment)
    labels = _labels(cell)
    order = ["member", "quantity", "metric", "t", "run"]
    runs = labels.join(pl.concat(measured), on="member").sort(order)
    privacy = labels.join(pl.DataFrame(private), on="member", suffix="_of_guarantee").sort(
        "member", maintain_order=True
    )
    return runs.drop("member"), privacy.drop("member")


def _pairs(measures: Iterable[Sequence[str]]) -> tuple[tuple[str, str], ...]:
    return tuple((quantity, metric) for quantity, metric in measures)


def _privacy_of(
    cell: Mapping[str, Any], calibration: Calibration, environment: Sequence[Sequence[int]]
) -> list[dict[str, Any]]:
    """Return the privacy rows of all settings of an environment (:func:`_by_environment`)."""
    rows = []
    for index, members in enumerate(environment):
        algorithm = calibration.settings[index].algorithm
        privacy = privacy_rows(calibration, index, cell.get("lower_bounds", True))
        for member in members:
            uses = unaccounted_uses(algorithm, calibration.problem, cell["settings"][member])
            columns = {"member": member, "unaccounted_data_use": "; ".join(uses)}
            rows += [{**row, **columns} for row in privacy]
    return rows


def unaccounted_uses(
    algorithm: Algorithm, problem: Problem, specification: Mapping[str, Any]
) -> list[str]:
    """List the uses of private data whose privacy cost is not counted in the budget.

    They are uses by the algorithm, by the problem, and by the setting, without duplicates.
    """
    used = [problem.from_data[name] for name in algorithm.needs if name in problem.from_data]
    uses = [*used, *problem.oracles, *uses_of_setting(specification)]
    return list(dict.fromkeys(uses))


def uses_of_setting(specification: Mapping[str, Any]) -> list[str]:
    """List the uncounted uses of private data by the preparation of the data, by tuning, and by
    the declarations of the experiment.
    """
    name, tuned = specification["problem"].get("prepared"), specification.get("tuned")
    uses: list[str] = []
    if name in PREPARATIONS:
        uses += PREPARATIONS[name].unaccounted_data_use
    elif name is not None:
        uses.append(f"{name}: the preparation of the data is unknown")
    if tuned is not None:
        axes = ", ".join(tuned["axes"])
        uses.append(f"{axes}: chosen by the error of the runs of {tuned['experiment']}")
    return [*uses, *specification.get("unaccounted_data_use", ())]


def calibrated_cell(
    cell: Mapping[str, Any],
    specifications: Sequence[Mapping[str, Any]],
    prepared: Prepared,
) -> Calibration:
    """Calibrate the noise of the settings of a cell that share one problem and one network.

    The simulation, the privacy rows and the audits all use this calibration.
    """
    deterministic = issubclass(algorithms.load(cell["algorithm"]), Analysis)
    return calibrate(
        [setting_of(cell["algorithm"], spec) for spec in specifications],
        environment_of(specifications[0], prepared),
        root=cell["seed"],
        groups=cell["groups"],
        runs=1 if deterministic else cell["runs"],
        block=1 if deterministic else cell.get("runs_per_batch", BLOCK),
    )


def with_tuned(
    specification: Mapping[str, Any], tuning_runs: pl.DataFrame | None
) -> Mapping[str, Any]:
    """Select the tuned parameters of a setting: those with the smallest mean error on the grid.

    The error is that of the last iteration, or its mean over all iterations (criterion ``mean``). A
    setting without tuned parameters is returned unchanged.
    """
    tuned = specification.get("tuned")
    if tuned is None:
        return specification
    if tuning_runs is None:
        raise InvalidInput("tuned", tuned["experiment"], "an experiment with results")
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
    """Return the builders of ``problem`` and ``network`` of a setting from random streams.

    A problem that all runs share is built once.
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
            built[:] = [module.build(streams, agents, **parameters)]
        return built[0]

    return Environment(problem, lambda s: networks.build(s, **network))


def setting_of(algorithm: str, specification: Mapping[str, Any]) -> Setting:
    """Build a setting of the simulation from its plain description.

    It has budget, horizon, parameters of the algorithm, variant and axis values.
    """
    budget = Budget(specification["budget"]["epsilon"], specification["budget"]["delta"])
    built = algorithms.load(algorithm)(**specification["algorithm"])
    name = f"{specification['variant']} {specification['columns'] or ''}".strip()
    intermediate = specification.get("intermediate", True)
    return Setting(built, budget, specification["horizon"], name, intermediate)


EPSILONS = ("epsilon_claimed", "epsilon_formula", "epsilon_accountant", "epsilon_under_assumption")
LOWER = ("epsilon_lower", "lower_bound_method")


def privacy_rows(
    calibration: Calibration, index: int, bounded: bool = True
) -> list[dict[str, Any]]:
    """Compute the privacy loss of a setting for each neighbouring relation that is stated for it.

    A row has claimed epsilon, epsilon by the paper's formula, epsilon of the accountant, lower
    bound (0 unless ``bounded``), and the verdict. If graphs are random, each epsilon is the largest
    over the graphs of all runs.
    """
    setting, problem = calibration.settings[index], calibration.problem
    cases = calibration.cases(index)
    by_case = [[*_privacy_rows(case, setting, problem, bounded)] for case in cases]
    return [_worst(rows) for rows in zip(*by_case, strict=True)]


def worst_case(calibration: Calibration, index: int) -> Case:
    """Return algorithm and network of the first run with the largest epsilon of the accountant."""
    setting, problem = calibration.settings[index], calibration.problem

    def epsilon(case: Case) -> float:
        return next(_privacy_rows(case, setting, problem, False))["epsilon_accountant"]

    return max(calibration.cases(index), key=epsilon)


def _worst(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the row with the largest accountant's epsilon, with each epsilon maximal over runs."""
    worst = max(rows, key=lambda row: row["epsilon_accountant"])
    largest = {key: float(np.max([row[key] for row in rows])) for key in EPSILONS}
    attacked = max(rows, key=lambda row: row["epsilon_lower"])
    lower = {key: attacked[key] for key in LOWER}
    row = {**worst, **largest, **lower, "proven": all(row["proven"] for row in rows)}
    return row | {"verdict": verdict_of(row)}


def _privacy_rows(
    case: Case, setting: Setting, problem, is_bounded: bool
) -> Iterator[dict[str, Any]]:
    """Yield the privacy row of each statement about a setting, on one graph."""
    network, horizon, delta = case.network, setting.horizon, setting.budget.delta
    arguments = problem, network, horizon
    for algorithm, claimed in claims_of(case.algorithm, setting.budget, *arguments):
        releases = algorithm.releases(*arguments)
        assumed = algorithm.releases_if_assumed(*arguments)
        formula = epsilon_by_formula(algorithm, delta, *arguments)
        guarantee = account(releases, delta)
        epsilon_if_assumed = np.nan if assumed is None else account(assumed, delta).epsilon
        lower_bound = LowerBound(0.0, "none")
        if is_bounded:
            # An attack that violates an assumption of the claim does not contradict the claim.
            bounded = problem if assumed is None else algorithm.bounded(problem)
            lower_bound = lower_bound_by_replay(algorithm, bounded, network, horizon, delta)
        notes = dict.fromkeys(r.note for r in [*releases, *(assumed or [])] if r.note)
        yield {
            "steps": horizon,
            "delta": delta,
            "epsilon_claimed": float(claimed),
            "epsilon_formula": float(formula),
            "epsilon_accountant": float(guarantee.epsilon),
            "accountant": guarantee.method,
            "epsilon_lower": float(lower_bound.epsilon),
            "lower_bound_method": lower_bound.method,
            "proven": guarantee.proven,
            "relation": str(algorithm.relation),
            "mechanisms": "; ".join(map(str, releases)) or "none",
            "epsilon_under_assumption": float(epsilon_if_assumed),
            "notes": "; ".join(notes),
        }


def _labels(cell: Mapping[str, Any]) -> pl.DataFrame:
    """Return the columns that identify each setting of a cell; ``member`` is its index."""
    rows = [
        {
            "member": member,
            "experiment": cell["experiment"],
            "algorithm": cell["algorithm"],
            "variant": spec["variant"],
            "interpretation": spec["interpretation"],
            **spec["columns"],
        }
        for member, spec in enumerate(cell["settings"])
    ]
    return pl.DataFrame(rows, infer_schema_length=None, strict=False)


def _by_environment(settings: Iterable[Mapping[str, Any]]) -> list[list[list[int]]]:
    """Group settings by problem and network, and equal settings within each group, by index."""
    groups: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for index, spec in enumerate(settings):
        environment = settings_hash([spec["problem"], spec["network"]])
        parts = [spec[part] for part in ("budget", "horizon", "algorithm")]
        identity = settings_hash([*parts, spec.get("intermediate", True)])
        groups[environment][identity].append(index)
    return [list(distinct.values()) for distinct in groups.values()]
