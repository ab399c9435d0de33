"""Simulation for the Python API: measurements, models, derived guarantee, plot and audit."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import polars as pl

from private_consensus.audits.audit import audit
from private_consensus.audits.result import AuditResult
from private_consensus.common import yamls
from private_consensus.common.errors import Diverged, arguments
from private_consensus.common.extras import needed
from private_consensus.common.json_values import to_json
from private_consensus.common.provenance import write_text
from private_consensus.common.terminal import inline
from private_consensus.core import library
from private_consensus.core.algorithms.base import Algorithm, parameters, unstable_steps
from private_consensus.core.algorithms.parameters import FOR_CALIBRATION
from private_consensus.core.networks import Network
from private_consensus.core.problems import Problem
from private_consensus.core.randomness import Streams
from private_consensus.core.splitting import Shares
from private_consensus.privacy import Budget
from private_consensus.privacy.derivations import WHOLE, derive


@dataclass(frozen=True)
class Result(library.Simulation):
    """Result of :func:`simulate`, made by that function.

    Parameters
    ----------
    algorithm : Algorithm
        With calibrated noise, on the first graph.
    claimed : Budget
        Budget that the algorithm claims to meet.
    guarantee : Guarantee
        Guarantee for all releases of the agent with the largest privacy loss in one run.
        ``guarantee.derivation`` explains it in words and numbers.
    measurements : polars.DataFrame
        Columns t, quantity, metric, run, value. They are computed from the records; no guarantee
        covers them.
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

    def to_pandas(self) -> Any:
        """Return the measurements as a pandas DataFrame; pyarrow is not needed.

        Raises
        ------
        ModuleNotFoundError
            Without pandas, with the command that installs it.
        """
        with needed("pandas"):
            import pandas
        return pandas.DataFrame(self.measurements.to_dict(as_series=False))

    def plot(self) -> Any:
        """Return an Altair chart of the measurements against the iteration.

        Lines are means over runs, and bands are standard errors. The sum of two charts shows both
        results.

        Returns
        -------
        altair.Chart

        Raises
        ------
        ModuleNotFoundError
            Without altair, with the command that installs it.
        """
        with needed("altair"):
            import altair
        name = _words(type(self.algorithm).__name__)
        label = f"{name}, {self.claimed}"
        values = pl.col("value")
        error = (values.std(ddof=1).fill_null(0.0) / pl.len().sqrt()).alias("error")
        table = self.measurements.group_by("t", "quantity", "metric").agg(values.mean(), error)
        table = table.sort("t").with_columns(
            algorithm=pl.lit(label),
            measure=pl.col("quantity") + " " + pl.col("metric").str.replace_all("_", " "),
            low=pl.col("value") - pl.col("error"),
            high=pl.col("value") + pl.col("error"),
        )
        measures = table["measure"].unique(maintain_order=True).to_list()
        title = measures[0] if len(measures) == 1 else "value"
        base: Any = altair.Chart(altair.Data(values=table.to_dicts())).encode(
            x=altair.X("t:Q", title="iteration"),
            color=altair.Color("algorithm:N", title=None),
        )
        if len(measures) > 1:
            base = base.encode(strokeDash=altair.StrokeDash("measure:N", title=None))
        band = base.mark_area(opacity=0.2).encode(
            y=altair.Y("low:Q", title=title), y2="high:Q", detail="measure:N"
        )
        return band + base.mark_line().encode(y=altair.Y("value:Q", title=title))

    def audit(
        self,
        *,
        runs: int | None = None,
        confidence: float | None = None,
        seed: int = 0,
        progress: Callable[[int, int], None] = lambda done, of: None,
    ) -> AuditResult:
        """Execute the algorithm on neighbouring data sets and test its claim.

        Parameters
        ----------
        runs : int, optional
            Runs on each of two data sets per attacked agent, at most. None: that of the command
            line.
        confidence : float, optional
            Confidence of the whole result. None: that of the command line.
        seed : int, default 0
            Seed of the executions.
        progress : callable, optional
            Called with the number of finished runs and of all runs.

        Returns
        -------
        AuditResult
        """
        defaults = yamls.read(Path(__file__).parents[1] / "defaults.yaml")["audit"]
        setting, network = self.setting, self.network
        return audit(
            setting.algorithm, self.problem, network, setting.budget, setting.horizon,
            runs=defaults["runs"] if runs is None else runs,
            confidence=defaults["confidence"] if confidence is None else confidence,
            delta=setting.budget.delta, seed=seed, progress=progress,
        )  # fmt: skip

    def export(self, path: str | Path, shares: Shares | None = None, *, run: int = 0) -> Path:
        """Write the average of the released models and its guarantee to a JSON file.

        Parameters
        ----------
        path : path
            File to write.
        shares : Shares, optional
            Shares from which the logistic regression was made; the file then has the coefficients
            in the units of the table.
        run : int, default 0
            Index of the run. Every run that is published uses the budget again.

        Returns
        -------
        Path
            The written file.

        Raises
        ------
        InvalidInput
            If the algorithm releases no model of each agent, or for a run that does not exist.
        """
        arguments.instance("path", path, str | Path, "the path of a file")
        average = self.models.average
        run = arguments.whole("run", run, 0, len(average) - 1)
        if shares is not None:
            arguments.instance("shares", shares, Shares, "Shares, or None")
        contents = {
            "algorithm": type(self.algorithm).__name__,
            "parameters": {
                name: getattr(value, "scale", value)
                for name, value in parameters(self.algorithm).items()
            },
            "horizon": self.setting.horizon,
            "epsilon": self.guarantee.epsilon,
            "delta": self.guarantee.delta,
            "proven": self.guarantee.proven,
            "relation": str(self.algorithm.relation),
            "model": average[run],
        }
        if shares is not None:
            contents["coefficients"] = shares.coefficients(average[run])
        write_text(Path(path), to_json(contents) + "\n")
        return Path(path)


