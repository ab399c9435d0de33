"""Simulation for the Python API, with measurements, models, privacy guarantee, plot and audit."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl

from private_consensus.audits.auditing import audit
from private_consensus.audits.result import AuditResult
from private_consensus.common.errors import Diverged, InvalidInput, arguments, require
from private_consensus.common.provenance import write_text
from private_consensus.core import simulation
from private_consensus.core.algorithms.base import (
    Algorithm,
    marked_fields,
    parameters,
    unstable_steps,
)
from private_consensus.core.claims import claims_of
from private_consensus.core.networks import Network
from private_consensus.core.parameters import CALIBRATION
from private_consensus.core.problems import Problem
from private_consensus.core.randomness import PURPOSES, Streams
from private_consensus.core.simulation import (
    MAX_HORIZON,
    MAX_RUNS,
    Environment,
    MeasurementPlan,
    Setting,
)
from private_consensus.core.splitting import Shares
from private_consensus.privacy import Budget, Guarantee, Release, account
from private_consensus.privacy.derivations import BUDGET_TOLERANCE, derive

T = TypeVar("T")

FINAL = (("released", "value"), ("internal", "value"))
"""Measures whose values after the last iteration are the models."""


@dataclass(frozen=True)
class Models:
    """Models after the last iteration.

    Parameters
    ----------
    released : ndarray, shape (runs, agents, dim)
        Models that the agents release. The guarantee covers the models of one run.
    per_agent : ndarray, shape (runs, agents, dim)
        Models that the agents keep, if they differ from the released models. The guarantee does not
        cover them, and an agent may use only its own model.
    """

    released: np.ndarray
    per_agent: np.ndarray

    @property
    def average(self) -> np.ndarray:
        """Mean of the released models over agents, which the guarantee covers; (runs, dim)."""
        return self.released.mean(-2)


@dataclass(frozen=True)
class Result:
    """Result of :func:`simulate`.

    Parameters
    ----------
    algorithm : Algorithm
        Algorithm with calibrated noise, on the first graph.
    claimed : Budget
        Budget that the algorithm claims to meet.
    guarantee : Guarantee
        Guarantee for all releases of the agent with the largest privacy loss in one run.
        ``guarantee.derivation`` explains it in words and numbers.
    measurements : polars.DataFrame
        Columns t, quantity, metric, run, value. They are computed from the private records, and no
        guarantee covers them.
    releases : list of Release
        Releases from which the guarantee is computed.
    setting : Setting
        Algorithm before calibration, budget and number of iterations.
    problem : Problem
        Problem of the first run.
    network : Network
        Network of all runs.
    final : dict of str to ndarray
        Values after the last iteration, by quantity; :attr:`models` returns them.
    """

    algorithm: Algorithm
    claimed: Budget
    guarantee: Guarantee
    measurements: pl.DataFrame
    releases: Sequence[Release] = field(repr=False)
    setting: Setting = field(repr=False)
    problem: Problem = field(repr=False)
    network: Network = field(repr=False)
    final: dict[str, np.ndarray] = field(repr=False)

    @property
    def models(self) -> Models:
        """Models after the last iteration, released and per agent.

        Raises
        ------
        InvalidInput
            If the algorithm releases no model of each agent.
        """
        released = self.final.get("released", np.empty(0))
        expected = "an algorithm that releases one vector per agent"
        require(released.ndim == 3, "models", type(self.algorithm).__name__, expected)
        return Models(released, self.final.get("internal", released))

    def plot(self) -> Any:
        """Return an Altair chart of the measurements against the iteration.

        Lines are means over runs, and bands are standard errors. The sum of two charts shows both
        results.

        Returns
        -------
        altair.Chart
        """
        import altair

        value, measure = pl.col("value"), pl.col("metric").str.replace_all("_", " ")
        error = value.std(ddof=1).fill_null(0.0) / pl.len().sqrt()
        points = (
            self.measurements.group_by("t", "quantity", "metric")
            .agg(value.mean(), low=value.mean() - error, high=value.mean() + error)
            .sort("t")
            .with_columns(
                algorithm=pl.lit(f"{type(self.algorithm).__name__}, {self.claimed}"),
                measure=pl.format("{} {}", "quantity", measure),
            )
        )
        base: Any = altair.Chart(altair.Data(values=points.to_dicts())).encode(
            x=altair.X("t:Q", title="iteration"),
            color=altair.Color("algorithm:N", title=None),
            strokeDash=altair.StrokeDash("measure:N", title=None),
        )
        band = base.mark_area(opacity=0.2, strokeOpacity=0).encode(y="low:Q", y2="high:Q")
        return band + base.mark_line().encode(y=altair.Y("value:Q", title="value"))

    def audit(self, *, pairs: int | None = None, seed: int = 0) -> AuditResult:
        """Try to contradict the guarantee by executions on neighbouring data.

        Parameters
        ----------
        pairs : int
            Number of pairs of data sets; by default 20 to 200.
        seed : int, default 0
            Seed of the data and of the noise.

        Returns
        -------
        AuditResult
        """
        setting, network = self.setting, self.network
        return audit(
            setting.algorithm, self.problem, network, setting.budget, setting.horizon,
            pairs=pairs, seed=seed,
        )  # fmt: skip

    def export(self, path: str | Path, shares: Shares | None = None, *, run: int = 0) -> Path:
        """Write the average of the released models and its guarantee to a JSON file.

        Parameters
        ----------
        path : path
            File to write.
        shares : Shares, optional
            Records on which the logistic regression was built. The file then contains the values
            that determine each prediction (:meth:`Shares.prediction_rule`).
        run : int, default 0
            Index of the run. Publishing further runs increases the privacy loss.

        Returns
        -------
        Path
            The written file.

        Raises
        ------
        InvalidInput
            If the algorithm releases no model of each agent, if ``shares`` did not build the
            problem, for a run that does not exist, or a path that cannot be written.
        """
        path = arguments.path("path", path, "the path of a file")
        average = self.models.average
        run = arguments.whole("run", run, 0, len(average) - 1)
        if shares is not None:
            arguments.instance("shares", shares, Shares, "Shares, or None")
            expected = "the Shares whose logistic_regression() the result has as problem"
            rebuilt = shares.logistic_regression()
            is_equal = all(
                np.array_equal(getattr(self.problem, name, np.nan), getattr(rebuilt, name))
                for name in ("features", "labels")
            )
            require(is_equal, "shares", shares, expected)
        contents = {
            "algorithm": type(self.algorithm).__name__,
            "parameters": parameters(self.algorithm),
            "horizon": self.setting.horizon,
            "epsilon": self.guarantee.epsilon,
            "delta": self.guarantee.delta,
            "proven": self.guarantee.proven,
            "relation": str(self.algorithm.relation),
            "observer": self.algorithm.observer,
            "model": average[run].tolist(),
        }
        if shares is not None:
            contents |= shares.prediction_rule(average[run])
        write_text(path, json.dumps(contents, indent=1, default=_plain) + "\n")
        return path


def _plain(value: object) -> object:
    """Convert a value that JSON has no type for to numbers, or else to text."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)


