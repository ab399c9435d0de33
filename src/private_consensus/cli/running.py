"""Run and audit algorithms, and compute the privacy loss to observers."""

from argparse import Namespace

import numpy as np
import polars as pl

from ..common.errors import Diverged, InvalidInput, require
from ..common.provenance import write_text
from ..common.spreadsheets import csv
from ..core.algorithms.base import unstable_steps
from ..core.claims import is_budget_of_one_iteration
from ..privacy.derivations import conclusion
from ..privacy.safe_digits import rounded_down, rounded_up
from ..reproduction.results.cells import run_cell
from .output import progress, show, table
from .settings import SettingParts, plan, readable_errors, setting_lines


@readable_errors
def run(options: Namespace) -> None:
    """Print measurements and privacy losses of some runs of an algorithm."""
    cell, prepared, setting = plan(options)
    ((quantity, metric),) = cell["measures"]
    with progress(f"{options.algorithm}, {options.runs} runs") as update:
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                runs, private = run_cell(cell, prepared, update)
        except Diverged as error:
            text = f"{options.algorithm} diverged: {error}"
            raise InvalidInput("run", text, _stable_steps(setting)) from error
    expected = f"a metric of the problem: {quantity} is an array"
    require(runs["value"].dtype.is_numeric(), "--metric", metric, expected)
    if options.output is not None:
        columns = pl.lit(quantity).alias("quantity"), pl.lit(metric).alias("metric")
        write_text(options.output, csv(runs.select("t", *columns, "run", "value")))
    row = private.row(0, named=True)
    claimed, accounted, formula = (
        row[f"epsilon_{name}"] for name in ("claimed", "accountant", "formula")
    )
    show(conclusion(accounted, row["delta"], claimed, row["proven"]), *setting_lines(setting))
    algorithm, _, _, budget, horizon = setting
    if is_budget_of_one_iteration(algorithm):
        show(
            f"The paper's budget of epsilon {budget.epsilon:g} is for one iteration; "
            f"its claim for {horizon} iterations is {rounded_up(claimed)}."
        )
    error = (pl.col("value").std(ddof=1).fill_null(0.0) / pl.len().sqrt()).alias("error")
    means = runs.group_by("t").agg(pl.col("value").mean(), error).sort("t")
    indices = np.unique(np.geomspace(1, means.height, 12).round().astype(int)) - 1
    measurements = table(
        ["t", metric, "standard error"],
        [(str(t), f"{m:.4g}", f"{e:.2g}") for t, m, e in means[indices].iter_rows()],
        caption=f"mean of {runs['run'].n_unique()} runs",
    )
    attack = f", by a known attack ({row['lower_bound_method']})"
    if row["lower_bound_method"] == "none":
        attack = ": no attack with a known privacy loss"
    losses = table(
        [f"privacy of {horizon} iterations", "epsilon"],
        [
            ("claimed", rounded_up(claimed)),
            ("paper's formula", rounded_up(formula) if np.isfinite(formula) else "none"),
            (f"upper bound, by the accountant ({row['accountant']})", rounded_up(accounted)),
            (f"lower bound{attack}", rounded_down(row["epsilon_lower"])),
        ],
        caption=f"delta = {row['delta']:g}; {row['relation']}; {row['verdict']}",
    )  # fmt: skip
    show(measurements, losses)


def _stable_steps(setting: SettingParts) -> str:
    """Return the largest stable step sizes of gradient descent in words."""
    steps = [
        f"--set algorithm.{name}=VALUE below 2/L = {largest:.4g}, the largest stable step"
        for name, (_, largest) in unstable_steps(*setting[:2]).items()
    ]
    return " and ".join(steps) or "parameters with which the algorithm converges"


@readable_errors
def audit(options: Namespace) -> int:
    """Audit an algorithm; return 1 if its guarantee is contradicted, else 0."""
    from ..audits.auditing import audit as execute_audit

    setting = plan(options)[-1]
    with progress(f"audit of {options.algorithm}, pairs of data sets") as update:
        result = execute_audit(*setting, pairs=options.pairs, seed=options.seed, progress=update)
    show(*setting_lines(setting), result)
    return 1 if result.finding else 0


@readable_errors
def observers(options: Namespace) -> None:
    """Print the privacy loss of an algorithm to each kind of observer."""
    from ..audits.observers import AGENT, KINDS, SECURE, observe

    setting = plan(options)[-1]
    members = dict.fromkeys((AGENT, SECURE), options.coalition)
    with progress(f"observers of {options.algorithm}"):
        results = [observe(*setting, kind=kind, members=members.get(kind)) for kind in KINDS]
    show(*setting_lines(setting), *results)
