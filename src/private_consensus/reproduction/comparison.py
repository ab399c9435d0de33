"""Compare methods at equal true privacy: transferred parameters, baselines and pairwise wins.

A cell is a problem, a number of agents, a number of records per agent and an epsilon. All losses of
a cell are those of the same data and runs, so that methods are compared in pairs.
"""

import math
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import t as student

from private_consensus.common.errors import require
from private_consensus.core import algorithms
from private_consensus.core.algorithms.base import Algorithm
from private_consensus.core.problems.logistic_regression import LogisticRegression
from private_consensus.core.randomness import Streams
from private_consensus.privacy.conversions import gaussian_mu, zcdp_epsilon

from .results.cells import Prepared, environment_of

SETTING = ["experiment", "agents", "records"]
CELL = [*SETTING, "epsilon"]
"""Columns that identify a cell."""
PUBLIC = (50, 200, 1000)
"""Numbers of public records of the baselines."""
FREQUENCIES = 200
"""Number of public records from which the baseline of class frequencies is computed."""
RIDGES = (0.001, 0.01, 0.1)
"""Ridges of the minimiser on public records, of which the best on other data sets is used."""
RANGE = (1e-12, 1e6)
"""Losses outside this range, and infinite losses of diverged runs, are replaced by its ends."""
LEVEL = 0.05
"""Error level at which the paired runs of a cell decide which of two methods is better."""
STOPPING = 0.02
"""Parameter gamma of the logarithmic distribution of the number K of runs of tuning."""
EXPECTED_RUNS = (1 / STOPPING - 1) / math.log(1 / STOPPING)
"""Mean of K."""
NON_PRIVATE = "admm"
"""The method without noise, whose guarantee is not checked."""
KINDS = ("private", "private with shared secrets", "not private")
"""Kinds of methods. Shared secrets protect against outsiders; agents who know them learn more."""


def kind_of(method: str) -> str:
    """Return the kind of an algorithm or baseline."""
    if method not in algorithms.names() or method == NON_PRIVATE:
        return KINDS[2]
    return KINDS[algorithms.load(method).observer != Algorithm.observer]


def require_private(privacy: pl.DataFrame) -> None:
    """Refuse private methods whose true epsilon exceeds the budget, is unproven, or has another
    neighbouring relation.
    """
    within = pl.col("epsilon_accountant") <= pl.col("epsilon") * (1 + 1e-6)
    same = pl.col("relation") == "replace one record"
    worse = privacy.filter(pl.col("algorithm") != NON_PRIVATE, ~(within & same & pl.col("proven")))
    names = ", ".join(worse["algorithm"].unique().sort())
    require(worse.is_empty(), "comparison", names, "proven privacy within the budget")


def baselines(cell: Mapping[str, Any], prepared: Prepared) -> Iterator[dict[str, Any]]:
    """Yield the losses of the baselines of an experiment, one row per run.

    ``cell`` is a cell of the experiment; all cells of an experiment have the same data.
    """
    settings = {setting["columns"]["records"]: setting for setting in cell["settings"]}
    epsilons = sorted({setting["columns"]["epsilon"] for setting in cell["settings"]})
    for setting in settings.values():
        for (method, variant), losses in _baseline_losses(cell, setting, prepared).items():
            for epsilon, (run, loss) in product(epsilons, enumerate(losses)):
                yield {
                    "experiment": cell["experiment"], **setting["columns"], "epsilon": epsilon,
                    "algorithm": method, "variant": variant, "metric": cell["measures"][0][1],
                    "run": run, "value": loss,
                }  # fmt: skip


def _baseline_losses(
    cell: Mapping[str, Any], setting: Mapping[str, Any], prepared: Prepared
) -> dict[tuple[str, str], np.ndarray]:
    """Return the losses of all runs by baseline and ridge."""
    streams = Streams(cell["seed"], tuple(range(cell["runs"])), cell["groups"])
    problem: Any = environment_of(setting, prepared).problem(streams)

    def losses(models: np.ndarray) -> np.ndarray:
        return problem.measure(cell["measures"][0][1], models[None, :, None, :])[0]

    origin = losses(np.zeros((cell["runs"], problem.dim)))
    rows = {("no data", ""): origin}
    if not isinstance(problem, LogisticRegression):
        independent = Streams(cell["seed"], streams.runs, {**cell["groups"], "data": "public"})
        for count in PUBLIC:
            changed = {**setting, "problem": {**setting["problem"], "records": count}}
            public: Any = environment_of(changed, prepared).problem(independent)
            rows[f"{count} public records", ""] = losses(public.means[:, 0])
        return rows
    share = (problem.labels > 0).mean((-1, -2))
    # With one record more per class, the frequency is never 0.
    public_share = ((problem.test_labels[:, :FREQUENCIES] > 0).sum(-1) + 1) / (FREQUENCIES + 2)
    entropy = -share * np.log(public_share) - (1 - share) * np.log1p(-public_share)
    rows["class frequencies", ""] = origin + entropy - math.log(2.0)
    for count in PUBLIC:
        features = problem.test_features[:, None, :count]
        labels = problem.test_labels[:, None, :count]
        for ridge in RIDGES:
            public = LogisticRegression(
                features, labels, problem.test_features, problem.test_labels, 1 / count, ridge
            )
            rows[f"{count} public records", f"ridge {ridge:g}"] = losses(public.optimum)
    return rows