def simulate(
    algorithm: Algorithm,
    problem: Problem | Callable[[Streams], Problem],
    network: Network | Callable[[Streams], Network],
    budget: Budget,
    horizon: int,
    *,
    runs: int = 10,
    seed: int = 0,
    measures: Sequence[tuple[str, str]] = (),
    iterations: Iterable[int] | None = None,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> Result:
    """Calibrate an algorithm to a budget, run it, and account for its releases.

    Parameters
    ----------
    algorithm : Algorithm
        Not yet calibrated.
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
        Equal seeds give equal numbers.
    measures : sequence of (quantity, metric), optional
        Quantities of the algorithm (``released``, ``internal``, ...) and names of
        ``problem.metrics``. Default: the first metric of the released quantity.
    iterations : iterable of int, optional
        Iterations to measure, each between 1 and ``horizon``; the last one is always measured.
        Default: all.
    progress : callable, optional
        Called with the number of finished runs and of all runs.

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
    try:
        done = library.simulate(
            algorithm, problem, network, budget, horizon, runs=runs, seed=seed, measures=measures,
            iterations=iterations, progress=progress,
        )  # fmt: skip
    except Diverged as error:
        steps = unstable_steps(algorithm, problem) if isinstance(problem, Problem) else {}
        for name, (step, largest) in steps.items():
            text = f"{name} = {step:.4g} is above 2/L = {largest:.4g}"
            error.add_note(f"{text}, the largest stable step of gradient descent")
        raise
    values = {field.name: getattr(done, field.name) for field in fields(done)}
    text = "\n".join([*derive(done.releases, budget), *_calibration(done)])
    values["guarantee"] = replace(done.guarantee, derivation=text)
    return Result(**values)


def _calibration(done: library.Simulation) -> list[str]:
    """Describe the parameters that set the noise, if the noise does not use the whole budget."""
    epsilon, budget = done.guarantee.epsilon, done.claimed
    if not budget.private or abs(epsilon / budget.epsilon - 1) <= WHOLE:
        return []
    kind = type(done.algorithm)
    names = [f.name for f in fields(kind) if FOR_CALIBRATION.keys() & f.metadata.keys()]
    lines = []
    for name in names:
        description = parameter_description(kind, name)
        lines.append(f"  {name} = {getattr(done.algorithm, name)!r}. {description}".rstrip())
    return ["Parameters that set the noise:", *lines] if lines else []


def parameter_description(kind: type, name: str) -> str:
    """Return the description of a parameter in the numpydoc docstring of a class.

    Parameters
    ----------
    kind : type
        Documented class; its base classes are searched, too.
    name : str
        Name of the parameter.

    Returns
    -------
    str
        One line; empty if no docstring describes the parameter.
    """
    for documented in kind.__mro__:
        text = inspect.cleandoc(documented.__doc__ or "")
        match = re.search(rf"^{name} : .*\n((?:    .*\n?|\n)+)", text, re.MULTILINE)
        if match:
            return inline(" ".join(match[1].split()))
    return ""


def _words(name: str) -> str:
    """Return the name of a class as words."""
    return re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", " ", name)
