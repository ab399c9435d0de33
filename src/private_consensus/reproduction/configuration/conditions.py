"""Describe the conditions of figures and claims: data set, epsilon, delta, agents, graph, runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from private_consensus.common.row_filters import matches
from private_consensus.core import algorithms
from private_consensus.core.algorithms.base import Analysis

from ..claims.schema import PRIVATE
from ..data import PREPARATIONS
from ..data.catalogue import entry

if TYPE_CHECKING:
    from ..claims import Claim, Series, Test
    from .plan import Plan
    from .schema import Curve, Panel

QUANTITIES = {
    "epsilon": ("epsilon", ("budget", "epsilon")),
    "delta": ("delta", ("budget", "delta")),
    "agents": ("N", ("network", "agents")),
}
"""Symbol of each listed quantity, and its path in a setting."""
GRAPHS = {
    "edges": "fixed graph", "erdos_renyi": "Erdős–Rényi graph", "random_edges": "random graph",
    "ring": "ring", "path": "path", "star": "star", "complete": "complete graph",
    "random_regular": "random regular graph",
}  # fmt: skip
"""Words for networks."""
NO_EPSILON = "no epsilon: the scale of the noise, if any, is a parameter"
SYNTHETIC = "synthetic"
DATA_NAMES = {SYNTHETIC: "synthetic data", "adult": "Adult", "us": "US census",
              "brazil": "Brazil census", "mnist": "MNIST", "cifar10": "CIFAR-10"}  # fmt: skip
BANDS = {
    "standard error": "standard error",
    "standard deviation": "standard deviation of the runs",
    "range": "smallest and largest run",
    "quartiles": "quartiles",
}
MAX_LISTED = 4
"""Number of values of a quantity that are listed; more are given as a range."""


@dataclass(frozen=True)
class CurveConditions:
    """Conditions under which one curve was computed.

    Attributes
    ----------
    values : mapping
        Quantity to the set of its finite, positive values.
    on_x_axis : frozenset
        Quantities that the x axis shows.
    datasets : frozenset
        Names of the data sets.
    runs : int
        Number of Monte-Carlo runs per point.
    statistic, band : str
        Statistic over the runs, and meaning of the band; empty if there is no band.
    """

    panel: int
    values: Mapping[str, frozenset[float]]
    on_x_axis: frozenset[str] = frozenset()
    datasets: frozenset[str] = frozenset()
    runs: int = 0
    statistic: str = ""
    band: str = ""


def conditions_of(plan: Plan, figure: str) -> str:
    """Describe the conditions of a figure in one line, in parts separated by semicolons.

    An example is ``Adult; epsilon = 1, delta = 1e-05, N = 10; mean of 50 runs, band: standard
    error``. If a quantity has several values, the text states whether they differ between panels,
    between curves or along the x axis.
    """
    curves = list(_curves(plan, figure))
    settings = [_values_text(curves, quantity) for quantity in QUANTITIES]
    sections = [_data_text(curves), ", ".join(filter(None, settings)), *_statistics_text(curves)]
    return "; ".join(filter(None, sections))


def tested_conditions_of(plan: Plan, claim: Claim) -> str:
    """Describe the settings that the primary variant of a claim tests, in one line.

    An example is ``Adult; epsilon = 1, delta = 1e-05, N = 10; ring; T = 50``. The line names the
    experiments with their numbers of runs if the figure does not show all of these runs.
    """
    tests = claim.variants[claim.primary_variant].tests
    settings = [
        setting
        for test in tests
        for series in test.all_series
        for setting in _selected(plan, series)
    ]
    if not settings:
        return ""
    values = _values(settings) | {"T": frozenset(float(s["horizon"]) for s in settings)}
    tested = [CurveConditions(0, values, datasets=_datasets(settings))]
    epsilon, delta, agents, horizon = (
        _values_text(tested, quantity) for quantity in ("epsilon", "delta", "agents", "T")
    )
    budget = f"{epsilon}, {delta or 'delta = 0'}" if epsilon else NO_EPSILON
    graphs = {GRAPHS.get(name := s["network"]["name"], name) for s in settings}
    network = f"{agents}, {' and '.join(sorted(graphs))}" if agents else ""
    runs = _runs_text(plan, claim, tests)
    return "; ".join(filter(None, [_data_text(tested), budget, network, horizon, runs]))


def _runs_text(plan: Plan, claim: Claim, tests: Sequence[Test]) -> str:
    """Name the runs that decide a claim, if the figure of the claim does not show all of them.

    Tests of epsilon use the privacy of settings, which has no runs.
    """
    used = [(test.kind, series) for test in tests for series in test.all_series]
    private = {series.experiment for kind, series in used if kind == PRIVATE}
    measured = [(series.experiment, series.method) for kind, series in used if kind != PRIVATE]
    shown, counts = _run_counts(plan, plan.cells_of(claim.figure)), _run_counts(plan, measured)
    if {*private, *counts} <= shown.keys() or claim.untested or claim.untestable:
        return ""
    verb = "illustrated" if claim.theorems else "decided"
    sources = [f"{_runs(count)} of {name}" for name, count in counts.items()]
    sources += [f"the privacy of {name}" for name in sorted(private)]
    in_figure = " or ".join(map(_runs, sorted(set(shown.values()))))
    return f"{verb} by {', '.join(sources)}; the figure shows {in_figure} of {', '.join(shown)}"


def _run_counts(plan: Plan, cells: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Return the number of runs of each experiment of some cells."""
    counts: dict[str, int] = {}
    for experiment, method in cells:
        is_exact = issubclass(algorithms.load(method), Analysis)
        runs = 1 if is_exact else plan.cell(experiment, method)["runs"]
        counts[experiment] = max(runs, counts.get(experiment, 0))
    return counts