def compared(runs: pl.DataFrame, public: pl.DataFrame, titles: Mapping[str, str]) -> pl.DataFrame:
    """Return the losses of methods and baselines, with titles of methods and problems.

    ``titles`` are those of algorithms and experiments. ``size`` is the position among the numbers
    of records, ``point`` that among the parameters of the method.
    """
    rows = pl.concat([runs.select(public.columns), public], how="vertical_relaxed")
    kinds = {name: kind_of(name) for name in rows["algorithm"].unique()}
    # Points are in the order of the configuration.
    points = rows.select("metric", "algorithm", "variant").unique(maintain_order=True)
    points = points.with_columns(point=pl.int_range(pl.len()).over("metric", "algorithm"))
    return rows.join(points, on=["metric", "algorithm", "variant"]).with_columns(
        kind=pl.col("algorithm").replace_strict(kinds),
        method=pl.col("algorithm").replace(titles),
        problem=pl.col("experiment").replace(titles),
        size=pl.col("records").rank("dense").over("experiment"),
        value=pl.col("value").fill_nan(math.inf).clip(*RANGE),
    )


def transferred(runs: pl.DataFrame) -> pl.DataFrame:
    """Return the losses of the parameters that are best on the other data sets.

    These are the parameters with the lowest mean logarithm of the loss over the other problems with
    the same metric, number of agents, epsilon, and position among the numbers of records.
    """
    group = ["metric", "agents", "epsilon", "size", "algorithm", "variant"]
    score = pl.col("value").log().sum()
    transfer = score.over(group) - score.over("experiment", *group)
    scored = runs.with_columns(transfer=transfer)
    best = scored.sort("transfer", "point").group_by(*CELL, "algorithm").first()
    return runs.join(best.select(*CELL, "algorithm", "variant"), on=[*CELL, "algorithm", "variant"])


def cell_means(runs: pl.DataFrame) -> pl.DataFrame:
    """Return the mean loss of each method per cell, with transferred parameters.

    Columns are ``loss``, its ratio to the lowest loss of methods without shared secrets in the
    cell, the loss ``best`` of the best parameters in hindsight, and ``edge``: True if the selected
    parameters are the first or the last of several.
    """
    by = [*CELL, "metric", "problem", "algorithm", "method", "kind"]
    hindsight = runs.group_by(*by, "variant").agg(pl.col("value").mean())
    hindsight = hindsight.group_by(*CELL, "algorithm").agg(best=pl.col("value").min())
    points = runs.group_by("metric", "algorithm").agg(last=pl.col("point").max())
    means = transferred(runs).group_by(*by, "variant", "point").agg(loss=pl.col("value").mean())
    means = means.join(hindsight, on=[*CELL, "algorithm"]).join(points, on=["metric", "algorithm"])
    lowest = pl.col("loss").filter(kind=KINDS[0]).min().over(CELL)
    ends = (pl.col("point") == 0) | (pl.col("point") == pl.col("last"))
    edge = ends & (pl.col("last") > 0)
    return (
        means.with_columns(ratio=pl.col("loss") / lowest, edge=edge)
        .drop("point", "last")
        .sort(*CELL, "loss")
    )


def tuning_epsilon(epsilon: Any, delta: Any) -> Any:
    r"""Return the total epsilon at ``delta`` of the best of K Gaussian runs with ``epsilon``.

    A run has the Renyi divergence :math:`\lambda\rho` of each order :math:`\lambda`. That of the
    best of K runs is at most :math:`\lambda\rho + (\hat\lambda - 1)\rho + \ln(1/\gamma)/\hat\lambda
    + \ln(E[K])/(\lambda - 1)` for each :math:`\hat\lambda \ge 1` (Papernot and Steinke 2022,
    Theorem 2 with :math:`\eta = 0`). The last term divides delta by E[K].
    """
    rho = np.asarray(gaussian_mu(epsilon, delta)) ** 2 / 2
    order = np.maximum(np.sqrt(math.log(1 / STOPPING) / rho), 1.0)
    constant = (order - 1) * rho + math.log(1 / STOPPING) / order
    return constant + zcdp_epsilon(rho, delta / EXPECTED_RUNS)


