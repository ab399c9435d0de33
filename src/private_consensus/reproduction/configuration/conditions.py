"""Describe the conditions of figures and claims: data set, epsilon, delta, agents, graph, runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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

Settings = Sequence[Mapping[str, Any]]

GRAPHS = {
    "edges": "fixed graph", "erdos_renyi": "Erdős–Rényi graph", "random_edges": "random graph",
    "complete": "complete graph", "random_regular": "random regular graph",
}  # fmt: skip
"""Words for networks whose name is no description."""
NO_EPSILON = "no epsilon: the scale of the noise, if any, is a parameter"
DATA_NAMES = {"adult": "Adult", "us": "US census", "brazil": "Brazil census", "mnist": "MNIST",
              "cifar10": "CIFAR-10"}  # fmt: skip
BANDS = {
    "standard error": "standard error",
    "standard deviation": "standard deviation of the runs",
    "range": "smallest and largest run",
}
MAX_LISTED = 4
"""Number of values of a quantity that are listed; more are given as a range."""


def conditions_of(plan: Plan, figure: str) -> str:
    """Describe the conditions of a figure in one line, in parts separated by semicolons.

    An example is ``Adult; epsilon = 1, delta = 1e-05, N = 10; mean of 50 runs, band: standard
    error``. The text is empty for a figure without curves.
    """
    panels = plan.figures[figure].panels
    settings = [
        setting for panel in panels for curve in panel.curves for setting in _selected(plan, curve)
    ]
    values = ", ".join(filter(None, (*_budget_texts(settings), _agents_text(settings))))
    return "; ".join(filter(None, [_data_text(settings), values, *_statistics(plan, panels)]))


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
    epsilon, delta = _budget_texts(settings)
    budget = f"{epsilon}, {delta or 'delta = 0'}" if epsilon else NO_EPSILON
    names = {setting["network"]["name"] for setting in settings}
    graphs = " and ".join(sorted(GRAPHS.get(name, name) for name in names))
    agents = _agents_text(settings)
    network = f"{agents}, {graphs}" if agents else ""
    horizon = _values_text("T", [setting["horizon"] for setting in settings])
    runs = _runs_text(plan, claim, tests)
    return "; ".join(filter(None, [_data_text(settings), budget, network, horizon, runs]))


def _selected(plan: Plan, entry: Curve | Series) -> Settings:
    """Return the settings whose measurements a curve or the series of a test uses."""
    return [
        setting
        for setting in plan.cell(entry.experiment, entry.method)["settings"]
        if setting["variant"] == entry.variant and matches(setting["columns"], entry.where)
    ]


def _budget_texts(settings: Settings) -> list[str]:
    return [_values_text(key, [s["budget"][key] for s in settings]) for key in ("epsilon", "delta")]


def _agents_text(settings: Settings) -> str:
    counts = [setting["network"]["agents"] for setting in settings]
    return _values_text("N", counts) if {*counts} != {1} else ""


def _values_text(symbol: str, values: Iterable[float]) -> str:
    """Describe the finite, positive values of a quantity; empty if there are none."""
    finite = sorted({float(value) for value in values if isfinite(value) and value > 0})
    if len(finite) > MAX_LISTED:
        return f"{symbol} from {finite[0]:g} to {finite[-1]:g}"
    return f"{symbol} = {', '.join(f'{value:g}' for value in finite)}" if finite else ""


def _data_text(settings: Settings) -> str:
    prepared = {setting["problem"].get("prepared") for setting in settings}
    names = sorted({PREPARATIONS[name].dataset for name in prepared if name})
    titles = [DATA_NAMES.get(name) or entry(name).title for name in names]
    return " and ".join([*titles, *(["synthetic data"] if None in prepared else [])])


def _statistics(plan: Plan, panels: Iterable[Panel]) -> list[str]:
    """Return the statistics over the runs, each with the meanings of its bands."""
    counts, bands = set(), {}
    for panel in panels:
        for curve in panel.curves:
            band = curve.band if curve.low else ""
            if curve.interval != "none" and not _is_exact(curve.method):
                cell = plan.cell(curve.experiment, curve.method)
                runs = 1 if "run" in curve.where else cell["runs"]
                counts.add(runs)
                kind = "quartiles" if panel.statistic == "median" else BANDS[curve.interval]
                band = band or (kind if runs > 1 else "")
            bands.setdefault(panel.statistic, {})[band] = None
    if bands and not counts:
        return ["computed without random samples"]
    runs = _runs(*sorted(counts))
    texts = []
    for statistic, meanings in bands.items():
        text = runs if counts == {1} else f"{statistic} of {runs}"
        band = " or ".join(filter(None, meanings))
        texts.append(f"{text}, band: {band}" if band else text)
    return texts


def _runs(*counts: int) -> str:
    if {*counts} == {1}:
        return "one run"
    listed = dict.fromkeys(f"{count:,}" for count in counts)
    return f"{' or '.join(listed)} runs"


def _runs_text(plan: Plan, claim: Claim, tests: Sequence[Test]) -> str:
    """Name the runs that decide a claim, if the figure of the claim does not show all of them.

    Tests of epsilon use the privacy of settings, which has no runs.
    """
    used = [(test.kind, series) for test in tests for series in test.all_series]
    private = {series.experiment for kind, series in used if kind == PRIVATE}
    measured = [(series.experiment, series.method) for kind, series in used if kind != PRIVATE]
    counts, shown = _run_counts(plan, measured), _run_counts(plan, plan.cells_of(claim.figure))
    if {*private, *counts} <= shown.keys() or claim.untested or claim.untestable:
        return ""
    sources = [f"{_runs(count)} of {name}" for name, count in counts.items()]
    sources += [f"the privacy of {name}" for name in sorted(private)]
    verb = "illustrated" if claim.theorems else "decided"
    in_figure = _runs(*sorted(shown.values()))
    return f"{verb} by {', '.join(sources)}; the figure shows {in_figure} of {', '.join(shown)}"


def _run_counts(plan: Plan, cells: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Return the number of runs of each experiment of some cells."""
    counts: dict[str, int] = {}
    for experiment, method in cells:
        runs = 1 if _is_exact(method) else plan.cell(experiment, method)["runs"]
        counts[experiment] = max(runs, counts.get(experiment, 0))
    return counts


def _is_exact(method: str) -> bool:
    return issubclass(algorithms.load(method), Analysis)