@arguments.known_keywords
def simulate(
    algorithm: Algorithm,
    problem: Problem | Callable[[Streams], Problem],
    network: Network | Callable[[Streams], Network],
    budget: Budget,
    horizon: int,
    *,
    runs: int = 10,
    seed: int = 0,
    measures: Sequence[str] = (),
) -> Result:
    """Calibrate an algorithm to a budget, run it, and account for its releases.

    Parameters
    ----------
    algorithm : Algorithm
        Algorithm without calibrated noise.
    problem, network
        Objects, which all runs share, or functions that build them from the streams of some runs.
    budget : Budget
        Budget of all iterations of one run.
    horizon : int
        Number of iterations T.
    runs : int, default 10
        Number of Monte-Carlo runs. More runs do not change earlier runs. The guarantee covers one
        run: publish the messages or models of one run only.
    seed : int, default 0
        Root seed; equal seeds give equal results. Calls with one seed draw the same noise, which
        cancels in the difference of two models. A model that is published needs a secret seed that
        is used once.
    measures : sequence of str, optional
        Quantities of the algorithm (``released``, ``internal``, ...) with names of
        ``problem.metrics``, such as ``"released.node_error"``. Default: the first metric of the
        released quantity.

    Returns
    -------
    Result
        Measurements, models, the guarantee with its derivation, and the calibrated algorithm.

    Raises
    ------
    InvalidInput
        For an argument of another type or out of range, a measure that does not exist, and a
        budget, problem or network that does not fit the algorithm.
    Diverged
        At the first value that is not finite; a note names the largest stable step size.
    """
    arguments.instance("algorithm", algorithm, Algorithm, "an Algorithm object, no class")
    arguments.instance("budget", budget, Budget, "a Budget")
    horizon = arguments.whole("horizon", horizon, 1, MAX_HORIZON)
    runs = arguments.whole("runs", runs, 1, MAX_RUNS)
    seed = arguments.whole("seed", seed, 0)
    pairs = _pairs(measures)
    environment = Environment(
        _builder("problem", problem, Problem),
        _builder("network", network, Network),
    )
    setting = Setting(algorithm, budget, horizon)
    calibration = simulation.calibrate(
        [setting],
        environment,
        root=seed,
        groups=dict.fromkeys(PURPOSES, "simulate"),
        runs=runs,
    )
    metrics = calibration.problem.metrics
    require(bool(pairs or metrics), "measures", None, "a problem with metrics")
    pairs = pairs or (("released", next(iter(metrics))),)
    for _, metric in pairs:
        arguments.choice("measures", metric, metrics)
        _require_test_records(calibration.problem, metric)
    iterations = frozenset(range(1, horizon + 1))
    plan = MeasurementPlan((*pairs, *FINAL), iterations, intermediate=pairs)
    try:
        values = simulation.simulate(calibration, plan=plan)
    except Diverged as error:
        for name, (step, largest) in unstable_steps(algorithm, calibration.problem).items():
            text = f"{name} = {step:.4g} is above 2/L = {largest:.4g}"
            error.add_note(f"{text}, the largest stable step of gradient descent")
        raise
    (recorded,) = values
    final_values = {
        quantity: recorded.pop((horizon, quantity, metric))
        for quantity, metric in FINAL
        if (horizon, quantity, metric) in recorded
    }
    measured = {(quantity, metric) for _, quantity, metric in recorded}
    for quantity, metric in pairs:
        expected = f"a key of {type(algorithm).__name__}.observables; measures=[...] names others"
        require((quantity, metric) in measured, "measures", quantity, expected)
    rows = pl.DataFrame(simulation.rows_of(values)).drop("setting")
    released = [
        (case.network, case.algorithm.releases(calibration.problem, case.network, horizon))
        for case in calibration.cases(0)
    ]
    guarantee, worst_network, releases = max(
        ((account(releases, budget.delta), graph, releases) for graph, releases in released),
        key=lambda entry: entry[0].epsilon,
    )
    calibrated = calibration.algorithms[0][0]
    claims = claims_of(calibrated, budget, calibration.problem, worst_network, horizon)
    _, claimed = claims[0]
    derivation = [
        *derive(releases, budget.delta, claimed),
        *_calibration(calibrated, guarantee.epsilon, claimed),
        f"Observer: {algorithm.observer}.",
    ]
    guarantee = replace(guarantee, derivation="\n".join(derivation))
    return Result(
        calibrated, budget, guarantee, rows, releases, setting,
        calibration.problem, calibration.network, final_values,
    )  # fmt: skip