def at_least(lower: pl.Expr) -> pl.Expr:
    """Return the chance that K runs have at least a loss, which a run falls below with ``lower``.

    It is the mean of the power K of ``1 - lower``.
    """
    return (STOPPING + (1 - STOPPING) * lower).log() / math.log(STOPPING)


def with_tuning(means: pl.DataFrame, runs: pl.DataFrame, privacy: pl.DataFrame) -> pl.DataFrame:
    """Add the loss of tuning by random stopping, and its total epsilon, to the means of cells.

    K runs have the epsilon of the cell, and parameters drawn uniformly from the grid. ``tuned`` is
    the loss of the best of them and the origin: its geometric mean over K and the parameters. The
    exact loss on private records selects the model. A private selection has a higher loss or
    total epsilon. Methods with one point, or without Gaussian privacy, have no value.
    """
    cell = [*CELL, "algorithm"]
    gaussian = privacy.filter((pl.col("accountant") == "gaussian").all().over(cell))
    total = tuning_epsilon(gaussian["epsilon"], gaussian["delta"])
    totals = gaussian.select(*cell, total=total).unique()
    origin = runs.filter(algorithm="no data").select(*CELL, "run", origin="value")
    loss = pl.min_horizontal("value", "origin").log()
    rank = loss.rank("ordinal")
    chance = at_least((rank - 1) / pl.len()) - at_least(rank / pl.len())
    tuned = (
        runs.join(origin, on=[*CELL, "run"], maintain_order="left")
        .group_by(*cell, "run", maintain_order=True)
        .agg(tuned=(chance * loss).sum().exp(), points=pl.len())
        .filter(pl.col("points") > 1)
        .group_by(cell, maintain_order=True)
        .agg(pl.col("tuned").mean())
        .join(totals, on=cell)
    )
    return means.join(tuned, on=cell, how="left", maintain_order="left")


def ranking(means: pl.DataFrame) -> pl.DataFrame:
    """Return one row per metric and method, best first.

    ``ratio`` is the geometric mean over cells of the ratio of :func:`cell_means`, ``hindsight``
    that of the loss to the loss of the best parameters in hindsight.
    """
    geometric = {"ratio": pl.col("ratio"), "hindsight": pl.col("loss") / pl.col("best")}
    return (
        means.group_by("metric", "algorithm", "method", "kind")
        .agg(
            cells=pl.len(),
            edge=pl.col("edge").sum(),
            **{name: column.log().mean().exp() for name, column in geometric.items()},
        )
        .sort("metric", "ratio")
    )


def wins(losses: pl.DataFrame) -> pl.DataFrame:
    """Compare all pairs of methods in the cells that they share.

    ``share`` is the fraction of cells in which the row has the lower mean loss, ``decided`` the
    number of cells in which the paired runs decide between row and column.
    """
    rows = losses.select("metric", *CELL, "run", row="method", loss="value")
    columns = rows.rename({"row": "column", "loss": "loss of column"})
    pairs = rows.join(columns, on=["metric", *CELL, "run"])
    difference = pl.col("loss") - pl.col("loss of column")
    cells = (
        pairs.filter(pl.col("row") != pl.col("column"))
        .group_by("metric", "row", "column", *CELL)
        .agg(mean=difference.mean(), error=difference.std() / pl.len().sqrt(), runs=pl.len())
    )
    quantile = pl.Series(student.ppf(1 - LEVEL / 2, cells["runs"].to_numpy() - 1))
    return (
        cells.with_columns(decided=pl.col("mean").abs() > quantile * pl.col("error"))
        .group_by("metric", "row", "column")
        .agg(cells=pl.len(), share=(pl.col("mean") < 0).mean(), decided=pl.col("decided").sum())
        .sort("metric", "row", "column")
    )


def thresholds(means: pl.DataFrame) -> pl.DataFrame:
    """Return the smallest epsilon at which the best private method beats public records.

    There is one row per problem, number of agents and of records, kind of method, and baseline.
    Epsilon is null if no method of this kind beats the baseline.
    """
    private = means.filter(pl.col("kind") != KINDS[2])
    best = private.group_by(*CELL, "kind").agg(lowest=pl.col("loss").min())
    public = means.filter(pl.col("algorithm").str.ends_with(" public records")).drop("kind")
    pairs = public.join(best, on=CELL)
    first = pl.col("epsilon").filter(pl.col("lowest") < pl.col("loss")).min()
    by = ["problem", *SETTING[1:], "kind", "algorithm"]
    return pairs.group_by(by).agg(epsilon=first).sort(by)