def _runs(count: int) -> str:
    return "one run" if count == 1 else f"{count:,} runs"


def _curves(plan: Plan, figure: str) -> Iterator[CurveConditions]:
    for index, panel in enumerate(plan.figures[figure].panels):
        if panel.graph:
            agents = float(plan.experiments[panel.experiment].network.agents)
            yield CurveConditions(index, {"agents": frozenset([agents])})
        for curve in panel.curves:
            yield _curve(plan, index, panel, curve)


def _curve(plan: Plan, index: int, panel: Panel, curve: Curve) -> CurveConditions:
    settings = _selected(plan, curve)
    axis = plan.experiments[curve.experiment].axes.get(panel.x)
    target = axis.set if axis else ""
    on_axis = (q for q, (_, path) in QUANTITIES.items() if target.startswith(".".join(path)))
    runs = 1 if "run" in curve.where else plan.cell(curve.experiment, curve.method)["runs"]
    kind = "quartiles" if panel.statistic == "median" else curve.interval
    return CurveConditions(
        panel=index,
        values=_values(settings),
        on_x_axis=frozenset(on_axis),
        datasets=_datasets(settings),
        runs=runs,
        statistic=panel.statistic if runs > 1 else "",
        band=curve.band if curve.low else BANDS[kind] if runs > 1 else "",
    )


def _selected(plan: Plan, entry: Curve | Series) -> list[Mapping[str, Any]]:
    """Return the settings whose measurements a curve or the series of a test uses."""
    return [
        setting
        for setting in plan.cell(entry.experiment, entry.method)["settings"]
        if setting["variant"] == entry.variant and matches(setting["columns"], entry.where)
    ]


def _datasets(settings: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    prepared = {setting["problem"].get("prepared") for setting in settings}
    return frozenset(PREPARATIONS[name].dataset if name else SYNTHETIC for name in prepared)


def _values(settings: Sequence[Mapping[str, Any]]) -> dict[str, frozenset[float]]:
    """Return the finite, positive values of each quantity in some settings."""
    values = {
        quantity: {float(setting[section][key]) for setting in settings}
        for quantity, (_, (section, key)) in QUANTITIES.items()
    }
    return {q: frozenset(v for v in vs if isfinite(v) and v > 0) for q, vs in values.items()}


def _values_text(curves: Sequence[CurveConditions], quantity: str) -> str:
    """Describe the values of a quantity, and how it varies if there are several."""
    values = sorted(set().union(*(curve.values.get(quantity, ()) for curve in curves)))
    if not values or (quantity == "agents" and values == [1.0]):
        return ""
    symbol = QUANTITIES[quantity][0] if quantity in QUANTITIES else quantity
    if len(values) == 1:
        return f"{symbol} = {values[0]:g}"
    listed = (
        f"{symbol} = {', '.join(f'{value:g}' for value in values)}"
        if len(values) <= MAX_LISTED
        else f"{symbol} from {values[0]:g} to {values[-1]:g}"
    )
    return f"{listed}{_variation(curves, quantity)}"


def _variation(curves: Sequence[CurveConditions], quantity: str) -> str:
    """Describe whether a quantity varies along the x axis, by panel or by curve."""
    several = [curve for curve in curves if len(curve.values.get(quantity, ())) > 1]
    if several:
        along = all(quantity in curve.on_x_axis for curve in several)
        return " (x axis)" if along else ""
    panels: dict[int, set[float]] = {}
    for curve in curves:
        panels.setdefault(curve.panel, set()).update(curve.values.get(quantity, ()))
    panels = {index: values for index, values in panels.items() if values}
    return " (by panel)" if all(len(values) == 1 for values in panels.values()) else " (by curve)"


def _data_text(curves: Sequence[CurveConditions]) -> str:
    names = dict.fromkeys(name for curve in curves for name in sorted(curve.datasets))
    return " and ".join(DATA_NAMES.get(name) or entry(name).title for name in names)


def _statistics_text(curves: Sequence[CurveConditions]) -> list[str]:
    """Return the number of runs with the statistics over them, and the meanings of the bands."""
    counts = sorted({curve.runs for curve in curves if curve.runs})
    if not counts:
        return []
    runs = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
    statistics = dict.fromkeys(curve.statistic for curve in curves if curve.statistic)
    if counts == [1]:
        return ["one run", *(f"band: {band}" for band in _bands(curves, ""))]
    texts = []
    for statistic in statistics:
        bands = _bands(curves, statistic)
        band = f", band: {' or '.join(bands)}{' (by curve)' * (len(bands) > 1)}" if bands else ""
        texts.append(f"{statistic} of {runs} runs{band}")
    return texts


def _bands(curves: Sequence[CurveConditions], statistic: str) -> list[str]:
    """Return the meanings of the bands of all curves with a statistic, or without one."""
    matching = [curve for curve in curves if curve.statistic in (statistic, "")]
    return list(dict.fromkeys(curve.band for curve in matching if curve.band))
