"""Run and audit algorithms, and compute the privacy loss to observers."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import polars as pl
from rich.table import Table

from ..common.errors import Diverged, InvalidInput, require
from ..common.provenance import write_text
from ..common.spreadsheets import csv
from ..core.algorithms.base import step_parameters
from ..core.claims import is_budget_of_one_iteration
from ..privacy.derivations import conclusion
from ..privacy.safe_digits import rounded_down, rounded_up
from ..reproduction.results.cells import run_cell
from .output import emit, print_error, progress, table
from .settings import SettingParts, plan, readable_errors, setting_contents, setting_lines


def run(options: Namespace) -> None:
    """Print measurements and privacy losses of some runs of an algorithm."""
    cell, prepared, setting = plan(options)
    ((quantity, metric),) = cell["measures"]
    title = f"{options.algorithm}, {options.runs} runs"
    with progress(title, options.runs) as update, readable_errors(options):
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                runs, private = run_cell(
                    cell, prepared, lambda done, of: update(completed=done, total=of)
                )
        except Diverged as error:
            text = f"{options.algorithm} diverged: {error}"
            raise InvalidInput("run", text, _stable_steps(setting)) from error
    expected = f"a metric of the problem: {quantity} is an array"
    require(runs["value"].dtype.is_numeric(), "--metric", metric, expected)
    error = (pl.col("value").std(ddof=1).fill_null(0.0) / pl.len().sqrt()).alias("error")
    mean_values = runs.group_by("t").agg(pl.col("value").mean(), error).sort("t")
    row = private.row(0, named=True)
    setting = _calibrated(setting)
    names = ("claimed", "formula", "accountant", "lower")
    stated = ("delta", "accountant", "lower_bound_method", "proven", "relation", "verdict")
    contents = {
        "setting": setting_contents(setting),
        "runs": runs["run"].n_unique(),
        "quantity": quantity,
        "metric": metric,
        "course": mean_values.rename({"value": "mean", "error": "standard_error"}).to_dicts(),
        "epsilon": {name: row[f"epsilon_{name}"] for name in names},
        **{name: row[name] for name in stated},
        "diverged": _has_diverged(mean_values["value"].to_numpy()),
    }
    if options.output is not None:
        columns = pl.lit(quantity).alias("quantity"), pl.lit(metric).alias("metric")
        write_text(options.output, csv(runs.select("t", *columns, "run", "value")))
    emit(options, contents, *_run_output(setting, mean_values, contents))
    if contents["diverged"]:
        first, last = mean_values["value"][0], mean_values["value"][-1]
        text = f"{options.algorithm} diverged: {metric} grew from {first:.3g} to {last:.3g}"
        print_error(f"{text}; expected {_stable_steps(setting)}")


def _calibrated(setting: SettingParts) -> SettingParts:
    """Return a setting with calibrated noise, on the graph of the first run."""
    algorithm, problem, network, budget, horizon = setting
    network = network.of_run(0)
    return algorithm.calibrate(budget, problem, network, horizon), problem, network, budget, horizon


def _run_output(
    setting: SettingParts, mean_values: pl.DataFrame, contents: Mapping[str, Any]
) -> list[str | Table]:
    """Return setting, measurements and privacy of a run as lines and tables."""
    metric, epsilon = contents["metric"], contents["epsilon"]
    indices = np.unique(np.geomspace(1, mean_values.height, 12).round().astype(int)) - 1
    measurements = table(
        ["t", metric, "standard error"],
        [(str(t), f"{m:.4g}", f"{e:.2g}") for t, m, e in mean_values[indices].iter_rows()],
        caption=f"mean of {contents['runs']} runs",
    )
    algorithm, _, _, budget, horizon = setting
    method, formula, delta = contents["lower_bound_method"], epsilon["formula"], contents["delta"]
    losses = table(
        [f"privacy of {horizon} iterations", "epsilon"],
        [
            ("claimed", rounded_up(epsilon["claimed"])),
            ("paper's formula", "none" if np.isnan(formula) else rounded_up(formula)),
            (f"upper bound, by the accountant ({contents['accountant']})",
             rounded_up(epsilon["accountant"])),
            (f"lower bound, by a known attack ({method})", rounded_down(epsilon["lower"])),
        ],
        caption=f"delta = {delta:g}; {contents['relation']}; {contents['verdict']}",
    )  # fmt: skip
    lines = setting_lines(setting)
    if is_budget_of_one_iteration(algorithm):
        total = rounded_up(epsilon["claimed"])
        lines.append(
            f"The paper's budget of epsilon {budget.epsilon:g} is for one iteration; "
            f"its claim for {horizon} iterations is {total}."
        )
    first = conclusion(epsilon["accountant"], delta, epsilon["claimed"], contents["proven"])
    return [first, *lines, measurements, losses]


GROWTH = 1e6
"""Growth of a metric, relative to its first value, from which a run has diverged."""


def _has_diverged(values: np.ndarray) -> bool:
    """Return True if the last value of a metric is not finite, or much larger than the first."""
    last, first = abs(float(values[-1])), abs(float(values[0]))
    return not np.isfinite(last) or last > GROWTH * max(first, 1.0)


def _stable_steps(setting: SettingParts) -> str:
    """Return the largest stable step sizes of gradient descent in words."""
    algorithm, problem, *_ = setting
    names, smoothness = step_parameters(algorithm), getattr(problem, "smoothness", None)
    if not names or smoothness is None:
        return "parameters with which the algorithm converges"
    largest = 2.0 / float(np.max(smoothness))
    steps = " and ".join(f"--set algorithm.{name}=VALUE" for name in names)
    return f"{steps} below 2/L = {largest:.4g}, the largest stable step of gradient descent"


def audit(options: Namespace) -> int:
    """Audit an algorithm; return 1 if its guarantee is contradicted, else 0."""
    from ..audits.auditing import audit as execute_audit

    options.runs = 1
    setting = plan(options)[-1]
    with (
        progress(f"audit of {options.algorithm}, pairs of data sets", options.pairs) as update,
        readable_errors(options),
    ):
        result = execute_audit(
            *setting, pairs=options.pairs, seed=options.seed,
            progress=lambda done, of: update(completed=done, total=of),
        )  # fmt: skip
        setting = _calibrated(setting)
    contents = {"setting": setting_contents(setting), **asdict(result)}
    emit(options, contents, *setting_lines(setting), str(result))
    return 1 if result.finding else 0


def observers(options: Namespace) -> None:
    """Print the privacy loss of an algorithm to each kind of observer."""
    from ..audits.observers import AGENT, KINDS, SECURE, observe

    options.runs = 1
    setting = plan(options)[-1]
    with progress(f"observers of {options.algorithm}"), readable_errors(options):
        members = dict.fromkeys((AGENT, SECURE), options.coalition)
        results = [observe(*setting, kind=kind, members=members.get(kind)) for kind in KINDS]
        setting = _calibrated(setting)
    contents = {"setting": setting_contents(setting), "observers": [asdict(r) for r in results]}
    rows = [
        (
            result.kind, "" if row["distance"] is None else str(row["distance"]),
            rounded_up(row["largest"]), rounded_up(row["median"]), row["rule"],
        )
        for result in results for row in result.summary()
    ]  # fmt: skip
    first = results[0]
    caption = f"delta = {first.delta:g}; the accountant's epsilon is {rounded_up(first.accounted)}"
    names = ["observer", "distance", "largest epsilon", "median", "guarantee"]
    emit(options, contents, *setting_lines(setting), table(names, rows, caption))