def _calibration(algorithm: Algorithm, epsilon: float, claimed: float) -> list[str]:
    """Describe the parameters that set the noise, if epsilon differs from the claim."""
    if math.isinf(claimed) or abs(epsilon / claimed - 1) <= BUDGET_TOLERANCE:
        return []
    names = marked_fields(algorithm, CALIBRATION)
    lines = [f"  {name} = {getattr(algorithm, name)!r}" for name in names]
    return ["Parameters that set the noise:", *lines] if lines else []


def _require_test_records(problem: Problem, metric: str) -> None:
    """Refuse a metric on test records for a problem that has none."""
    labels = problem.test_labels if problem.offers("test_labels") else None
    tested = "test" not in metric or labels is None or labels.shape[-1] > 0
    require(tested, "measures", metric, "a metric without test records: this problem has none")


def _pairs(measures: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return pairs of a quantity and a metric."""
    expected = "texts such as 'released.node_error'"
    pairs = []
    for text in arguments.items("measures", measures, str, expected):
        require(text.count(".") == 1, "measures", text, expected)
        quantity, _, metric = text.partition(".")
        pairs.append((quantity, metric))
    return tuple(pairs)


def _builder(key: str, value: object, kind: type[T]) -> Callable[[Streams], T]:
    """Return a function from streams to a problem or network, whose results are checked."""
    expected = f"a {kind.__name__}, or a function from Streams to one"
    if isinstance(value, kind):
        return lambda streams: value
    if isinstance(value, type) or not callable(value):
        raise InvalidInput(key, value, expected)

    def build(streams: Streams) -> T:
        return arguments.instance(key, value(streams), kind, expected)

    return build
