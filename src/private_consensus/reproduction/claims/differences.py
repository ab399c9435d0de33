"""Name the parameters of a claim's tests that were not tested at the values of the paper."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from private_consensus.common.row_filters import matches

from .schema import Claim, Series, value_of

LABELS = {
    "network.name": "graph", "problem.prepared": "data", "problem.loss": "objective",
    "problem.loss_scale": "loss scale C", "problem.coding": "labels", "algorithm.init": "start",
    "algorithm.s": "bits s", "algorithm.B": "batch size", "algorithm.e3": "share e3 / e1",
    "algorithm.sigma2": "sigma rule of Q-DPSGD-2",
    "algorithm.emulated": "emulated number of records",
}  # fmt: skip
"""Words for parameters whose key does not name them."""

Cell = Callable[[str, str], Mapping[str, Any]]
"""Specification of an experiment and algorithm, :meth:`.plan.Plan.cell`."""


def differences(claim: Claim, experiments: Mapping[str, Any], cell: Cell) -> str:
    """Name each parameter of the primary variant without a test at the value of the paper.

    The two sides of comparisons count separately. ``experiments`` have the values of the paper by
    dotted path (``paper_values``).
    """
    variant = claim.variants[claim.primary_variant]
    tested: dict[tuple[int, str, str], dict[str, None]] = defaultdict(dict)
    sides = [pair for test in variant.tests for pair in enumerate(test.all_series)]
    for side, series in sides:
        for path, stated in experiments[series.experiment].paper_values.items():
            for value in _values(series, path, cell(series.experiment, series.method)):
                if stated is not None and value is not None:
                    tested[side, path, _text(stated)][_text(value)] = None
    lines = (
        f"{LABELS.get(path) or path.split('.')[-1]} {', '.join(values)} (paper: {published})"
        for (_, path, published), values in tested.items()
        if published not in values
    )
    return "; ".join(dict.fromkeys(lines))


def _values(series: Series, path: str, cell: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the value of a parameter in each setting of a series; None for an unknown parameter."""
    for setting in cell["settings"]:
        if setting["variant"] == series.variant and matches(setting["columns"], series.where):
            yield value_of(path, setting, cell["algorithm"])


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value).replace("_", " ")
